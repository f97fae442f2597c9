//! `simurgh evaluate`: turns flags into an evaluation and shows how it goes. Measures nothing.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::options::Options;

/// Flags of the evaluation itself.
#[derive(Args)]
pub struct RunArgs {
    /// Folder that the store and the reports are written to
    #[arg(long, value_name = "DIR", default_value = "evaluation")]
    output: PathBuf,
}

/// Runs the evaluation.
///
/// # Errors
/// Files that cannot be read or written.
pub fn run(args: &RunArgs, _options: &Options) -> Result<()> {
    bail!("nothing to measure yet for {}", args.output.display())
}
