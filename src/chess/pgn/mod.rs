//! Games in PGN, in and out: tags, the main line, comments and the result. Variations and glyphs are
//! read over. Knows nothing of who plays or why.

mod read;
mod write;

use std::fmt;
use std::io;
use std::time::Duration;

use thiserror::Error;

use super::fen::FenError;
use super::game::Game;
use super::moves::Move;
use super::position::Position;
use super::san::SanError;

pub use read::{Games, read};
pub use write::write;

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum GameResult {
    /// `1-0`
    WhiteWins,
    /// `0-1`
    BlackWins,
    /// `1/2-1/2`
    Draw,
    /// `*`: not finished, or not known.
    #[default]
    Unknown,
}

impl GameResult {
    /// Reads a PGN result; `None` for anything else.
    pub fn parse(text: &str) -> Option<GameResult> {
        match text {
            "1-0" | "1–0" | "1—0" => Some(GameResult::WhiteWins),
            "0-1" | "0–1" | "0—1" => Some(GameResult::BlackWins),
            "1/2-1/2" | "1/2" | "½-½" | "½–½" | "1/2–1/2" => Some(GameResult::Draw),
            "*" => Some(GameResult::Unknown),
            _ => None,
        }
    }
}

impl fmt::Display for GameResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GameResult::WhiteWins => "1-0",
            GameResult::BlackWins => "0-1",
            GameResult::Draw => "1/2-1/2",
            GameResult::Unknown => "*",
        })
    }
}

/// One game of a PGN file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PgnGame {
    /// Tag pairs in file order. Writing adds FEN, SetUp, Variant and Result where they are missing.
    pub tags: Vec<(String, String)>,
    /// The position before the first move.
    pub start: Position,
    /// True for Chess960: castling rights are written as rook files and the Variant tag is set.
    pub chess960: bool,
    /// The main line.
    pub moves: Vec<Move>,
    /// A comment before the first move.
    pub preamble: Option<String>,
    /// Comments by move; may be shorter than the moves.
    pub comments: Vec<Option<String>>,
    /// From the end of the moves, else from the tag.
    pub result: GameResult,
}

impl PgnGame {
    /// A game in progress from `start`.
    pub fn new(start: Position) -> PgnGame {
        PgnGame {
            start,
            ..PgnGame::default()
        }
    }

    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Sets a tag, in its place if it is there, else as the last one.
    pub fn set_tag(&mut self, name: &str, value: impl Into<String>) {
        match self.tags.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value.into(),
            None => self.tags.push((name.to_owned(), value.into())),
        }
    }

    /// Adds a move with its comment.
    pub fn push(&mut self, m: Move, comment: Option<String>) {
        self.comments.resize(self.moves.len(), None);
        self.moves.push(m);
        self.comments.push(comment);
    }

    /// The comment on move `ply`, from 0.
    pub fn comment(&self, ply: usize) -> Option<&str> {
        self.comments.get(ply)?.as_deref()
    }

    /// The clock after move `ply`, from a `[%clk 0:02:59.5]` in its comment.
    pub fn clock(&self, ply: usize) -> Option<Duration> {
        let (_, rest) = self.comment(ply)?.split_once("[%clk")?;
        let (text, _) = rest.split_once(']')?;
        let seconds = text.trim().split(':').try_fold(0.0, |sum, part| {
            let number: f64 = part.parse().ok().filter(|n| *n >= 0.0)?;
            Some(60.0 * sum + number)
        })?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// The game played through, with its history.
    pub fn game(&self) -> Game {
        let mut game = Game::new(self.start.clone());
        for &m in &self.moves {
            game.play(m);
        }
        game
    }
}

/// Why a game of a file was left out. The games after it are still read.
#[derive(Debug, Error)]
pub enum PgnError {
    /// The file itself cannot be read on.
    #[error("game {game}: reading failed: {source}")]
    Io {
        /// Number of the game in the file, from 1.
        game: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The FEN tag holds no usable position.
    #[error("game {game} (line {line}): FEN tag: {source}")]
    Fen {
        /// Number of the game in the file, from 1.
        game: usize,
        /// Line the game begins on, from 1.
        line: usize,
        /// What is wrong with it.
        source: FenError,
    },
    /// Not a variant that is played here.
    #[error("game {game} (line {line}): variant '{variant}', expected Standard or Chess960")]
    Variant {
        /// Number of the game in the file, from 1.
        game: usize,
        /// Line the game begins on, from 1.
        line: usize,
        /// The Variant tag.
        variant: String,
    },
    /// A tag that matters for the position cannot be read.
    #[error("game {game}: line {line}: cannot read the tag {text}")]
    Tag {
        /// Number of the game in the file, from 1.
        game: usize,
        /// The line, from 1.
        line: usize,
        /// The line as it stands.
        text: String,
    },
    /// A move that is malformed, illegal or ambiguous.
    #[error("game {game}: line {line}: move {number}{dots} {source}")]
    Move {
        /// Number of the game in the file, from 1.
        game: usize,
        /// The line, from 1.
        line: usize,
        /// Number of the full move.
        number: u32,
        /// `.` for White's, `...` for Black's.
        dots: &'static str,
        /// What is wrong with it.
        source: SanError,
    },
    /// A brace comment or a variation without an end.
    #[error("game {game}: line {line}: {what} without an end")]
    Unfinished {
        /// Number of the game in the file, from 1.
        game: usize,
        /// Line it begins on, from 1.
        line: usize,
        /// `comment` or `variation`.
        what: &'static str,
    },
    /// More text than a game can be.
    #[error("game {game} (line {line}): longer than {max_mib} MiB")]
    TooLong {
        /// Number of the game in the file, from 1.
        game: usize,
        /// Line the game begins on, from 1.
        line: usize,
        /// The limit.
        max_mib: usize,
    },
}
