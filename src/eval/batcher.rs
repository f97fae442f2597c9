//! From groups of leaves to minibatches: evaluator threads take what the search workers hand in.
//! Knows no tree; a failing, panicking or NaN-answering evaluator becomes an error reply.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, Sender, unbounded};

use super::{Attributes, Backend, EvalError, EvalParams, Evaluation, Evaluator, Leaf};

/// Leaves that one worker hands in together.
pub struct Group {
    /// At least one.
    pub leaves: Vec<Leaf>,
    /// How they are to be evaluated.
    pub params: EvalParams,
    /// Comes back with the reply.
    pub tag: u64,
    /// Largest minibatch the group may become part of.
    pub max_batch: usize,
    /// Set once nobody waits for the reply any more; the group may then be skipped.
    pub cancelled: Arc<AtomicBool>,
    /// Where the answer goes.
    pub reply: Sender<Reply>,
}

/// The answer to a [`Group`].
pub struct Reply {
    /// The group's.
    pub tag: u64,
    /// The group's leaves.
    pub leaves: Vec<Leaf>,
    /// One evaluation per leaf, in order.
    pub result: Result<Vec<Evaluation>, EvalError>,
}

/// Evaluator threads on one backend. Dropping it ends them; groups still queued are answered with
/// [`EvalError::Stopped`].
pub struct Batcher {
    attributes: Attributes,
    queue: Option<Sender<Group>>,
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    closing: AtomicBool,
    evaluations: AtomicU64,
    minibatches: AtomicU64,
}

impl Batcher {
    /// Starts the backend's evaluators, each on a thread of its own.
    ///
    /// # Errors
    /// When the backend makes no evaluator or the system no thread.
    pub fn new(backend: Arc<dyn Backend>) -> Result<Batcher, EvalError> {
        let attributes = backend.attributes().clone();
        let (queue, groups) = unbounded::<Group>();
        let state = Arc::new(State::default());
        let mut batcher = Batcher {
            attributes,
            queue: Some(queue),
            state,
            threads: Vec::new(),
        };
        for index in 0..batcher.attributes.evaluators.max(1) {
            let lane = Lane {
                evaluator: Some(backend.evaluator()?),
                backend: backend.clone(),
                groups: groups.clone(),
                state: batcher.state.clone(),
            };
            let thread = std::thread::Builder::new()
                .name(format!("evaluator-{index}"))
                .spawn(move || lane.run())
                .map_err(|e| EvalError::Backend {
                    backend: batcher.attributes.name.clone(),
                    reason: format!("cannot start an evaluator thread: {e}"),
                })?;
            batcher.threads.push(thread);
        }
        Ok(batcher)
    }

    /// The backend's attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Queues a group. Exactly one reply comes, unless the group is cancelled.
    pub fn submit(&self, group: Group) {
        let unsent = match &self.queue {
            Some(queue) => queue.send(group).err().map(|e| e.0),
            None => Some(group),
        };
        if let Some(group) = unsent {
            refuse(group, EvalError::Stopped);
        }
    }

    /// Leaves evaluated since the start.
    pub fn evaluations(&self) -> u64 {
        self.state.evaluations.load(Ordering::Relaxed)
    }

    /// Minibatches evaluated since the start.
    pub fn minibatches(&self) -> u64 {
        self.state.minibatches.load(Ordering::Relaxed)
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::Release);
        self.queue = None;
        for thread in self.threads.drain(..) {
            // An evaluator catches its panics; a thread that still died has nothing to clean up.
            let _ = thread.join();
        }
    }
}

fn refuse(group: Group, error: EvalError) {
    let _ = group.reply.send(Reply {
        tag: group.tag,
        leaves: group.leaves,
        result: Err(error),
    });
}

/// One evaluator thread.
struct Lane {
    backend: Arc<dyn Backend>,
    evaluator: Option<Box<dyn Evaluator>>,
    groups: Receiver<Group>,
    state: Arc<State>,
}

impl Lane {
    fn run(mut self) {
        while let Ok(first) = self.groups.recv() {
            if self.state.closing.load(Ordering::Acquire) {
                refuse(first, EvalError::Stopped);
                continue;
            }
            let batch = self.fill(first);
            self.answer(batch);
        }
    }

