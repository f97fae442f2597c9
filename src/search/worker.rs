//! A worker: gather, hand over, wait, expand, back up, again. Knows no clock and no output.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, select, unbounded};
use parking_lot::Mutex;

use crate::eval::{
    Attributes, Batcher, EvalCache, EvalParams, Evaluator, Group, Reply, evaluate_caught,
};

use super::control::Control;
use super::gather::{Ground, Minibatch, Oracle, Walker};
use super::node::{Node, State};
use super::params::Params;
use super::pool::Room;
use super::root::{RootFilter, RootMove};
use super::tree::Tree;

/// Visits of the root may be as many as this; then workers leave.
const MOST_VISITS: u64 = 1 << 31;

/// A small tree may have visits / `VISITS_PER_MINIBATCH` minibatches in flight. Each leaf in flight is
/// a choice made without knowing the others' values: at 400 nodes a move, keeping 3 in flight instead
/// of 33 is worth about 100 Elo. A device that wants large minibatches gets them sooner, since
/// `minibatch` is the measure.
const VISITS_PER_MINIBATCH: u64 = 3000;

/// A tree of more visits than these may have more than that in flight, in proportion to its visits.
const SMALL_TREE: u64 = 1000;

/// Below so many visits for each leaf in flight even an idle evaluator gets none.
const FEWEST_VISITS_PER_LEAF: u32 = 24;

/// True when the search is to end.
pub type StopCheck = Box<dyn FnMut(&Shared) -> bool + Send>;

/// One search as its workers share it.
pub struct Shared {
    /// The tree.
    pub tree: Tree,
    /// The formulas' numbers.
    pub params: Params,
    /// Root moves and noise.
    pub filter: RootFilter,
    /// Known once the root is expanded.
    pub root_moves: OnceLock<Vec<RootMove>>,
    /// Orders and failures.
    pub control: Arc<Control>,
    /// What the search has counted.
    pub tally: Tally,
    /// Evaluations seen before.
    pub cache: Arc<EvalCache>,
    /// Tablebases.
    pub oracle: Option<Arc<dyn Oracle>>,
    /// Leaves in a minibatch.
    pub minibatch: u32,
    /// Minibatches one worker keeps in flight.
    pub depth_of_queue: u32,
    /// Minibatches that all workers together should have in flight, to keep the evaluators busy.
    pub lanes: u32,
    /// False for a backend that is cheaper than looking.
    pub uses_cache: bool,
    /// Replies are backed up in the order of their submission, so that searches repeat.
    pub ordered: bool,
    /// Root visits that end the search.
    pub visit_limit: u64,
    /// Bytes the tree may fill.
    pub max_bytes: u64,
    /// Asked by workers after each minibatch: true ends the search.
    pub after_minibatch: Mutex<StopCheck>,
}

/// Counters of one search.
#[derive(Default)]
pub struct Tally {
    /// Root visits completed before this search.
    pub visits_before: u32,
    /// Root visits completed or on their way.
    spent: AtomicU64,
    /// Leaves on their way.
    pending: AtomicU32,
    /// Sum of the depths of all visits.
    pub depth_sum: AtomicU64,
    /// Deepest visit.
    pub max_depth: AtomicU32,
    /// Nodes expanded.
    pub expanded: AtomicU64,
    /// Minibatches backed up.
    pub minibatches: AtomicU64,
    /// Leaves evaluated by the backend.
    pub evaluations: AtomicU64,
    /// Tablebase hits.
    pub tablebase_hits: AtomicU64,
    /// The tree has no room left.
    pub memory_full: AtomicBool,
}

impl Tally {
    /// Counters of a search that starts with so many root visits.
    pub fn new(visits: u32) -> Tally {
        Tally {
            visits_before: visits,
            spent: AtomicU64::new(u64::from(visits)),
            ..Tally::default()
        }
    }

    /// Takes up to `wanted` visits out of what the limit leaves.
    fn reserve(&self, wanted: u32, limit: u64) -> u32 {
        let mut granted = 0;
        let _ = self
            .spent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spent| {
                granted = u64::from(wanted).min(limit.saturating_sub(spent)) as u32;
                Some(spent + u64::from(granted))
            });
        granted
    }

    fn give_back(&self, visits: u32) {
        self.spent.fetch_sub(u64::from(visits), Ordering::Relaxed);
    }
}

impl Shared {
    /// The root.
    pub fn root(&self) -> &Node {
        self.tree.pool().node(self.tree.root())
    }

    /// The root moves, once the root is expanded.
    pub fn root_moves(&self) -> Option<&[RootMove]> {
        if let Some(moves) = self.root_moves.get() {
            return Some(moves);
        }
        let root = self.root();
        if root.meta().state() != State::Expanded {
            return None;
        }
        let edges = self.tree.pool().edges_of(root);
        Some(self.root_moves.get_or_init(|| self.filter.apply(edges)))
    }

    /// Visits made by this search.
    pub fn playouts(&self) -> u64 {
        u64::from(
            self.root()
                .visits()
                .saturating_sub(self.tally.visits_before),
        )
    }
}

