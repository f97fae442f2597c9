//! Counts the leaves of the move tree, which checks move generation against known numbers. Knows no
//! evaluation and no draws: only legal moves.

use std::sync::atomic::{AtomicBool, Ordering};

use shakmaty::Position as _;

use super::moves::Move;
use super::position::Position;

/// Leaves under each move of a position, and their sum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerftCounts {
    /// In the order of the move generator.
    pub moves: Vec<(Move, u64)>,
    /// 1 at depth 0, which has no moves.
    pub total: u64,
}

/// The number of positions `depth` plies on.
pub fn perft(position: &Position, depth: u32) -> u64 {
    count(position, depth, None).unwrap_or(0)
}

/// The number of positions `depth` plies on, by first move; `None` when `stop` was set before the end.
pub fn perft_by_move(position: &Position, depth: u32, stop: &AtomicBool) -> Option<PerftCounts> {
    let mut counts = PerftCounts::default();
    let Some(below) = depth.checked_sub(1) else {
        counts.total = 1;
        return Some(counts);
    };
    for m in position.legal_moves() {
        let mut next = position.clone();
        next.play(m);
        let leaves = count(&next, below, Some(stop))?;
        counts.moves.push((m, leaves));
        counts.total = counts.total.saturating_add(leaves);
    }
    Some(counts)
}

fn count(position: &Position, depth: u32, stop: Option<&AtomicBool>) -> Option<u64> {
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return None;
    }
    match depth {
        0 => Some(1),
        1 => Some(position.inner().legal_moves().len() as u64),
        _ => position.legal_moves().into_iter().try_fold(0u64, |sum, m| {
            let mut next = position.clone();
            next.play(m);
            // The flag is looked at two plies above the leaves and higher.
            let stop = stop.filter(|_| depth > 3);
            Some(sum.saturating_add(count(&next, depth - 1, stop)?))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions everyone knows, and depths that take no time.
    const KNOWN: &[(&str, &[u64])] = &[
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            &[1, 20, 400, 8_902, 197_281],
        ),
        (
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            &[1, 48, 2_039, 97_862],
        ),
        (
            "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
            &[1, 14, 191, 2_812, 43_238],
        ),
        (
            "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
            &[1, 6, 264, 9_467],
        ),
        (
            "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
            &[1, 44, 1_486, 62_379],
        ),
        (
            "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
            &[1, 21, 528, 12_189],
        ),
    ];

    #[test]
    fn known_counts() {
        let go = AtomicBool::new(false);
        for (fen, counts) in KNOWN {
            let (position, repairs) = Position::from_fen(fen).unwrap();
            assert!(repairs.is_empty(), "{repairs:?}");
            for (depth, &leaves) in (0..).zip(counts.iter()) {
                assert_eq!(perft(&position, depth), leaves, "{fen} depth {depth}");
                let by_move = perft_by_move(&position, depth, &go).unwrap();
                assert_eq!(by_move.total, leaves);
                assert_eq!(
                    by_move.moves.len() as u64,
                    if depth == 0 { 0 } else { counts[1] }
                );
            }
        }
    }

    #[test]
    fn a_set_stop_ends_it() {
        let stop = AtomicBool::new(true);
        assert_eq!(perft_by_move(&Position::startpos(), 9, &stop), None);
    }
}
