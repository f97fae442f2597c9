//! `simurgh evaluate`: its subcommands, one file each. Measures nothing.

mod make_puzzles;
mod run;
mod stockfish;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::options::Options;

/// Measure a network or an engine: legality, accuracy, puzzles, suites, Elo
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Evaluate {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Subcommand)]
enum Command {
    MakePuzzles(make_puzzles::MakePuzzles),
}

/// Runs the subcommand, or the evaluation itself where none is named.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &Evaluate, options: &Options) -> Result<()> {
    match &args.command {
        None => run::run(&args.run, options),
        Some(Command::MakePuzzles(args)) => make_puzzles::run(args),
    }
}