/// How a worker gets its leaves evaluated.
pub enum Lane {
    /// On its own thread.
    Inline(Box<dyn Evaluator>, Attributes),
    /// By the batcher's evaluators.
    Queue(Arc<Batcher>),
}

/// Runs a worker until the search is aborted or nothing is left to do.
pub fn run(shared: &Shared, lane: Lane) {
    let (reply_to, replies) = unbounded();
    let uses_cache = shared.uses_cache;
    let ground = Ground {
        params: &shared.params,
        pool: shared.tree.pool(),
        root: shared.tree.root(),
        game: shared.tree.game(),
        cache: uses_cache.then_some(&*shared.cache),
        oracle: shared.oracle.as_deref(),
    };
    let worker = Worker {
        shared,
        walker: Walker::new(ground),
        lane,
        reply_to,
        replies,
        in_flight: VecDeque::new(),
        early: Vec::new(),
        next_tag: 0,
        cancelled: Arc::new(AtomicBool::new(false)),
        eval_params: EvalParams {
            policy_temperature: shared.params.policy_temperature,
        },
    };
    worker.run();
}

struct Worker<'a> {
    shared: &'a Shared,
    walker: Walker<'a>,
    lane: Lane,
    reply_to: Sender<Reply>,
    replies: Receiver<Reply>,
    /// Minibatches handed over, oldest first.
    in_flight: VecDeque<(u64, Minibatch)>,
    /// Replies that came before an older one.
    early: Vec<Reply>,
    next_tag: u64,
    cancelled: Arc<AtomicBool>,
    eval_params: EvalParams,
}

/// What gathering ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gathered {
    /// Leaves to hand over.
    Leaves,
    /// Only visits answered on the spot.
    Answered,
    /// Nothing: the limit is reached, or everything waits for leaves in flight.
    Nothing,
}

