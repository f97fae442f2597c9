//! What the engine has to say, as values. Refuses to print: that is for a protocol.

use std::sync::Arc;

use crate::chess::Game;
use crate::chess::perft::PerftCounts;
use crate::eval::{Attributes, Evaluation};
use crate::options::Options;
use crate::search;

/// Something for the outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// From the search of one `go`: infos, messages and, last and exactly once, the best move.
    Search {
        /// The game whose current position is the root.
        game: Arc<Game>,
        /// The options as they were at `go`.
        options: Arc<Options>,
        /// What the search said.
        event: search::Event,
    },
    /// Everything asked for before is done: answers one `isready`.
    Ready,
    /// A sentence for the user.
    Message(String),
    /// The answer to `go perft`.
    Perft {
        /// The game whose current position was counted from.
        game: Arc<Game>,
        /// UCI_Chess960 as it was.
        chess960: bool,
        /// The leaf counts.
        counts: PerftCounts,
    },
    /// The network's own answer for a position.
    Evaluated(Box<Evaluated>),
}

/// The network's own answer for the current position of a game.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The game.
    pub game: Arc<Game>,
    /// UCI_Chess960 as it was.
    pub chess960: bool,
    /// Who answered.
    pub attributes: Attributes,
    /// The answer; its policy follows the order of the legal moves.
    pub evaluation: Evaluation,
}

/// Where events go: called from several threads, one whole event at a time.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;
