//! What an engine did wrong in a match, kind by kind. Only counts.

use serde::Serialize;

/// Faults of one engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    /// The process ended by itself; loses the game it happens in.
    pub crashes: u64,
    /// No answer in time and none after `stop` either, or no clock and no answer; loses the game.
    pub stalls: u64,
    /// A `bestmove` that is no legal move; loses the game.
    pub illegal_moves: u64,
    /// An answer after the clock ran out; loses the game.
    pub time_losses: u64,
    /// `info … pv` with a move that is not legal.
    pub illegal_pvs: u64,
    /// `bestmove … ponder` with a move that is not legal.
    pub illegal_ponder_moves: u64,
    /// `info … pv` that goes on after a draw.
    pub pvs_beyond_draw: u64,
    /// A `bestmove` that is not the first move of the last `pv`.
    pub pv_mismatches: u64,
    /// `bestmove` lines without a `go`.
    pub stray_bestmoves: u64,
    /// Fields of `info` lines that could not be read.
    pub malformed_infos: u64,
    /// Processes that had to be killed because they did not end on `quit`.
    pub ignored_quits: u64,
}

/// How much a kind of fault matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Costs the game.
    Game,
    /// Breaks the protocol.
    Protocol,
    /// Odd, though some engines do it by design.
    Note,
}

impl Faults {
    /// Every kind with its name, weight and count.
    pub fn kinds(&self) -> [(&'static str, Weight, u64); 11] {
        [
            ("crashes", Weight::Game, self.crashes),
            ("stalls", Weight::Game, self.stalls),
            ("illegal moves", Weight::Game, self.illegal_moves),
            ("time losses", Weight::Game, self.time_losses),
            ("illegal PVs", Weight::Protocol, self.illegal_pvs),
            (
                "illegal ponder moves",
                Weight::Protocol,
                self.illegal_ponder_moves,
            ),
            ("stray bestmoves", Weight::Protocol, self.stray_bestmoves),
            ("malformed infos", Weight::Protocol, self.malformed_infos),
            ("ignored quits", Weight::Protocol, self.ignored_quits),
            ("PVs beyond a draw", Weight::Note, self.pvs_beyond_draw),
            ("bestmove is not the PV's", Weight::Note, self.pv_mismatches),
        ]
    }

    /// Faults that cost a game or break the protocol.
    pub fn total(&self) -> u64 {
        self.kinds()
            .iter()
            .filter(|(_, weight, _)| *weight != Weight::Note)
            .map(|(_, _, count)| count)
            .sum()
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.stalls += other.stalls;
        self.illegal_moves += other.illegal_moves;
        self.time_losses += other.time_losses;
        self.illegal_pvs += other.illegal_pvs;
        self.illegal_ponder_moves += other.illegal_ponder_moves;
        self.pvs_beyond_draw += other.pvs_beyond_draw;
        self.pv_mismatches += other.pv_mismatches;
        self.stray_bestmoves += other.stray_bestmoves;
        self.malformed_infos += other.malformed_infos;
        self.ignored_quits += other.ignored_quits;
    }
}