    /// Adds groups that are waiting already, as long as they fit; never waits for more.
    fn fill(&self, first: Group) -> Vec<Group> {
        let limit = first.max_batch;
        let mut size = first.leaves.len();
        let mut batch = vec![first];
        while size < limit {
            let Ok(next) = self.groups.try_recv() else {
                break;
            };
            size += next.leaves.len();
            let fits = size <= limit && next.params == batch[0].params;
            batch.push(next);
            if !fits {
                break;
            }
        }
        batch
    }

    fn answer(&mut self, mut batch: Vec<Group>) {
        batch.retain(|group| !group.cancelled.load(Ordering::Acquire));
        while !batch.is_empty() {
            // The last group may have been one too many, or differ in its parameters.
            let mut size = 0;
            let params = batch[0].params;
            let limit = batch[0].max_batch;
            let fitting = batch
                .iter()
                .take_while(|group| {
                    size += group.leaves.len();
                    group.params == params && size <= limit
                })
                .count();
            let rest = batch.split_off(fitting.max(1));
            self.answer_together(batch, params);
            batch = rest;
        }
    }

    fn answer_together(&mut self, mut batch: Vec<Group>, params: EvalParams) {
        let sizes: Vec<usize> = batch.iter().map(|group| group.leaves.len()).collect();
        let mut leaves = std::mem::take(&mut batch[0].leaves);
        for group in &mut batch[1..] {
            leaves.append(&mut group.leaves);
        }
        let mut result = self.evaluate(&leaves, params, batch[0].max_batch);
        for (group, size) in batch.into_iter().zip(sizes).rev() {
            let at = leaves.len() - size;
            let result = match &mut result {
                Ok(all) => Ok(all.split_off(at)),
                Err(error) => Err(error.clone()),
            };
            let _ = group.reply.send(Reply {
                tag: group.tag,
                leaves: leaves.split_off(at),
                result,
            });
        }
    }

    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        params: EvalParams,
        max_batch: usize,
    ) -> Result<Vec<Evaluation>, EvalError> {
        let attributes = self.backend.attributes().clone();
        let size = max_batch.min(attributes.max_batch).max(1);
        let mut evaluations = Vec::with_capacity(leaves.len());
        for part in leaves.chunks(size) {
            let mut evaluator = match self.evaluator.take() {
                Some(evaluator) => evaluator,
                None => self.backend.evaluator()?,
            };
            // After a panic the evaluator is in an unknown state and is not used again.
            let answers = evaluate_caught(&mut *evaluator, &attributes, part, params)?;
            self.evaluator = Some(evaluator);
            self.state
                .evaluations
                .fetch_add(part.len() as u64, Ordering::Relaxed);
            self.state.minibatches.fetch_add(1, Ordering::Relaxed);
            evaluations.extend(answers);
        }
        Ok(evaluations)
    }
}

/// Evaluates a minibatch; panics, missing answers and NaN come back as errors.
///
/// # Errors
/// As above, and the evaluator's own.
pub fn evaluate_caught(
    evaluator: &mut dyn Evaluator,
    attributes: &Attributes,
    leaves: &[Leaf],
    params: EvalParams,
) -> Result<Vec<Evaluation>, EvalError> {
    let failed = |reason: String| EvalError::Backend {
        backend: attributes.name.clone(),
        reason,
    };
    let evaluations = catch_unwind(AssertUnwindSafe(|| evaluator.evaluate(leaves, &params)))
        .map_err(|panic| failed(format!("it panicked: {}", panic_text(&*panic))))??;
    if evaluations.len() != leaves.len() {
        return Err(failed(format!(
            "{} answers to {} leaves",
            evaluations.len(),
            leaves.len()
        )));
    }
    for (leaf, evaluation) in leaves.iter().zip(&evaluations) {
        if evaluation.policy.0.len() != leaf.moves.len() {
            return Err(failed(format!(
                "{} priors for {} legal moves",
                evaluation.policy.0.len(),
                leaf.moves.len()
            )));
        }
        if let Some(what) = not_a_number(evaluation) {
            return Err(EvalError::NotANumber {
                network: attributes.name.clone(),
                what,
                fen: leaf.position.to_fen(false),
            });
        }
    }
    Ok(evaluations)
}

fn not_a_number(evaluation: &Evaluation) -> Option<&'static str> {
    if !evaluation.wdl.is_finite() {
        return Some("a value");
    }
    if !evaluation.policy.0.iter().sum::<f32>().is_finite() {
        return Some("a policy");
    }
    match evaluation.moves_left {
        Some(m) if !m.is_finite() => Some("moves left"),
        _ => None,
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "without a message".to_owned())
}
