//! The games that a match has already played, read back from the PGN it wrote. A game that is not what the plan
//! would play is refused. Starts nothing.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::chess::{GameResult, PgnError, PgnGame, pgn};

use super::record::{BLACK_CONTROL, WHITE_CONTROL, describe, round_tag};
use super::{MatchPlan, Pairing};

/// A finished game of an earlier part of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// Who played.
    pub pairing: Pairing,
    /// White's half points.
    pub white_halves: u8,
}

/// Why a match cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The file cannot be read.
    #[error("cannot read the games: {0}")]
    Io(#[from] std::io::Error),
    /// The file is no PGN.
    #[error("game {number} cannot be read: {error}")]
    Pgn {
        /// From 1.
        number: usize,
        /// What is wrong.
        error: PgnError,
    },
    /// A game that the plan does not have.
    #[error("game {number} of the file: {what} is {found}, the match has {expected}")]
    Differs {
        /// From 1.
        number: usize,
        /// A tag, or the opening.
        what: &'static str,
        /// What the file has.
        found: String,
        /// What the plan has.
        expected: String,
    },
}

/// Finished games in `path`; those that were cut off will be played again.
///
/// # Errors
/// A file that cannot be read, or whose games are of another match.
pub fn read_played(path: &Path, plan: &MatchPlan) -> Result<Vec<Played>, ResumeError> {
    let mut played: Vec<Played> = Vec::new();
    for (index, game) in pgn::read(BufReader::new(File::open(path)?)).enumerate() {
        let number = index + 1;
        let game = game.map_err(|error| ResumeError::Pgn { number, error })?;
        let white_halves = match game.result {
            GameResult::WhiteWins => 2,
            GameResult::Draw => 1,
            GameResult::BlackWins => 0,
            GameResult::Unknown => continue,
        };
        let pairing = find(&game, number, plan)?;
        if played.iter().any(|one| one.pairing == pairing) {
            return Err(ResumeError::Differs {
                number,
                what: "Round",
                found: round_tag(plan, &pairing),
                expected: "one game of that number".to_owned(),
            });
        }
        played.push(Played {
            pairing,
            white_halves,
        });
    }
    Ok(played)
}

fn find(game: &PgnGame, number: usize, plan: &MatchPlan) -> Result<Pairing, ResumeError> {
    let differs = |what, found: &str, expected: String| ResumeError::Differs {
        number,
        what,
        found: format!("{found:?}"),
        expected,
    };
    let tag = |name: &str| game.tag(name).unwrap_or("?");
    let a_round = plan.games_a_round * plan.encounters().len();
    let place = tag("Round").split_once('.').and_then(|(round, in_round)| {
        let (round, in_round) = (
            round.parse::<usize>().ok()?,
            in_round.parse::<usize>().ok()?,
        );
        let in_round = in_round.checked_sub(1).filter(|&game| game < a_round)?;
        round
            .checked_sub(1)?
            .checked_mul(a_round)?
            .checked_add(in_round)
    });
    let Some(place) = place.filter(|&place| place < plan.games()) else {
        let expected = format!("rounds 1.1 to {}.{a_round}", plan.rounds);
        return Err(differs("Round", tag("Round"), expected));
    };
    let pairing = plan.pairing(place);
    let (white, black) = (
        &plan.contestants[pairing.white],
        &plan.contestants[pairing.black],
    );
    let both = tag("TimeControl");
    let control = |name: &str| game.tag(name).unwrap_or(both).to_owned();
    for (what, found, expected) in [
        ("White", tag("White").to_owned(), white.name.clone()),
        ("Black", tag("Black").to_owned(), black.name.clone()),
        (WHITE_CONTROL, control(WHITE_CONTROL), describe(&white.pace)),
        (BLACK_CONTROL, control(BLACK_CONTROL), describe(&black.pace)),
    ] {
        if found != expected {
            return Err(differs(what, &found, format!("{expected:?}")));
        }
    }
    let opening = plan.book.opening(pairing.round);
    let same_moves = game.moves.get(..opening.moves.len()) == Some(&opening.moves[..]);
    if game.start != opening.start || !same_moves {
        let expected = "another one in that round".to_owned();
        return Err(differs("the opening", &game.start.to_fen(true), expected));
    }
    Ok(pairing)
}
