//! Rules and notation: moves, positions, games, FEN. Knows nothing of networks, search or protocols.

mod fen;
mod game;
mod moves;
mod position;

pub use fen::{FenError, Repair};
pub use game::Game;
pub use moves::{Move, MoveError, MoveList};
pub use position::Position;
pub use shakmaty::{Bitboard, Board, Color, File, Rank, Role, Square};
