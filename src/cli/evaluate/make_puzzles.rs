//! `simurgh evaluate make-puzzles`: only-move positions out of games, cut by Stockfish. Judges nothing itself.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::stockfish::stockfish;
use crate::cli::interrupt::on_interrupt;
use crate::cli::stdout;
use crate::measure::evaluate::judge::Judge;
use crate::measure::evaluate::only_moves;
use crate::measure::evaluate::positions::games;
use crate::measure::evaluate::store::Store;

/// Cut positions with one good move out of PGN games, with the moves before them
///
/// Stockfish looks at positions of each game with two lines; where the best move wins far more often than the next,
/// it is the only move. The line goes on as long as the solver has only moves. The file keeps the game's moves, so that
/// networks that read games can be shown the puzzles too; `simurgh evaluate --puzzles` reads it. Its puzzles are not
/// rated. What Stockfish said is kept beside the file, so that a cut run goes on.
#[derive(Args)]
pub struct MakePuzzles {
    /// Games, PGN, plain or gzipped
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pgn: Vec<PathBuf>,
    /// The puzzle file to write, CSV
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Puzzles to make, one a game at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Stockfish; default: on PATH or in /usr/games
    #[arg(long, value_name = "PROGRAM")]
    stockfish: Option<PathBuf>,
    /// Its depth
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=60))]
    depth: u32,
    /// How much more often the best move must win than the next, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    gap: f64,
    /// Which positions of a game are looked at
    #[arg(long, value_name = "N", default_value_t = 1)]
    draw_seed: u64,
}

/// Writes the puzzles.
///
/// # Errors
/// Files that cannot be read or written, no Stockfish, Ctrl-C.
pub fn run(args: &MakePuzzles) -> Result<()> {
    if !(args.gap > 0.0 && args.gap <= 1.0) {
        bail!("--gap is {}; expected more than 0, at most 1", args.gap);
    }
    let Some(config) = stockfish(args.stockfish.as_deref())? else {
        bail!("no Stockfish on PATH or in /usr/games; name one with --stockfish");
    };
    let cancel = on_interrupt("interrupted: ending; once more to end at once")?;
    let store = Store::open(&beside(&args.output, ".judged.sqlite"))?;
    let mut judge = Judge::start(config, args.depth, &cancel)?;
    // The old file stays until there is a whole new one.
    let unfinished = beside(&args.output, ".part");
    let cannot = || format!("cannot write {}", unfinished.display());
    let mut out = BufWriter::new(File::create(&unfinished).with_context(cannot)?);
    only_moves::write_header(&mut out).with_context(cannot)?;
    let bar = ProgressBar::new(args.count.into()).with_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} puzzles, {per_sec}, {eta} left  {msg}",
    )?);
    let (mut looked_at, mut refused, mut made) = (0_u64, 0_u64, 0_u32);
    'files: for path in &args.pgn {
        for game in games(path)? {
            if made == args.count {
                break 'files;
            }
            if cancel.load(Ordering::Relaxed) {
                bail!(
                    "interrupted after {made} puzzles; the same command goes on from what Stockfish said so far"
                );
            }
            let Ok(game) = game else {
                refused += 1;
                continue;
            };
            looked_at += 1;
            bar.set_message(format!("{looked_at} games"));
            let seed = args.draw_seed.wrapping_add(looked_at);
            let cut = match only_moves::cut(&mut judge, &store, &game, args.gap, seed) {
                Err(_) if cancel.load(Ordering::Relaxed) => continue,
                cut => cut?,
            };
            if let Some(cut) = cut {
                only_moves::write(&mut out, &cut).with_context(cannot)?;
                made += 1;
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    if cancel.load(Ordering::Relaxed) && made < args.count {
        bail!("{}", interrupted(made));
    }
    out.flush().with_context(cannot)?;
    fs::rename(&unfinished, &args.output)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    stdout::warn(format_args!(
        "{made} puzzles from {looked_at} games by {} at depth {}; {refused} games could not be read",
        judge.name(),
        args.depth
    ));
    Ok(())
}

fn interrupted(made: u32) -> String {
    format!(
        "interrupted after {made} puzzles; the same command goes on from what Stockfish said so far"
    )
}

/// A path with something after its name.
fn beside(path: &std::path::Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
