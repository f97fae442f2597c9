//! `simurgh evaluate attention`: the attention maps of one position, as JSON and as a page. Computes nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::chess::{Game, Position};
use crate::cli::stdout;
use crate::measure::attention::{Subject, check, figures, page, to_json};
use crate::model::{AnyFile, ModelOptions, Source, attention_maps};
use crate::options::Options;

/// What each attention head of a network looks at in one position
///
/// Takes attention-body Lc0 networks, transformers of `simurgh train`, and GPTs. Writes attention.json and
/// attention.html, and prints each head in numbers.
#[derive(Args)]
pub struct Attention {
    /// The position before the moves; without it, the start position
    #[arg(long)]
    fen: Option<String>,
    /// Moves in UCI
    #[arg(long, num_args = 1.., value_name = "MOVE")]
    moves: Vec<String>,
    /// Folder for attention.json and attention.html
    #[arg(long, default_value = "attention", value_name = "FOLDER")]
    output: PathBuf,
}

pub fn run(args: &Attention, options: &Options) -> Result<()> {
    let mut game = match &args.fen {
        None => Game::default(),
        Some(fen) => Game::new(Position::from_fen(fen)?.0),
    };
    // One word of several moves is taken too.
    for text in args.moves.iter().flat_map(|words| words.split_whitespace()) {
        let m = game.current().parse_uci(text)?;
        game.play(m);
    }
    let source = Source::of_options(options)
        .ok_or_else(|| anyhow!("no network: name one with --weights"))?;
    let file = AnyFile::read(&source)?;
    let maps = attention_maps(&file, &ModelOptions::new(options)?, &game)?;
    check(&maps).map_err(|why| anyhow!("the network's attention is no softmax: {why}"))?;
    let chess960 = game.start().needs_chess960();
    let last_move = game.moves().last().map(|m| {
        let square = |s| usize::from(u8::from(s));
        [square(m.from()), square(m.to())]
    });
    let subject = Subject {
        network: file.name().to_owned(),
        fen: game.current().to_fen(chess960),
        moves: game
            .moves()
            .iter()
            .zip(game.positions())
            .map(|(&m, position)| position.move_to_uci(m, chess960))
            .collect(),
    };
    let heads = figures(&maps, last_move);
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make {}", args.output.display()))?;
    save(
        &args.output,
        "attention.json",
        &to_json(&subject, &maps, &heads),
    )?;
    save(
        &args.output,
        "attention.html",
        &page(&subject, &maps, &heads),
    )?;
    let mut text = "layer head  previous move  divergence  control tokens\n".to_owned();
    let percent = |x: Option<f64>| x.map_or("n/a".to_owned(), |x| format!("{:.1} %", 100.0 * x));
    for head in &heads {
        text += &format!(
            "{:>5} {:>4}  {:>13}  {:>10.3}  {:>14}\n",
            head.layer + 1,
            head.head + 1,
            percent(head.previous_move),
            head.divergence,
            percent(head.control)
        );
    }
    text += &format!(
        "written: {}\n",
        args.output.join("attention.html").display()
    );
    Ok(stdout::print(&text)?)
}

fn save(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
