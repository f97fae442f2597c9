//! When to stop: small objects asked in a chain after every minibatch. Knows what the root looks
//! like, not how it came about.

use std::time::Duration;

use crate::options::Options;

use super::clock::Budget;
use super::request::Limits;

/// The root as stoppers see it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Since the clocks started.
    pub elapsed: Duration,
    /// Visits of the root.
    pub visits: u32,
    /// Visits made by this search.
    pub playouts: u64,
    /// Minibatches of this search.
    pub minibatches: u64,
    /// Average depth, plies.
    pub depth: u32,
    /// Visits of the allowed root moves, best first as they would be played.
    pub moves: Vec<MoveVisits>,
    /// Bounds on the result with the allowed root moves.
    pub bounds: (i32, i32),
    /// Moves to mate if the best move is a proven win by the rules.
    pub mate_in: Option<u32>,
}

/// Visits of one root move.
#[derive(Clone, Copy, Debug)]
pub struct MoveVisits {
    /// The move's packed form.
    pub id: u16,
    /// Visits.
    pub visits: u32,
    /// Q from the side that moves.
    pub q: f32,
    /// The move is proven to lose.
    pub lost: bool,
    /// The certain result for the side that moves.
    pub proven: Option<i32>,
}

/// What stoppers tell those after them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// Visits that can still be made.
    pub remaining_visits: Option<u64>,
}

/// One reason to stop.
pub trait Stopper: Send {
    /// True when the search should end.
    fn should_stop(&mut self, root: &Snapshot, hints: &mut Hints) -> bool;
}

/// Stoppers in order.
#[derive(Default)]
pub struct Chain(Vec<Box<dyn Stopper>>);

impl Chain {
    /// The stoppers for one search. `visit_limit` is the total of root visits, `budget` the time.
    pub fn new(
        options: &Options,
        limits: &Limits,
        visit_limit: Option<u64>,
        budget: Option<Budget>,
    ) -> Chain {
        let mut chain: Vec<Box<dyn Stopper>> = Vec::new();
        if let Some(limit) = visit_limit {
            chain.push(Box::new(Visits { limit }));
        }
        if options.fixed_nodes > 0 {
            // As many nodes as asked for, whatever comes of them.
            return Chain(chain);
        }
        if let Some(budget) = budget {
            chain.push(Box::new(Time { budget }));
        }
        if let Some(depth) = limits.depth {
            chain.push(Box::new(Depth { limit: depth }));
        }
        if let Some(moves) = limits.mate {
            chain.push(Box::new(Mate { moves }));
        }
        if options.minimum_kld_gain_per_node > 0.0 {
            chain.push(Box::new(KldGain {
                least: options.minimum_kld_gain_per_node,
                interval: options.kld_gain_average_interval.max(1) as u64,
                last: Vec::new(),
                last_visits: 0,
            }));
        }
        if options.smart_pruning_factor > 0.0 && limits.mate.is_none() {
            chain.push(Box::new(SmartPruning {
                factor: options.smart_pruning_factor,
                minimum_batches: options.smart_pruning_minimum_batches.max(0) as u64,
                timed: budget.is_some(),
                lines: options.multi_pv.max(1) as usize,
            }));
        }
        Chain(chain)
    }

    /// True when any stopper says so.
    pub fn should_stop(&mut self, root: &Snapshot) -> bool {
        let mut hints = Hints::default();
        let mut stop = false;
        for stopper in &mut self.0 {
            stop |= stopper.should_stop(root, &mut hints);
        }
        stop
    }
}

struct Visits {
    limit: u64,
}

impl Stopper for Visits {
    fn should_stop(&mut self, root: &Snapshot, hints: &mut Hints) -> bool {
        let remaining = self.limit.saturating_sub(u64::from(root.visits));
        hints.remaining_visits = Some(remaining);
        remaining == 0
    }
}

