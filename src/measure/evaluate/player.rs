//! Whoever is evaluated: what its policy says of positions and what it plays after a search. Knows neither
//! measures nor figures.

use std::sync::Arc;
use std::time::Duration;

use crate::chess::{Game, Move};
use crate::client::ClientError;
use crate::eval::{EvalError, OpenPolicy};
use crate::model::ModelError;
use crate::search::SearchError;

/// A network, an engine, or a script that stands in for one in a test.
pub trait Player: Send {
    /// What the policy says of the current position of each game; `None` without a policy.
    ///
    /// # Errors
    /// When the network fails.
    fn views(&mut self, games: &[Arc<Game>]) -> Result<Option<Vec<View>>, PlayerError>;

    /// What a search from an empty tree gives; `None` from a player that does not search. An engine with a pace
    /// of its own keeps it.
    ///
    /// # Errors
    /// When the network or the engine fails, or the answer is no legal move.
    fn think(&mut self, game: &Arc<Game>, nodes: u64) -> Result<Option<Thought>, PlayerError>;

    /// True for a player that reads the moves of a game and cannot be shown a bare position.
    fn needs_game(&self) -> bool {
        false
    }
}

/// What a policy says of one position.
#[derive(Clone, Debug)]
pub struct View {
    /// All outputs; `None` if only those of the legal moves can be had.
    pub open: Option<OpenPolicy>,
    /// The legal moves.
    pub moves: Vec<Move>,
    /// Their probabilities; they sum to one.
    pub priors: Vec<f32>,
    /// Win chance less loss chance of the side to move.
    pub q: f32,
}

/// What a search gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// The move to play.
    pub best: Move,
    /// Win chance less loss chance of the side to move, if it was told.
    pub q: Option<f32>,
    /// Nodes searched.
    pub nodes: u64,
    /// Time taken.
    pub time: Duration,
    /// Each change of mind, oldest first.
    pub trail: Vec<Step>,
}

/// From here on a search preferred another move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The move it preferred.
    pub best: Move,
    /// Nodes so far.
    pub nodes: u64,
    /// Time so far.
    pub time: Duration,
}

/// Who a player is, for reports and for the keys of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// A name for people.
    pub name: String,
    /// `network` or `engine`.
    pub kind: &'static str,
    /// SHA-256 of the network file or of the engine's program and arguments, hexadecimal.
    pub sha256: String,
    /// What of the settings changes the policy's answers.
    pub policy_settings: String,
    /// What of them changes a search's answers; the number of nodes is told apart.
    pub search_settings: String,
    /// Whether the player has a pace of its own, so that a number of nodes means nothing to it.
    pub own_pace: Option<String>,
}

/// Why a player gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The network cannot be loaded.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The network failed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The search cannot be set up.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The engine failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The answer cannot be used.
    #[error("{player} answered {answer} in {fen}, expected a legal move")]
    NoMove {
        /// Who.
        player: String,
        /// What was answered.
        answer: String,
        /// The position.
        fen: String,
    },
}
