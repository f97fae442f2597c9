//! The boundary between search and networks: leaves in, evaluations out. Tensors are unknown here.

mod batcher;
mod cache;
mod fakes;
mod leaf;
mod values;

use thiserror::Error;

pub use batcher::{Batcher, Group, Reply, evaluate_caught, panic_text};
pub use cache::{CacheKey, EvalCache};
pub use fakes::{Answer, Fake};
pub use leaf::{History, Leaf};
pub use values::{Evaluation, OpenPolicy, Policy, Wdl};

/// What a backend can be told apart from the leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvalParams {
    /// Priors are softmax(logits / temperature) over the legal moves; above 0.
    pub policy_temperature: f32,
}

impl Default for EvalParams {
    fn default() -> EvalParams {
        EvalParams {
            policy_temperature: 1.0,
        }
    }
}

/// What a backend is, for people and for those who size minibatches.
#[derive(Clone, Debug)]
pub struct Attributes {
    /// What is evaluated, for example the file's name.
    pub name: String,
    /// `cpu`, `cuda:0`, …
    pub device: String,
    /// Arithmetic, for example `fp32`.
    pub precision: String,
    /// Minibatch size with the best throughput at bearable latency.
    pub preferred_batch: usize,
    /// Largest minibatch one call takes.
    pub max_batch: usize,
    /// Evaluator threads that keep the device busy.
    pub evaluators: usize,
    /// True when draws are told apart (else `draw` is 0).
    pub has_wdl: bool,
    /// True when evaluations carry moves left.
    pub has_moves_left: bool,
    /// True when search workers call it on their own threads, because a call is short; else it is
    /// called by the batcher's evaluator threads.
    pub inline: bool,
    /// True when an evaluation costs more than looking it up in the cache.
    pub cached: bool,
}

/// Why leaves could not be evaluated.
#[derive(Debug, Clone, Error)]
pub enum EvalError {
    /// The network answered NaN or infinity.
    #[error("network '{network}' answered {what} that is not a number for {fen}")]
    NotANumber {
        /// Name of the network.
        network: String,
        /// Which output.
        what: &'static str,
        /// The position.
        fen: String,
    },
    /// The backend itself failed.
    #[error("backend '{backend}' failed: {reason}")]
    Backend {
        /// Name of the backend.
        backend: String,
        /// What it said.
        reason: String,
    },
    /// The evaluator threads are gone.
    #[error("the evaluators have stopped")]
    Stopped,
}

/// A network on a device: makes one [`Evaluator`] per evaluator thread.
pub trait Backend: Send + Sync {
    /// What this backend is.
    fn attributes(&self) -> &Attributes;

    /// An evaluator for one thread; evaluators share weights.
    ///
    /// # Errors
    /// When the device refuses.
    fn evaluator(&self) -> Result<Box<dyn Evaluator>, EvalError>;
}

/// Evaluates minibatches on one thread.
pub trait Evaluator: Send {
    /// One evaluation per leaf, in order; at most [`Attributes::max_batch`] leaves.
    ///
    /// # Errors
    /// When the backend fails or an answer is not a number; then no leaf is evaluated.
    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        params: &EvalParams,
    ) -> Result<Vec<Evaluation>, EvalError>;

    /// What the policy says before anything illegal is left out, one for each leaf; `None` from a backend that
    /// has no outputs but those of the legal moves.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    fn open_policy(&mut self, _leaves: &[Leaf]) -> Result<Option<Vec<OpenPolicy>>, EvalError> {
        Ok(None)
    }
}
