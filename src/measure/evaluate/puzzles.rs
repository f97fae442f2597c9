//! Puzzles: reads them from CSV and counts those whose every move is found. Knows no network.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::chess::{self, Game, Move, Position};

use super::EvaluateError;
use super::desk::Desk;
use super::positions::mates;
use super::results::{Effort, Rate};

/// A puzzle: a position, and the line that has to be found.
#[derive(Clone, Debug)]
pub struct Puzzle {
    /// Up to the position before the opponent's move.
    pub game: Arc<Game>,
    /// The opponent's move, then the solver's and the opponent's by turns, a solver's last.
    pub line: Vec<Move>,
    /// How hard it is.
    pub rating: Option<u32>,
    /// Whether the moves before the position are known.
    pub has_game: bool,
}

/// Bands of difficulty: name, lowest rating, first rating above. Easier puzzles are left out.
pub const BANDS: [(&str, u32, u32); 3] = [
    ("1000-1500", 1000, 1500),
    ("1500-2000", 1500, 2000),
    ("2000+", 2000, u32::MAX),
];
const UNRATED: &str = "unrated";

/// Puzzles solved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Puzzles {
    /// By the policy's first choice alone; `None` without a policy.
    pub policy: Option<Solved>,
    /// By a search for every move; `None` if the player does not search.
    pub search: Option<Solved>,
    /// What a move of that search cost.
    pub effort: Effort,
    /// Puzzles that could not be shown to the player, because it needs the moves before them.
    pub without_game: usize,
}

/// Puzzles solved in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Solved {
    /// All together.
    pub all: Rate,
    /// By difficulty, easiest first; bands without puzzles are left out.
    pub bands: Vec<BandSolved>,
}

/// Puzzles solved of one band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BandSolved {
    /// See [`BANDS`].
    pub band: &'static str,
    /// Solved.
    pub solved: Rate,
}

/// What is wrong with a puzzle file.
#[derive(Debug, thiserror::Error)]
pub enum PuzzleError {
    /// A first line without the columns.
    #[error("the first line is {found:?}; expected column names with FEN and Moves")]
    Header {
        /// What it is.
        found: String,
    },
    /// A line that is no puzzle.
    #[error("line {line}: {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Reads a file with the columns FEN, Moves and, as far as they are known, Rating and Game, in any order; others are
/// read over. Without a Game, FEN is the position before the opponent's move; with one, it is where the game begins,
/// and Game the moves up to there.
///
/// # Errors
/// The file cannot be read, or a line is no puzzle.
pub fn read(path: &Path) -> Result<Vec<Puzzle>, EvaluateError> {
    let of = |error: PuzzleError| EvaluateError::Puzzles {
        path: path.to_owned(),
        error,
    };
    let read_error = |source| EvaluateError::read(path, source);
    let reader = chess::open_maybe_packed(path).map_err(read_error)?;
    let mut puzzles = Vec::new();
    let mut columns: Option<Columns> = None;
    for (index, line) in reader.lines().enumerate() {
        let line = line.map_err(read_error)?;
        let line = line.trim();
        match &columns {
            _ if line.is_empty() => {}
            None => columns = Some(Columns::of(line).map_err(of)?),
            Some(columns) => {
                let number = index + 1;
                let puzzle = columns
                    .puzzle(line)
                    .map_err(|what| of(PuzzleError::Line { line: number, what }))?;
                puzzles.push(puzzle);
            }
        }
    }
    Ok(puzzles)
}

struct Columns {
    fen: usize,
    moves: usize,
    rating: Option<usize>,
    game: Option<usize>,
}

impl Columns {
    fn of(line: &str) -> Result<Columns, PuzzleError> {
        let names: Vec<&str> = line.trim_start_matches('\u{feff}').split(',').collect();
        let find = |name: &str| names.iter().position(|one| one.eq_ignore_ascii_case(name));
        let (Some(fen), Some(moves)) = (find("FEN"), find("Moves")) else {
            return Err(PuzzleError::Header {
                found: line.chars().take(80).collect(),
            });
        };
        Ok(Columns {
            fen,
            moves,
            rating: find("Rating"),
            game: find("Game"),
        })
    }

