//! FEN in and out, X-FEN and Shredder-FEN castling included. Decides what is refused by name and
//! what is repaired with a remark; knows nothing of moves.

use std::fmt;
use std::num::NonZeroU32;

use shakmaty::{
    Bitboard, Board, CastlingMode, CastlingSide, Chess, Color, FromSetup, Piece,
    PositionErrorKinds, Rank, Role, Setup, Square,
};
use thiserror::Error;

use super::position::Position;

/// Why a FEN was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FenError {
    /// Nothing there.
    #[error("empty FEN: expected at least a board of 8 ranks")]
    Empty,
    /// Not eight ranks.
    #[error("board '{board}' has {found} ranks, expected 8")]
    Ranks {
        /// The board field.
        board: String,
        /// How many ranks it has.
        found: usize,
    },
    /// A rank that is not eight files wide.
    #[error("rank {rank} ('{text}') covers {found} files, expected 8")]
    Files {
        /// 8 at the top to 1.
        rank: u32,
        /// The rank as written.
        text: String,
        /// Files it covers.
        found: u32,
    },
    /// A character that is no piece.
    #[error("'{found}' in rank {rank} is neither a piece (PNBRQKpnbrqk) nor a digit 1-8")]
    Piece {
        /// The character.
        found: char,
        /// 8 at the top to 1.
        rank: u32,
    },
    /// Not exactly one king.
    #[error("{color} has {found} kings, expected exactly 1")]
    Kings {
        /// Whose kings.
        color: Color,
        /// How many.
        found: usize,
    },
    /// More men than a side can have.
    #[error("{color} has {found} men, expected at most 16")]
    Men {
        /// Whose men.
        color: Color,
        /// How many.
        found: usize,
    },
    /// A pawn on the first or last rank.
    #[error("a pawn stands on {0}: pawns cannot stand on rank 1 or 8")]
    BackRankPawn(Square),
    /// The side that just moved is in check.
    #[error("{0} is in check but it is not their move")]
    OppositeCheck(Color),
    /// Side to move is neither w nor b.
    #[error("side to move '{0}' is neither w nor b")]
    Turn(String),
    /// The castling field holds something else than KQkq, A-H, a-h or -.
    #[error("castling field '{0}' holds something other than K Q k q, A-H, a-h or -")]
    Castling(String),
    /// Not a square.
    #[error("en-passant field '{0}' is neither a square nor -")]
    EnPassant(String),
    /// A counter that is not a number.
    #[error("{what} '{found}' is not a number from 0 to {max}")]
    Counter {
        /// Which counter.
        what: &'static str,
        /// The field.
        found: String,
        /// Largest accepted value.
        max: u32,
    },
    /// More than six fields.
    #[error("unexpected '{0}' after the six fields of a FEN")]
    Trailing(String),
    /// Refused by the rules library for another reason.
    #[error("not a playable position ({0})")]
    Unplayable(String),
}

/// Something in a FEN that was put right instead of refusing the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// A castling right whose king or rook is not in place.
    CastlingRight(char),
    /// An en-passant square that no pawn could have passed.
    EnPassant(Square),
    /// A move number of zero, read as one.
    MoveNumber,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::CastlingRight(c) => write!(
                f,
                "castling right '{c}' dropped: its king or rook is not in place"
            ),
            Repair::EnPassant(square) => write!(
                f,
                "en-passant square {square} dropped: no pawn could have passed it"
            ),
            Repair::MoveNumber => write!(f, "move number 0 read as 1"),
        }
    }
}

/// Largest accepted rule-50 count and move number.
const COUNTER_MAX: u32 = 99_999;

impl Position {
    /// Reads a FEN; fields after the board may be missing (w, no rights, no en passant, 0, 1).
    /// Castling may be written KQkq (X-FEN: the outermost rook) or as files (Shredder-FEN).
    ///
    /// # Errors
    /// Names what was wrong and what was expected.
    pub fn from_fen(fen: &str) -> Result<(Position, Vec<Repair>), FenError> {
        let mut fields = fen.split_ascii_whitespace();
        let board = read_board(fields.next().ok_or(FenError::Empty)?)?;
        let mut repairs = Vec::new();
        let turn = match fields.next() {
            None | Some("w") => Color::White,
            Some("b") => Color::Black,
            Some(other) => return Err(FenError::Turn(other.to_owned())),
        };
        let castling_rights = read_castling(fields.next().unwrap_or("-"), &board, &mut repairs)?;
        let ep_square = read_ep(fields.next().unwrap_or("-"), &board, turn, &mut repairs)?;
        let halfmoves = read_counter("rule-50 count", fields.next().unwrap_or("0"))?;
        let fullmoves = read_counter("move number", fields.next().unwrap_or("1"))?;
        if let Some(extra) = fields.next() {
            return Err(FenError::Trailing(extra.to_owned()));
        }
        let fullmoves = NonZeroU32::new(fullmoves).unwrap_or_else(|| {
            repairs.push(Repair::MoveNumber);
            NonZeroU32::MIN
        });
        let setup = Setup {
            turn,
            castling_rights,
            ep_square,
            halfmoves,
            fullmoves,
            board,
            ..Setup::empty()
        };
        let chess = Chess::from_setup(setup, CastlingMode::Chess960)
            .or_else(|e| e.ignore_too_much_material())
            .or_else(|e| e.ignore_impossible_check())
            .or_else(|e| e.ignore_invalid_ep_square())
            .or_else(|e| e.ignore_invalid_castling_rights())
            .map_err(|e| {
                if e.kinds().contains(PositionErrorKinds::OPPOSITE_CHECK) {
                    FenError::OppositeCheck(!turn)
                } else {
                    FenError::Unplayable(e.to_string())
                }
            })?;
        Ok((Position::from_parts(chess, ep_square), repairs))
    }

