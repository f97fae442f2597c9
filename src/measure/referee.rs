//! The rules of a game between engines: what ends it, and whether a variation is playable. Knows
//! positions and moves; who plays and how long is decided elsewhere.

use std::fmt;

use shakmaty::zobrist::Zobrist64;
use shakmaty::{EnPassantMode, Position as _};

use crate::chess::{Color, Move, Position};

/// How a game ends by the rules alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The side to move is mated.
    Checkmate,
    /// The side to move has no move and is not in check.
    Stalemate,
    /// Neither side could ever mate.
    InsufficientMaterial,
    /// The same position for the third time.
    Repetition,
    /// A hundred plies without a capture or a pawn move.
    FiftyMoves,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checkmate => "checkmate",
            Self::Stalemate => "draw by stalemate",
            Self::InsufficientMaterial => "draw by insufficient mating material",
            Self::Repetition => "draw by 3-fold repetition",
            Self::FiftyMoves => "draw by fifty moves rule",
        })
    }
}

/// What is to be said about a variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// Every move is legal and none is played after the end.
    Sound,
    /// The move at this ply (from 0) is malformed, or illegal, or made after mate or stalemate.
    Illegal {
        /// Index of the move.
        ply: usize,
    },
    /// Legal, but goes on at this ply after a draw by repetition, fifty moves or material.
    BeyondDraw {
        /// Index of the first move too many.
        ply: usize,
    },
}

/// A game in progress.
#[derive(Clone, Debug)]
pub struct Referee {
    position: Position,
    /// Keys of all positions so far; en passant counts only where it can be played.
    keys: Vec<u64>,
}

impl Referee {
    /// A game that starts here.
    pub fn new(start: Position) -> Self {
        Self {
            keys: vec![key(&start)],
            position: start,
        }
    }

    /// The current position.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The side to move.
    pub fn turn(&self) -> Color {
        self.position.turn()
    }

    /// Plays a legal move.
    pub fn play(&mut self, m: Move) {
        self.position.play(m);
        self.keys.push(key(&self.position));
    }

    /// How the game has ended, if it has. Mate comes before every draw.
    pub fn ending(&self) -> Option<Ending> {
        ending(&self.position, &self.keys)
    }

    /// Tries a variation from the current position, as an engine printed it.
    pub fn try_variation(&mut self, moves: &[String]) -> Variation {
        let before = self.keys.len();
        let verdict = self.walk(moves);
        self.keys.truncate(before);
        verdict
    }

    fn walk(&mut self, moves: &[String]) -> Variation {
        let mut position = self.position.clone();
        let mut beyond = None;
        for (ply, text) in moves.iter().enumerate() {
            // At the root the game goes on by definition.
            if ply > 0 && beyond.is_none() && ending(&position, &self.keys).is_some() {
                beyond = Some(ply);
            }
            let Ok(m) = position.parse_uci(text) else {
                return Variation::Illegal { ply };
            };
            position.play(m);
            self.keys.push(key(&position));
        }
        beyond.map_or(Variation::Sound, |ply| Variation::BeyondDraw { ply })
    }
}

fn key(position: &Position) -> u64 {
    position
        .inner()
        .zobrist_hash::<Zobrist64>(EnPassantMode::Legal)
        .0
}

fn ending(position: &Position, keys: &[u64]) -> Option<Ending> {
    if position.legal_moves().is_empty() {
        return Some(if position.is_check() {
            Ending::Checkmate
        } else {
            Ending::Stalemate
        });
    }
    if position.is_insufficient_material() {
        return Some(Ending::InsufficientMaterial);
    }
    if position.rule50() >= 100 {
        return Some(Ending::FiftyMoves);
    }
    let (last, earlier) = keys.split_last()?;
    let seen = earlier.iter().filter(|&one| one == last).count();
    (seen >= 2).then_some(Ending::Repetition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn referee(fen: &str) -> Referee {
        Referee::new(Position::from_fen(fen).unwrap().0)
    }

    fn moves(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn play(referee: &mut Referee, text: &str) {
        for one in moves(text) {
            let m = referee.position().parse_uci(&one).unwrap();
            referee.play(m);
        }
    }

    #[test]
    fn endings() {
        let ending = |fen: &str| referee(fen).ending();
        assert_eq!(
            ending("7k/5KQ1/8/8/8/8/8/8 b - - 100 80"),
            Some(Ending::Checkmate)
        );
        assert_eq!(
            ending("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"),
            Some(Ending::Stalemate)
        );
        assert_eq!(
            ending("7k/8/6K1/8/8/8/8/6N1 b - - 0 1"),
            Some(Ending::InsufficientMaterial)
        );
        assert_eq!(ending("7k/8/8/8/8/8/8/K5R1 w - - 99 80"), None);
        assert_eq!(
            ending("7k/8/8/8/8/8/8/K5R1 b - - 100 80"),
            Some(Ending::FiftyMoves)
        );
    }

    #[test]
    fn third_repetition() {
        let mut game = Referee::new(Position::startpos());
        play(&mut game, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1");
        assert_eq!(game.ending(), None);
        play(&mut game, "f6g8");
        assert_eq!(game.ending(), Some(Ending::Repetition));
    }

    #[test]
    fn a_useless_en_passant_square_is_no_difference() {
        // After e2e4 the pawn on d4 is pinned along the rank: the square e3 changes nothing.
        let mut game = referee("8/8/8/8/k2p3R/8/4P3/4K3 w - - 0 1");
        play(&mut game, "e2e4 a4b4 e1e2 b4a4 e2e1 a4b4 e1e2 b4a4 e2e1");
        assert_eq!(game.ending(), Some(Ending::Repetition));
    }

    #[test]
    fn variations() {
        let mut game = Referee::new(Position::startpos());
        assert_eq!(
            game.try_variation(&moves("e2e4 e7e5 g1f3")),
            Variation::Sound
        );
        assert_eq!(
            game.try_variation(&moves("e2e4 e7e5 e4e5")),
            Variation::Illegal { ply: 2 }
        );
        assert_eq!(
            game.try_variation(&moves("e2e4 xyz")),
            Variation::Illegal { ply: 1 }
        );
        assert_eq!(
            game.try_variation(&moves("f2f3 e7e5 g2g4 d8h4 e2e4")),
            Variation::Illegal { ply: 4 }
        );
        let dance = moves("g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8 e2e4");
        assert_eq!(game.try_variation(&dance), Variation::BeyondDraw { ply: 8 });
        assert_eq!(
            game.try_variation(&dance[..8]),
            Variation::Sound,
            "nothing is left of earlier tries"
        );
        assert_eq!(game.try_variation(&[]), Variation::Sound);
    }
}
