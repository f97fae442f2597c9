//! Opening books: positions from EPD or moves from PGN, plain or gzipped, in a chosen order. Knows
//! nothing of the games that follow.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::chess::{self, Color, Move, Position, epd, pgn};

use super::referee::Referee;

/// Where a game begins.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The position before the first book move.
    pub start: Position,
    /// Book moves, played for the engines.
    pub moves: Vec<Move>,
    /// Whether it can only be played with Chess960's rules of castling.
    pub chess960: bool,
    /// Its name, from `ECO` and `Opening` tags or an EPD `id`; may be empty.
    pub name: String,
}

impl Opening {
    /// The start position of standard chess.
    pub fn startpos() -> Self {
        Self {
            start: Position::startpos(),
            moves: Vec::new(),
            chess960: false,
            name: String::new(),
        }
    }

    /// Whether Black makes the first move after the opening.
    pub fn turn_is_black(&self) -> bool {
        let black_starts = self.start.turn() == Color::Black;
        black_starts != (self.moves.len() % 2 == 1)
    }

    fn is_playable(&self) -> bool {
        let mut referee = Referee::new(self.start.clone());
        for &m in &self.moves {
            referee.play(m);
        }
        referee.ending().is_none()
    }
}

/// In which order openings are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in the file, beginning with this one (from 0).
    Sequential {
        /// Index of the first opening.
        first: usize,
    },
    /// Shuffled; the same seed gives the same order.
    Random {
        /// Seed of the shuffle.
        seed: u64,
    },
}

/// A book that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The file cannot be opened or read.
    #[error("cannot read the openings {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Not one usable opening in it.
    #[error("no opening to play from in {path:?}{first_refusal}")]
    Empty {
        /// The file.
        path: PathBuf,
        /// Why the first one was refused, empty or starting with ": ".
        first_refusal: String,
    },
}

/// The openings of a match, in order.
#[derive(Clone, Debug)]
pub struct Book {
    openings: Vec<Opening>,
    refused: Vec<String>,
}

impl Book {
    /// The start position alone.
    pub fn startpos() -> Self {
        Self {
            openings: vec![Opening::startpos()],
            refused: Vec::new(),
        }
    }

    /// Reads a file: PGN if its name or its first character says so, else EPD or FEN lines.
    /// `max_plies` cuts the moves of PGN openings. Lines that are no playable opening are left out.
    ///
    /// # Errors
    /// A file that cannot be read, or has no opening in it.
    pub fn read(path: &Path, max_plies: usize, order: Order) -> Result<Self, BookError> {
        let read_error = |source| BookError::Read {
            path: path.to_owned(),
            source,
        };
        let mut text = String::new();
        let mut reader = chess::open_maybe_packed(path).map_err(read_error)?;
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(read_error)?;
        text.push_str(&String::from_utf8_lossy(&bytes));

        let name = path.to_string_lossy().to_ascii_lowercase();
        let is_pgn = match (name.contains(".pgn"), name.contains(".epd")) {
            (true, false) => true,
            (false, true) => false,
            _ => text.trim_start().starts_with('['),
        };
        let mut book = Self {
            openings: Vec::new(),
            refused: Vec::new(),
        };
        if is_pgn {
            book.read_pgn(text.as_bytes(), max_plies);
        } else {
            book.read_epd(text.as_bytes());
        }
        if book.openings.is_empty() {
            let first_refusal = book.refused.first().map(|why| format!(": {why}"));
            return Err(BookError::Empty {
                path: path.to_owned(),
                first_refusal: first_refusal.unwrap_or_default(),
            });
        }
        match order {
            Order::Sequential { first } => {
                let first = first % book.openings.len();
                book.openings.rotate_left(first);
            }
            Order::Random { seed } => book.openings.shuffle(&mut StdRng::seed_from_u64(seed)),
        }
        Ok(book)
    }

    fn read_pgn(&mut self, text: impl Read, max_plies: usize) {
        for game in pgn::read(text) {
            match game {
                Ok(mut game) => {
                    game.moves.truncate(max_plies);
                    let named: Vec<_> = ["ECO", "Eco", "Opening"]
                        .iter()
                        .filter_map(|tag| game.tag(tag))
                        .collect();
                    let name = named.join(" ");
                    self.add(Opening {
                        start: game.start,
                        moves: game.moves,
                        chess960: game.chess960,
                        name,
                    });
                }
                Err(error) => self.refused.push(error.to_string()),
            }
        }
    }

    fn read_epd(&mut self, text: impl BufRead) {
        for record in epd::read(text) {
            match record {
                Ok(record) => self.add(Opening {
                    chess960: record.position.needs_chess960(),
                    name: record.id().unwrap_or_default(),
                    start: record.position,
                    moves: Vec::new(),
                }),
                Err(error) => self.refused.push(error.to_string()),
            }
        }
    }

    fn add(&mut self, opening: Opening) {
        if opening.is_playable() {
            self.openings.push(opening);
        } else {
            let fen = opening.start.to_fen(true);
            self.refused
                .push(format!("the game is over after the opening from {fen}"));
        }
    }

    /// Number of openings.
    pub fn len(&self) -> usize {
        self.openings.len()
    }

    /// Never true: a book without openings is refused.
    pub fn is_empty(&self) -> bool {
        self.openings.is_empty()
    }

    /// What was left out and why.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// The opening of a pair of games; after the last one comes the first again.
    pub fn opening(&self, pair: usize) -> &Opening {
        &self.openings[pair % self.openings.len()]
    }

    /// Whether some opening needs Chess960.
    pub fn needs_chess960(&self) -> bool {
        self.openings.iter().any(|opening| opening.chess960)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_no_openings() {
        let mut book = Book {
            openings: Vec::new(),
            refused: Vec::new(),
        };
        let text = "7k/5KQ1/8/8/8/8/8/8 b - -\n\
                    rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - id \"start\";\n\
                    nonsense\n";
        book.read_epd(text.as_bytes());
        assert_eq!((book.len(), book.refused().len()), (1, 2));
        assert_eq!(book.opening(5).name, "start");
        assert!(!book.needs_chess960());
    }
}
