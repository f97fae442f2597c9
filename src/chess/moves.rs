//! A move in sixteen bits. Knows squares, not positions: what is legal is the position's business.

use std::fmt;

use arrayvec::ArrayVec;
use shakmaty::{Role, Square};
use thiserror::Error;

/// Most moves a legal position can have is 218; positions beyond legal material stay below 256.
pub type MoveList = ArrayVec<Move, 256>;

/// From-square, to-square and promotion. Castling is king takes rook, in standard chess too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move(u16);

/// Why a move in text was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MoveError {
    /// Not of the form `e2e4` or `e7e8q`.
    #[error(
        "malformed move '{0}': expected from-square, to-square and, for a promotion, one of n b r q, all lower-case"
    )]
    Malformed(String),
    /// Well formed, but not legal.
    #[error("illegal move '{text}' in {fen}")]
    Illegal {
        /// The move as it was written.
        text: String,
        /// The position it was tried in.
        fen: String,
    },
}

impl Move {
    /// A move from its parts; castling is given as king takes rook.
    pub fn new(from: Square, to: Square, promotion: Option<Role>) -> Move {
        let promotion = match promotion {
            Some(Role::Knight) => 1,
            Some(Role::Bishop) => 2,
            Some(Role::Rook) => 3,
            Some(Role::Queen) => 4,
            _ => 0,
        };
        Move(u16::from(from) | u16::from(to) << 6 | promotion << 12)
    }

    /// The square the piece leaves.
    pub fn from(self) -> Square {
        Square::new(u32::from(self.0 & 63))
    }

    /// The square the piece reaches; for castling the rook's.
    pub fn to(self) -> Square {
        Square::new(u32::from(self.0 >> 6 & 63))
    }

    /// The piece a pawn turns into.
    pub fn promotion(self) -> Option<Role> {
        match self.0 >> 12 {
            1 => Some(Role::Knight),
            2 => Some(Role::Bishop),
            3 => Some(Role::Rook),
            4 => Some(Role::Queen),
            _ => None,
        }
    }

    /// The packed form: bits 0–5 from, 6–11 to, 12–14 promotion (0 none, then n b r q).
    pub fn raw(self) -> u16 {
        self.0
    }

    /// The move whose [`Move::raw`] is `raw`.
    pub fn from_raw(raw: u16) -> Move {
        Move(raw)
    }

    pub(super) fn from_shakmaty(m: shakmaty::Move) -> Move {
        match m {
            shakmaty::Move::Castle { king, rook } => Move::new(king, rook, None),
            other => Move::new(
                other.from().unwrap_or(other.to()),
                other.to(),
                other.promotion(),
            ),
        }
    }
}

/// From, to and promotion letter, castling as king takes rook.
impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.from(), self.to())?;
        match self.promotion() {
            Some(role) => write!(f, "{}", role.char()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
