//! `simurgh datagen`: training data into files, and a look at what is in them. How records are made, stored
//! and read is the business of `train`.

mod generate;
mod v6;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use self::generate::Generate;
use super::stdout;
use crate::options::Options;
use crate::train::chunk::{ChunkFile, ChunkWriter};
use crate::train::labels::LabelReader;
use crate::train::{PolicyLabel, Sample, TrainingGame};

/// Training data: make it, import it, look at it
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, long_about = generate::ABOUT, after_help = generate::EXAMPLES)]
pub struct Datagen {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    generate: Generate,
}

#[derive(Subcommand)]
enum Command {
    /// Label files in text into one file of training data
    Import(Import),
    /// One record with its board and labels
    Show(Show),
    /// What a file holds
    Stats(Stats),
    ImportV6(v6::ImportV6),
    ExportV6(v6::ExportV6),
}

#[derive(Args)]
struct Import {
    /// Label files, plain or gzipped
    #[arg(long, required = true, num_args = 1..)]
    labels: Vec<PathBuf>,
    /// The file to write; it must not be there yet
    #[arg(long)]
    output: PathBuf,
}

#[derive(Args)]
struct Show {
    /// A file of training data
    file: PathBuf,
    /// Which game, from 0
    #[arg(long, default_value_t = 0)]
    game: u64,
    /// Which ply of it, from 0
    #[arg(long, default_value_t = 0)]
    ply: usize,
    /// Softmax temperature of the policy target, in units of expected score
    #[arg(long, default_value_t = 0.05)]
    temperature: f32,
}

#[derive(Args)]
struct Stats {
    /// A file of training data
    file: PathBuf,
}

pub fn run(args: &Datagen, options: &Options) -> Result<()> {
    match &args.command {
        None => generate::run(&args.generate, options),
        Some(Command::Import(args)) => import(args),
        Some(Command::Show(args)) => show(args),
        Some(Command::Stats(args)) => stats(&args.file),
        Some(Command::ImportV6(args)) => v6::import(args),
        Some(Command::ExportV6(args)) => v6::export(args),
    }
}

fn import(args: &Import) -> Result<()> {
    if args.output.exists() {
        bail!(
            "{} is there already; name another --output, or remove it",
            args.output.display()
        );
    }
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template(
        "{spinner} {pos} games, {per_sec}, {elapsed}  {msg}",
    )?);
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut writer = ChunkWriter::create(&args.output)?;
    for path in &args.labels {
        bar.set_message(path.display().to_string());
        for game in LabelReader::open(path)? {
            writer.push(game?)?;
            bar.inc(1);
        }
    }
    writer.finish()?;
    bar.finish_and_clear();
    stats(&args.output)
}

fn stats(path: &Path) -> Result<()> {
    let file = ChunkFile::open(path)?;
    let (positions, bytes) = (file.positions(), file.bytes());
    stdout::say(format_args!(
        "file        {}\nchunks      {}\ngames       {}\npositions   {positions}\n\
         bytes       {bytes} ({:.1} a position)\ndata hash   {}",
        path.display(),
        file.chunks().len(),
        file.games(),
        bytes as f64 / positions.max(1) as f64,
        file.data_hash(),
    ))?;
    Ok(())
}

fn show(args: &Show) -> Result<()> {
    let file = ChunkFile::open(&args.file)?;
    let mut before = 0;
    for (index, chunk) in file.chunks().iter().enumerate() {
        let games = u64::from(chunk.games);
        if args.game >= before + games {
            before += games;
            continue;
        }
        let mut records = file.read(index)?;
        let record = records.swap_remove((args.game - before) as usize);
        let plies = record.plies.len();
        let Some(sample) = Sample::new(TrainingGame::new(record).into(), args.ply) else {
            bail!(
                "game {} has {plies} plies, expected --ply below that",
                args.game
            );
        };
        stdout::print(&describe(&sample, args))?;
        return Ok(());
    }
    bail!(
        "{} holds {before} games, expected --game below that",
        args.file.display()
    )
}

fn describe(sample: &Sample, args: &Show) -> String {
    let position = sample.position();
    let record = sample.game().record();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "{what:<12}{value}");
    };
    line(
        "game",
        format!("{}, ply {} of {}", args.game, args.ply, record.plies.len()),
    );
    line("from", record.source.name().to_owned());
    line("result", record.result.to_string());
    line("position", position.to_fen(false));
    line("earlier", format!("{} times", sample.repetitions()));
    line("plies left", sample.plies_left().to_string());
    let label = sample.label();
    line("played", position.move_to_uci(label.played, false));
    line(
        "value",
        match label.wdl {
            Some(wdl) => format!(
                "W {} D {} L {} ‰ for the mover",
                wdl.win(),
                wdl.draw(),
                wdl.loss()
            ),
            None => "no label".to_owned(),
        },
    );
    for (m, p) in sample.policy_target(args.temperature) {
        let said = match &label.policy {
            PolicyLabel::Scores(scores) => scores
                .iter()
                .find(|score| score.0 == m)
                .map_or(String::new(), |score| format!("{:+} cp", score.1)),
            PolicyLabel::Visits(visits) => visits
                .iter()
                .find(|visit| visit.0 == m)
                .map_or(String::new(), |visit| format!("{} visits", visit.1)),
            PolicyLabel::None => String::new(),
        };
        line(
            "policy",
            format!(
                "{:<6}{:5.1} %  {said}",
                position.move_to_uci(m, false),
                100.0 * p
            ),
        );
    }
    let _ = writeln!(text, "{:?}", position.board());
    text
}