/// Ends at the usual time, or later while the most visited move is not the one with the best Q.
struct Time {
    budget: Budget,
}

impl Stopper for Time {
    fn should_stop(&mut self, root: &Snapshot, hints: &mut Hints) -> bool {
        let end = match is_unclear(root) {
            true => self.budget.most,
            false => self.budget.usual,
        };
        let left = end.saturating_sub(root.elapsed);
        if root.elapsed > Duration::from_millis(20) && root.playouts > 0 {
            let rate = root.playouts as f64 / root.elapsed.as_secs_f64();
            let visits = (rate * left.as_secs_f64()) as u64 + 1;
            let known = hints.remaining_visits.unwrap_or(u64::MAX);
            hints.remaining_visits = Some(known.min(visits));
        }
        left.is_zero()
    }
}

/// True when a move with many visits has a better Q than the best move.
fn is_unclear(root: &Snapshot) -> bool {
    let Some((best, others)) = root.moves.split_first() else {
        return false;
    };
    others
        .iter()
        .any(|m| m.visits > best.visits / 4 && m.q > best.q && !best.lost)
}

struct Depth {
    limit: u32,
}

impl Stopper for Depth {
    fn should_stop(&mut self, root: &Snapshot, _: &mut Hints) -> bool {
        root.visits > 0 && root.depth >= self.limit
    }
}

/// Mates in more moves than this are not waited for once a longer one is proven: to be sure that
/// none is shorter takes too long.
const SURE_MATE: u32 = 3;

/// Ends when a mate in so many moves is found or can no longer be.
struct Mate {
    moves: u32,
}

impl Stopper for Mate {
    fn should_stop(&mut self, root: &Snapshot, _: &mut Hints) -> bool {
        let longer = root.bounds.0 == 1 && self.moves > SURE_MATE;
        root.mate_in.is_some_and(|n| n <= self.moves)
            || root.visits > 0 && (root.bounds.1 < 1 || longer)
    }
}

/// Ends when the distribution of visits hardly changes: its Kullback–Leibler divergence from the one
/// an interval ago, per visit.
struct KldGain {
    least: f64,
    interval: u64,
    last: Vec<(u16, u32)>,
    last_visits: u32,
}

impl Stopper for KldGain {
    fn should_stop(&mut self, root: &Snapshot, _: &mut Hints) -> bool {
        let gained = root.visits.saturating_sub(self.last_visits);
        if u64::from(gained) < self.interval {
            return false;
        }
        let now: Vec<(u16, u32)> = root.moves.iter().map(|m| (m.id, m.visits)).collect();
        let total = |list: &[(u16, u32)]| list.iter().map(|m| f64::from(m.1)).sum::<f64>();
        let (before_sum, now_sum) = (total(&self.last), total(&now));
        let mut gain = 0.0;
        for (id, visits) in &self.last {
            let later = now.iter().find(|m| m.0 == *id).map_or(0, |m| m.1);
            if *visits > 0 && later > 0 {
                let p = f64::from(*visits) / before_sum;
                gain += p * (p / (f64::from(later) / now_sum)).ln();
            }
        }
        let known = before_sum > 0.0;
        self.last = now;
        self.last_visits = root.visits;
        known && gain / f64::from(gained) < self.least
    }
}

/// Ends when no other move can catch up in the visits left, even with `factor` fewer of them needed;
/// in timed searches at once with a single move; always once the result is certain.
struct SmartPruning {
    factor: f64,
    minimum_batches: u64,
    timed: bool,
    /// Moves that are reported.
    lines: usize,
}

impl SmartPruning {
    /// True when no visit can change what is reported.
    fn is_certain(&self, root: &Snapshot) -> bool {
        let (least, most) = root.bounds;
        match self.lines {
            0 | 1 => least == 1 || least == most,
            lines => {
                let mut first = root.moves.iter().take(lines);
                first.all(|m| m.proven == Some(1)) || root.moves.iter().all(|m| m.proven.is_some())
            }
        }
    }
}

