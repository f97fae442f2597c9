//! Walking down from the root with a number of visits to spend, and what comes of it: leaves for the
//! backend, visits answered on the spot, collisions. Knows no threads and no clock.

use std::sync::Arc;

use crate::chess::{Game, Move, Position};
use crate::eval::{CacheKey, EvalCache, Leaf};

use super::backup::{expand, finish};
use super::node::{BlockId, Meta, Node, NodeId, Source, State};
use super::params::Params;
use super::pool::{Allocator, Pool};
use super::root::RootMove;
use super::select::{Candidate, Selection};
use super::values::Sums;

/// A node with visits of a minibatch at or below it.
#[derive(Clone, Copy, Debug)]
struct Step {
    node: NodeId,
    /// Index of the parent's step; [`NO_PARENT`] for the root.
    parent: u32,
    /// Visits held in flight here: pending ones and collisions.
    held: u32,
}

const NO_PARENT: u32 = u32::MAX;

/// Leaves on their way to the backend and the paths that wait for them.
#[derive(Default)]
pub struct Minibatch {
    /// Parents before children.
    steps: Vec<Step>,
    /// The leaves, until they are handed over.
    pub leaves: Vec<Leaf>,
    leaf_steps: Vec<u32>,
    cache_keys: Vec<CacheKey>,
}

impl Minibatch {
    /// Number of leaves.
    pub fn size(&self) -> usize {
        self.leaf_steps.len()
    }

    /// The cache key of each leaf.
    pub fn cache_keys(&self) -> &[CacheKey] {
        &self.cache_keys
    }
}

/// What became of the visits given to a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Visits completed on the spot, with their values.
    pub sums: Sums,
    /// Leaves added to the minibatch.
    pub pending: u32,
    /// Visits that met a leaf someone is evaluating.
    pub collisions: u32,
    /// Separate meetings of that kind.
    pub collision_events: u32,
    recheck: bool,
}

impl Taken {
    fn collision(visits: u32) -> Taken {
        Taken {
            collisions: visits,
            collision_events: u32::from(visits > 0),
            ..Taken::default()
        }
    }

    /// True when nothing came of the visits at all, so that more of them would go the same way.
    /// Collisions press on where they happened, and the next visits go elsewhere.
    pub fn is_nothing(&self) -> bool {
        self.sums.visits + self.pending + self.collisions == 0
    }
}

/// What a walk counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Sum of the depths of all visits.
    pub depth_sum: u64,
    /// Deepest visit.
    pub max_depth: u32,
    /// Nodes expanded.
    pub expanded: u64,
    /// Tablebase hits.
    pub tablebase_hits: u64,
}

/// Answers to positions without the network.
pub trait Oracle: Send + Sync {
    /// The result for the side to move (−1, 0, 1), if it is known.
    fn probe(&self, position: &Position) -> Option<i32>;

    /// The moves that keep the result and make progress, if the current position is known.
    fn best_moves(&self, game: &Game) -> Option<Vec<Move>>;
}

/// What every walk of a search shares.
pub struct Ground<'a> {
    /// The formulas' numbers.
    pub params: &'a Params,
    /// Nodes and edges.
    pub pool: &'a Pool,
    /// The root.
    pub root: NodeId,
    /// The game that leads to it.
    pub game: &'a Arc<Game>,
    /// Evaluations seen before; `None` when the backend is cheaper than looking.
    pub cache: Option<&'a EvalCache>,
    /// Tablebases.
    pub oracle: Option<&'a dyn Oracle>,
}

/// One worker's way through the tree.
pub struct Walker<'a> {
    ground: Ground<'a>,
    /// Hands out nodes and edges.
    pub allocator: Allocator<'a>,
    /// Counted since it was last taken.
    pub counts: Counts,
    /// Keys of the game's positions and of those on the path, oldest first.
    keys: Vec<u64>,
    /// Index of the root's key.
    root_key: usize,
    path: Vec<Move>,
    nodes: Vec<NodeId>,
    candidates: Vec<Candidate>,
    batch: Minibatch,
    /// False while memory allows no growth.
    pub may_grow: bool,
}

