//! From a tree to infos: lines, scores, principal variations. Reads the tree, changes nothing and
//! prints nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::chess::Move;
use crate::eval::Wdl;
use crate::options::Options;

use super::choose::{Ranked, ranked};
use super::event::{Info, Line, Score};
use super::node::{Node, NodeId, Source, State};
use super::score::{ScoreType, mate, per_mille};
use super::stoppers::{MoveVisits, Snapshot};
use super::values::Sums;
use super::worker::Shared;

/// How infos are to look.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    score_type: ScoreType,
    draw_score: f32,
    multi_pv: usize,
    has_wdl: bool,
    has_moves_left: bool,
}

/// Longest principal variation, plies, unless it is a mate.
const MOST_PLIES: usize = 64;

impl Style {
    /// From the options and what the network has.
    pub fn new(options: &Options, has_wdl: bool, has_moves_left: bool) -> Style {
        Style {
            score_type: ScoreType::from_option(&options.score_type),
            draw_score: options.draw_score as f32,
            multi_pv: options.multi_pv.max(1) as usize,
            has_wdl,
            has_moves_left,
        }
    }

    /// The tree as it is now. `first` puts that move's line first; before the root is expanded
    /// `fallback` is the only line.
    pub fn info(
        &self,
        shared: &Shared,
        time: Duration,
        first: Option<Move>,
        fallback: Option<Move>,
    ) -> Info {
        let mut moves = ranked(shared.tree.pool(), shared.root(), Some(&shared.filter));
        if let Some(index) = moves.iter().position(|m| Some(m.mv) == first) {
            moves[..=index].rotate_right(1);
        }
        // An unvisited move is worth what the root is, but never more than a visited one.
        let mut unvisited = shared.root().sums();
        let mut least = self.score(unvisited);
        let mut lines: Vec<Line> = Vec::new();
        for m in moves.iter().take(self.multi_pv) {
            let line = self.line(shared, m, unvisited);
            if let (Score::Cp(now), Score::Cp(before)) = (line.score, least)
                && m.sums.visits > 0
                && now < before
            {
                least = line.score;
                unvisited = Sums::default();
                unvisited.absorb(m.sums.for_parent());
            }
            lines.push(line);
        }
        if lines.is_empty() {
            lines.push(Line {
                score: Score::Cp(0),
                wdl: [0, 1000, 0],
                moves_left: None,
                nodes: 0,
                pv: fallback.into_iter().collect(),
            });
        }
        let tally = &shared.tally;
        let depth = depth(shared).max(1);
        let millis = time.as_millis().max(1) as u64;
        let longest = lines.iter().map(|line| line.pv.len()).max().unwrap_or(0) as u32;
        Info {
            depth,
            seldepth: tally
                .max_depth
                .load(Ordering::Relaxed)
                .max(longest)
                .max(depth),
            time,
            nodes: u64::from(shared.root().visits()),
            nps: shared.playouts() * 1000 / millis,
            hashfull: shared.cache.hashfull(),
            tbhits: tally.tablebase_hits.load(Ordering::Relaxed),
            lines,
        }
    }

    /// The score of values from the side to move at the root.
    fn score(&self, sums: Sums) -> Score {
        let wdl = Wdl::from_q_d(sums.q(), sums.d());
        self.score_type.score(wdl, self.draw_score, self.has_wdl)
    }

    fn line(&self, shared: &Shared, m: &Ranked, unvisited: Sums) -> Line {
        // From the side to move at the root.
        let mut sums = Sums::default();
        if m.sums.visits > 0 {
            sums.absorb(m.sums.for_parent());
        } else {
            sums = unvisited;
        }
        let wdl = Wdl::from_q_d(sums.q(), sums.d());
        let score = match m.proven {
            Some((result @ (-1 | 1), plies, Source::Rules)) => mate(plies, result > 0),
            _ => self.score(sums),
        };
        let moves_left = match score {
            Score::Mate(_) => m.proven.map(|proven| proven.1),
            Score::Cp(_) => self
                .has_moves_left
                .then(|| sums.m().round().max(0.0) as u32),
        };
        Line {
            score,
            wdl: per_mille(wdl),
            moves_left,
            nodes: u64::from(m.sums.visits),
            pv: variation(shared, m),
        }
    }
}

