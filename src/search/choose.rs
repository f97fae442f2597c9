//! Which root move is best, and which one is played. Knows results, not how they came about.

use std::cmp::Ordering;

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::chess::Move;
use crate::options::Options;

use super::node::{Node, NodeId, Source, State};
use super::pool::Pool;
use super::root::RootFilter;
use super::values::Sums;

/// A move with what the search knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    /// The move.
    pub mv: Move,
    /// Its prior.
    pub prior: f32,
    /// The child; may be none.
    pub child: NodeId,
    /// Visits and values of the child, from the child's side to move.
    pub sums: Sums,
    /// The certain result for the side that moves, plies to it, and who says so.
    pub proven: Option<(i32, u32, Source)>,
    /// The worst and the best result still possible for the side that moves.
    pub bounds: (i32, i32),
}

impl Ranked {
    /// Q from the side that moves.
    pub fn q(&self) -> f32 {
        -self.sums.q()
    }

    /// Proven win, tablebase win, anything else, tablebase loss, proven loss; the larger is better.
    fn class(&self) -> i32 {
        match self.proven {
            Some((1, _, Source::Rules)) => 4,
            Some((1, _, Source::Tablebase)) => 3,
            Some((-1, _, Source::Tablebase)) => 1,
            Some((-1, _, Source::Rules)) => 0,
            _ => 2,
        }
    }

    /// `Greater` when `self` is to be preferred.
    fn compare(&self, other: &Ranked) -> Ordering {
        self.class()
            .cmp(&other.class())
            .then_with(|| match (self.class(), self.proven, other.proven) {
                (4, Some((_, mine, _)), Some((_, theirs, _))) => theirs.cmp(&mine),
                (0, Some((_, mine, _)), Some((_, theirs, _))) => mine.cmp(&theirs),
                _ => Ordering::Equal,
            })
            .then_with(|| self.sums.visits.cmp(&other.sums.visits))
            .then_with(|| {
                if self.sums.visits == 0 {
                    Ordering::Equal
                } else {
                    self.q().total_cmp(&other.q())
                }
            })
            .then_with(|| self.prior.total_cmp(&other.prior))
    }
}

/// The moves of an expanded node, best first.
pub fn ranked(pool: &Pool, node: &Node, filter: Option<&RootFilter>) -> Vec<Ranked> {
    if node.meta().state() != State::Expanded {
        return Vec::new();
    }
    let mut moves: Vec<Ranked> = pool
        .edges_of(node)
        .iter()
        .map(|edge| edge.load())
        .filter(|edge| filter.is_none_or(|f| f.allows(edge.mv())))
        .map(|edge| {
            let child = edge.child();
            let mut ranked = Ranked {
                mv: edge.mv(),
                prior: edge.prior(),
                child,
                sums: Sums::default(),
                proven: None,
                bounds: (-1, 1),
            };
            if !child.is_none() {
                let child = pool.node(child);
                let meta = child.meta();
                ranked.sums = child.sums();
                ranked.bounds = (-meta.upper(), -meta.lower());
                ranked.proven = meta
                    .proven()
                    .map(|result| (-result, meta.plies() + 1, meta.source()));
            }
            ranked
        })
        .collect();
    moves.sort_by(|a, b| b.compare(a));
    moves
}

/// How the move to play is drawn from the ranked ones.
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    /// 0 plays the best.
    pub value: f32,
    cutoff: f32,
    offset: f32,
}

impl Temperature {
    /// From the options, for the given number of full moves since the game's first.
    pub fn new(options: &Options, moves_played: u32) -> Temperature {
        let ply = i64::from(moves_played);
        let mut value = options.temperature;
        if options.temp_cutoff_move > 0 && ply + 1 >= options.temp_cutoff_move {
            value = options.temp_endgame;
        } else if value > 0.0 && options.temp_decay_moves > 0 {
            let late = ply - options.temp_decay_delay_moves;
            if late >= options.temp_decay_moves {
                value = 0.0;
            } else if late > 0 {
                value *= 1.0 - late as f64 / options.temp_decay_moves as f64;
            }
            if value < options.temp_endgame {
                value = options.temp_endgame;
            }
        }
        Temperature {
            value: value as f32,
            cutoff: options.temp_value_cutoff as f32,
            offset: options.temp_visit_offset as f32,
        }
    }

    /// Draws an index with weights (N + offset)^(1/T) among moves whose win chance is at most the
    /// cutoff (per cent) below the best one's. A forced result is never left to chance.
    pub fn draw(&self, moves: &[Ranked], seed: u64) -> usize {
        let Some(best) = moves.first() else {
            return 0;
        };
        if self.value <= 0.0 || best.class() != 2 || best.sums.visits == 0 {
            return 0;
        }
        let floor = best.q() - 2.0 * self.cutoff / 100.0;
        let most = (best.sums.visits as f32 + self.offset).max(1e-3);
        let weights: Vec<f64> = moves
            .iter()
            .map(|m| {
                let visits = m.sums.visits as f32 + self.offset;
                if m.sums.visits == 0 || visits <= 0.0 || m.q() < floor || m.class() < 2 {
                    0.0
                } else {
                    f64::from(visits / most).powf(1.0 / f64::from(self.value))
                }
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        let mut at = SmallRng::seed_from_u64(seed).random::<f64>() * sum;
        for (index, weight) in weights.iter().enumerate() {
            if at < *weight {
                return index;
            }
            at -= weight;
        }
        0
    }
}
