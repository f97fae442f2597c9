//! Puzzles out of games: positions where one move is far better than all others, by the judge's word, with the game's
//! moves before them. Knows no network.

use std::io::{self, Write};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::chess::{Game, Move, PgnGame};

use super::EvaluateError;
use super::judge::{Judge, Judged};
use super::store::Store;

/// The first ply that is looked at: before it, everything is theory.
const FIRST_PLY: usize = 12;
/// Positions looked at in one game.
const LOOKS: usize = 8;
/// Moves of the solver's in one puzzle at most.
const MOST_MOVES: usize = 6;

/// A puzzle with its game.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Up to the position before the opponent's move.
    pub before: Game,
    /// The opponent's move, then the solver's and the opponent's by turns.
    pub line: Vec<Move>,
}

/// Win chance at so many centipawns, 0..=1: logistic, 200 centipawns are 68 %.
fn chance(cp: i64) -> f64 {
    1.0 / (1.0 + (-0.003_682_08 * cp as f64).exp())
}

/// The only move, if the best one wins at least `gap` more often than the next and does not lose.
fn only_move(judged: &[Judged], gap: f64) -> Option<&Judged> {
    let [best, second, ..] = judged else {
        return None;
    };
    let good = chance(best.cp);
    (good >= 0.45 && good - chance(second.cp) >= gap).then_some(best)
}

/// A puzzle of this game, if the positions looked at hold one. The same game and seed give the same.
///
/// # Errors
/// When the judge or the store fails.
pub fn cut(
    judge: &mut Judge,
    store: &Store,
    game: &PgnGame,
    gap: f64,
    seed: u64,
) -> Result<Option<Cut>, EvaluateError> {
    let mut plies: Vec<usize> = (FIRST_PLY..=game.moves.len()).collect();
    plies.shuffle(&mut StdRng::seed_from_u64(seed));
    plies.truncate(LOOKS);
    for ply in plies {
        let mut before = Game::new(game.start.clone());
        for &m in &game.moves[..ply - 1] {
            before.play(m);
        }
        let mut now = before.clone();
        let mut line = vec![game.moves[ply - 1]];
        now.play(line[0]);
        for _ in 0..MOST_MOVES {
            let Some(m) = find(judge, store, &now, gap)? else {
                break;
            };
            line.push(m);
            now.play(m);
            if now.current().legal_moves().is_empty() {
                break;
            }
            let reply = judge.judge(store, &now, None, 1)?;
            let reply = reply.first().map(|one| now.current().parse_uci(&one.m));
            let Some(Ok(reply)) = reply else {
                break;
            };
            line.push(reply);
            now.play(reply);
        }
        // A line ends with the solver's move.
        line.truncate(line.len() / 2 * 2);
        if line.len() >= 2 {
            return Ok(Some(Cut { before, line }));
        }
    }
    Ok(None)
}

fn find(
    judge: &mut Judge,
    store: &Store,
    game: &Game,
    gap: f64,
) -> Result<Option<Move>, EvaluateError> {
    // A forced move is no puzzle.
    if game.current().legal_moves().len() < 2 {
        return Ok(None);
    }
    let judged = judge.judge(store, game, None, 2)?;
    Ok(only_move(&judged, gap).and_then(|one| game.current().parse_uci(&one.m).ok()))
}

/// The first line of a file of such puzzles.
///
/// # Errors
/// When it cannot be written.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "FEN,Game,Moves,Rating")
}

/// One puzzle as a line; nobody has rated it.
///
/// # Errors
/// When it cannot be written.
pub fn write(out: &mut impl Write, cut: &Cut) -> io::Result<()> {
    let texts = |game: &Game| -> Vec<String> {
        let moves = game.positions().iter().zip(game.moves());
        moves
            .map(|(position, &m)| position.move_to_uci(m, false))
            .collect()
    };
    let mut whole = cut.before.clone();
    for &m in &cut.line {
        whole.play(m);
    }
    let texts = texts(&whole);
    let (before, line) = texts.split_at(cut.before.moves().len());
    let start = cut.before.start().to_fen(false);
    writeln!(out, "{start},{},{},", before.join(" "), line.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(cps: &[i64]) -> Vec<Judged> {
        cps.iter()
            .enumerate()
            .map(|(i, &cp)| Judged {
                m: format!("move {i}"),
                cp,
            })
            .collect()
    }

    #[test]
    fn only_moves_stand_alone_and_do_not_lose() {
        let is_one = |cps: &[i64]| only_move(&judged(cps), 0.3).is_some();
        assert!(is_one(&[500, 0]));
        assert!(is_one(&[0, -500]), "saves the game");
        assert!(is_one(&[1000, 0]));
        assert!(!is_one(&[1000, 1000]), "two mates");
        assert!(!is_one(&[100, 50]));
        assert!(!is_one(&[-300, -1000]), "lost anyway");
        assert!(!is_one(&[500]), "forced");
        assert!((chance(200) - 0.676).abs() < 1e-3);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut before = Game::default();
        for text in ["e2e4", "f7f6", "d2d4"] {
            let m = before.current().parse_uci(text).unwrap();
            before.play(m);
        }
        let mut position = before.current().clone();
        let mut line = Vec::new();
        for text in ["g7g5", "d1h5"] {
            let m = position.parse_uci(text).unwrap();
            line.push(m);
            position.play(m);
        }
        let mut bytes = Vec::new();
        write_header(&mut bytes).unwrap();
        let cut = Cut { before, line };
        write(&mut bytes, &cut).unwrap();
        let path = std::env::temp_dir().join(format!("simurgh-only-{}.csv", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let puzzles = crate::measure::evaluate::puzzles::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(puzzles.len(), 1);
        assert_eq!(puzzles[0].line, cut.line);
        assert_eq!(puzzles[0].game.moves(), cut.before.moves());
        assert!(puzzles[0].has_game && puzzles[0].rating.is_none());
    }
}
