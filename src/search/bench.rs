//! Fixed positions to fixed nodes: a signature that only moves on purpose, and a speed. Measures, does
//! not print.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::chess::{Game, Position};
use crate::eval::Backend;
use crate::options::Options;

use super::{Event, Limits, Request, Search, SearchError};

/// Positions (empty: the start position) and moves played from them, of all phases of the game.
const POSITIONS: &[(&str, &str)] = &[
    ("", ""),
    ("", "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6"),
    (
        "",
        "d2d4 g8f6 c2c4 e7e6 b1c3 f8b4 e2e3 e8g8 f1d3 d7d5 g1f3 c7c5 e1g1",
    ),
    (
        "",
        "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f8e7 f1e1 b7b5 a4b3 d7d6 c2c3 e8g8 h2h3",
    ),
    ("", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1"),
    (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "",
    ),
    (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        "c3d5",
    ),
    (
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
        "",
    ),
    (
        "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
        "",
    ),
    (
        "2rq1rk1/pb1n1ppN/4p3/1pb5/3P1Pn1/P1N5/1PQ1B1PP/R1B2RK1 b - - 0 16",
        "",
    ),
    (
        "r1bq1rk1/pp3pbp/2np2p1/2p1p3/2P1P3/P1NP1NPP/1P3PB1/R1BQR1K1 b - - 0 12",
        "",
    ),
    (
        "3r1rk1/1p3pp1/p1q1pn1p/2P5/1P2P3/P1Q2P2/6PP/3R1RK1 w - - 3 24",
        "d1d8 f8d8 f1c1",
    ),
    (
        "4rrk1/pp1n3p/3q2pQ/2p1pb2/2PP4/2P3N1/P2B2PP/4RRK1 b - - 7 19",
        "",
    ),
    (
        "1r1q1rk1/4bppp/p2p1n2/3Pp3/1p2P3/1B3Q1P/PP3PP1/R1BR2K1 w - - 0 18",
        "",
    ),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", ""),
    ("8/8/1p1k1p2/p1p2P1p/P1P1K2P/1P6/8/8 w - - 4 40", ""),
    ("6k1/5p2/6p1/8/7p/8/6PP/6K1 b - - 0 1", ""),
    ("5k2/7R/4P2p/5K2/p1r2P1p/8/8/8 b - - 0 1", ""),
    ("8/5k2/3p4/1p1Pp2p/pP2Pp1P/P4P1K/8/8 b - - 99 50", ""),
    ("8/3k4/8/8/8/4B3/4KB2/2B5 w - - 0 1", ""),
    ("7k/8/5KQ1/8/8/8/8/8 w - - 0 1", ""),
    ("8/8/8/8/8/6k1/6p1/6K1 w - - 0 1", ""),
    (
        "r3r1k1/pp3pbp/1qp1b1p1/2B5/2BP4/Q1n2N2/P4PPP/3R1K1R w - - 0 18",
        "",
    ),
    (
        "bnrbnkrq/pppppppp/8/8/8/8/PPPPPPPP/BNRBNKRQ w GCgc - 0 1",
        "",
    ),
];

/// What a run over all positions gave.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Root visits in all.
    pub nodes: u64,
    /// Nodes expanded.
    pub expanded: u64,
    /// Leaves the backend evaluated.
    pub evaluations: u64,
    /// Hash over root visits, Q and best moves; the same on every machine for a fake backend.
    pub signature: u64,
    /// Bytes of the largest tree and nodes expanded in it.
    pub largest: (u64, u64),
    /// Time spent searching.
    pub time: Duration,
}

/// Searches every position to `nodes` visits of a fresh tree. With one thread and no limit of time the
/// signature repeats.
///
/// # Errors
/// When the backend makes no evaluator.
pub fn bench(
    backend: Arc<dyn Backend>,
    options: &Options,
    nodes: u64,
) -> Result<Measured, SearchError> {
    let options = Arc::new(Options {
        smart_pruning_factor: 0.0,
        seed: 1,
        ..options.clone()
    });
    let mut search = Search::new(backend, &options)?;
    let mut measured = Measured {
        nodes: 0,
        expanded: 0,
        evaluations: 0,
        signature: FNV_START,
        largest: (0, 0),
        time: Duration::ZERO,
    };
    for (fen, moves) in POSITIONS {
        let Some(game) = game(fen, moves) else {
            debug_assert!(false, "bad position {fen} {moves}");
            continue;
        };
        search.clear();
        let (events, received) = mpsc::channel();
        let start = Instant::now();
        let handle = search.start(Request {
            game: Arc::new(game),
            limits: Limits::nodes(nodes),
            options: options.clone(),
            searchmoves: Vec::new(),
            ponder: false,
            received: start,
            on_event: Box::new(move |event| {
                if let Event::BestMove(best) = event {
                    let _ = events.send(best);
                }
            }),
        });
        handle.join();
        measured.time += start.elapsed();
        let totals = search.totals();
        measured.nodes += totals.playouts;
        measured.expanded += totals.expanded;
        measured.evaluations += totals.evaluations;
        measured.largest = measured.largest.max((search.tree_bytes(), totals.expanded));
        let best = received.try_iter().find_map(|best| best.best);
        measured.mix(best.map_or(0, |m| u64::from(m.raw())));
        for (_, visits, q) in search.root_digest() {
            measured.mix(u64::from(visits));
            measured.mix(q as u64);
        }
    }
    Ok(measured)
}

fn game(fen: &str, moves: &str) -> Option<Game> {
    let start = match fen {
        "" => Position::startpos(),
        fen => Position::from_fen(fen).ok()?.0,
    };
    let mut game = Game::new(start);
    for text in moves.split_whitespace() {
        let m = game.current().parse_uci(text).ok()?;
        game.play(m);
    }
    Some(game)
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

impl Measured {
    /// FNV-1a over the bytes of `value`.
    fn mix(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.signature = (self.signature ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Something per second.
    pub fn rate(&self, count: u64) -> u64 {
        (count as f64 / self.time.as_secs_f64().max(1e-6)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_positions_can_be_set_up() {
        for (fen, moves) in POSITIONS {
            assert!(game(fen, moves).is_some(), "{fen} {moves}");
        }
    }
}