impl Stopper for SmartPruning {
    fn should_stop(&mut self, root: &Snapshot, hints: &mut Hints) -> bool {
        let Some((best, others)) = root.moves.split_first() else {
            return false;
        };
        if self.is_certain(root) {
            return true;
        }
        let alive = root.moves.iter().filter(|m| !m.lost).count();
        if self.timed && alive == 1 {
            return true;
        }
        if root.minibatches < self.minimum_batches || root.visits < 2 || best.lost {
            return false;
        }
        let Some(remaining) = hints.remaining_visits else {
            return false;
        };
        if self.lines > 1 && best.proven == Some(1) {
            return false;
        }
        if self.timed && root.elapsed < Duration::from_millis(20) {
            return false;
        }
        let possible = remaining as f64 / self.factor;
        others.is_empty() && self.timed
            || !others.is_empty()
                && others
                    .iter()
                    .filter(|m| !m.lost)
                    .all(|m| f64::from(m.visits) + possible < f64::from(best.visits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(visits: &[u32]) -> Snapshot {
        Snapshot {
            elapsed: Duration::from_millis(500),
            visits: visits.iter().sum::<u32>() + 1,
            playouts: u64::from(visits.iter().sum::<u32>()) + 1,
            minibatches: 10,
            depth: 4,
            moves: visits
                .iter()
                .enumerate()
                .map(|(i, &visits)| MoveVisits {
                    id: i as u16,
                    visits,
                    q: 0.1 - i as f32 * 0.01,
                    lost: false,
                    proven: None,
                })
                .collect(),
            bounds: (-1, 1),
            mate_in: None,
        }
    }

    #[test]
    fn prunes_when_nobody_can_catch_up() {
        let mut chain = Chain::new(&Options::default(), &Limits::default(), Some(1000), None);
        assert!(!chain.should_stop(&root(&[400, 350])));
        assert!(chain.should_stop(&root(&[650, 100])));
        let off = Options {
            smart_pruning_factor: 0.0,
            ..Options::default()
        };
        let mut chain = Chain::new(&off, &Limits::default(), Some(1000), None);
        assert!(!chain.should_stop(&root(&[650, 100])));
        assert!(chain.should_stop(&root(&[900, 99])));
    }

    #[test]
    fn an_unclear_root_gets_more_time() {
        let budget = Budget {
            usual: Duration::from_millis(400),
            most: Duration::from_millis(1000),
        };
        let off = Options {
            smart_pruning_factor: 0.0,
            ..Options::default()
        };
        let mut chain = Chain::new(&off, &Limits::default(), None, Some(budget));
        assert!(chain.should_stop(&root(&[400, 350])));
        let mut unclear = root(&[400, 350]);
        unclear.moves[1].q = 0.3;
        assert!(!chain.should_stop(&unclear));
    }

    #[test]
    fn mate_limits_end_when_found_or_refuted() {
        let limits = Limits {
            mate: Some(2),
            ..Limits::default()
        };
        let mut chain = Chain::new(&Options::default(), &limits, None, None);
        let mut snapshot = root(&[10, 5]);
        assert!(!chain.should_stop(&snapshot));
        snapshot.mate_in = Some(3);
        assert!(!chain.should_stop(&snapshot));
        snapshot.mate_in = Some(2);
        assert!(chain.should_stop(&snapshot));
        snapshot.mate_in = None;
        snapshot.bounds = (-1, 0);
        assert!(chain.should_stop(&snapshot));
        let long = Limits {
            mate: Some(9),
            ..Limits::default()
        };
        let mut chain = Chain::new(&Options::default(), &long, None, None);
        snapshot.mate_in = Some(12);
        snapshot.bounds = (-1, 1);
        assert!(!chain.should_stop(&snapshot));
        snapshot.bounds = (1, 1);
        assert!(chain.should_stop(&snapshot));
    }
}