impl<'a> Walker<'a> {
    /// A walker at the root.
    pub fn new(ground: Ground<'a>) -> Walker<'a> {
        let keys: Vec<u64> = ground.game.positions().iter().map(Position::key).collect();
        Walker {
            allocator: Allocator::new(ground.pool),
            root_key: keys.len() - 1,
            keys,
            ground,
            counts: Counts::default(),
            path: Vec::new(),
            nodes: Vec::new(),
            candidates: Vec::new(),
            batch: Minibatch::default(),
            may_grow: true,
        }
    }

    /// Leaves gathered since the minibatch was last taken.
    pub fn gathered(&self) -> usize {
        self.batch.size()
    }

    /// The minibatch, to be handed over.
    pub fn take_batch(&mut self) -> Minibatch {
        std::mem::take(&mut self.batch)
    }

    /// Sends `budget` visits down from the root. `root_moves` is needed once the root is expanded.
    pub fn descend(&mut self, budget: u32, root_moves: Option<&[RootMove]>) -> Taken {
        let game = self.ground.game.clone();
        self.visit(
            self.ground.root,
            NO_PARENT,
            game.current(),
            budget,
            root_moves,
        )
    }

    fn visit(
        &mut self,
        id: NodeId,
        parent: u32,
        position: &Position,
        budget: u32,
        root_moves: Option<&[RootMove]>,
    ) -> Taken {
        let node = self.ground.pool.node(id);
        node.begin(budget);
        self.nodes.push(id);
        let taken = self.visit_begun(id, node, parent, position, budget, root_moves);
        self.nodes.pop();
        node.end(budget - taken.pending - taken.collisions);
        taken
    }

    fn visit_begun(
        &mut self,
        id: NodeId,
        node: &Node,
        parent: u32,
        position: &Position,
        budget: u32,
        root_moves: Option<&[RootMove]>,
    ) -> Taken {
        let depth = self.path.len() as u32;
        let meta = node.meta();
        match meta.state() {
            State::Expanding => self.collide(id, parent, budget),
            State::TwoFold if depth < meta.plies() => {
                self.forget_repetition(node, meta);
                self.leaf(id, node, parent, position, budget)
            }
            State::Unexpanded => self.leaf(id, node, parent, position, budget),
            _ => match meta.certain_value() {
                Some(_) if depth > 0 => self.certain(node, meta, budget),
                // The root was expanded by another worker just now: its moves come next time.
                _ if depth == 0 && root_moves.is_none() => Taken::default(),
                _ => self.inner(id, node, parent, position, budget, root_moves),
            },
        }
    }

    fn collide(&mut self, id: NodeId, parent: u32, visits: u32) -> Taken {
        self.push_step(id, parent, visits);
        Taken::collision(visits)
    }

    fn push_step(&mut self, id: NodeId, parent: u32, held: u32) -> u32 {
        let index = self.batch.steps.len() as u32;
        self.batch.steps.push(Step {
            node: id,
            parent,
            held,
        });
        index
    }

    /// Visits to a node whose result is known.
    fn certain(&mut self, node: &Node, meta: Meta, budget: u32) -> Taken {
        let Some(value) = meta.certain_value() else {
            return Taken::default();
        };
        self.count_depth(budget);
        let sums = value.times(budget);
        node.add(sums);
        Taken {
            sums,
            recheck: node.visits() <= budget && meta.proven().is_some(),
            ..Taken::default()
        }
    }

    fn count_depth(&mut self, visits: u32) {
        let depth = self.path.len() as u32;
        self.counts.depth_sum += u64::from(depth) * u64::from(visits);
        self.counts.max_depth = self.counts.max_depth.max(depth);
    }

    fn inner(
        &mut self,
        id: NodeId,
        node: &Node,
        parent: u32,
        position: &Position,
        budget: u32,
        root_moves: Option<&[RootMove]>,
    ) -> Taken {
        let pool = self.ground.pool;
        let edges = pool.edges_of(node);
        let first = self.candidates.len();
        let for_root_side = self.path.len().is_multiple_of(2);
        let draw_score = self.ground.params.draw_score;
        let selection = Selection {
            params: self.ground.params,
            pool,
            edges,
            root: root_moves,
            draw_score: if for_root_side {
                draw_score
            } else {
                -draw_score
            },
        };
        selection.distribute(node, budget, &mut self.candidates);
        let step = self.push_step(id, parent, 0);
        let mut total = Taken::default();
        for index in first..self.candidates.len() {
            let candidate = self.candidates[index];
            if candidate.given == 0 {
                continue;
            }
            let edge = edges[candidate.edge as usize].load();
            let child = match edge.child() {
                NodeId::NONE => {
                    let fresh = self.allocator.node();
                    let there = edges[candidate.edge as usize].set_child(edge, fresh);
                    if there != fresh {
                        self.allocator.unused(fresh);
                    }
                    there
                }
                there => there,
            };
            let mut next = position.clone();
            next.play(edge.mv());
            self.keys.push(next.key());
            self.path.push(edge.mv());
            let taken = self.visit(child, step, &next, candidate.given, None);
            self.path.pop();
            self.keys.pop();
            total.sums.absorb(taken.sums.for_parent());
            total.pending += taken.pending;
            total.collisions += taken.collisions;
            total.collision_events += taken.collision_events;
            total.recheck |= taken.recheck;
        }
        self.candidates.truncate(first);
        let held = total.pending + total.collisions;
        if held == 0 {
            self.batch.steps.truncate(step as usize);
        } else {
            self.batch.steps[step as usize].held = held;
        }
        let recheck = total.recheck && self.ground.params.sticky_endgames;
        (total.sums, total.recheck) = finish(pool, node, total.sums, recheck);
        total
    }

    /// A node that nobody has evaluated: ends the game, is answered by the cache, or becomes a leaf.
    /// Further visits to a leaf are collisions.
    fn leaf(
        &mut self,
        id: NodeId,
        node: &Node,
        parent: u32,
        position: &Position,
        budget: u32,
    ) -> Taken {
        if !node.claim() {
            return self.collide(id, parent, budget);
        }
        let moves = position.legal_moves();
        let (repetitions, cycle) = self.repetitions(position);
        if !self.path.is_empty()
            && let Some(meta) = self.verdict(position, &moves, repetitions, cycle)
        {
            node.settle(meta, BlockId(0));
            return self.certain(node, meta, budget);
        }
        if !self.may_grow {
            node.unclaim();
            return Taken::default();
        }
        let key = match self.ground.cache {
            Some(_) => self.cache_key(position, repetitions),
            None => CacheKey::new(0, 0, 0, std::iter::empty()),
        };
        if self.ground.params.out_of_order
            && let Some(cache) = self.ground.cache
            && let Some(evaluation) = cache.get(key, moves.len())
        {
            let value = expand(
                &mut self.allocator,
                self.ground.pool,
                node,
                &moves,
                &evaluation,
            );
            self.counts.expanded += 1;
            self.count_depth(1);
            let mates = self.prove_root_mate(node, position, &moves);
            let (sums, recheck) = finish(self.ground.pool, node, value.times(1), mates);
            return Taken {
                sums,
                recheck,
                ..Taken::default()
            };
        }
        let step = self.push_step(id, parent, budget);
        self.count_depth(1);
        self.batch.leaf_steps.push(step);
        self.batch.cache_keys.push(key);
        self.batch.leaves.push(Leaf {
            root: self.ground.game.clone(),
            path: self.path.clone(),
            position: position.clone(),
            moves: moves.to_vec(),
            repetitions,
        });
        Taken {
            pending: 1,
            ..Taken::collision(budget - 1)
        }
    }

    /// A root keeps its edges, but a move that mates is known from the start. True if there is one.
    fn prove_root_mate(&mut self, node: &Node, position: &Position, moves: &[Move]) -> bool {
        let is_root = std::ptr::eq(node, self.ground.pool.node(self.ground.root));
        if !is_root || !self.ground.params.sticky_endgames {
            return false;
        }
        let Some(mate) = position.mating_move(moves) else {
            return false;
        };
        let edges = self.ground.pool.edges_of(node);
        let Some(edge) = edges.iter().find(|edge| edge.load().mv() == mate) else {
            return false;
        };
        let child = self.allocator.node();
        let settled = self.ground.pool.node(child);
        settled.settle(Meta::terminal(-1, Source::Rules), BlockId(0));
        if edge.set_child(edge.load(), child) != child {
            settled.unclaim();
            self.allocator.unused(child);
            return false;
        }
        true
    }

    /// How often the position at the end of the path occurred before it, and how many plies ago
    /// last.
    fn repetitions(&self, position: &Position) -> (u8, usize) {
        let here = self.keys.len() - 1;
        let reach = (position.rule50() as usize).min(here);
        let mut count = 0;
        let mut cycle = 0;
        let mut back = 4;
        while back <= reach {
            if self.keys[here - back] == self.keys[here] {
                count += 1;
                if cycle == 0 {
                    cycle = back;
                }
            }
            back += 2;
        }
        (count, cycle)
    }

    /// The end of the game here, or as good as that.
    fn verdict(
        &mut self,
        position: &Position,
        moves: &[Move],
        repetitions: u8,
        cycle: usize,
    ) -> Option<Meta> {
        let draw = Meta::terminal(0, Source::Rules);
        if moves.is_empty() {
            return Some(match position.is_check() {
                true => Meta::terminal(-1, Source::Rules),
                false => draw,
            });
        }
        if position.is_insufficient_material() || position.rule50() >= 100 || repetitions >= 2 {
            return Some(draw);
        }
        let in_tree = repetitions > 0 && cycle <= self.keys.len() - 1 - self.root_key;
        if in_tree && self.ground.params.two_fold_draws {
            return Some(Meta::two_fold(cycle as u32));
        }
        if self.ground.params.sticky_endgames && position.mating_move(moves).is_some() {
            return Some(Meta::mate_in_one());
        }
        let result = self.ground.oracle?.probe(position)?;
        self.counts.tablebase_hits += 1;
        Some(Meta::terminal(result, Source::Tablebase))
    }

    fn cache_key(&self, position: &Position, repetitions: u8) -> CacheKey {
        let earlier = self.keys.iter().rev().skip(1);
        CacheKey::new(
            position.key(),
            repetitions,
            position.rule50(),
            earlier.take(self.ground.params.cache_history).copied(),
        )
    }

    /// A repetition whose first occurrence is no longer in the tree: its visits are taken back all
    /// the way up, and the node starts afresh.
    fn forget_repetition(&mut self, node: &Node, seen: Meta) {
        let mut sums = node.sums();
        if !node.exchange_meta(seen, Meta::unexpanded()) {
            return;
        }
        for id in self.nodes.iter().rev() {
            self.ground.pool.node(*id).subtract(sums);
            let mut above = Sums::default();
            above.absorb(sums.for_parent());
            sums = above;
        }
    }

    /// Backs up a minibatch: each leaf with its evaluation, all paths together.
    pub fn back_up(
        &mut self,
        batch: &Minibatch,
        leaves: &[Leaf],
        evaluations: &[crate::eval::Evaluation],
    ) {
        let pool = self.ground.pool;
        let mut sums = vec![(Sums::default(), false); batch.steps.len()];
        for ((leaf, evaluation), &step) in leaves.iter().zip(evaluations).zip(&batch.leaf_steps) {
            let node = pool.node(batch.steps[step as usize].node);
            let value = expand(&mut self.allocator, pool, node, &leaf.moves, evaluation);
            self.counts.expanded += 1;
            let mates = self.prove_root_mate(node, &leaf.position, &leaf.moves);
            sums[step as usize] = (value.times(1), mates);
        }
        for index in (0..batch.steps.len()).rev() {
            let step = batch.steps[index];
            let node = pool.node(step.node);
            let (mine, recheck) = sums[index];
            let (up, changed) = finish(
                pool,
                node,
                mine,
                recheck && self.ground.params.sticky_endgames,
            );
            node.end(step.held);
            if step.parent != NO_PARENT {
                let parent = &mut sums[step.parent as usize];
                parent.0.absorb(up.for_parent());
                parent.1 |= changed;
            }
        }
    }

    /// Gives a minibatch up: nothing stays in flight, claimed leaves are unexpanded again.
    pub fn cancel(&mut self, batch: &Minibatch) {
        let pool = self.ground.pool;
        for &step in &batch.leaf_steps {
            pool.node(batch.steps[step as usize].node).unclaim();
        }
        for step in &batch.steps {
            pool.node(step.node).end(step.held);
        }
    }
}