    /// Writes the FEN with all six fields. Castling rights print as KQkq, with `chess960` as rook
    /// files (Shredder-FEN); an inner rook's right is a file in both.
    pub fn to_fen(&self, chess960: bool) -> String {
        let turn = self.turn().char();
        let castling = self.castling_field(chess960);
        let ep = self
            .ep_square()
            .map_or_else(|| "-".to_owned(), |square| square.to_string());
        format!(
            "{} {turn} {castling} {ep} {} {}",
            self.board().board_fen(),
            self.rule50(),
            self.fullmoves()
        )
    }

    fn castling_field(&self, chess960: bool) -> String {
        let mut field = String::new();
        for color in Color::ALL {
            for side in [CastlingSide::KingSide, CastlingSide::QueenSide] {
                let Some(rook) = self.castles().rook(color, side) else {
                    continue;
                };
                let outermost = outer_rook(self.board(), color, side) == Some(rook);
                let letter = match (chess960 || !outermost, side) {
                    (true, _) => rook.file().char(),
                    (false, CastlingSide::KingSide) => 'k',
                    (false, CastlingSide::QueenSide) => 'q',
                };
                field.push(color.fold_wb(letter.to_ascii_uppercase(), letter));
            }
        }
        if field.is_empty() {
            field.push('-');
        }
        field
    }
}

fn read_board(text: &str) -> Result<Board, FenError> {
    let ranks: Vec<&str> = text.split('/').collect();
    if ranks.len() != 8 {
        return Err(FenError::Ranks {
            board: text.to_owned(),
            found: ranks.len(),
        });
    }
    let mut board = Board::empty();
    for (line, rank) in ranks.iter().zip((1..=8u32).rev()) {
        let mut file = 0;
        for c in line.chars() {
            if let Some(skip @ 1..=8) = c.to_digit(10) {
                file += skip;
            } else if let Some(piece) = Piece::from_char(c) {
                if file < 8 {
                    board.set_piece_at(Square::new(8 * (rank - 1) + file), piece);
                }
                file += 1;
            } else {
                return Err(FenError::Piece { found: c, rank });
            }
        }
        if file != 8 {
            return Err(FenError::Files {
                rank,
                text: (*line).to_owned(),
                found: file,
            });
        }
    }
    for color in Color::ALL {
        let men = board.by_color(color);
        let kings = (men & board.kings()).count();
        if kings != 1 {
            return Err(FenError::Kings {
                color,
                found: kings,
            });
        }
        if men.count() > 16 {
            return Err(FenError::Men {
                color,
                found: men.count(),
            });
        }
    }
    match (board.pawns() & Bitboard::BACKRANKS).first() {
        Some(square) => Err(FenError::BackRankPawn(square)),
        None => Ok(board),
    }
}

/// The rook of `color` furthest from the king on `side`, on the back rank with the king.
fn outer_rook(board: &Board, color: Color, side: CastlingSide) -> Option<Square> {
    let back_rank = color.fold_wb(Rank::First, Rank::Eighth);
    let king = board
        .king_of(color)
        .filter(|king| king.rank() == back_rank)?;
    let rooks = board.rooks() & board.by_color(color) & Bitboard::from_rank(back_rank);
    match side {
        CastlingSide::KingSide => rooks.last().filter(|rook| *rook > king),
        CastlingSide::QueenSide => rooks.first().filter(|rook| *rook < king),
    }
}

