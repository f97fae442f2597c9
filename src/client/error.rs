//! What can go wrong with a foreign process, as one type. Holds data and words, decides nothing.

use std::path::PathBuf;
use std::time::Duration;

/// A failure of the engine's process or of its side of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The process could not be started at all.
    #[error("cannot start {command:?}: {source}")]
    Spawn {
        /// The program asked for.
        command: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The process ended, or closed its output, while an answer was expected.
    #[error("engine ended ({status}) while waiting for {waiting_for}{stderr}")]
    Exited {
        /// Exit code or signal, in words.
        status: String,
        /// The answer that was expected.
        waiting_for: &'static str,
        /// The last lines of its standard error, empty or starting with "; ".
        stderr: String,
    },
    /// No answer in time; the process still runs.
    #[error("no {waiting_for} within {after:?}{last_line}")]
    Timeout {
        /// The answer that was expected.
        waiting_for: &'static str,
        /// How long it was waited for.
        after: Duration,
        /// The last line printed, empty or starting with "; ".
        last_line: String,
    },
    /// So many lines that are not UCI that no answer is to be expected.
    #[error(
        "{lines} lines that are not UCI while waiting for {waiting_for}, the last one {last_line:?}"
    )]
    Garbage {
        /// The answer that was expected.
        waiting_for: &'static str,
        /// How many such lines.
        lines: usize,
        /// The last of them, shortened.
        last_line: String,
    },
    /// A `bestmove` without a move.
    #[error("malformed answer {0:?}, expected \"bestmove MOVE [ponder MOVE]\"")]
    BadBestmove(String),
    /// A text that cannot be sent as one line.
    #[error("{0:?} holds a line break and cannot be sent to an engine")]
    LineBreak(String),
    /// The caller asked for an end to all waiting.
    #[error("interrupted while waiting for {waiting_for}")]
    Cancelled {
        /// The answer that was expected.
        waiting_for: &'static str,
    },
}

impl ClientError {
    /// True if the process is gone (as opposed to silent, babbling or merely told to hurry).
    pub fn is_crash(&self) -> bool {
        matches!(self, Self::Spawn { .. } | Self::Exited { .. })
    }
}
