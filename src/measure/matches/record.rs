//! What one game was: moves, what was said about them, how it ended. Writes itself as PGN.

use std::fmt;
use std::time::Duration;

use crate::chess::{Color, GameResult, Move, PgnGame};
use crate::client::{Info, Score};
use crate::measure::book::Opening;
use crate::measure::referee::Ending;

use super::{Faults, MatchPlan, Pace, Pairing};

/// Why a game ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By the rules of chess.
    Rules(Ending),
    /// By the limit on its length.
    MaxMoves,
    /// By what both engines said of it.
    Scores(GameResult),
    /// By tablebases.
    Tablebases(GameResult),
    /// This side's clock ran out.
    TimeLoss(Color),
    /// This side answered nothing in time; the message says what was waited for.
    Stall(Color, String),
    /// This side's process ended; the message says how.
    Crash(Color, String),
    /// This side's answer is no legal move.
    IllegalMove(Color, String),
    /// The match was interrupted.
    Interrupted,
}

impl Cause {
    /// The result that follows; `turn` is the side to move in the last position.
    pub fn result(&self, turn: Color) -> GameResult {
        let loser = match self {
            Self::Rules(Ending::Checkmate) => turn,
            Self::Rules(_) | Self::MaxMoves => return GameResult::Draw,
            Self::TimeLoss(side)
            | Self::Stall(side, _)
            | Self::Crash(side, _)
            | Self::IllegalMove(side, _) => *side,
            Self::Scores(result) | Self::Tablebases(result) => return *result,
            Self::Interrupted => return GameResult::Unknown,
        };
        loser.fold_wb(GameResult::BlackWins, GameResult::WhiteWins)
    }

    /// PGN's `Termination`, in the words PGN and Cutechess use.
    fn termination(&self) -> &'static str {
        match self {
            Self::Rules(_) => "normal",
            Self::MaxMoves | Self::Scores(_) | Self::Tablebases(_) => "adjudication",
            Self::TimeLoss(_) => "time forfeit",
            Self::Stall(..) => "stalled connection",
            Self::Crash(..) => "abandoned",
            Self::IllegalMove(..) => "illegal move",
            Self::Interrupted => "unterminated",
        }
    }

    /// Whether an engine's fault decided the game.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::TimeLoss(_) | Self::Stall(..) | Self::Crash(..) | Self::IllegalMove(..)
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |side: &Color| side.fold_wb("White", "Black");
        match self {
            Self::Rules(ending) => ending.fmt(f),
            Self::MaxMoves => f.write_str("draw by the limit on moves"),
            Self::Scores(result) => write!(f, "{} by adjudication", said(*result)),
            Self::Tablebases(result) => write!(f, "{} by tablebases", said(*result)),
            Self::TimeLoss(side) => write!(f, "{} loses on time", name(side)),
            Self::Stall(side, how) => write!(f, "{} stalls: {how}", name(side)),
            Self::Crash(side, how) => write!(f, "{} crashes: {how}", name(side)),
            Self::IllegalMove(side, how) => {
                write!(f, "{} makes an illegal move: {how}", name(side))
            }
            Self::Interrupted => f.write_str("unfinished"),
        }
    }
}

fn said(result: GameResult) -> &'static str {
    match result {
        GameResult::WhiteWins => "White wins",
        GameResult::BlackWins => "Black wins",
        _ => "draw",
    }
}

/// One move with what its engine said.
#[derive(Clone, Debug)]
pub struct MoveRecord {
    /// The move.
    pub played: Move,
    /// Time from `go` to `bestmove`.
    pub elapsed: Duration,
    /// The last info with a score for the first variation.
    pub info: Option<Info>,
}

impl MoveRecord {
    /// `+0.31/12 0.045s n=1000`, the score from the side that moved.
    fn comment(&self) -> String {
        let mut text = String::new();
        if let Some(info) = &self.info {
            match info.score {
                Some(Score::Cp(cp)) => text.push_str(&format!("{:+.2}", cp as f64 / 100.0)),
                Some(Score::Mate(moves)) => {
                    let sign = if moves < 0 { '-' } else { '+' };
                    text.push_str(&format!("{sign}M{}", moves.unsigned_abs()));
                }
                None => {}
            }
            if let (Some(depth), false) = (info.depth, text.is_empty()) {
                text.push_str(&format!("/{depth}"));
            }
            text.push(' ');
        }
        text.push_str(&format!("{:.3}s", self.elapsed.as_secs_f64()));
        if let Some(nodes) = self.info.as_ref().and_then(|info| info.nodes) {
            text.push_str(&format!(" n={nodes}"));
        }
        text
    }
}

/// Sums over an engine's moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Moves made.
    pub moves: u64,
    /// Time taken for them.
    pub time: Duration,
    /// The longest of them.
    pub longest: Duration,
    /// Nodes reported.
    pub nodes: u64,
    /// Sum of the depths reported.
    pub depth: u64,
}

impl Usage {
    /// Adds one move.
    pub fn add_move(&mut self, record: &MoveRecord) {
        let info = record.info.as_ref();
        self.add(&Self {
            moves: 1,
            time: record.elapsed,
            longest: record.elapsed,
            nodes: info.and_then(|info| info.nodes).unwrap_or(0),
            depth: info.and_then(|info| info.depth).map_or(0, u64::from),
        });
    }

    /// Adds other moves.
    pub fn add(&mut self, other: &Self) {
        self.moves += other.moves;
        self.time += other.time;
        self.longest = self.longest.max(other.longest);
        self.nodes += other.nodes;
        self.depth += other.depth;
    }
}

