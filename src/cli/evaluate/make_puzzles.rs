//! `simurgh evaluate make-puzzles`: only-move positions out of games. Judges nothing itself.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

/// Cut positions with one good move out of PGN games, with the moves before them
#[derive(Args)]
pub struct MakePuzzles {
    /// The puzzle file to write, CSV
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the puzzles.
///
/// # Errors
/// Files that cannot be read or written.
pub fn run(args: &MakePuzzles) -> Result<()> {
    bail!("no games yet for {}", args.output.display())
}
