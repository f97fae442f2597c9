//! Where games of data generation begin: lines of a book, random plies, endings of up to seven men. Knows
//! nothing of how they go on.

use std::ops::RangeInclusive;
use std::path::Path;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::play::ending;
use crate::chess::{Board, Color, Game, Move, Position, Role, Square, epd, open_maybe_packed, pgn};
use crate::train::TrainError;

/// How often a game's opening is drawn before it is given up.
const DRAWS: usize = 1000;

/// A source of openings.
#[derive(Debug)]
pub struct Openings {
    lines: Vec<(Position, Vec<Move>)>,
    random_plies: RangeInclusive<u32>,
    endings: f64,
}

impl Openings {
    /// Lines of `book` (EPD, FEN lines or PGN; plain or gzipped), or the start position, each with
    /// some random plies after it. A share `endings` of the games begins with three to seven men
    /// anywhere on the board instead.
    ///
    /// # Errors
    /// A book that cannot be read or is empty; names the first record that does not fit.
    pub fn new(
        book: Option<&Path>,
        random_plies: RangeInclusive<u32>,
        endings: f64,
    ) -> Result<Openings, TrainError> {
        let lines = match book {
            Some(path) => read(path)?,
            None => vec![(Position::startpos(), Vec::new())],
        };
        Ok(Openings {
            lines,
            random_plies,
            endings,
        })
    }

    /// How many lines there are to choose from.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Whether some line needs the rules of Chess960.
    pub fn needs_chess960(&self) -> bool {
        self.lines.iter().any(|(start, _)| start.needs_chess960())
    }

    /// A start and the moves played from it, after which the game is not over.
    ///
    /// # Errors
    /// When chance finds none.
    pub fn draw(&self, random: &mut StdRng) -> Result<(Position, Vec<Move>), TrainError> {
        for _ in 0..DRAWS {
            let (start, moves) = match random.random_bool(self.endings) {
                true => match some_men(random) {
                    Some(start) => (start, Vec::new()),
                    None => continue,
                },
                false => match self.lines.choose(random) {
                    Some((start, moves)) => (start.clone(), self.go_on(start, moves, random)),
                    None => break,
                },
            };
            let mut game = Game::new(start.clone());
            moves.iter().for_each(|&m| game.play(m));
            if ending(&game).is_none() {
                return Ok((start, moves));
            }
        }
        Err(TrainError::NoOpening { draws: DRAWS })
    }

    fn go_on(&self, start: &Position, line: &[Move], random: &mut StdRng) -> Vec<Move> {
        let mut position = start.clone();
        line.iter().for_each(|&m| position.play(m));
        let mut moves = line.to_vec();
        for _ in 0..random.random_range(self.random_plies.clone()) {
            let legal = position.legal_moves();
            let Some(&m) = legal.choose(random) else {
                break;
            };
            position.play(m);
            moves.push(m);
        }
        moves
    }
}

/// Two kings and one to five other men, if chance makes them a position.
fn some_men(random: &mut StdRng) -> Option<Position> {
    const ROLES: [Role; 8] = [
        Role::Pawn,
        Role::Pawn,
        Role::Pawn,
        Role::Knight,
        Role::Bishop,
        Role::Rook,
        Role::Rook,
        Role::Queen,
    ];
    let mut board = Board::empty();
    let mut men = vec![(Role::King, Color::White), (Role::King, Color::Black)];
    for _ in 0..random.random_range(1..=5) {
        let color = Color::from_white(random.random_bool(0.5));
        men.push((*ROLES.choose(random)?, color));
    }
    for (role, color) in men {
        let squares = match role {
            Role::Pawn => 8..56,
            _ => 0..64,
        };
        let square = Square::new(random.random_range(squares));
        if board.piece_at(square).is_some() {
            return None;
        }
        board.set_piece_at(square, role.of(color));
    }
    let turn = if random.random_bool(0.5) { 'w' } else { 'b' };
    let fen = format!("{} {turn} - - 0 1", board.board_fen());
    Position::from_fen(&fen).ok().map(|(position, _)| position)
}

