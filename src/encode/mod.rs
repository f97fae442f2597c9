//! Positions to network inputs and moves to policy indices, on plain slices. Never a tensor.

pub mod game_tokens;
mod planes;
mod policy;
mod squares;
mod turn;

pub use planes::{HistoryFill, InputFormat, InputPlanes, PLANES, SQUARES};
pub use policy::{
    ATTENTION_OUTPUTS, CONVOLUTION_OUTPUTS, IndexedMove, POLICY_SIZE, PolicyMap, Promotion,
    indexed_move, policy_index, reachable,
};
pub use squares::{FEATURES, SQUARE_POLICY, SquareTokens, TOKENS_ROW, square_policy_output};
pub use turn::{Pieces, Turn};

use crate::chess::{Color, Move, Role};

/// The policy index of a legal move: seen by `mover`, on the turned squares. `None` for a move no
/// piece could make.
pub fn move_index(m: Move, mover: Color, turn: Turn) -> Option<u16> {
    let flip = if mover == Color::Black { 56 } else { 0 };
    let square = |square| turn.square(u8::from(square) ^ flip);
    let promotion = match m.promotion() {
        Some(Role::Queen) => Some(Promotion::Queen),
        Some(Role::Rook) => Some(Promotion::Rook),
        Some(Role::Bishop) => Some(Promotion::Bishop),
        _ => None,
    };
    policy_index(IndexedMove {
        from: square(m.from()),
        to: square(m.to()),
        promotion,
    })
}
