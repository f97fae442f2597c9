//! `simurgh evaluate`: its subcommands, one file each. Measures nothing.

mod attention;
mod make_puzzles;
mod replay;
mod run;
mod stockfish;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::options::Options;

const ABOUT: &str = "\
Measures networks and engines, a row of figures for each: report.md, results.json and report.html (one page
with plots, nothing outside it is needed).

What lacks its file or its Stockfish is not measured: null in the results, and said. Answers are kept in
answers.sqlite beside the reports, by the SHA-256 of the network, the settings and the position: a run that was
cut (Ctrl-C) goes on with the same command, and repeating one costs nothing.";

const EXAMPLES: &str = "\
Examples:
  simurgh evaluate --network a.pb.gz --network b.pb.gz --suite quick --pgn games.pgn.gz --puzzles puzzles.csv
  simurgh evaluate --network a.pb.gz --suite ladder --ladder-nodes 400 --ladder-elo 2200 2400 --openings book.epd
  simurgh evaluate --engine cmd=stockfish depth=5 --suite epd,puzzles --epd wac.epd --puzzles puzzles.csv";

/// Flags of `simurgh evaluate`, and its subcommands.
#[derive(Args)]
#[command(
    about = "Measure a network or an engine: legality, accuracy, puzzles, suites, Elo",
    long_about = ABOUT,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true
)]
pub struct Evaluate {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Subcommand)]
enum Command {
    MakePuzzles(make_puzzles::MakePuzzles),
    Attention(attention::Attention),
    Replay(replay::Replay),
}

/// Runs the subcommand, or the evaluation itself where none is named.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &Evaluate, options: &Options) -> Result<()> {
    match &args.command {
        None => run::run(&args.run, options),
        Some(Command::MakePuzzles(args)) => make_puzzles::run(args),
        Some(Command::Attention(args)) => attention::run(args, options),
        Some(Command::Replay(args)) => replay::run(args, options),
    }
}
