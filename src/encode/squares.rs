//! The 64 square tokens of the project's own transformer, and its policy outputs. Knows positions; never
//! a tensor.
//!
//! A token is a square as the mover sees it (own back rank first, a1 = 0), its [`FEATURES`] numbers are:
//!
//! | features | hold |
//! |---|---|
//! | 12·b … 12·b + 11, b = 0…7 | b plies ago: own P N B R Q K, then theirs, one-hot on this square |
//! | 96 + b | 1 on every square if the position b plies ago had occurred before it |
//! | 104, 105 | a rook of the mover that may castle, to the a- and to the h-side, on this square |
//! | 106, 107 | the same of the opponent |
//! | 108 | this square is the en-passant square |
//! | 109 | rule-50 count / 100, on every square |

use super::planes::{Rights, pieces, rights, seen_by};
use crate::chess::{Bitboard, Move, Position, Role};

/// Numbers of a square token.
pub const FEATURES: usize = 110;
/// Numbers of a position.
pub const TOKENS_ROW: usize = 64 * FEATURES;
/// Outputs of the policy: `[64 from, 64 to]`, then `[8 from-file, 8 to-file, 4]` of promotions to a knight,
/// bishop, rook and queen.
pub const SQUARE_POLICY: usize = 64 * 64 + 8 * 8 * 4;

const HISTORY: usize = 8;
const REPEATED: usize = 12 * HISTORY;
const CASTLING: usize = REPEATED + HISTORY;
const EN_PASSANT: usize = CASTLING + 4;
const RULE50: usize = EN_PASSANT + 1;

/// The features of one position as bitboards, and the one that is a number.
#[derive(Clone, Debug, PartialEq)]
pub struct SquareTokens {
    masks: [u64; RULE50],
    rule50: f32,
}

impl SquareTokens {
    /// Draws a position and its history. `history(back)` gives the position `back` plies ago (0 =
    /// current) and whether it had occurred before it in the game; `None` before the first one, in whose place
    /// the oldest known one stands: networks are trained on games that begin anywhere, so a history that is
    /// missing says nothing.
    pub fn encode<'a>(
        current: &'a Position,
        history: impl Fn(usize) -> Option<(&'a Position, bool)>,
    ) -> SquareTokens {
        let mover = current.turn();
        let mut masks = [0; RULE50];
        let mut oldest = current;
        for back in 0..HISTORY {
            let known = match back {
                0 => Some((current, history(0).is_some_and(|(_, repeated)| repeated))),
                _ => history(back),
            };
            let (position, repeated) = known.unwrap_or((oldest, false));
            let pieces = pieces(position, mover);
            for (role, &set) in pieces.roles.iter().enumerate() {
                masks[12 * back + role] = set & pieces.own;
                masks[12 * back + 6 + role] = set & pieces.theirs;
            }
            masks[REPEATED + back] = if repeated { !0 } else { 0 };
            oldest = position;
        }
        let Rights {
            own_a,
            own_h,
            their_a,
            their_h,
        } = rights(current);
        masks[CASTLING..EN_PASSANT].copy_from_slice(&[own_a, own_h, their_a, their_h]);
        masks[EN_PASSANT] = current
            .ep_square()
            .map_or(0, |square| seen_by(mover, Bitboard::from_square(square)));
        SquareTokens {
            masks,
            rule50: current.rule50() as f32 / 100.0,
        }
    }

    /// The position with the files swapped (a with h). Legal moves stay legal where nobody may castle.
    #[must_use]
    pub fn mirrored(mut self) -> SquareTokens {
        for mask in &mut self.masks {
            // Within each byte, a rank, the bits change places.
            *mask = mask.swap_bytes().reverse_bits();
        }
        self
    }

    /// The features that are 0 or 1, each as the squares where it is 1.
    pub fn masks(&self) -> &[u64] {
        &self.masks
    }

    /// The last feature, the same on every square: the rule-50 count / 100.
    pub fn rule50(&self) -> f32 {
        self.rule50
    }

    /// Writes the tokens as numbers, `[64, FEATURES]`.
    pub fn write(&self, out: &mut [f32; TOKENS_ROW]) {
        out.fill(0.0);
        for (feature, &mask) in self.masks.iter().enumerate() {
            let mut rest = mask;
            while rest != 0 {
                out[rest.trailing_zeros() as usize * FEATURES + feature] = 1.0;
                rest &= rest - 1;
            }
        }
        for token in out.chunks_exact_mut(FEATURES) {
            token[RULE50] = self.rule50;
        }
    }
}