    fn puzzle(&self, line: &str) -> Result<Puzzle, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default().trim();
        let start = match field(self.fen) {
            "" => return Err("no FEN".to_owned()),
            fen => Position::from_fen(fen).map_err(|e| e.to_string())?.0,
        };
        let mut game = Game::new(start);
        let before = self.game.map_or("", field);
        for text in before.split_whitespace() {
            let m = game.current().parse_uci(text).map_err(|e| e.to_string())?;
            game.play(m);
        }
        let mut line = Vec::new();
        let mut position = game.current().clone();
        for text in field(self.moves).split_whitespace() {
            let m = position.parse_uci(text).map_err(|e| e.to_string())?;
            line.push(m);
            position.play(m);
        }
        if line.is_empty() || line.len() % 2 == 1 {
            return Err(format!(
                "{} moves; expected the opponent's, then the solver's and the opponent's by turns, a solver's last",
                line.len()
            ));
        }
        let rating = match self.rating.map_or("", field) {
            "" => None,
            text => Some(
                text.parse()
                    .map_err(|_| format!("rating {text:?}; expected a whole number"))?,
            ),
        };
        Ok(Puzzle {
            has_game: !before.is_empty() || game.starts_from_startpos(),
            game: Arc::new(game),
            line,
            rating,
        })
    }
}

/// The band of a rating, `None` below all of them.
fn band(rating: Option<u32>) -> Option<&'static str> {
    let Some(rating) = rating else {
        return Some(UNRATED);
    };
    BANDS
        .iter()
        .find(|(_, low, above)| (*low..*above).contains(&rating))
        .map(|band| band.0)
}

/// At most `most` puzzles of each band, drawn by `seed`; fewer are the first of more. Those below all bands are left
/// out.
pub fn pick(mut puzzles: Vec<Puzzle>, most: usize, seed: u64) -> Vec<Puzzle> {
    puzzles.shuffle(&mut StdRng::seed_from_u64(seed));
    let mut counts = std::collections::HashMap::new();
    puzzles.retain(|puzzle| {
        let Some(band) = band(puzzle.rating) else {
            return false;
        };
        let count = counts.entry(band).or_insert(0);
        *count += 1;
        *count <= most
    });
    puzzles
}

/// Whether a move of the solver's is right.
fn is_right(position: &Position, puzzle: &Puzzle, ply: usize, m: Move) -> bool {
    m == puzzle.line[ply] || (ply + 1 == puzzle.line.len() && mates(position, m))
}

/// Solves puzzles by the policy alone and by a search of `nodes` nodes a move.
///
/// # Errors
/// When the player or the store fails.
pub fn puzzles(desk: &mut Desk<'_>, puzzles: &[Puzzle]) -> Result<Option<Puzzles>, EvaluateError> {
    let shown: Vec<&Puzzle> = puzzles
        .iter()
        .filter(|puzzle| puzzle.has_game || !desk.player.needs_game())
        .collect();
    if shown.is_empty() {
        return Ok(None);
    }
    desk.begin("puzzles, policy only", shown.len());
    let policy = solve(desk, &shown, 64, &mut |desk, games| {
        desk.first_choices(games)
    })?;
    let nodes = desk.nodes;
    desk.begin("puzzles, with search", shown.len());
    let search = solve(desk, &shown, 1, &mut |desk, games| {
        let mut moves = Vec::with_capacity(games.len());
        for game in games {
            let Some(answer) = desk.search(game, nodes)? else {
                return Ok(None);
            };
            moves.push(answer.best_move(game)?);
        }
        Ok(Some(moves))
    })?;
    Ok(Some(Puzzles {
        policy,
        search,
        effort: desk.effort(nodes),
        without_game: puzzles.len() - shown.len(),
    }))
}

type Choose<'c, 'd> =
    &'c mut dyn FnMut(&mut Desk<'d>, &[Arc<Game>]) -> Result<Option<Vec<Move>>, EvaluateError>;

/// Asks for the moves of many puzzles side by side, so that a network gets whole minibatches.
fn solve<'d>(
    desk: &mut Desk<'d>,
    puzzles: &[&Puzzle],
    batch: usize,
    choose: Choose<'_, 'd>,
) -> Result<Option<Solved>, EvaluateError> {
    let mut solved = vec![false; puzzles.len()];
    let mut next = 0;
    for puzzles in puzzles.chunks(batch) {
        // Puzzle, the game so far, the ply of the line to be found.
        let mut open: Vec<(usize, Game, usize)> = Vec::new();
        for (index, puzzle) in puzzles.iter().enumerate() {
            let mut game = Game::clone(&puzzle.game);
            game.play(puzzle.line[0]);
            open.push((index, game, 1));
        }
        while !open.is_empty() {
            let games: Vec<Arc<Game>> = open
                .iter()
                .map(|(_, game, _)| Arc::new(game.clone()))
                .collect();
            let Some(moves) = choose(desk, &games)? else {
                return Ok(None);
            };
            let mut still = Vec::new();
            for ((index, mut game, ply), m) in open.into_iter().zip(moves) {
                let puzzle = puzzles[index];
                if !is_right(game.current(), puzzle, ply, m) {
                    continue;
                }
                let Some(&reply) = puzzle.line.get(ply + 1) else {
                    solved[next + index] = true;
                    continue;
                };
                game.play(m);
                game.play(reply);
                still.push((index, game, ply + 2));
            }
            open = still;
        }
        next += puzzles.len();
        desk.step(puzzles.len());
    }
    Ok(Some(count(puzzles, &solved)))
}

