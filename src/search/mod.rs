//! Batched PUCT over a shared tree: leaves out, evaluations in, a move at the end. Knows no tensors
//! and never prints; what it has to say it sends as [`Event`]s.
//!
//! A step of a worker is gather → evaluate → expand → backup; a driver thread keeps time and reports.

mod backup;
mod bench;
mod choose;
mod clock;
mod control;
mod driver;
mod event;
mod gather;
mod mate;
mod node;
mod params;
mod pool;
mod report;
mod request;
mod root;
mod score;
mod select;
mod stoppers;
mod strength;
mod tree;
mod values;
mod worker;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::chess::Move;
use crate::eval::{Attributes, Backend, Batcher, EvalCache, EvalError};
use crate::options::Options;

use choose::Temperature;
use clock::{Budget, Experience};
use control::Control;
use driver::{FinishGuard, Plan, after_minibatch, drive};
use params::Params;
use pool::Pool;
use report::Style;
use root::{Noise, RootFilter};
use stoppers::Chain;
use strength::Handicap;
use tree::Tree;
use worker::{Lane, Shared, Tally};

pub use bench::{Measured, bench};
pub use event::{BestMove, Event, Info, Line, Score};
pub use gather::Oracle;
pub use request::{Clock, EventSink, Limits, Request};
pub use tree::Census;

/// Why a search could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The backend refused to make an evaluator.
    #[error("no evaluator: {0}")]
    Evaluator(#[from] EvalError),
}

/// Most workers that walk one tree for a backend with evaluator threads of its own: one keeps a
/// device busy, more help with very fast ones.
const MOST_WORKERS: usize = 4;

/// Bytes the tree may always fill, however small the limit.
const LEAST_TREE_BYTES: u64 = 1 << 20;

/// A backend with its evaluation cache and the tree that survives between moves.
pub struct Search {
    backend: Arc<dyn Backend>,
    /// `None` for backends that workers call themselves.
    batcher: Option<Arc<Batcher>>,
    cache: Arc<EvalCache>,
    cache_size: (usize, usize),
    oracle: Option<Arc<dyn Oracle>>,
    rest: Arc<Mutex<Rest>>,
    running: Option<Arc<Control>>,
}

/// What is left between two searches.
#[derive(Default)]
struct Rest {
    tree: Option<Tree>,
    /// The tree grew under `searchmoves`, so its visits say nothing of the other moves.
    restricted: bool,
    experience: Experience,
    totals: Totals,
}

/// What a search counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Root visits made by the search.
    pub playouts: u64,
    /// Nodes it expanded.
    pub expanded: u64,
    /// Leaves its backend evaluated.
    pub evaluations: u64,
    /// Minibatches they came in.
    pub minibatches: u64,
}

/// A running search.
pub struct Handle {
    control: Arc<Control>,
}

impl Search {
    /// A search on `backend`, with an empty tree; sizes come from `options`.
    ///
    /// # Errors
    /// When the backend makes no evaluator.
    pub fn new(backend: Arc<dyn Backend>, options: &Options) -> Result<Search, SearchError> {
        let batcher = match backend.attributes().inline {
            true => {
                backend.evaluator()?;
                None
            }
            false => Some(Arc::new(Batcher::new(backend.clone())?)),
        };
        let cache_size = cache_size(options);
        Ok(Search {
            backend,
            batcher,
            cache: Arc::new(EvalCache::new(cache_size.0, cache_size.1)),
            cache_size,
            oracle: None,
            rest: Arc::default(),
            running: None,
        })
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
        let fresh = Search::new(backend, options)?;
        self.end_running();
        let oracle = self.oracle.take();
        *self = fresh;
        self.oracle = oracle;
        Ok(())
    }

    /// Takes tablebases, or none. A running search keeps the old ones.
    pub fn set_oracle(&mut self, oracle: Option<Arc<dyn Oracle>>) {
        self.oracle = oracle;
    }

