//! What can go wrong in this room, as one type. Holds data and words, decides nothing.

use std::io;
use std::path::PathBuf;

use crate::client::ClientError;
use crate::search::SearchError;

/// A failure of training or of its data.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A file that cannot be opened, read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// "read", "write", …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A line of a label file that is not what the format says.
    #[error("{} line {line}: found {found}, expected {expected}", path.display())]
    Label {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What stands there.
        found: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// A label file that names a position or a move that chess does not allow.
    #[error("{} line {line}: {why}", path.display())]
    Chess {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What the rules say.
        why: String,
    },
    /// A record whose moves do not fit its positions.
    #[error("ply {ply} of a game record: {why}")]
    Record {
        /// From 0.
        ply: usize,
        /// What does not fit.
        why: String,
    },
    /// An Lc0 training file that is damaged, cut off, or none at all.
    #[error("{} record {record}: {why}", path.display())]
    V6 {
        /// The file.
        path: PathBuf,
        /// From 0.
        record: u64,
        /// What is wrong and what was expected.
        why: String,
    },
    /// A book that cannot be used.
    #[error("{}: {why}", path.display())]
    Book {
        /// The file.
        path: PathBuf,
        /// What is wrong with which record.
        why: String,
    },
    /// Chance and the book give only finished games.
    #[error("no opening to play from in {draws} draws")]
    NoOpening {
        /// How often it was tried.
        draws: usize,
    },
    /// A teaching engine that fails.
    #[error("the teacher: {0}")]
    Engine(#[from] ClientError),
    /// A search that cannot be set up.
    #[error("the teacher: {0}")]
    Search(#[from] SearchError),
    /// A teacher whose answer makes no sense.
    #[error("the teacher says {found} in {fen}, expected {expected}")]
    Answer {
        /// What it said.
        found: String,
        /// Of which position.
        fen: String,
        /// What it should have said.
        expected: &'static str,
    },
    /// A chunk file that is damaged, cut off, or none at all.
    #[error("{} at byte {offset}: {why}", path.display())]
    Chunk {
        /// The file.
        path: PathBuf,
        /// Where the damaged part begins.
        offset: u64,
        /// What is wrong and what was expected.
        why: String,
    },
    /// A run's file, or a file it names, that does not do.
    #[error("{}: {why}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong and what was expected.
        why: String,
    },
    /// A checkpoint that is damaged or does not fit.
    #[error("checkpoint {}: {why}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A run's folder that cannot be used as it is.
    #[error("{}: {why}", path.display())]
    Folder {
        /// The run's folder.
        path: PathBuf,
        /// What is missing or in the way.
        why: String,
    },
    /// The loss or the gradient is NaN or infinite.
    #[error("the loss or the gradient is no number after step {step}; the last checkpoint stays")]
    NotANumber {
        /// Steps taken.
        step: u64,
    },
    /// libtorch refused.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}

impl TrainError {
    /// The system's word on a file.
    pub fn io(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> TrainError {
        TrainError::Io {
            what,
            path: path.into(),
            source,
        }
    }
}
