//! What a `go` asks for, in the words of the protocol: plain numbers and move texts, none of them
//! checked against a position yet. Refuses to know how a search spends its budget.

/// The wishes of one `go`; an absent key is `None` or `false`.
///
/// Times are milliseconds and may be negative (a GUI whose player has overstepped); counts are
/// whole numbers up to 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoRequest {
    /// Root moves to restrict the search to, as written.
    pub searchmoves: Vec<String>,
    /// The opponent's clock is running: no bestmove before `stop` or `ponderhit`.
    pub ponder: bool,
    /// No bestmove before `stop`.
    pub infinite: bool,
    pub white_time_ms: Option<i64>,
    pub black_time_ms: Option<i64>,
    pub white_increment_ms: Option<i64>,
    pub black_increment_ms: Option<i64>,
    pub moves_to_go: Option<u32>,
    pub movetime_ms: Option<i64>,
    pub depth: Option<u32>,
    pub nodes: Option<u64>,
    pub mate: Option<u32>,
    /// Count leaf positions instead of searching.
    pub perft: Option<u32>,
}