    /// Forgets tree and cache, as for `ucinewgame` and `Clear Hash`. Ends a running search.
    pub fn clear(&mut self) {
        self.end_running();
        self.cache.clear();
        let rest = std::mem::take(&mut *self.rest.lock());
        if let Some(tree) = rest.tree {
            tree::discard(tree);
        }
    }

    /// The evaluation cache.
    pub fn cache(&self) -> &EvalCache {
        &self.cache
    }

    /// What the last finished search counted.
    pub fn totals(&self) -> Totals {
        self.rest.lock().totals
    }

    /// A walk over the tree at rest; `None` while a search runs and before the first one.
    pub fn census(&self) -> Option<Census> {
        self.rest.lock().tree.as_ref().map(Tree::census)
    }

    /// Bytes of nodes and edges in use at rest.
    pub fn tree_bytes(&self) -> u64 {
        let rest = self.rest.lock();
        rest.tree.as_ref().map_or(0, |t| t.pool().live_bytes())
    }

    /// Visits and Q (in millionths, from the side to move) of the root and of each of its moves, in
    /// the order of their priors; for signatures.
    pub fn root_digest(&self) -> Vec<(Option<Move>, u32, i64)> {
        let rest = self.rest.lock();
        let Some(tree) = &rest.tree else {
            return Vec::new();
        };
        let pool = tree.pool();
        let root = pool.node(tree.root());
        let millionths = |q: f32| (f64::from(q) * 1e6).round() as i64;
        let mut digest = vec![(None, root.visits(), millionths(root.sums().q()))];
        if root.meta().state() == node::State::Expanded {
            for edge in pool.edges_of(root).iter().map(|edge| edge.load()) {
                let sums = match edge.child() {
                    node::NodeId::NONE => values::Sums::default(),
                    child => pool.node(child).sums(),
                };
                digest.push((Some(edge.mv()), sums.visits, millionths(sums.q())));
            }
        }
        digest
    }

    /// Starts a search; one that still runs is stopped first, with its best move.
    /// Keeps the part of the tree that the request's game leads to, unless moves or strength are limited.
    pub fn start(&mut self, request: Request) -> Handle {
        self.end_running();
        self.resize_cache(&request.options);
        let options = request.options.clone();
        let attributes = self.backend.attributes().clone();
        let handicap = Handicap::new(&options);
        // Nodes that were searched for another purpose would count as those asked for now.
        let restricted = !request.searchmoves.is_empty();
        let limited = restricted || handicap.is_some() || options.fixed_nodes > 0;
        let (tree, experience, last_visits) = {
            let mut rest = self.rest.lock();
            let may_reuse = !limited && !rest.restricted;
            let tree = rest.tree.take();
            let last_visits = tree
                .as_ref()
                .map_or(0, |t| t.pool().node(t.root()).visits());
            let tree = match tree {
                Some(tree) if may_reuse => tree.advance(request.game.clone()),
                old => {
                    if let Some(old) = old {
                        tree::discard(old);
                    }
                    Tree::new(request.game.clone())
                }
            };
            (tree, rest.experience, last_visits)
        };
        let kept = tree.pool().node(tree.root()).visits();
        let mut experience = experience;
        experience.note_reuse(last_visits, kept);

        let limits = effective_limits(&request.limits, &options, handicap);
        let visit_limit = visit_limit(&limits, &options, kept);
        let budget = budget(&limits, &options, &experience, kept);
        let lanes = self.lanes(&options, &attributes);
        let workers = lanes.len();
        let seed = match options.seed {
            0 => RandomState::new().hash_one(request.received),
            seed => seed as u64,
        };
        let endless = request.limits.infinite
            || visit_limit.is_none()
                && budget.is_none()
                && limits.depth.is_none()
                && limits.mate.is_none();
        let chain = Chain::new(&options, &limits, visit_limit, budget);
        let control = Arc::new(Control::default());
        let filter = RootFilter {
            allowed: allowed_moves(&request, self.oracle.as_deref()),
            noise: Noise::new(&options, seed),
        };
        let shared = Shared {
            tally: Tally::new(kept),
            params: Params::new(&options, attributes.has_moves_left),
            filter,
            root_moves: OnceLock::new(),
            control: control.clone(),
            cache: self.cache.clone(),
            oracle: self.oracle.clone(),
            minibatch: minibatch(&options, &attributes),
            depth_of_queue: match &self.batcher {
                Some(batcher) => batcher.attributes().evaluators.max(1) as u32 + 1,
                None => 1,
            },
            lanes: match &self.batcher {
                Some(batcher) => batcher.attributes().evaluators.max(1) as u32 + 1,
                None => workers as u32,
            },
            uses_cache: attributes.cached,
            ordered: workers == 1,
            visit_limit: visit_limit.unwrap_or(u64::MAX),
            max_bytes: tree_bytes(&options),
            after_minibatch: Mutex::new(after_minibatch(
                chain,
                request.received,
                endless,
                request.ponder,
            )),
            tree,
        };
        let style = Style::new(&options, attributes.has_wdl, attributes.has_moves_left);
        let mut temperature = Temperature::new(&options, request.game.moves().len() as u32 / 2);
        if let Some(handicap) = handicap {
            temperature.value = temperature.value.max(handicap.temperature as f32);
        }
        let plan = Plan {
            received: request.received,
            ponder: request.ponder,
            endless,
            budget,
            mate: limits.mate,
            style,
            temperature,
            seed,
            options,
            on_event: request.on_event,
            lanes,
        };
        self.running = Some(control.clone());
        let rest = self.rest.clone();
        let guard = FinishGuard(control.clone());
        let job = move || {
            let _guard = guard;
            let sound = drive(&shared, plan);
            let totals = Totals {
                playouts: shared.playouts(),
                expanded: load(&shared.tally.expanded),
                evaluations: load(&shared.tally.evaluations),
                minibatches: load(&shared.tally.minibatches),
            };
            experience.note_speed(totals.playouts, request.received.elapsed());
            *rest.lock() = Rest {
                tree: sound.then_some(shared.tree),
                restricted,
                experience,
                totals,
            };
        };
        spawn_or_run(job);
        Handle { control }
    }

