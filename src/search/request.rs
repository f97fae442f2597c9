//! What a search is asked to do: the game, the limits, the options. Knows no protocol and no tree.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::chess::{Game, Move};
use crate::options::Options;

use super::event::Event;

/// Where the events of one search go; called on the search's own thread, in order.
pub type EventSink = Box<dyn FnMut(Event) + Send>;

/// Everything one search needs. The last event it sends is [`Event::BestMove`], exactly once.
pub struct Request {
    /// The game; its current position is the root.
    pub game: Arc<Game>,
    /// When to stop.
    pub limits: Limits,
    /// A copy of the options as they were at `go`.
    pub options: Arc<Options>,
    /// Root moves to consider; empty, or without a legal one, means all.
    pub searchmoves: Vec<Move>,
    /// True for `go ponder`: limits of time start at [`super::Handle::ponderhit`].
    pub ponder: bool,
    /// When the command arrived; the clocks run from here.
    pub received: Instant,
    /// Receives infos, messages and the best move.
    pub on_event: EventSink,
}

/// Limits of one search; a search without any runs until it is stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Visits of the root, those of a reused tree counted.
    pub nodes: Option<u64>,
    /// Visits made by this search.
    pub playouts: Option<u64>,
    /// Average depth of a visit.
    pub depth: Option<u32>,
    /// Ends when a mate in so many moves is found or refuted.
    pub mate: Option<u32>,
    /// Time for this move.
    pub movetime: Option<Duration>,
    /// The clock of the side to move.
    pub clock: Option<Clock>,
    /// True when only `stop` ends the search.
    pub infinite: bool,
}

/// One side's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// What is left, milliseconds; may be negative.
    pub remaining_ms: i64,
    /// What every move adds, milliseconds.
    pub increment_ms: i64,
    /// Moves until more time is added.
    pub moves_to_go: Option<u32>,
}

impl Limits {
    /// A limit of visits only.
    pub fn nodes(nodes: u64) -> Limits {
        Limits {
            nodes: Some(nodes),
            ..Limits::default()
        }
    }

    /// A limit of time only.
    pub fn movetime(time: Duration) -> Limits {
        Limits {
            movetime: Some(time),
            ..Limits::default()
        }
    }

    /// True when nothing but `stop` ends the search.
    pub fn is_endless(&self) -> bool {
        self.infinite || *self == Limits::default()
    }
}
