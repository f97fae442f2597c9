//! One position: shakmaty's rules, the en-passant square as the networks see it, and a Zobrist key.
//! Knows nothing of what happened before it: that is [`super::Game`].

use shakmaty::zobrist::{Zobrist64, ZobristValue};
use shakmaty::{
    Bitboard, Board, Castles, CastlingSide, Chess, Color, EnPassantMode, File, FromSetup, Piece,
    Position as _, Role, Square,
};

use super::moves::{Move, MoveError, MoveList};

/// A chess position, Chess960 included.
///
/// The en-passant square is the one the networks read: after a double step that was played, set
/// only if an enemy pawn stands beside the pushed pawn; from a FEN, as given. It is part of
/// equality and of the key, and may differ from what the rules can use (pins).
#[derive(Clone, Debug)]
pub struct Position {
    chess: Chess,
    ep_square: Option<Square>,
    key: u64,
}

/// Equal for the repetition rule: pieces, mover, castling rights, en-passant square.
impl PartialEq for Position {
    fn eq(&self, other: &Position) -> bool {
        self.key == other.key
            && self.turn() == other.turn()
            && self.ep_square == other.ep_square
            && self.board() == other.board()
            && self.castles().castling_rights() == other.castles().castling_rights()
    }
}

impl Eq for Position {}

impl Default for Position {
    fn default() -> Position {
        Position::startpos()
    }
}

impl Position {
    /// The start position of standard chess.
    pub fn startpos() -> Position {
        Position::from_parts(Chess::default(), None)
    }

    pub(super) fn from_parts(chess: Chess, ep_square: Option<Square>) -> Position {
        let mut position = Position {
            chess,
            ep_square,
            key: 0,
        };
        position.key = position.full_key();
        position
    }

    /// The board of pieces.
    pub fn board(&self) -> &Board {
        self.chess.board()
    }

    /// The side to move.
    pub fn turn(&self) -> Color {
        self.chess.turn()
    }

    /// Castling rights with their rook squares.
    pub fn castles(&self) -> &Castles {
        self.chess.castles()
    }

    /// Plies since the last capture or pawn move.
    pub fn rule50(&self) -> u32 {
        self.chess.halfmoves()
    }

    /// Number of the full move, from 1.
    pub fn fullmoves(&self) -> u32 {
        self.chess.fullmoves().get()
    }

    /// The square behind a pawn that just made a double step, as the networks see it.
    pub fn ep_square(&self) -> Option<Square> {
        self.ep_square
    }

    /// Zobrist key of pieces, mover, castling rights and en-passant square.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The rules library's own position.
    pub fn inner(&self) -> &Chess {
        &self.chess
    }

    /// True when a castling right belongs to a king or rook that is not on its standard square.
    pub fn needs_chess960(&self) -> bool {
        Color::ALL.into_iter().any(|color| {
            CastlingSide::ALL.into_iter().any(|side| {
                self.castles().rook(color, side).is_some_and(|rook| {
                    let home = side == CastlingSide::KingSide;
                    let home = if home { File::H } else { File::A };
                    let king = self.board().king_of(color).map(Square::file);
                    rook.file() != home || king != Some(File::E)
                })
            })
        })
    }

    /// True when the side to move is in check.
    pub fn is_check(&self) -> bool {
        self.chess.is_check()
    }

    /// True when neither side could ever mate.
    pub fn is_insufficient_material(&self) -> bool {
        self.chess.is_insufficient_material()
    }

    /// All legal moves, in the order of the move generator.
    pub fn legal_moves(&self) -> MoveList {
        self.chess
            .legal_moves()
            .iter()
            .map(|&m| Move::from_shakmaty(m))
            .collect()
    }

    /// True when `m` is among the legal moves.
    pub fn is_legal(&self, m: Move) -> bool {
        self.legal_moves().contains(&m)
    }

    /// True when `m` castles, that is, takes a rook of the own side with the king.
    pub fn is_castling(&self, m: Move) -> bool {
        let us = self.board().by_color(self.turn());
        us.contains(m.from()) && us.contains(m.to())
    }

