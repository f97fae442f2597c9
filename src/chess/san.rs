//! Standard algebraic notation (`Nbd7`, `exd8=Q#`, `O-O`) in and out. Reads generously, writes
//! strictly; knows nothing of games or files.

use shakmaty::san::San;
use shakmaty::{CastlingSide, File, Position as _, Rank, Role, Square};
use thiserror::Error;

use super::moves::Move;
use super::position::Position;

/// Why a move in algebraic notation was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SanError {
    /// Not of the form of a move.
    #[error("'{0}' is not a move in algebraic notation (such as Nf3, exd5, e8=Q, O-O)")]
    Malformed(String),
    /// Well formed, but no legal move fits.
    #[error("illegal move '{text}' in {fen}")]
    Illegal {
        /// The move as it was written.
        text: String,
        /// The position it was tried in.
        fen: String,
    },
    /// More than one legal move fits.
    #[error("ambiguous move '{text}' in {fen}: it could be {found}")]
    Ambiguous {
        /// The move as it was written.
        text: String,
        /// The position it was tried in.
        fen: String,
        /// The moves it could be, in UCI notation.
        found: String,
    },
}

/// What the text of a move says, before any position is looked at.
#[derive(Debug, PartialEq, Eq)]
enum Spelled {
    Castling(CastlingSide),
    Piece {
        role: Role,
        file: Option<File>,
        rank: Option<Rank>,
        to: Square,
        promotion: Option<Role>,
    },
}

impl Position {
    /// Reads a move in algebraic notation. Also taken: `0-0`, a missing or needless `x`, `+`, `#`,
    /// `!?`, `e.p.`, `e8Q`, `e8(Q)`, more origin than needed (`Ng1f3`, `e2-e4`), and UCI notation.
    ///
    /// # Errors
    /// Names the move and says whether it was malformed, illegal or ambiguous.
    pub fn parse_san(&self, text: &str) -> Result<Move, SanError> {
        let spelled = spell(text).ok_or_else(|| SanError::Malformed(text.to_owned()))?;
        let mut found: Vec<Move> = match spelled {
            Spelled::Castling(side) => self
                .inner()
                .castling_moves(side)
                .iter()
                .map(|&m| Move::from_shakmaty(m))
                .collect(),
            Spelled::Piece {
                role,
                file,
                rank,
                to,
                promotion,
            } => self
                .inner()
                .san_candidates(role, to)
                .iter()
                .map(|&m| Move::from_shakmaty(m))
                .filter(|m| {
                    file.is_none_or(|file| file == m.from().file())
                        && rank.is_none_or(|rank| rank == m.from().rank())
                        && promotion == m.promotion()
                })
                .collect(),
        };
        if found.is_empty() {
            found.extend(self.parse_uci(text).ok());
        }
        match found[..] {
            [m] => Ok(m),
            [] => Err(SanError::Illegal {
                text: text.to_owned(),
                fen: self.to_fen(false),
            }),
            _ => Err(SanError::Ambiguous {
                text: text.to_owned(),
                fen: self.to_fen(false),
                found: found
                    .iter()
                    .map(Move::to_string)
                    .collect::<Vec<_>>()
                    .join(" or "),
            }),
        }
    }

    /// The legal move `m` in algebraic notation, with as little origin as needed and `+` or `#`.
    pub fn to_san(&self, m: Move) -> String {
        let Some(expanded) = self.to_shakmaty(m) else {
            return m.to_string();
        };
        let mut text = San::from_move(self.inner(), expanded).to_string();
        let mut next = self.clone();
        next.play(m);
        if next.is_check() {
            text.push(match next.inner().legal_moves().is_empty() {
                true => '#',
                false => '+',
            });
        }
        text
    }
}

fn spell(text: &str) -> Option<Spelled> {
    let text = text.trim_end_matches(['!', '?']);
    let text = text
        .strip_suffix("e.p.")
        .or_else(|| text.strip_suffix("ep"))
        .unwrap_or(text)
        .trim_end_matches(['+', '#']);
    match text {
        "O-O" | "0-0" | "o-o" => return Some(Spelled::Castling(CastlingSide::KingSide)),
        "O-O-O" | "0-0-0" | "o-o-o" => return Some(Spelled::Castling(CastlingSide::QueenSide)),
        _ => {}
    }
    let (text, promotion) = split_promotion(text.as_bytes());
    let (role, text) = match text {
        [b'P', rest @ ..] => (Role::Pawn, rest),
        [letter @ (b'N' | b'B' | b'R' | b'Q' | b'K'), rest @ ..] => {
            (Role::from_char(char::from(*letter))?, rest)
        }
        rest => (Role::Pawn, rest),
    };
    let (origin, to) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let to = Square::from_ascii(to).ok()?;
    let origin = match origin {
        [rest @ .., b'x' | b'-' | b':'] => rest,
        rest => rest,
    };
    let file = |c: u8| File::from_char(char::from(c));
    let rank = |c: u8| Rank::from_char(char::from(c));
    let (file, rank) = match *origin {
        [] => (None, None),
        [c] if c.is_ascii_digit() => (None, Some(rank(c)?)),
        [c] => (Some(file(c)?), None),
        [c, d] => (Some(file(c)?), Some(rank(d)?)),
        _ => return None,
    };
    (promotion.is_none() || role == Role::Pawn).then_some(Spelled::Piece {
        role,
        file,
        rank,
        to,
        promotion,
    })
}