fn read(path: &Path) -> Result<Vec<(Position, Vec<Move>)>, TrainError> {
    let fault = |why: String| TrainError::Book {
        path: path.to_owned(),
        why,
    };
    let mut file = open_maybe_packed(path).map_err(|e| TrainError::io("read", path, e))?;
    let name = path.to_string_lossy().to_ascii_lowercase();
    let is_pgn = match (name.contains(".pgn"), name.contains(".epd")) {
        (true, false) => true,
        (false, true) => false,
        _ => {
            let start = file
                .fill_buf()
                .map_err(|e| TrainError::io("read", path, e))?;
            start.trim_ascii_start().starts_with(b"[")
        }
    };
    let lines: Result<Vec<_>, String> = match is_pgn {
        true => pgn::read(file)
            .map(|game| game.map(|game| (game.start, game.moves)))
            .map(|line| line.map_err(|error| error.to_string()))
            .collect(),
        false => epd::read(file)
            .map(|record| record.map(|record| (record.position, Vec::new())))
            .map(|line| line.map_err(|error| error.to_string()))
            .collect(),
    };
    match lines.map_err(fault)? {
        lines if lines.is_empty() => Err(fault("not one opening in it".to_owned())),
        lines => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn book(name: &str, text: &str) -> Result<Openings, TrainError> {
        let name = format!("simurgh-openings-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let openings = Openings::new(Some(&path), 0..=2, 0.0);
        let _ = std::fs::remove_file(&path);
        openings
    }

    #[test]
    fn lines_keep_their_moves_and_grow_by_random_ones() {
        let openings = book("a.pgn", "1. e4 e5 2. Nf3 *\n\n1. d4 d5 *\n").unwrap();
        assert_eq!((openings.lines(), openings.needs_chess960()), (2, false));
        let mut random = StdRng::seed_from_u64(3);
        let mut lengths = [0; 8];
        for _ in 0..100 {
            let (start, moves) = openings.draw(&mut random).unwrap();
            assert_eq!(start, Position::startpos());
            let first = moves[0].to_string();
            assert!(["e2e4", "d2d4"].contains(&first.as_str()));
            lengths[moves.len()] += 1;
        }
        assert_eq!(lengths[..2], [0, 0]);
        assert!(lengths[2..6].iter().all(|&count| count > 0), "{lengths:?}");
        let epd = "bnrbnkrq/pppppppp/8/8/8/8/PPPPPPPP/BNRBNKRQ w GCgc -\n";
        assert!(book("b.epd", epd).unwrap().needs_chess960());
    }

    #[test]
    fn bad_books_are_named() {
        for (name, text, says) in [
            ("c.epd", "4k3/8/8/8/8/8/8/4K3 w - -\nnonsense\n", "line 2"),
            ("d.pgn", "1. e4 e6 2. Ke5 *\n", "Ke5"),
            ("e.epd", "\n", "not one opening"),
            ("f.epd", "8/8/8/8/8/5k2/8/6Qk w - -\n", ""),
        ] {
            let error = book(name, text).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(says), "{error}");
        }
        // A book of finished games is readable, but nothing can be drawn from it.
        let over = book("g.epd", "7k/5KQ1/8/8/8/8/8/8 b - -\n").unwrap();
        let error = over.draw(&mut StdRng::seed_from_u64(1)).unwrap_err();
        assert!(error.to_string().contains("1000"), "{error}");
    }

    #[test]
    fn endings_have_three_to_seven_men_and_are_not_over() {
        let openings = Openings::new(None, 0..=0, 1.0).unwrap();
        let mut random = StdRng::seed_from_u64(5);
        let mut counts = [0; 8];
        for _ in 0..200 {
            let (start, moves) = openings.draw(&mut random).unwrap();
            assert!(moves.is_empty());
            assert!(!start.legal_moves().is_empty() && !start.is_insufficient_material());
            counts[start.board().occupied().count()] += 1;
        }
        assert_eq!(counts[..3], [0, 0, 0]);
        assert!(counts[3..].iter().all(|&count| count > 0), "{counts:?}");
    }
}