    fn end_running(&mut self) {
        if let Some(control) = self.running.take() {
            control.stop();
            control.wait_finished();
        }
    }

    fn resize_cache(&mut self, options: &Options) {
        let size = cache_size(options);
        if size != self.cache_size {
            self.cache_size = size;
            self.cache = Arc::new(EvalCache::new(size.0, size.1));
        }
    }

    /// One lane for each worker. A backend that makes no evaluator now leaves the search without
    /// workers; it still answers.
    fn lanes(&self, options: &Options, attributes: &Attributes) -> Vec<Lane> {
        let threads = threads(options);
        match &self.batcher {
            Some(batcher) => {
                let workers = threads.saturating_sub(attributes.evaluators);
                (0..workers.clamp(1, MOST_WORKERS))
                    .map(|_| Lane::Queue(batcher.clone()))
                    .collect()
            }
            None => (0..threads)
                .filter_map(|_| self.backend.evaluator().ok())
                .map(|evaluator| Lane::Inline(evaluator, attributes.clone()))
                .collect(),
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.end_running();
    }
}

impl Handle {
    /// Asks the search to end with its best move; returns at once. Harmless when it has ended.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// The opponent played the expected move: clocks start now. Harmless when not pondering.
    pub fn ponderhit(&self) {
        self.control.ponderhit();
    }

    /// True once the best move was sent and the tree is at rest.
    pub fn is_finished(&self) -> bool {
        self.control.is_finished()
    }

    /// Waits until the best move was sent and the tree is at rest.
    pub fn join(self) {
        self.control.wait_finished();
    }
}

fn load(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(std::sync::atomic::Ordering::Relaxed)
}

/// Runs the job on a thread of its own; where the system has none left, right here.
fn spawn_or_run(job: impl FnOnce() + Send + 'static) {
    let slot = Arc::new(Mutex::new(Some(job)));
    let for_thread = slot.clone();
    let spawned = std::thread::Builder::new()
        .name("search".to_owned())
        .spawn(move || {
            let job = for_thread.lock().take();
            if let Some(job) = job {
                job();
            }
        });
    if spawned.is_err() {
        let job = slot.lock().take();
        if let Some(job) = job {
            job();
        }
    }
}

/// Cores to use.
pub fn threads(options: &Options) -> usize {
    match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n.max(1) as usize,
    }
}