/// Splits off `=Q`, `Q`, `(Q)` or `/Q`; a small letter is taken too.
fn split_promotion(text: &[u8]) -> (&[u8], Option<Role>) {
    let (rest, letter) = match text {
        [rest @ .., b'(', letter, b')'] | [rest @ .., b'=' | b'/', letter] => (rest, *letter),
        [rest @ .., b'1' | b'8', letter] if letter.is_ascii_alphabetic() => {
            (&text[..rest.len() + 1], *letter)
        }
        _ => return (text, None),
    };
    match Role::from_char(char::from(letter)) {
        Some(role @ (Role::Knight | Role::Bishop | Role::Rook | Role::Queen)) => (rest, Some(role)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fen: &str) -> Position {
        Position::from_fen(fen).unwrap().0
    }

    #[test]
    fn many_spellings_of_one_move() {
        let position = read("r3k2r/1P2p3/8/3pP3/8/8/1N2N3/R3K2R w KQkq d6 0 1");
        for (text, uci) in [
            ("O-O", "e1h1"),
            ("0-0-0", "e1a1"),
            ("O-O+!?", "e1h1"),
            ("e1g1", "e1h1"),
            ("exd6", "e5d6"),
            ("ed6", "e5d6"),
            ("exd6e.p.", "e5d6"),
            ("e5xd6", "e5d6"),
            ("e5-d6", "e5d6"),
            ("Pe6", "e5e6"),
            ("e6", "e5e6"),
            ("b8=Q+", "b7b8q"),
            ("b8N", "b7b8n"),
            ("b7xa8(R)", "b7a8r"),
            ("b7b8q", "b7b8q"),
            ("bxa8=B", "b7a8b"),
            ("Nd3", "b2d3"),
            ("Nb2d3", "b2d3"),
            ("N2d3", "b2d3"),
            ("Rxa8", "a1a8"),
            ("Kd1??", "e1d1"),
        ] {
            let found = position.parse_san(text);
            assert_eq!(found.map(|m| m.to_string()), Ok(uci.to_owned()), "{text}");
        }
    }

    #[test]
    fn refusals_say_which_kind() {
        let position = Position::startpos();
        for text in [
            "", "x", "--", "e9", "Zf3", "Nf", "e4=K", "Nf3=Q", "i4", "O-O-O-O", "é4", "♘f3",
        ] {
            let found = position.parse_san(text);
            assert!(
                matches!(found, Err(SanError::Malformed(_))),
                "{text}: {found:?}"
            );
        }
        for text in ["e5", "O-O", "Nd2", "e8=Q", "Kxe1", "e2e5"] {
            let found = position.parse_san(text);
            assert!(
                matches!(found, Err(SanError::Illegal { .. })),
                "{text}: {found:?}"
            );
        }
        let found = read("4r1k1/8/8/4N3/8/8/8/4K3 w - -").parse_san("Nd3");
        assert!(
            matches!(found, Err(SanError::Illegal { .. })),
            "pinned: {found:?}"
        );
        let found = read("4k3/8/8/8/8/8/8/R3K2R w - -").parse_san("Ra5");
        assert!(found.is_ok());
        let found = read("4k3/R7/8/8/8/8/8/R3K3 w - -").parse_san("Ra5");
        assert!(
            matches!(found, Err(SanError::Ambiguous { .. })),
            "{found:?}"
        );
    }

    #[test]
    fn writes_as_little_origin_as_needed() {
        for (fen, uci, san) in [
            ("4r1k1/8/8/4N3/8/8/8/2N1K3 w - -", "c1d3", "Nd3"),
            ("6k1/8/8/4N3/8/8/8/2N1K3 w - -", "c1d3", "Ncd3"),
            ("6k1/8/8/2N5/8/8/8/2N1K3 w - -", "c1d3", "N1d3"),
            ("6k1/8/8/2N5/8/8/5N2/2N1K3 w - -", "c1d3", "N1d3"),
            ("6k1/8/8/2N1N3/8/8/8/2N1K3 w - -", "c5d3", "Nc5d3"),
            ("4k3/R7/8/8/8/8/8/R3K3 w - -", "a1a5", "R1a5"),
            ("7k/6pp/8/8/8/8/8/RQ2K3 w - -", "b1b8", "Qb8#"),
            ("3k4/8/8/8/8/8/8/R3K3 w Q -", "e1a1", "O-O-O+"),
        ] {
            let position = read(fen);
            let m = position.parse_uci(uci).unwrap();
            assert_eq!(position.to_san(m), san);
            assert_eq!(position.parse_san(san), Ok(m));
        }
    }
}
