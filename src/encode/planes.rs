//! The 112 input planes of Lc0 networks, in every input format. Knows positions; never a tensor.

use std::sync::LazyLock;

use crate::chess::{Bitboard, Color, Position, Role, Square};

use super::turn::{Pieces, Turn};

/// Input planes of a network.
pub const PLANES: usize = 112;
/// Squares of a plane, a1 = 0, from the side of the mover.
pub const SQUARES: usize = 64;

const HISTORY: usize = 8;
const PER_POSITION: usize = 13;
const AUX: usize = HISTORY * PER_POSITION;
const RULE50_PLANE: usize = AUX + 5;

/// How positions become planes; the numbers are those of the network files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// 1: castling rights as whole planes.
    Classical,
    /// 2: castling rights as rook squares.
    CastlingPlane,
    /// 3: en passant, shortened history, turned board.
    Canonical,
    /// 4: as 3, rule 50 in hundreds of plies.
    CanonicalHectoplies,
    /// 132: as 4, with a plane for Black to move.
    CanonicalHectopliesArmageddon,
    /// 5: as 4, with only repetitions in the history.
    CanonicalV2,
    /// 133: as 5, with a plane for Black to move.
    CanonicalV2Armageddon,
}

impl InputFormat {
    /// The format with that number in a network file.
    pub fn from_number(number: i32) -> Option<InputFormat> {
        Some(match number {
            1 => InputFormat::Classical,
            2 => InputFormat::CastlingPlane,
            3 => InputFormat::Canonical,
            4 => InputFormat::CanonicalHectoplies,
            132 => InputFormat::CanonicalHectopliesArmageddon,
            5 => InputFormat::CanonicalV2,
            133 => InputFormat::CanonicalV2Armageddon,
            _ => return None,
        })
    }

    /// Its number in a network file.
    pub fn number(self) -> i32 {
        match self {
            InputFormat::Classical => 1,
            InputFormat::CastlingPlane => 2,
            InputFormat::Canonical => 3,
            InputFormat::CanonicalHectoplies => 4,
            InputFormat::CanonicalHectopliesArmageddon => 132,
            InputFormat::CanonicalV2 => 5,
            InputFormat::CanonicalV2Armageddon => 133,
        }
    }

    /// True for the formats that name the en-passant square and may turn the board.
    pub fn is_canonical(self) -> bool {
        !matches!(self, InputFormat::Classical | InputFormat::CastlingPlane)
    }

    fn is_hectoplies(self) -> bool {
        self.is_canonical() && self != InputFormat::Canonical
    }

    fn is_v2(self) -> bool {
        matches!(
            self,
            InputFormat::CanonicalV2 | InputFormat::CanonicalV2Armageddon
        )
    }

    fn is_armageddon(self) -> bool {
        matches!(
            self,
            InputFormat::CanonicalHectopliesArmageddon | InputFormat::CanonicalV2Armageddon
        )
    }
}

/// What stands in history slots from before the first known position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryFill {
    /// Nothing.
    No,
    /// The oldest position, unless it is the start position of standard chess.
    #[default]
    FenOnly,
    /// The oldest position.
    Always,
}

/// The planes of one position: 0/1 planes as bitboards, and the one plane that holds a number.
#[derive(Clone, Debug, PartialEq)]
pub struct InputPlanes {
    masks: [u64; PLANES],
    rule50: f32,
    /// How the board was turned; policy indices are taken on the turned squares.
    pub turn: Turn,
}

/// Where a castling right's rook stands, seen by the mover, and whose it is.
pub(super) struct Rights {
    pub own_a: u64,
    pub own_h: u64,
    pub their_a: u64,
    pub their_h: u64,
}

impl InputPlanes {
    /// Draws a position and its history. `history(back)` gives the position `back` plies ago (0 =
    /// current) and whether it had occurred before it in the game; `None` before the first one.
    pub fn encode<'a>(
        format: InputFormat,
        fill: HistoryFill,
        current: &'a Position,
        history: impl Fn(usize) -> Option<(&'a Position, bool)>,
    ) -> InputPlanes {
        let mover = current.turn();
        let turn = if format.is_canonical() && current.castles().castling_rights().is_empty() {
            Turn::canonical(&pieces(current, mover))
        } else {
            Turn::NONE
        };
        let mut planes = InputPlanes {
            masks: [0; PLANES],
            rule50: current.rule50() as f32,
            turn,
        };
        planes.draw_auxiliary(format, current);
        planes.draw_history(format, fill, current, history);
        if turn != Turn::NONE {
            for mask in &mut planes.masks[..AUX + 5] {
                *mask = turn.apply(*mask);
            }
        }
        planes
    }

