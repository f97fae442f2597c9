//! Random opening positions for data generation (OpenBench's `genfens`): the same seed gives the same
//! positions on every machine. Knows nothing of how they are printed or used.

use std::io;
use std::path::Path;

use thiserror::Error;

use super::epd::{self, EpdFileError};
use super::files::open_maybe_packed;
use super::pgn::{self, PgnError};
use super::position::Position;

/// Most positions of one call.
pub const MAX: usize = 1_000_000;

/// Why a book cannot be used.
#[derive(Debug, Error)]
pub enum BookError {
    /// It cannot be opened.
    #[error("book '{book}': {source}")]
    Open {
        /// As given.
        book: String,
        /// What the system said.
        source: io::Error,
    },
    /// A bad record of an EPD file.
    #[error("book '{book}': {source}")]
    Epd {
        /// As given.
        book: String,
        /// What is wrong.
        source: EpdFileError,
    },
    /// A bad game of a PGN file.
    #[error("book '{book}': {source}")]
    Pgn {
        /// As given.
        book: String,
        /// What is wrong.
        source: PgnError,
    },
    /// Nothing in it.
    #[error("book '{0}' holds no positions")]
    Empty(String),
}

/// The final positions of a book's lines: a PGN file if its name says so (`.pgn`, `.pgn.gz`), else
/// EPD or FEN lines.
///
/// # Errors
/// Names the book and the first record or game that cannot be read.
pub fn read_book(path: &Path) -> Result<Vec<Position>, BookError> {
    let book = path.display().to_string();
    let file = open_maybe_packed(path).map_err(|source| BookError::Open {
        book: book.clone(),
        source,
    })?;
    let lower = book.to_ascii_lowercase();
    let found: Result<Vec<Position>, BookError> = if lower.trim_end_matches(".gz").ends_with(".pgn")
    {
        pgn::read(file)
            .map(|game| match game {
                Ok(game) => Ok(game.game().current().clone()),
                Err(source) => Err(BookError::Pgn {
                    book: book.clone(),
                    source,
                }),
            })
            .collect()
    } else {
        epd::read(file)
            .map(|record| match record {
                Ok(record) => Ok(record.position),
                Err(source) => Err(BookError::Epd {
                    book: book.clone(),
                    source,
                }),
            })
            .collect()
    };
    match found? {
        found if found.is_empty() => Err(BookError::Empty(book)),
        found => Ok(found),
    }
}

/// `count` openings (at most [`MAX`]), each with a legal move and nobody in check: eight or nine
/// random plies from the start position, or four or five from a random line of the book.
pub fn genfens(count: usize, seed: u64, book: &[Position]) -> Vec<Position> {
    let mut random = Random(seed);
    let start = [Position::startpos()];
    let (starts, plies) = match book {
        [] => (&start[..], 8),
        lines => (lines, 4),
    };
    let mut found = Vec::new();
    // A book of finished games gives nothing however often it is tried.
    let mut tries_left = count.min(MAX).saturating_mul(100);
    while found.len() < count.min(MAX) && tries_left > 0 {
        tries_left -= 1;
        let line = starts[random.below(starts.len())].clone();
        let plies = plies + random.below(2);
        found.extend(random_line(line, plies, &mut random));
    }
    found
}

fn random_line(mut position: Position, plies: usize, random: &mut Random) -> Option<Position> {
    for _ in 0..plies {
        let legal = position.legal_moves();
        if legal.is_empty() {
            return None;
        }
        position.play(legal[random.below(legal.len())]);
    }
    let usable = !position.is_check()
        && !position.legal_moves().is_empty()
        && !position.is_insufficient_material();
    usable.then_some(position)
}

/// SplitMix64 (Steele, Lea and Flood 2014): small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fens(positions: &[Position]) -> Vec<String> {
        positions.iter().map(|p| p.to_fen(false)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_positions_and_another_others() {
        let first = genfens(50, 7, &[]);
        assert_eq!(first.len(), 50);
        assert_eq!(fens(&first), fens(&genfens(50, 7, &[])));
        assert_ne!(fens(&first), fens(&genfens(50, 8, &[])));
        assert_eq!(fens(&first[..10]), fens(&genfens(10, 7, &[])));
        for position in &first {
            let (again, repairs) = Position::from_fen(&position.to_fen(false)).unwrap();
            assert_eq!(&again, position);
            assert!(repairs.is_empty() && !again.legal_moves().is_empty());
        }
        assert!(first.iter().any(|p| p.turn() != first[0].turn()));
    }

    #[test]
    fn books_are_lines_to_go_on_from() {
        let mated = Position::from_fen("R5k1/5ppp/8/8/8/8/8/4K3 b - -")
            .unwrap()
            .0;
        assert!(genfens(5, 1, &[mated]).is_empty());
        let line = Position::from_fen("4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - -")
            .unwrap()
            .0;
        for position in genfens(20, 1, &[line]) {
            assert_eq!(position.board().knights().count(), 0);
        }
        let missing = read_book(Path::new("/no/such/book.epd")).unwrap_err();
        assert!(missing.to_string().starts_with("book '/no/such/book.epd':"));
    }
}