fn count(puzzles: &[&Puzzle], solved: &[bool]) -> Solved {
    let mut all = Rate::default();
    let names = BANDS.iter().map(|band| band.0).chain([UNRATED]);
    let mut bands: Vec<BandSolved> = names
        .map(|band| BandSolved {
            band,
            solved: Rate::default(),
        })
        .collect();
    for (puzzle, &solved) in puzzles.iter().zip(solved) {
        all.add(solved);
        let name = band(puzzle.rating);
        for one in bands.iter_mut().filter(|one| Some(one.band) == name) {
            one.solved.add(solved);
        }
    }
    bands.retain(|band| band.solved.of > 0);
    Solved { all, bands }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        Columns::of("PuzzleId,FEN,Moves,Rating,Game").unwrap()
    }

    #[test]
    fn lines_are_read_or_say_what_is_wrong() {
        let fen = "6k1/p1p2ppp/1pqp2r1/3Q4/8/1P6/P1P2PPP/4RK2 b - - 8 22";
        let puzzle = columns().puzzle(&format!("x,{fen},c6d5 e1e8,400")).unwrap();
        assert_eq!(
            (puzzle.line.len(), puzzle.rating, puzzle.has_game),
            (2, Some(400), false)
        );
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let puzzle = columns()
            .puzzle(&format!("x,{start},f7f6 d1d5,,e2e4"))
            .unwrap_err();
        assert!(puzzle.contains("d1d5"), "{puzzle}");
        let puzzle = columns()
            .puzzle(&format!("x,{start},g7g5 d1h5,,e2e4 f7f6 d2d4"))
            .unwrap();
        assert_eq!((puzzle.rating, puzzle.has_game), (None, true));
        assert_eq!(puzzle.game.moves().len(), 3);
        for (line, word) in [
            (format!("x,{fen},c6d5,400"), "1 moves"),
            (format!("x,{fen},c6d5 e1e8,hard"), "hard"),
            ("x,rubbish,e2e4 e7e5,400".to_owned(), "rubbish"),
            ("x".to_owned(), "FEN"),
        ] {
            let error = columns().puzzle(&line).err().unwrap();
            assert!(error.contains(word), "{error}");
        }
        assert!(Columns::of("a,b").is_err());
    }

    #[test]
    fn bands_have_no_gaps() {
        for (rating, expected) in [
            (999, None),
            (1000, Some("1000-1500")),
            (1499, Some("1000-1500")),
            (1500, Some("1500-2000")),
            (1999, Some("1500-2000")),
            (2000, Some("2000+")),
        ] {
            assert_eq!(band(Some(rating)), expected);
        }
        assert_eq!(band(None), Some(UNRATED));
    }

    #[test]
    fn any_mate_counts_at_the_end_only() {
        // Both rooks mate on the back rank.
        let puzzle = columns()
            .puzzle("x,6k1/5ppp/8/8/8/7p/R6P/R5K1 b - - 0 1,g8h8 a2a8,900")
            .unwrap();
        let mut position = puzzle.game.current().clone();
        position.play(puzzle.line[0]);
        let m = |text| position.parse_uci(text).unwrap();
        assert!(is_right(&position, &puzzle, 1, m("a2a8")));
        assert!(!is_right(&position, &puzzle, 1, m("a2b2")));
        let other = columns()
            .puzzle("x,6k1/5ppp/8/8/8/7p/1R5P/R5K1 b - - 0 1,g8h8 b2b8,900")
            .unwrap();
        let mut position = other.game.current().clone();
        position.play(other.line[0]);
        let m = position.parse_uci("a1a8").unwrap();
        assert!(is_right(&position, &other, 1, m));
    }
}