/// One game as it was played.
#[derive(Clone, Debug)]
pub struct GameRecord {
    /// Who played.
    pub pairing: Pairing,
    /// Its result.
    pub result: GameResult,
    /// Why it ended.
    pub cause: Cause,
    /// The moves after the book's.
    pub moves: Vec<MoveRecord>,
    /// Faults, White's and Black's.
    pub faults: [Faults; 2],
    /// One sentence for each fault that is worth one, with the side it is about.
    pub remarks: Vec<(Color, String)>,
    /// True if White's or Black's engine could not be started for this game.
    pub failed_start: [bool; 2],
    /// When the game began.
    pub started: std::time::SystemTime,
}

impl GameRecord {
    /// Half points of the contestant with this index, `None` if unfinished or not its game.
    pub fn half_points(&self, contestant: usize) -> Option<u8> {
        let white = match self.result {
            GameResult::WhiteWins => 2,
            GameResult::Draw => 1,
            GameResult::BlackWins => 0,
            GameResult::Unknown => return None,
        };
        match contestant {
            one if one == self.pairing.white => Some(white),
            one if one == self.pairing.black => Some(2 - white),
            _ => None,
        }
    }

    /// The game as PGN.
    pub fn to_pgn(&self, plan: &MatchPlan, opening: &Opening) -> PgnGame {
        let (white, black) = (
            &plan.contestants[self.pairing.white],
            &plan.contestants[self.pairing.black],
        );
        let mut game = PgnGame::new(opening.start.clone());
        game.chess960 = plan.rules.chess960;
        game.result = self.result;
        let (date, time) = utc(self.started);
        game.set_tag("Event", &plan.event);
        game.set_tag("Site", "?");
        game.set_tag("Date", date.clone());
        game.set_tag("Round", round_tag(plan, &self.pairing));
        game.set_tag("White", &white.name);
        game.set_tag("Black", &black.name);
        game.set_tag("UTCDate", date);
        game.set_tag("UTCTime", time);
        if !opening.name.is_empty() {
            game.set_tag("Opening", &opening.name);
        }
        let (for_white, for_black) = (describe(&white.pace), describe(&black.pace));
        if for_white == for_black {
            game.set_tag("TimeControl", for_white);
        } else {
            game.set_tag(WHITE_CONTROL, for_white);
            game.set_tag(BLACK_CONTROL, for_black);
        }
        game.set_tag(
            "PlyCount",
            (opening.moves.len() + self.moves.len()).to_string(),
        );
        game.set_tag("Termination", self.cause.termination());
        for &m in &opening.moves {
            game.push(m, Some("book".to_owned()));
        }
        for record in &self.moves {
            game.push(record.played, Some(record.comment()));
        }
        let last = game.comments.last_mut().unwrap_or(&mut game.preamble);
        let last = last.get_or_insert_default();
        if !last.is_empty() {
            last.push_str(", ");
        }
        last.push_str(&self.cause.to_string());
        game
    }
}

/// Tags where the two sides play at different paces.
pub(super) const WHITE_CONTROL: &str = "WhiteTimeControl";
/// The other one.
pub(super) const BLACK_CONTROL: &str = "BlackTimeControl";

/// The round and the game in it, from 1.
pub(super) fn round_tag(plan: &MatchPlan, pairing: &Pairing) -> String {
    let a_round = plan.games_a_round * plan.encounters().len();
    format!("{}.{}", pairing.round + 1, pairing.number % a_round + 1)
}

/// A pace as PGN's TimeControl has it, nodes and depth in words of their own.
pub(super) fn describe(pace: &Pace) -> String {
    let mut parts = Vec::new();
    parts.extend(pace.control.map(|control| control.to_string()));
    parts.extend(
        pace.move_time
            .map(|time| format!("{}/move", time.as_secs_f64())),
    );
    parts.extend(pace.nodes.map(|nodes| format!("nodes {nodes}")));
    parts.extend(pace.depth.map(|depth| format!("depth {depth}")));
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Date and time of day, UTC, as PGN writes them: `2024.12.31` and `23:59:59`.
pub fn utc(time: std::time::SystemTime) -> (String, String) {
    let seconds = time
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date, by 400-year eras that begin on 1 March (H. Hinnant, "chrono-compatible
    // low-level date algorithms").
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 {
        (month + 3, year + 400 * era)
    } else {
        (month - 9, year + 400 * era + 1)
    };
    (
        format!("{year:04}.{month:02}.{day_of_month:02}"),
        format!(
            "{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |seconds| utc(std::time::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), ("1970.01.01".into(), "00:00:00".into()));
        assert_eq!(at(951_782_399), ("2000.02.28".into(), "23:59:59".into()));
        assert_eq!(at(951_782_400), ("2000.02.29".into(), "00:00:00".into()));
        assert_eq!(at(1_735_689_599), ("2024.12.31".into(), "23:59:59".into()));
    }

    #[test]
    fn comments() {
        let record = |line: &str| MoveRecord {
            played: Move::from_raw(0),
            elapsed: Duration::from_millis(45),
            info: Info::parse(line),
        };
        assert_eq!(
            record("info depth 12 score cp 31 nodes 99").comment(),
            "+0.31/12 0.045s n=99"
        );
        assert_eq!(
            record("info depth 3 score mate -2").comment(),
            "-M2/3 0.045s"
        );
        assert_eq!(
            MoveRecord {
                info: None,
                ..record("")
            }
            .comment(),
            "0.045s"
        );
    }
}
