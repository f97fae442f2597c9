//! What a search tells the world, as values: infos, messages, the best move. Never prints.

use std::time::Duration;

use crate::chess::Move;

/// Something a search has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// News about the tree.
    Info(Info),
    /// A sentence for the user, for example why a network failed.
    Message(String),
    /// The end of the search; the last event, exactly once.
    BestMove(BestMove),
}

/// The move to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestMove {
    /// `None` only when the side to move has no legal move.
    pub best: Option<Move>,
    /// The expected reply, legal after `best`.
    pub ponder: Option<Move>,
}

/// One set of lines, best first: as many as `MultiPV` asks for and the root has moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Average depth of a visit, plies; at least 1 where there are legal moves.
    pub depth: u32,
    /// Deepest visit, plies; at least `depth`.
    pub seldepth: u32,
    /// Since the command arrived.
    pub time: Duration,
    /// Visits of the root.
    pub nodes: u64,
    /// Visits made by this search, per second.
    pub nps: u64,
    /// Fill of the evaluation cache, per mille.
    pub hashfull: u32,
    /// Tablebase hits.
    pub tbhits: u64,
    /// Never empty. A root without legal moves has one line with an empty `pv`.
    pub lines: Vec<Line>,
}

/// One principal variation.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// From the side to move at the root.
    pub score: Score,
    /// Win, draw, loss of the side to move at the root, per mille; sums to 1000.
    pub wdl: [u32; 3],
    /// Plies until the game ends, as expected; `None` without that head.
    pub moves_left: Option<u32>,
    /// Visits of the line's first move.
    pub nodes: u64,
    /// Moves from the root, all legal.
    pub pv: Vec<Move>,
}

/// A score for the side to move at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// Centipawns (or what `ScoreType` makes of them).
    Cp(i32),
    /// Mate in so many moves: positive when winning, negative when losing, 0 when mated now.
    Mate(i32),
}
