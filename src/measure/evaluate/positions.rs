//! Positions of human games with the move that was played, its player's rating and the phase of the game. Knows no
//! network.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use crate::chess::{self, Bitboard, Color, Game, Move, PgnError, PgnGame, Position, pgn};

use super::EvaluateError;

/// Games read of one file at most: enough for any sample, and the largest files stay bearable.
const MOST_GAMES: usize = 20_000;
/// Rating points in a band.
pub const BAND: u32 = 200;

/// A position of a game and what was played there.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The game up to the position.
    pub game: Arc<Game>,
    /// The move that was played.
    pub played: Move,
    /// The rating of who played it, if the game says so.
    pub rating: Option<u32>,
}

/// A part of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Up to move 10, and no ending.
    Opening,
    /// In between.
    Middlegame,
    /// At most six pieces besides kings and pawns.
    Endgame,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 3] = [Phase::Opening, Phase::Middlegame, Phase::Endgame];

    /// The phase of a position.
    pub fn of(position: &Position) -> Phase {
        let board = position.board();
        let pieces: Bitboard = board.occupied() & !board.pawns() & !board.kings();
        if pieces.count() <= 6 {
            Phase::Endgame
        } else if position.fullmoves() <= 10 {
            Phase::Opening
        } else {
            Phase::Middlegame
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Opening => "opening",
            Phase::Middlegame => "middlegame",
            Phase::Endgame => "endgame",
        }
    }
}

/// `count` positions, each of another game, drawn by `seed`; the same files and seed give the same ones, and fewer
/// are the first of more. Also how many games could not be read.
///
/// # Errors
/// A file that cannot be read.
pub fn sample(
    files: &[PathBuf],
    count: usize,
    seed: u64,
) -> Result<(Vec<Sample>, usize), EvaluateError> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut drawn: Vec<(u64, Sample)> = Vec::new();
    let mut refused = 0;
    for path in files {
        for game in games(path)?.take(MOST_GAMES) {
            // Two draws a game, whatever becomes of it.
            let (place, ply) = (random.random::<u64>(), random.random::<f64>());
            match game {
                Ok(game) => drawn.extend(cut(&game, ply).map(|sample| (place, sample))),
                Err(PgnError::Io { source, .. }) => {
                    return Err(EvaluateError::read(path, source));
                }
                Err(_) => refused += 1,
            }
            if drawn.len() >= 2 * count + 1024 {
                keep_first(&mut drawn, count);
            }
        }
    }
    keep_first(&mut drawn, count);
    Ok((
        drawn.into_iter().map(|(_, sample)| sample).collect(),
        refused,
    ))
}

fn keep_first(drawn: &mut Vec<(u64, Sample)>, count: usize) {
    drawn.sort_by_key(|(place, _)| *place);
    drawn.truncate(count);
}

/// The games of a PGN file, plain or gzipped.
///
/// # Errors
/// When the file cannot be opened.
pub fn games(
    path: &Path,
) -> Result<impl Iterator<Item = Result<PgnGame, PgnError>>, EvaluateError> {
    let reader =
        chess::open_maybe_packed(path).map_err(|source| EvaluateError::read(path, source))?;
    Ok(pgn::read(reader))
}

/// The position at a share of the game's length.
fn cut(game: &PgnGame, share: f64) -> Option<Sample> {
    let ply = (share * game.moves.len() as f64) as usize;
    let &played = game.moves.get(ply)?;
    let mut so_far = Game::new(game.start.clone());
    for &m in &game.moves[..ply] {
        so_far.play(m);
    }
    let tag = match so_far.current().turn() {
        Color::White => "WhiteElo",
        Color::Black => "BlackElo",
    };
    Some(Sample {
        rating: game.tag(tag).and_then(|text| text.trim().parse().ok()),
        game: Arc::new(so_far),
        played,
    })
}

/// The band of a rating: `1800-2000` holds 1800 and not 2000.
pub fn band(rating: Option<u32>) -> String {
    match rating {
        Some(rating) => {
            let low = rating / BAND * BAND;
            format!("{low}-{}", low + BAND)
        }
        None => "unrated".to_owned(),
    }
}

/// True when `m` mates.
pub fn mates(position: &Position, m: Move) -> bool {
    let mut after = position.clone();
    after.play(m);
    after.is_check() && after.legal_moves().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_bands() {
        let phase = |fen| Phase::of(&Position::from_fen(fen).unwrap().0);
        assert_eq!(Phase::of(&Position::startpos()), Phase::Opening);
        assert_eq!(
            phase("r1bq1rk1/pp3ppp/2n2n2/8/8/2N2N2/PP3PPP/R1BQ1RK1 w - - 0 11"),
            Phase::Middlegame
        );
        assert_eq!(phase("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"), Phase::Endgame);
        assert_eq!(band(Some(1800)), "1800-2000");
        assert_eq!(band(Some(1799)), "1600-1800");
        assert_eq!(band(None), "unrated");
    }

    #[test]
    fn samples_repeat_and_carry_the_movers_rating() {
        let path = std::env::temp_dir().join(format!("simurgh-sample-{}.pgn", std::process::id()));
        let game = |elo: u32| {
            format!(
                "[WhiteElo \"{elo}\"]\n[BlackElo \"{}\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n\n",
                elo + 1
            )
        };
        let text: String = (0..50).map(|i| game(1000 + 10 * i)).collect();
        std::fs::write(&path, text).unwrap();
        let files = [path.clone()];
        let (many, refused) = sample(&files, 40, 7).unwrap();
        let (few, _) = sample(&files, 5, 7).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((many.len(), few.len(), refused), (40, 5, 0));
        for (a, b) in many.iter().zip(&few) {
            assert_eq!((a.rating, a.played), (b.rating, b.played));
        }
        for one in &many {
            let black = one.game.current().turn() == Color::Black;
            assert_eq!(one.rating.unwrap() % 10, u32::from(black));
            assert!(one.game.current().is_legal(one.played));
        }
    }
}
