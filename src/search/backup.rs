//! What happens when an answer arrives: edges are made, sums added, results proven. Knows nothing
//! of how leaves were chosen.

use crate::chess::Move;
use crate::eval::Evaluation;

use super::node::{Meta, Node, Prior, Source};
use super::pool::{Allocator, Pool};
use super::values::{Sums, Value};

/// Writes the edges of a claimed node, priors descending, and settles it; its own value.
pub fn expand(
    allocator: &mut Allocator<'_>,
    pool: &Pool,
    node: &Node,
    moves: &[Move],
    evaluation: &Evaluation,
) -> Value {
    let mut order = [0_u32; 256];
    let count = moves.len().min(255);
    for (index, &p) in evaluation.policy.0.iter().take(count).enumerate() {
        // Of equal priors the earlier move comes first.
        order[index] = u32::from(Prior::new(p).bits()) << 8 | (255 - index as u32);
    }
    let order = &mut order[..count];
    order.sort_unstable_by(|a, b| b.cmp(a));
    let block = allocator.block(count);
    for (edge, &packed) in pool.edges(block, count).iter().zip(order.iter()) {
        let index = 255 - (packed & 255) as usize;
        edge.write(moves[index], Prior::from_bits((packed >> 8) as u16));
    }
    let value = Value::new(evaluation.wdl, evaluation.moves_left);
    node.settle(Meta::expanded(count), block);
    value
}

/// Adds sums to a node. With `recheck` (a child's bounds changed) its own bounds are looked at, and
/// a node that becomes proven gets the proven value for all its visits. What the parent has to add,
/// and whether it has to recheck.
pub fn finish(pool: &Pool, node: &Node, mut sums: Sums, recheck: bool) -> (Sums, bool) {
    node.add(sums);
    if !recheck {
        return (sums, false);
    }
    let Some(proven) = tighten(pool, node) else {
        return (sums, false);
    };
    if let Some(value) = proven.certain_value() {
        let missing = node.sums().missing_to(value);
        node.add(missing);
        sums.adjust(missing);
    }
    (sums, true)
}

/// Bounds from the children's: the best of theirs, seen from this side. The new state if it changed.
fn tighten(pool: &Pool, node: &Node) -> Option<Meta> {
    let seen = node.meta();
    if seen.proven().is_some() {
        return None;
    }
    let edges = pool.edges(node.block(), seen.edges());
    let (mut lower, mut upper) = (-1, -1);
    // Shortest win and longest loss, the rules' word before a tablebase's.
    let mut win: Option<(bool, u32)> = None;
    let mut loss = (false, 0);
    for edge in edges {
        let child = edge.load().child();
        if child.is_none() {
            upper = 1;
            continue;
        }
        let child = pool.node(child).meta();
        lower = lower.max(-child.upper());
        upper = upper.max(-child.lower());
        let tablebase = child.source() == Source::Tablebase;
        match child.proven() {
            Some(-1) => {
                let this = (tablebase, child.plies() + 1);
                win = Some(win.map_or(this, |best| best.min(this)));
            }
            Some(1) => loss = (loss.0 || tablebase, loss.1.max(child.plies() + 1)),
            _ => {}
        }
    }
    if (lower, upper) == (seen.lower(), seen.upper()) {
        return None;
    }
    let (tablebase, plies) = match (lower, upper) {
        (1, _) => {
            upper = 1;
            win.unwrap_or((false, 0))
        }
        (-1, -1) => loss,
        _ => (false, 0),
    };
    let source = if tablebase {
        Source::Tablebase
    } else {
        Source::Rules
    };
    let next = seen.with_bounds(lower, upper, source, plies);
    node.exchange_meta(seen, next).then_some(next)
}