    /// True when `m` captures or moves a pawn, so that nothing before it can repeat.
    pub fn is_zeroing(&self, m: Move) -> bool {
        self.board().pawns().contains(m.from())
            || self.board().by_color(!self.turn()).contains(m.to())
    }

    /// The move as shakmaty writes it, or `None` when no own piece stands on the from-square.
    pub fn to_shakmaty(&self, m: Move) -> Option<shakmaty::Move> {
        let board = self.board();
        let role = board.role_at(m.from())?;
        let capture = board.role_at(m.to());
        Some(if self.is_castling(m) {
            shakmaty::Move::Castle {
                king: m.from(),
                rook: m.to(),
            }
        } else if role == Role::Pawn && capture.is_none() && m.from().file() != m.to().file() {
            shakmaty::Move::EnPassant {
                from: m.from(),
                to: m.to(),
            }
        } else {
            shakmaty::Move::Normal {
                role,
                from: m.from(),
                capture,
                to: m.to(),
                promotion: m.promotion(),
            }
        })
    }

    /// Plays a legal move. A move from an empty square leaves the position as it is.
    pub fn play(&mut self, m: Move) {
        let Some(expanded) = self.to_shakmaty(m) else {
            debug_assert!(false, "{m} played from an empty square");
            return;
        };
        let mover = self.turn();
        let rights = self.castles().castling_rights();
        let mut key = self.key ^ self.ep_key() ^ turn_key();
        match expanded {
            shakmaty::Move::Castle { king, rook } => {
                let side = CastlingSide::from_king_side(king < rook);
                key ^= piece_key(king, Role::King, mover)
                    ^ piece_key(rook, Role::Rook, mover)
                    ^ piece_key(side.king_to(mover), Role::King, mover)
                    ^ piece_key(side.rook_to(mover), Role::Rook, mover);
            }
            shakmaty::Move::EnPassant { from, to } => {
                let taken = Square::from_coords(to.file(), from.rank());
                key ^= piece_key(from, Role::Pawn, mover)
                    ^ piece_key(to, Role::Pawn, mover)
                    ^ piece_key(taken, Role::Pawn, !mover);
            }
            shakmaty::Move::Normal {
                role,
                from,
                capture,
                to,
                promotion,
            } => {
                key ^=
                    piece_key(from, role, mover) ^ piece_key(to, promotion.unwrap_or(role), mover);
                if let Some(taken) = capture {
                    key ^= piece_key(to, taken, !mover);
                }
            }
            shakmaty::Move::Put { .. } => return,
        }
        let rights_key = castling_key(self.castles());
        self.chess.play_unchecked(expanded);
        if self.castles().castling_rights() != rights {
            key ^= rights_key ^ castling_key(self.castles());
        }
        self.ep_square = self.ep_square_after(expanded);
        self.key = key ^ self.ep_key();
    }

    /// The en-passant square after `played`, if an enemy pawn stands beside the pushed pawn.
    fn ep_square_after(&self, played: shakmaty::Move) -> Option<Square> {
        let shakmaty::Move::Normal {
            role: Role::Pawn,
            from,
            to,
            ..
        } = played
        else {
            return None;
        };
        if u32::from(from).abs_diff(u32::from(to)) != 16 {
            return None;
        }
        let beside = shakmaty::attacks::king_attacks(to) & Bitboard::from_rank(to.rank());
        let theirs = self.board().pawns() & self.board().by_color(self.turn());
        (beside & theirs)
            .any()
            .then(|| Square::new((u32::from(from) + u32::from(to)) / 2))
    }

    fn ep_key(&self) -> u64 {
        self.ep_square.map_or(0, |square| {
            Zobrist64::zobrist_for_en_passant_file(square.file()).0
        })
    }

