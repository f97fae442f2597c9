//! Rules and notation: moves, positions, games, FEN. Knows nothing of networks, search or protocols.

pub mod epd;
mod fen;
mod files;
mod game;
pub mod genfens;
mod mating;
mod moves;
pub mod perft;
pub mod pgn;
mod position;
mod san;
mod tablebases;

pub use epd::{Epd, EpdError};
pub use fen::{FenError, Repair};
pub use files::open_maybe_packed;
pub use game::Game;
pub use moves::{Move, MoveError, MoveList};
pub use pgn::{GameResult, PgnError, PgnGame};
pub use position::Position;
pub use san::SanError;
pub use shakmaty::{Bitboard, Board, Color, File, Rank, Role, Square};
pub use tablebases::{TableMove, TableResult, TablebaseError, Tablebases};
