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
    #[error("setoption: {}", refused(.0))]
    Option(#[from] OptionError),
    #[error("{}: {error}; nothing in this file is used", .path.display())]
    Settings { path: PathBuf, error: OptionError },
    #[error("{} cannot be read and is not used: {error}", .path.display())]
    SettingsUnreadable {
        path: PathBuf,
        error: std::io::Error,
    },
}

/// In a conversation a refused value leaves an old one.
fn refused(error: &OptionError) -> String {
    match error {
        OptionError::Value { .. } => format!("{error}; it stays as it is"),
        _ => error.to_string(),
    }
}