impl Worker<'_> {
    fn run(mut self) {
        while !self.shared.control.is_aborted() {
            let gathered = match (self.in_flight.len() as u32) < self.shared.depth_of_queue {
                true => self.gather(),
                false => Gathered::Nothing,
            };
            match gathered {
                Gathered::Leaves => {
                    if !self.hand_over() {
                        break;
                    }
                }
                Gathered::Answered => self.look_around(),
                Gathered::Nothing if !self.in_flight.is_empty() => {
                    if !self.await_reply() {
                        break;
                    }
                }
                Gathered::Nothing => {
                    self.look_at_memory();
                    if self.is_done() {
                        break;
                    }
                    // Other workers hold the leaves, or memory is being freed.
                    std::thread::sleep(Duration::from_micros(30));
                }
            }
        }
        self.give_up();
    }

    fn is_done(&self) -> bool {
        let tally = &self.shared.tally;
        tally.memory_full.load(Ordering::Relaxed)
            || tally.pending.load(Ordering::Relaxed) == 0
                && tally.spent.load(Ordering::Relaxed) >= self.limit()
    }

    fn limit(&self) -> u64 {
        self.shared.visit_limit.min(MOST_VISITS)
    }

    /// How many leaves the next minibatch may have: a small tree gets small ones, so that visits are
    /// not chosen on old values.
    fn target(&self) -> u32 {
        let shared = self.shared;
        let visits = shared.root().visits();
        let share = u64::from(visits) * u64::from(shared.minibatch) / VISITS_PER_MINIBATCH;
        let share = share.saturating_mul(u64::from(visits).max(SMALL_TREE)) / SMALL_TREE;
        let share = share.min(u64::from(u32::MAX)) as u32;
        let busy = (visits / FEWEST_VISITS_PER_LEAF).min(shared.lanes);
        let allowed = share.max(busy).max(1);
        let pending = shared.tally.pending.load(Ordering::Relaxed);
        let part = allowed.div_ceil(shared.lanes);
        part.min(allowed.saturating_sub(pending))
            .min(shared.minibatch)
    }

    fn gather(&mut self) -> Gathered {
        let shared = self.shared;
        let target = self.target();
        if target == 0 {
            return Gathered::Nothing;
        }
        let mut collisions = shared.params.collision_budget(shared.root().visits());
        let mut events = shared.params.max_collision_events;
        let mut at_once = (shared.minibatch as f32 * shared.params.max_out_of_order) as u32;
        let mut answered = false;
        loop {
            let missing = target - self.walker.gathered() as u32;
            if missing == 0 || collisions == 0 || events == 0 || at_once == 0 {
                break;
            }
            let wanted = missing.min(collisions).min(at_once);
            let granted = shared.tally.reserve(wanted, self.limit());
            if granted == 0 {
                break;
            }
            let taken = self.walker.descend(granted, shared.root_moves());
            let done = taken.sums.visits + taken.pending;
            shared.tally.give_back(granted - done);
            shared
                .tally
                .pending
                .fetch_add(taken.pending, Ordering::Relaxed);
            answered |= taken.sums.visits > 0;
            at_once = at_once.saturating_sub(taken.sums.visits);
            collisions = collisions.saturating_sub(taken.collisions);
            events = events.saturating_sub(taken.collision_events);
            if taken.is_nothing() || shared.control.is_aborted() {
                break;
            }
        }
        self.flush_counts();
        if self.walker.gathered() > 0 {
            Gathered::Leaves
        } else {
            // Paths that only met collisions are let go.
            let empty = self.walker.take_batch();
            self.walker.cancel(&empty);
            if answered {
                Gathered::Answered
            } else {
                Gathered::Nothing
            }
        }
    }

    /// Evaluates the gathered leaves or queues them; false when the search is to end.
    fn hand_over(&mut self) -> bool {
        let mut batch = self.walker.take_batch();
        let leaves = std::mem::take(&mut batch.leaves);
        match &mut self.lane {
            Lane::Inline(evaluator, attributes) => {
                let result =
                    evaluate_caught(&mut **evaluator, attributes, &leaves, self.eval_params);
                let reply = Reply {
                    tag: 0,
                    leaves,
                    result,
                };
                self.apply(batch, reply)
            }
            Lane::Queue(batcher) => {
                let tag = self.next_tag;
                self.next_tag += 1;
                batcher.submit(Group {
                    leaves,
                    params: self.eval_params,
                    tag,
                    // Which groups happen to wait together is a matter of time.
                    max_batch: match self.shared.ordered {
                        true => batch.size(),
                        false => self.shared.minibatch as usize,
                    },
                    cancelled: self.cancelled.clone(),
                    reply: self.reply_to.clone(),
                });
                self.in_flight.push_back((tag, batch));
                true
            }
        }
    }

    /// Waits for an answer and backs it up; false when the search is to end.
    fn await_reply(&mut self) -> bool {
        let wanted = self
            .shared
            .ordered
            .then(|| self.in_flight.front().map(|(tag, _)| *tag))
            .flatten();
        let fits = |reply: &Reply| wanted.is_none_or(|tag| tag == reply.tag);
        let reply = loop {
            if let Some(index) = self.early.iter().position(fits) {
                break self.early.swap_remove(index);
            }
            select! {
                recv(self.replies) -> reply => match reply {
                    Ok(reply) => self.early.push(reply),
                    Err(_) => return false,
                },
                recv(self.shared.control.closed()) -> _ => return false,
            }
        };
        let Some(index) = self.in_flight.iter().position(|(tag, _)| *tag == reply.tag) else {
            return true;
        };
        match self.in_flight.remove(index) {
            Some((_, batch)) => self.apply(batch, reply),
            None => true,
        }
    }

    fn apply(&mut self, batch: Minibatch, reply: Reply) -> bool {
        let tally = &self.shared.tally;
        let leaves = batch.size() as u32;
        tally.pending.fetch_sub(leaves, Ordering::Relaxed);
        match reply.result {
            Ok(evaluations) => {
                if self.shared.uses_cache {
                    for (key, evaluation) in batch.cache_keys().iter().zip(&evaluations) {
                        self.shared.cache.insert(*key, evaluation);
                    }
                }
                self.walker.back_up(&batch, &reply.leaves, &evaluations);
                tally
                    .evaluations
                    .fetch_add(u64::from(leaves), Ordering::Relaxed);
                tally.minibatches.fetch_add(1, Ordering::Relaxed);
                self.flush_counts();
                self.look_around();
                true
            }
            Err(error) => {
                self.walker.cancel(&batch);
                tally.give_back(leaves);
                self.shared.control.fail(error.to_string());
                false
            }
        }
    }

    /// Memory and stoppers, after each step.
    fn look_around(&mut self) {
        self.look_at_memory();
        let shared = self.shared;
        let stop = match shared.ordered {
            true => (shared.after_minibatch.lock())(shared),
            false => shared
                .after_minibatch
                .try_lock()
                .is_some_and(|mut check| check(shared)),
        };
        if stop {
            shared.control.abort();
        }
    }

    fn look_at_memory(&mut self) {
        let shared = self.shared;
        let room = shared.tree.pool().room(shared.max_bytes);
        self.walker.may_grow = room == Room::Left;
        if room == Room::None {
            shared.tally.memory_full.store(true, Ordering::Relaxed);
        }
    }

    fn flush_counts(&mut self) {
        self.walker.allocator.flush();
        let counts = std::mem::take(&mut self.walker.counts);
        let tally = &self.shared.tally;
        tally
            .depth_sum
            .fetch_add(counts.depth_sum, Ordering::Relaxed);
        tally
            .max_depth
            .fetch_max(counts.max_depth, Ordering::Relaxed);
        tally.expanded.fetch_add(counts.expanded, Ordering::Relaxed);
        tally
            .tablebase_hits
            .fetch_add(counts.tablebase_hits, Ordering::Relaxed);
    }

    /// Leaves nothing in flight behind.
    fn give_up(&mut self) {
        self.cancelled.store(true, Ordering::Release);
        let unsent = self.walker.take_batch();
        let tally = &self.shared.tally;
        for batch in self
            .in_flight
            .drain(..)
            .map(|(_, batch)| batch)
            .chain([unsent])
        {
            let leaves = batch.size() as u32;
            tally.pending.fetch_sub(leaves, Ordering::Relaxed);
            tally.give_back(leaves);
            self.walker.cancel(&batch);
        }
        self.flush_counts();
    }
}