    /// The key computed from nothing; [`Position::play`] keeps it up to date step by step.
    pub fn full_key(&self) -> u64 {
        let mut key = self.ep_key() ^ castling_key(self.castles());
        for (square, piece) in self.board().clone() {
            key ^= piece_key(square, piece.role, piece.color);
        }
        if self.turn() == Color::White {
            key ^= turn_key();
        }
        key
    }

    /// Reads a move in UCI notation. Castling is accepted king-two-squares and king-takes-rook.
    ///
    /// # Errors
    /// Names the move and says whether it was malformed or illegal.
    pub fn parse_uci(&self, text: &str) -> Result<Move, MoveError> {
        let malformed = || MoveError::Malformed(text.to_owned());
        let (from, to, promotion) = split_uci(text).ok_or_else(malformed)?;
        let legal = self.legal_moves();
        let exact = Move::new(from, to, promotion);
        if legal.contains(&exact) {
            return Ok(exact);
        }
        if promotion.is_none() && legal.iter().any(|m| m.from() == from && m.to() == to) {
            return Err(malformed());
        }
        let two_squares = legal
            .iter()
            .find(|&&m| promotion.is_none() && self.two_square_castling(m) == Some((from, to)));
        two_squares.copied().ok_or_else(|| MoveError::Illegal {
            text: text.to_owned(),
            fen: self.to_fen(false),
        })
    }

    /// King's from- and to-square when `m` castles and the king goes at least two squares.
    fn two_square_castling(&self, m: Move) -> Option<(Square, Square)> {
        if !self.is_castling(m) {
            return None;
        }
        let to = CastlingSide::from_king_side(m.from() < m.to()).king_to(self.turn());
        (m.from().file().distance(to.file()) >= 2).then_some((m.from(), to))
    }

    /// The move in UCI notation. Castling prints king-takes-rook with `chess960`, and where the
    /// king goes less than two squares; else king-two-squares.
    pub fn move_to_uci(&self, m: Move, chess960: bool) -> String {
        match self.two_square_castling(m) {
            Some((from, to)) if !chess960 => format!("{from}{to}"),
            _ => m.to_string(),
        }
    }

    /// The position after a null move, seen by the other side; `None` when in check.
    pub fn swap_turn(&self) -> Option<Position> {
        let mut setup = self.chess.to_setup(EnPassantMode::Always);
        setup.swap_turn();
        let chess = Chess::from_setup(setup, self.castles().mode())
            .or_else(|e| e.ignore_too_much_material())
            .or_else(|e| e.ignore_impossible_check())
            .ok()?;
        Some(Position::from_parts(chess, None))
    }
}

/// Splits `e7e8q` into squares and promotion; lower case only.
fn split_uci(text: &str) -> Option<(Square, Square, Option<Role>)> {
    let bytes = text.as_bytes();
    if !(4..=5).contains(&bytes.len()) {
        return None;
    }
    let square = |pair: &[u8]| match *pair {
        [file @ b'a'..=b'h', rank @ b'1'..=b'8'] => Some(Square::new(
            u32::from(file - b'a') + 8 * u32::from(rank - b'1'),
        )),
        _ => None,
    };
    let promotion = match bytes.get(4) {
        None => None,
        Some(b'n') => Some(Role::Knight),
        Some(b'b') => Some(Role::Bishop),
        Some(b'r') => Some(Role::Rook),
        Some(b'q') => Some(Role::Queen),
        Some(_) => return None,
    };
    Some((square(&bytes[..2])?, square(&bytes[2..4])?, promotion))
}

fn piece_key(square: Square, role: Role, color: Color) -> u64 {
    Zobrist64::zobrist_for_piece(square, Piece { color, role }).0
}

fn turn_key() -> u64 {
    Zobrist64::zobrist_for_white_turn().0
}

fn castling_key(castles: &Castles) -> u64 {
    let mut key = 0;
    for color in Color::ALL {
        for side in CastlingSide::ALL {
            if castles.has(color, side) {
                key ^= Zobrist64::zobrist_for_castling_right(color, side).0;
            }
        }
    }
    key
}