fn minibatch(options: &Options, attributes: &Attributes) -> u32 {
    let wanted = match options.minibatch_size {
        n if n > 0 => n as usize,
        _ => attributes.preferred_batch,
    };
    wanted.clamp(1, attributes.max_batch.max(1)) as u32
}

const MIB: usize = 1 << 20;

/// Bytes and entries of the evaluation cache: a quarter of Hash, or as many entries as asked for.
fn cache_size(options: &Options) -> (usize, usize) {
    match options.nn_cache_size {
        n if n > 0 => (usize::MAX / 2, n as usize),
        _ => ((options.hash.max(1) as usize).saturating_mul(MIB) / 4, 0),
    }
}

/// Bytes of the tree: RamLimitMb, or three quarters of Hash.
fn tree_bytes(options: &Options) -> u64 {
    let bytes = match options.ram_limit_mb {
        n if n > 0 => n as u64 * MIB as u64,
        _ => options.hash.max(1) as u64 * MIB as u64 / 4 * 3,
    };
    bytes.clamp(LEAST_TREE_BYTES, Pool::MOST_BYTES)
}

/// The limits after FixedNodes and UCI_LimitStrength.
fn effective_limits(limits: &Limits, options: &Options, handicap: Option<Handicap>) -> Limits {
    if options.fixed_nodes > 0 {
        return Limits {
            nodes: Some(options.fixed_nodes as u64),
            infinite: limits.infinite,
            ..Limits::default()
        };
    }
    let mut limits = limits.clone();
    if let Some(handicap) = handicap
        && !limits.infinite
    {
        let nodes = limits.nodes.unwrap_or(u64::MAX);
        limits.nodes = Some(nodes.min(handicap.visits));
    }
    limits
}

/// Root visits at which the search ends; at least one more than nothing.
fn visit_limit(limits: &Limits, options: &Options, kept: u32) -> Option<u64> {
    let base = u64::from(kept);
    let nodes = limits.nodes.map(|n| match options.nodes_as_playouts {
        true => base.saturating_add(n),
        false => n,
    });
    let playouts = limits.playouts.map(|n| base.saturating_add(n));
    let depth_zero = (limits.depth == Some(0)).then_some(1);
    [nodes, playouts, depth_zero]
        .into_iter()
        .flatten()
        .min()
        .map(|limit| limit.max(1))
}

fn budget(
    limits: &Limits,
    options: &Options,
    experience: &Experience,
    kept: u32,
) -> Option<Budget> {
    if limits.infinite {
        return None;
    }
    let movetime = limits.movetime.map(|time| clock::fixed(options, time));
    let clock = limits
        .clock
        .map(|clock| clock::from_clock(options, clock, experience, kept));
    match (movetime, clock) {
        (Some(a), Some(b)) => Some(Budget {
            usual: a.usual.min(b.usual),
            most: a.most.min(b.most),
        }),
        (a, b) => a.or(b),
    }
}

/// The root moves to consider; empty means all. Tablebases leave only the moves that keep the result.
fn allowed_moves(request: &Request, oracle: Option<&dyn Oracle>) -> Vec<Move> {
    let legal = request.game.current().legal_moves();
    let mut allowed: Vec<Move> = request
        .searchmoves
        .iter()
        .copied()
        .filter(|m| legal.contains(m))
        .collect();
    if let Some(kept) = oracle.and_then(|oracle| oracle.best_moves(&request.game)) {
        let both: Vec<Move> = match allowed.is_empty() {
            true => kept,
            false => kept.into_iter().filter(|m| allowed.contains(m)).collect(),
        };
        if !both.is_empty() {
            allowed = both;
        }
    }
    allowed
}