    fn draw_auxiliary(&mut self, format: InputFormat, current: &Position) {
        let mover = current.turn();
        let black = all_ones(mover == Color::Black);
        let rights = rights(current);
        let aux = &mut self.masks[AUX..];
        if format == InputFormat::Classical {
            aux[0] = all_ones(rights.own_a != 0);
            aux[1] = all_ones(rights.own_h != 0);
            aux[2] = all_ones(rights.their_a != 0);
            aux[3] = all_ones(rights.their_h != 0);
        } else {
            aux[0] = rights.own_a | rights.their_a;
            aux[1] = rights.own_h | rights.their_h;
        }
        aux[4] = if format.is_canonical() {
            // On the eighth rank, two squares beyond the square that was passed over.
            current
                .ep_square()
                .map_or(0, |square| 1 << (56 + u32::from(square.file())))
        } else {
            black
        };
        aux[6] = all_ones(format.is_armageddon()) & black;
        aux[7] = !0;
        if format.is_hectoplies() {
            self.rule50 /= 100.0;
        }
    }

    fn draw_history<'a>(
        &mut self,
        format: InputFormat,
        fill: HistoryFill,
        current: &'a Position,
        history: impl Fn(usize) -> Option<(&'a Position, bool)>,
    ) {
        let mover = current.turn();
        let mut slot = 0;
        let mut back = 0;
        let mut oldest = current;
        let mut filled = false;
        while slot < HISTORY {
            let known = if back == 0 {
                Some((current, history(0).is_some_and(|(_, repeated)| repeated)))
            } else {
                history(back)
            };
            let (position, repeated) = known.unwrap_or((oldest, false));
            if format.is_canonical()
                && (position.castles().castling_rights() != current.castles().castling_rights()
                    || back > 0 && position.ep_square().is_some())
            {
                return;
            }
            if known.is_none() {
                let ends = match fill {
                    // Before a double push, the position is known even without history.
                    HistoryFill::No => filled || position.ep_square().is_none(),
                    HistoryFill::FenOnly => *position == *START,
                    HistoryFill::Always => false,
                };
                if ends || format.is_v2() {
                    return;
                }
            }
            if format.is_v2() && back > 0 && !repeated {
                if position.rule50() == 0 {
                    return;
                }
                oldest = position;
                back += 1;
                continue;
            }
            self.draw_position(slot, position, mover, repeated);
            if known.is_none() {
                filled = true;
                self.take_back_double_push(slot, position, mover);
            }
            if format.is_canonical() && position.rule50() == 0 {
                return;
            }
            oldest = position;
            slot += 1;
            back += 1;
        }
    }

    fn draw_position(&mut self, slot: usize, position: &Position, mover: Color, repeated: bool) {
        let pieces = pieces(position, mover);
        let item = &mut self.masks[slot * PER_POSITION..][..PER_POSITION];
        for (role, &set) in pieces.roles.iter().enumerate() {
            item[role] = set & pieces.own;
            item[6 + role] = set & pieces.theirs;
        }
        item[12] = all_ones(repeated);
    }

    /// Puts the pawn of the position's en-passant square back to where it came from.
    fn take_back_double_push(&mut self, slot: usize, position: &Position, mover: Color) {
        let Some(square) = position.ep_square() else {
            return;
        };
        let pusher = !position.turn();
        let file = square.file();
        let (from, to) = match pusher {
            Color::White => (8 + u32::from(file), 24 + u32::from(file)),
            Color::Black => (48 + u32::from(file), 32 + u32::from(file)),
        };
        let bit = |square| seen_by(mover, Bitboard::from_square(Square::new(square)));
        let plane = slot * PER_POSITION + if pusher == mover { 0 } else { 6 };
        self.masks[plane] = self.masks[plane] & !bit(to) | bit(from);
    }

    /// The 0/1 planes, a1 = bit 0; that of rule 50 is left empty.
    pub fn masks(&self) -> &[u64; PLANES] {
        &self.masks
    }

    /// Writes the planes as numbers, `[112, 64]`.
    pub fn write(&self, out: &mut [f32; PLANES * SQUARES]) {
        for (plane, (mask, out)) in self
            .masks
            .iter()
            .zip(out.chunks_exact_mut(SQUARES))
            .enumerate()
        {
            if plane == RULE50_PLANE {
                out.fill(self.rule50);
                continue;
            }
            out.fill(if *mask == !0 { 1.0 } else { 0.0 });
            if *mask != !0 {
                let mut rest = *mask;
                while rest != 0 {
                    out[rest.trailing_zeros() as usize] = 1.0;
                    rest &= rest - 1;
                }
            }
        }
    }
}

pub(super) static START: LazyLock<Position> = LazyLock::new(Position::startpos);

fn all_ones(condition: bool) -> u64 {
    if condition { !0 } else { 0 }
}

/// The bitboard with `mover`'s back rank first.
pub(super) fn seen_by(mover: Color, set: Bitboard) -> u64 {
    match mover {
        Color::White => set.0,
        Color::Black => set.0.swap_bytes(),
    }
}

pub(super) fn pieces(position: &Position, mover: Color) -> Pieces {
    let board = position.board();
    Pieces {
        own: seen_by(mover, board.by_color(mover)),
        theirs: seen_by(mover, board.by_color(!mover)),
        roles: Role::ALL.map(|role| seen_by(mover, board.by_role(role))),
    }
}

