//! The limits of one `go` command. Knows how they are written, not what they cost.

use std::fmt;
use std::time::Duration;

/// What a `go` may use; all absent means `go infinite`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Think on the opponent's time, until `ponderhit` or `stop`.
    pub ponder: bool,
    /// White's time left.
    pub white_time: Option<Duration>,
    /// Black's time left.
    pub black_time: Option<Duration>,
    /// White's increment a move.
    pub white_increment: Option<Duration>,
    /// Black's increment a move.
    pub black_increment: Option<Duration>,
    /// Moves to the next time control.
    pub moves_to_go: Option<u32>,
    /// Exactly this long a move.
    pub move_time: Option<Duration>,
    /// Nodes a move.
    pub nodes: Option<u64>,
    /// Depth in plies.
    pub depth: Option<u32>,
    /// Look for a mate in so many moves.
    pub mate: Option<u32>,
    /// Only these moves at the root, in UCI form.
    pub search_moves: Vec<String>,
}

impl Limits {
    /// So many nodes and nothing else.
    pub fn nodes(nodes: u64) -> Self {
        Self {
            nodes: Some(nodes),
            ..Self::default()
        }
    }

    /// So long a move and nothing else.
    pub fn move_time(time: Duration) -> Self {
        Self {
            move_time: Some(time),
            ..Self::default()
        }
    }

    fn is_infinite(&self) -> bool {
        let bare = Self {
            ponder: self.ponder,
            search_moves: self.search_moves.clone(),
            ..Self::default()
        };
        *self == bare
    }
}

impl fmt::Display for Limits {
    /// The whole `go` line. `searchmoves` comes last: it has no end mark.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("go")?;
        if self.ponder {
            f.write_str(" ponder")?;
        }
        if self.is_infinite() {
            f.write_str(" infinite")?;
        }
        let times = [
            ("wtime", self.white_time),
            ("btime", self.black_time),
            ("winc", self.white_increment),
            ("binc", self.black_increment),
            ("movetime", self.move_time),
        ];
        for (key, time) in times {
            if let Some(time) = time {
                write!(f, " {key} {}", time.as_millis())?;
            }
        }
        let counts = [
            ("movestogo", self.moves_to_go.map(u64::from)),
            ("nodes", self.nodes),
            ("depth", self.depth.map(u64::from)),
            ("mate", self.mate.map(u64::from)),
        ];
        for (key, count) in counts {
            if let Some(count) = count {
                write!(f, " {key} {count}")?;
            }
        }
        if !self.search_moves.is_empty() {
            write!(f, " searchmoves {}", self.search_moves.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(Limits::default().to_string(), "go infinite");
        assert_eq!(Limits::nodes(400).to_string(), "go nodes 400");
        let clock = Limits {
            ponder: true,
            white_time: Some(Duration::from_millis(1500)),
            black_time: Some(Duration::from_secs(2)),
            white_increment: Some(Duration::from_millis(10)),
            moves_to_go: Some(40),
            search_moves: vec!["e2e4".into(), "d2d4".into()],
            ..Limits::default()
        };
        assert_eq!(
            clock.to_string(),
            "go ponder wtime 1500 btime 2000 winc 10 movestogo 40 searchmoves e2e4 d2d4"
        );
    }
}
