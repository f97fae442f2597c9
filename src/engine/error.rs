//! Why the engine refused something. Refuses to know the syntax of a protocol.

use std::path::PathBuf;

use thiserror::Error;

use crate::chess::{FenError, MoveError};
use crate::options::OptionError;

/// A request that was understood and cannot be granted; the engine's state is as before.
#[derive(Debug, Error)]
pub enum EngineError {
    #[error("position refused, the old one stays: {0}")]
    Position(#[from] FenError),
    /// The moves before the one named stand.
    #[error("position: move {number} of the list: {error}; the moves before it stand")]
    MoveList { number: usize, error: MoveError },
    #[error("go: searchmoves: {0}, skipped")]
    SearchMove(MoveError),
    #[error("setoption: {0}")]
    Option(#[from] OptionError),
    #[error("{}: {error}", .path.display())]
    Settings { path: PathBuf, error: OptionError },
    #[error("{} cannot be read: {error}", .path.display())]
    SettingsUnreadable {
        path: PathBuf,
        error: std::io::Error,
    },
}