/// The policy output of a legal move of `position`; with `mirrored`, on the board with its files swapped.
pub fn square_policy_output(position: &Position, m: Move, mirrored: bool) -> usize {
    let flip = match position.turn() {
        crate::chess::Color::White => 0,
        crate::chess::Color::Black => 56,
    } ^ if mirrored { 7 } else { 0 };
    let from = usize::from(u8::from(m.from()) ^ flip);
    let to = usize::from(u8::from(m.to()) ^ flip);
    let piece = match m.promotion() {
        Some(Role::Knight) => 0,
        Some(Role::Bishop) => 1,
        Some(Role::Rook) => 2,
        Some(_) => 3,
        None => return 64 * from + to,
    };
    64 * 64 + ((from % 8) * 8 + to % 8) * 4 + piece
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::chess::Game;

    fn row(tokens: &SquareTokens) -> Vec<f32> {
        let mut out = [7.0; TOKENS_ROW];
        tokens.write(&mut out);
        out.to_vec()
    }

    fn game(moves: &str) -> Game {
        let mut game = Game::default();
        for text in moves.split_whitespace() {
            let m = game.current().parse_uci(text).unwrap();
            game.play(m);
        }
        game
    }

    fn tokens(game: &Game) -> SquareTokens {
        let last = game.positions().len() - 1;
        SquareTokens::encode(game.current(), |back| {
            let index = last.checked_sub(back)?;
            Some((&game.positions()[index], game.repeated(index)))
        })
    }

    #[test]
    fn features_are_where_they_are_said_to_be() {
        let out = row(&tokens(&game("e2e4")));
        let at = |square: usize, feature: usize| out[square * FEATURES + feature];
        // Black to move: e2 is the own king's pawn, e5 the pawn that came to e4.
        assert_eq!((at(12, 0), at(4, 5), at(0, 3)), (1.0, 1.0, 1.0));
        assert_eq!((at(36, 6), at(52, 6), at(60, 11)), (1.0, 0.0, 1.0));
        // A ply ago it stood on its square.
        assert_eq!((at(36, 18), at(52, 18)), (0.0, 1.0));
        // Before the start position, the start position.
        assert_eq!((at(12, 24), at(52, 90)), (1.0, 1.0));
        assert_eq!(
            (at(0, 104), at(7, 105), at(56, 106), at(63, 107)),
            (1.0, 1.0, 1.0, 1.0)
        );
        let sum: f32 = out.iter().sum();
        assert_eq!(sum, 32.0 * 8.0 + 4.0);
    }

    #[test]
    fn repetitions_rule_50_and_en_passant() {
        let out = row(&tokens(&game("g1f3 g8f6 f3g1 f6g8")));
        assert_eq!((out[96], out[97], out[FEATURES + 96]), (1.0, 0.0, 1.0));
        assert_eq!(out[109], 0.04);
        let out = row(&tokens(&game("e2e4 a7a6 e4e5 d7d5")));
        assert_eq!(out[43 * FEATURES + 108], 1.0);
    }

    #[test]
    fn colours_and_files_mirror() {
        let (white, _) = Position::from_fen("8/5k2/1p6/8/3N4/8/2K5/7R w - - 3 40").unwrap();
        let (black, _) = Position::from_fen("7r/2k5/8/3n4/8/1P6/5K2/8 b - - 3 40").unwrap();
        let (files, _) = Position::from_fen("8/2k5/6p1/8/4N3/8/5K2/R7 w - - 3 40").unwrap();
        let encode = |p: &Position| SquareTokens::encode(p, |_| None);
        assert_eq!(encode(&white), encode(&black));
        assert_eq!(encode(&white).mirrored(), encode(&files));
        let m = |p: &Position, text| p.parse_uci(text).unwrap();
        let output = square_policy_output(&white, m(&white, "d4e6"), true);
        assert_eq!(
            output,
            square_policy_output(&files, m(&files, "e4d6"), false)
        );
        let output = square_policy_output(&white, m(&white, "h1h8"), false);
        assert_eq!(
            output,
            square_policy_output(&black, m(&black, "h8h1"), false)
        );
    }

    #[test]
    fn every_legal_move_has_an_output_of_its_own() {
        for fen in [
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "1n1n4/P1P4k/8/8/8/8/p1p4K/1N1N4 b - - 0 1",
        ] {
            let (position, _) = Position::from_fen(fen).unwrap();
            let moves = position.legal_moves();
            let outputs: HashSet<usize> = moves
                .iter()
                .map(|&m| square_policy_output(&position, m, false))
                .collect();
            assert_eq!(outputs.len(), moves.len(), "{fen}");
            assert!(outputs.iter().all(|&output| output < SQUARE_POLICY));
        }
    }
}