pub(super) fn rights(position: &Position) -> Rights {
    let mover = position.turn();
    let side = |color: Color| {
        let rooks = position.castles().castling_rights() & position.board().by_color(color);
        let king = position.board().king_of(color);
        let (mut a, mut h) = (Bitboard::EMPTY, Bitboard::EMPTY);
        for rook in rooks {
            if king.is_some_and(|king| rook < king) {
                a.add(rook);
            } else {
                h.add(rook);
            }
        }
        (seen_by(mover, a), seen_by(mover, h))
    };
    let (own_a, own_h) = side(mover);
    let (their_a, their_h) = side(!mover);
    Rights {
        own_a,
        own_h,
        their_a,
        their_h,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;

    fn encode(format: InputFormat, fill: HistoryFill, game: &Game) -> InputPlanes {
        let last = game.positions().len() - 1;
        InputPlanes::encode(format, fill, game.current(), |back| {
            let index = last.checked_sub(back)?;
            Some((&game.positions()[index], game.repeated(index)))
        })
    }

    fn game(fen: &str, moves: &str) -> Game {
        let mut game = Game::new(Position::from_fen(fen).unwrap().0);
        for text in moves.split_whitespace() {
            let m = game.current().parse_uci(text).unwrap();
            game.play(m);
        }
        game
    }

    const FORMATS: [InputFormat; 7] = [
        InputFormat::Classical,
        InputFormat::CastlingPlane,
        InputFormat::Canonical,
        InputFormat::CanonicalHectoplies,
        InputFormat::CanonicalHectopliesArmageddon,
        InputFormat::CanonicalV2,
        InputFormat::CanonicalV2Armageddon,
    ];

    fn slots(planes: &InputPlanes) -> usize {
        (0..HISTORY)
            .filter(|slot| planes.masks[slot * PER_POSITION + 5] != 0)
            .count()
    }

    #[test]
    fn a_fen_with_a_rule_50_count_ends_in_every_format() {
        let game = game("8/5k2/8/8/8/2K5/4R3/8 w - - 37 80", "");
        for format in FORMATS {
            let planes = encode(format, HistoryFill::FenOnly, &game);
            let v2 = format.is_v2();
            assert_eq!(slots(&planes), if v2 { 1 } else { 8 }, "{format:?}");
        }
    }

    #[test]
    fn fill_options_differ_on_the_start_position_only_as_named() {
        let start = Game::default();
        let fen = game("4k3/8/8/8/8/8/4P3/4K3 w - - 5 10", "");
        let count = |fill, game: &Game| slots(&encode(InputFormat::Classical, fill, game));
        assert_eq!(count(HistoryFill::No, &start), 1);
        assert_eq!(count(HistoryFill::FenOnly, &start), 1);
        assert_eq!(count(HistoryFill::Always, &start), 8);
        assert_eq!(count(HistoryFill::No, &fen), 1);
        assert_eq!(count(HistoryFill::FenOnly, &fen), 8);
    }

    #[test]
    fn the_pawn_of_an_en_passant_fen_goes_back_before_its_push() {
        let game = game("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 10", "");
        for (fill, expected) in [(HistoryFill::No, 2), (HistoryFill::FenOnly, 8)] {
            let planes = encode(InputFormat::Classical, fill, &game);
            assert_eq!(slots(&planes), expected);
            assert_eq!(planes.masks[6], 1 << 35);
            assert_eq!(planes.masks[PER_POSITION + 6], 1 << 51);
        }
        let planes = encode(InputFormat::Canonical, HistoryFill::FenOnly, &game);
        assert_eq!(slots(&planes), 1);
        assert_eq!(planes.masks[AUX + 4], 1 << 59);
    }

    #[test]
    fn a_colour_flipped_position_looks_the_same_to_its_mover() {
        let white = game("r3k2r/pp3ppp/8/3pP3/8/2N5/PP3PPP/R3K2R w KQq d6 0 10", "");
        let black = game("r3k2r/pp3ppp/2n5/8/3Pp3/8/PP3PPP/R3K2R b Qkq d3 0 10", "");
        for format in FORMATS {
            if format == InputFormat::CanonicalHectoplies
                || format.is_v2()
                || format == InputFormat::Canonical
            {
                let a = encode(format, HistoryFill::FenOnly, &white);
                let mut b = encode(format, HistoryFill::FenOnly, &black);
                if format.is_armageddon() {
                    b.masks[AUX + 6] = 0;
                }
                assert_eq!(a, b, "{format:?}");
            }
        }
    }

    #[test]
    fn numbers_agree_with_the_bitboards() {
        let game = game("8/5k2/8/8/8/2K5/4R3/8 w - - 37 80", "");
        let planes = encode(InputFormat::Classical, HistoryFill::FenOnly, &game);
        let mut out = [f32::NAN; PLANES * SQUARES];
        planes.write(&mut out);
        for plane in 0..PLANES {
            for square in 0..SQUARES {
                let bit = (planes.masks[plane] >> square & 1) as f32;
                let expected = if plane == RULE50_PLANE { 37.0 } else { bit };
                assert_eq!(out[plane * SQUARES + square], expected);
            }
        }
    }
}