/// A move and the best replies as far as they were visited. A proven mate is followed to its end.
fn variation(shared: &Shared, first: &Ranked) -> Vec<Move> {
    let pool = shared.tree.pool();
    let mut pv = vec![first.mv];
    let mating = matches!(first.proven, Some((-1 | 1, _, Source::Rules)));
    let mut at = first.child;
    while !at.is_none() && (mating || pv.len() < MOST_PLIES) {
        let Some(next) = ranked(pool, pool.node(at), None)
            .into_iter()
            .find(|m| !m.child.is_none() && (m.sums.visits > 0 || m.proven.is_some()))
        else {
            break;
        };
        pv.push(next.mv);
        at = next.child;
    }
    if mating {
        // The tree ends where there is a mate in one.
        let mut position = shared.tree.game().current().clone();
        pv.iter().for_each(|&m| position.play(m));
        pv.extend(position.mating_move(&position.legal_moves()));
    }
    pv
}

/// Average depth of this search's visits.
fn depth(shared: &Shared) -> u32 {
    let sum = shared.tally.depth_sum.load(Ordering::Relaxed);
    sum.checked_div(shared.playouts()).unwrap_or(0) as u32
}

/// What stoppers look at.
pub fn snapshot(shared: &Shared, elapsed: Duration) -> Snapshot {
    let root = shared.root();
    let meta = root.meta();
    let moves = ranked(shared.tree.pool(), root, Some(&shared.filter));
    // The root's own bounds know nothing of what is left out.
    let bounds = match shared.filter.allowed.is_empty() || moves.is_empty() {
        true => (meta.lower(), meta.upper()),
        false => moves.iter().fold((-1, -1), |(least, most), m| {
            (least.max(m.bounds.0), most.max(m.bounds.1))
        }),
    };
    Snapshot {
        elapsed,
        visits: root.visits(),
        playouts: shared.playouts(),
        minibatches: shared.tally.minibatches.load(Ordering::Relaxed),
        depth: depth(shared),
        bounds,
        mate_in: moves.first().and_then(|best| match best.proven {
            Some((1, plies, Source::Rules)) => Some(plies.div_ceil(2)),
            _ => None,
        }),
        moves: moves
            .iter()
            .map(|m| MoveVisits {
                id: m.mv.raw(),
                visits: m.sums.visits,
                q: m.q(),
                lost: matches!(m.proven, Some((-1, _, _))),
                proven: m.proven.map(|proven| proven.0),
            })
            .collect(),
    }
}

/// One line for each root move, the best last, then the root's own: N, P, Q, D, M, U, V.
pub fn move_stats(shared: &Shared, text_of: impl Fn(Move) -> String) -> Vec<String> {
    let root = shared.root();
    let own = root.sums();
    let scale =
        shared.params.cpuct(true, own.visits) * (own.visits.saturating_sub(1).max(1) as f32).sqrt();
    let mut lines: Vec<String> = ranked(shared.tree.pool(), root, Some(&shared.filter))
        .iter()
        .rev()
        .map(|m| {
            let in_flight = match m.child {
                NodeId::NONE => 0,
                child => shared.tree.pool().node(child).inflight(),
            };
            let v = match m.child {
                NodeId::NONE => None,
                child => Some(-own_value(shared, shared.tree.pool().node(child))),
            };
            let started = m.sums.visits + in_flight;
            stats_line(
                &text_of(m.mv),
                m.sums,
                in_flight,
                Some(m.prior),
                m.q(),
                Some(scale * m.prior / (1 + started) as f32),
                v,
            )
        })
        .collect();
    lines.push(stats_line(
        "node",
        own,
        root.inflight(),
        None,
        own.q(),
        None,
        Some(own_value(shared, root)),
    ));
    lines
}

/// V: what the network said of a node, Q from its side to move. The sums are exact, so it is what
/// remains without the children's part.
fn own_value(shared: &Shared, node: &Node) -> f32 {
    let mut own = node.sums();
    if node.meta().state() == State::Expanded {
        let pool = shared.tree.pool();
        for child in pool.edges_of(node).iter().map(|edge| edge.load().child()) {
            if !child.is_none() {
                own = own.without(pool.node(child).sums().for_parent());
            }
        }
    }
    own.q().clamp(-1.0, 1.0)
}

fn stats_line(
    name: &str,
    sums: Sums,
    in_flight: u32,
    prior: Option<f32>,
    q: f32,
    u: Option<f32>,
    v: Option<f32>,
) -> String {
    let or_dash = |x: Option<f32>| x.map_or("  -.----".to_owned(), |x| format!("{x:8.5}"));
    let prior = prior.map_or("100.00%".to_owned(), |p| format!("{:6.2}%", p * 100.0));
    format!(
        "{name:<5} N: {:7} (+{in_flight:2}) (P: {prior}) (Q: {q:8.5}) (D: {:6.3}) (M: {:5.1}) (U: {}) (V: {})",
        sums.visits,
        sums.d(),
        sums.m(),
        or_dash(u),
        or_dash(v),
    )
}
