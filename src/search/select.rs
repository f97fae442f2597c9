//! PUCT: which children of a node get how many of the visits at hand. Knows formulas, not how the
//! tree is walked.

use super::node::{Edge, Node, NodeId};
use super::params::Params;
use super::pool::Pool;
use super::root::RootMove;

/// A child that may be visited. Score = base + up/(1 + started), the largest wins.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Q and moves-left utility, from the side that chooses.
    base: f32,
    /// cpuct·P·√ΣN.
    up: f32,
    /// Visits completed, in flight and given.
    started: u32,
    /// Visits given by [`Selection::distribute`].
    pub given: u32,
    /// Index of the edge.
    pub edge: u32,
    /// The child, if it is there.
    pub child: NodeId,
}

impl Candidate {
    fn score(&self) -> f32 {
        self.base + self.up / (1 + self.started) as f32
    }

    /// How many visits it takes until the score falls below `other`; at least 1.
    fn visits_until_below(&self, other: f32) -> u32 {
        let ahead = other - self.base;
        if ahead <= 0.0 {
            return u32::MAX;
        }
        let visits = self.up / ahead - (1 + self.started) as f32;
        (visits.max(0.0) as u32).saturating_add(1)
    }
}

/// Below whatever a move can be worth.
const KNOWN: f32 = -100.0;

/// One node about to hand out visits.
pub struct Selection<'a> {
    /// The formulas' numbers.
    pub params: &'a Params,
    /// Where children are.
    pub pool: &'a Pool,
    /// The node's edges, priors descending.
    pub edges: &'a [Edge],
    /// The root's own priors and exclusions, at the root.
    pub root: Option<&'a [RootMove]>,
    /// What a draw is worth to the side that chooses.
    pub draw_score: f32,
}

/// The unvisited edges of a node, which come in order of their priors.
struct Unvisited {
    next: usize,
    fpu: f32,
    scale: f32,
}

impl Selection<'_> {
    /// Appends candidates for `node` to `out` and gives them `budget` visits in all. Visited
    /// children are a beginning of the edges, since unvisited ones differ in their priors only.
    pub fn distribute(&self, node: &Node, budget: u32, out: &mut Vec<Candidate>) {
        let first = out.len();
        let mut unvisited = self.open(node, out);
        let mut left = budget;
        while left > 0 {
            let Some((best, second)) = best_two(&out[first..]) else {
                return;
            };
            let candidate = &mut out[first + best];
            let visits = candidate.visits_until_below(second).min(left);
            let was_fresh = candidate.child.is_none() && candidate.given == 0;
            candidate.given += visits;
            candidate.started += visits;
            left -= visits;
            if was_fresh && left > 0 {
                self.push_unvisited(&mut unvisited, out);
            }
        }
    }

    fn open(&self, node: &Node, out: &mut Vec<Candidate>) -> Unvisited {
        let sums = match (self.draw_score != 0.0, self.params.moves_left) {
            (false, None) => node.wl_sums(),
            _ => node.sums(),
        };
        let first = out.len();
        let parent_q = sums.q() + self.draw_score * sums.d();
        let at_root = self.root.is_some();
        let others = sums.visits.saturating_sub(1).max(1) as f32;
        let scale = self.params.cpuct(at_root, sums.visits) * others.sqrt();
        let moves_left = self.params.moves_left.filter(|m| m.applies(parent_q));
        let parent_m = sums.m();
        let mut visited_policy = 0.0;
        let mut next = self.edges.len();
        for (index, edge) in self.edges.iter().enumerate() {
            let edge = edge.load();
            let child = edge.child();
            let prior = match self.root {
                None => {
                    if child.is_none() {
                        next = index;
                        break;
                    }
                    edge.prior()
                }
                Some(moves) => match moves.get(index) {
                    Some(m) if m.allowed => m.prior,
                    _ => continue,
                },
            };
            let mut candidate = Candidate {
                base: f32::NAN,
                up: prior,
                started: 0,
                given: 0,
                edge: index as u32,
                child,
            };
            if !child.is_none() {
                // Touched here only, so that the memory of all children is asked for at once.
                candidate.started = self.pool.node(child).inflight();
            }
            out.push(candidate);
        }
        let whole = self.draw_score != 0.0 || moves_left.is_some();
        for candidate in &mut out[first..] {
            if candidate.child.is_none() {
                continue;
            }
            let child = self.pool.node(candidate.child);
            let sums = if whole { child.sums() } else { child.wl_sums() };
            if sums.visits == 0 {
                continue;
            }
            candidate.started += sums.visits;
            visited_policy += candidate.up;
            candidate.up *= scale;
            let q = self.draw_score * sums.d() - sums.q();
            candidate.base = q;
            if let Some(m) = moves_left {
                candidate.base += m.utility(q, sums.m(), parent_m);
            }
            match child.meta().proven() {
                // Nothing can be learnt from a lost move.
                Some(1) => candidate.up = 0.0,
                // Nor from a won one, where the lines after it are of interest.
                Some(-1) if at_root && self.params.other_lines => candidate.base = KNOWN,
                _ => {}
            }
        }
        let fpu = self.params.fpu(at_root).value(parent_q, visited_policy);
        for candidate in &mut out[first..] {
            if candidate.base.is_nan() {
                candidate.base = fpu;
                candidate.up *= scale;
            }
        }
        let mut unvisited = Unvisited { next, fpu, scale };
        // Two, so that the second best is right whatever wins.
        self.push_unvisited(&mut unvisited, out);
        self.push_unvisited(&mut unvisited, out);
        unvisited
    }

    fn push_unvisited(&self, unvisited: &mut Unvisited, out: &mut Vec<Candidate>) {
        let Some(edge) = self.edges.get(unvisited.next) else {
            return;
        };
        let edge = edge.load();
        out.push(Candidate {
            base: unvisited.fpu,
            up: unvisited.scale * edge.prior(),
            started: 0,
            given: 0,
            edge: unvisited.next as u32,
            child: edge.child(),
        });
        unvisited.next += 1;
    }
}

/// Index of the best candidate (the first of equals) and the score of the second best.
fn best_two(candidates: &[Candidate]) -> Option<(usize, f32)> {
    let mut best = None;
    let mut first = f32::NEG_INFINITY;
    let mut second = f32::NEG_INFINITY;
    for (index, candidate) in candidates.iter().enumerate() {
        let score = candidate.score();
        if best.is_none() || score > first {
            second = first;
            first = score;
            best = Some(index);
        } else if score > second {
            second = score;
        }
    }
    best.map(|index| (index, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(base: f32, up: f32, started: u32) -> Candidate {
        Candidate {
            base,
            up,
            started,
            given: 0,
            edge: 0,
            child: NodeId::NONE,
        }
    }

    #[test]
    fn a_run_of_visits_ends_when_the_second_overtakes() {
        let mut c = candidate(0.0, 1.0, 0);
        let visits = c.visits_until_below(0.3);
        c.started += visits - 1;
        assert!(c.score() >= 0.3);
        c.started += 1;
        assert!(c.score() < 0.3);
        assert_eq!(candidate(0.5, 1.0, 0).visits_until_below(0.4), u32::MAX);
    }

    #[test]
    fn the_first_of_equals_wins() {
        let all = [candidate(0.1, 0.2, 1), candidate(0.1, 0.2, 1)];
        assert_eq!(best_two(&all), Some((0, all[1].score())));
    }
}