fn read_castling(
    text: &str,
    board: &Board,
    repairs: &mut Vec<Repair>,
) -> Result<Bitboard, FenError> {
    let mut rights = Bitboard::EMPTY;
    if text == "-" {
        return Ok(rights);
    }
    for c in text.chars() {
        let color = if c.is_ascii_uppercase() {
            Color::White
        } else {
            Color::Black
        };
        let rook = match c.to_ascii_lowercase() {
            'k' => outer_rook(board, color, CastlingSide::KingSide),
            'q' => outer_rook(board, color, CastlingSide::QueenSide),
            file @ 'a'..='h' => rook_on_file(board, color, file),
            _ => return Err(FenError::Castling(text.to_owned())),
        };
        let taken = rook.is_some_and(|rook| side_taken(board, rights, color, rook));
        match rook {
            Some(rook) if !taken => rights.add(rook),
            _ => repairs.push(Repair::CastlingRight(c)),
        }
    }
    Ok(rights)
}

/// True when a right for another rook on the same side of the king was read already.
fn side_taken(board: &Board, rights: Bitboard, color: Color, rook: Square) -> bool {
    let Some(king) = board.king_of(color) else {
        return true;
    };
    (rights & board.by_color(color))
        .into_iter()
        .any(|other| other != rook && (other < king) == (rook < king))
}

fn rook_on_file(board: &Board, color: Color, file: char) -> Option<Square> {
    let back_rank = color.fold_wb(Rank::First, Rank::Eighth);
    let king_home = board
        .king_of(color)
        .is_some_and(|king| king.rank() == back_rank);
    let square = Square::from_coords(shakmaty::File::from_char(file)?, back_rank);
    let rook = Piece {
        color,
        role: Role::Rook,
    };
    (king_home && board.piece_at(square) == Some(rook)).then_some(square)
}

fn read_ep(
    text: &str,
    board: &Board,
    turn: Color,
    repairs: &mut Vec<Repair>,
) -> Result<Option<Square>, FenError> {
    if text == "-" {
        return Ok(None);
    }
    let square =
        Square::from_ascii(text.as_bytes()).map_err(|_| FenError::EnPassant(text.to_owned()))?;
    let (sixth, forward) = turn.fold_wb((Rank::Sixth, 8), (Rank::Third, -8));
    let pushed = Piece {
        color: !turn,
        role: Role::Pawn,
    };
    let passed = square.rank() == sixth
        && square
            .offset(-forward)
            .is_some_and(|pawn| board.piece_at(pawn) == Some(pushed))
        && board.piece_at(square).is_none()
        && square
            .offset(forward)
            .is_some_and(|home| board.piece_at(home).is_none());
    if !passed {
        repairs.push(Repair::EnPassant(square));
    }
    Ok(passed.then_some(square))
}

fn read_counter(what: &'static str, text: &str) -> Result<u32, FenError> {
    // EPD-minded tools write '-' for counters they do not know.
    let text = if text == "-" { "0" } else { text };
    text.parse()
        .ok()
        .filter(|&n| n <= COUNTER_MAX)
        .ok_or_else(|| FenError::Counter {
            what,
            found: text.to_owned(),
            max: COUNTER_MAX,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fen: &str) -> Position {
        Position::from_fen(fen).unwrap().0
    }

    #[test]
    fn round_trips() {
        for fen in [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 3 17",
            "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3",
        ] {
            assert_eq!(read(fen).to_fen(false), fen);
        }
    }

    #[test]
    fn missing_fields_have_defaults() {
        let position = read("4k3/8/8/8/8/8/8/4K3");
        assert_eq!(position.to_fen(false), "4k3/8/8/8/8/8/8/4K3 w - - 0 1");
    }

    #[test]
    fn unusable_rights_and_squares_are_repaired() {
        let (position, repairs) = Position::from_fen("4k3/8/8/8/8/8/8/4K2R w KQ e6 0 0").unwrap();
        assert_eq!(position.to_fen(false), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
        assert_eq!(
            repairs,
            [
                Repair::CastlingRight('Q'),
                Repair::EnPassant(Square::E6),
                Repair::MoveNumber
            ]
        );
    }

    #[test]
    fn refusals_name_what_is_wrong() {
        let cases = [
            ("", "empty FEN"),
            ("8/8/8/8/8/8/8 w - - 0 1", "7 ranks"),
            ("4k3/9/8/8/8/8/8/4K3 w - - 0 1", "'9' in rank 7"),
            ("4k3/7/8/8/8/8/8/4K3 w - - 0 1", "covers 7 files"),
            ("4k3/8/8/8/8/8/8/8 w - - 0 1", "white has 0 kings"),
            ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "pawn stands on a1"),
            ("4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "black is in check"),
            ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "side to move 'x'"),
            ("4k3/8/8/8/8/8/8/4K3 w Kz - 0 1", "castling field"),
            ("4k3/8/8/8/8/8/8/4K3 w - z9 0 1", "en-passant field"),
            ("4k3/8/8/8/8/8/8/4K3 w - - -1 1", "rule-50 count"),
            ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 e2e4", "unexpected 'e2e4'"),
        ];
        for (fen, part) in cases {
            let message = Position::from_fen(fen).unwrap_err().to_string();
            assert!(message.contains(part), "{fen}: {message}");
        }
    }
}
