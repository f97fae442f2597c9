//! Board turns of the canonical input formats: which symmetry brings a position into its canonical
//! orientation, and how it moves squares and bitboards. Knows nothing of planes or networks.

/// A board symmetry: mirror files, then mirror ranks, then reflect across the h1–a8 diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Swap file a with file h.
    pub mirror_files: bool,
    /// Swap rank 1 with rank 8.
    pub mirror_ranks: bool,
    /// Send (rank r, file f) to (7 − f, 7 − r).
    pub reflect: bool,
}

/// Piece sets of a position as its mover sees them (own back rank first), a1 = bit 0.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    /// All pieces of the mover.
    pub own: u64,
    /// All pieces of the opponent.
    pub theirs: u64,
    /// Pawns, knights, bishops, rooks, queens, kings of both colours together.
    pub roles: [u64; 6],
}

impl Turn {
    /// The position stays as it is.
    pub const NONE: Turn = Turn {
        mirror_files: false,
        mirror_ranks: false,
        reflect: false,
    };

    /// The turn that brings `pieces` (without any castling rights) into canonical orientation: own king
    /// on files e–h; without pawns also on ranks 1–4 and on or below the h1–a8 diagonal.
    pub fn canonical(pieces: &Pieces) -> Turn {
        let mut turn = Turn::NONE;
        let king = pieces.own & pieces.roles[5];
        turn.mirror_files = king & 0x0f0f_0f0f_0f0f_0f0f != 0;
        if pieces.roles[0] != 0 {
            return turn;
        }
        turn.mirror_ranks = king & 0xffff_ffff_0000_0000 != 0;
        let king = turn.apply(king);
        if king & 0xe0c0_8000 != 0 {
            turn.reflect = true;
        } else if king & 0x1020_4080 != 0 {
            let [_, knights, bishops, rooks, queens, kings] = pieces.roles;
            let all = pieces.own | pieces.theirs;
            for set in [all, pieces.own, kings, queens, rooks, knights, bishops] {
                let plain = turn.apply(set);
                let reflected = reflect(plain);
                if plain != reflected {
                    turn.reflect = reflected < plain;
                    break;
                }
            }
        }
        turn
    }

    /// The bitboard after the turn.
    pub fn apply(self, mut set: u64) -> u64 {
        if self.mirror_files {
            set = mirror_files(set);
        }
        if self.mirror_ranks {
            set = set.swap_bytes();
        }
        if self.reflect {
            set = reflect(set);
        }
        set
    }

    /// Where the turn sends `square` (a1 = 0, h8 = 63).
    pub fn square(self, mut square: u8) -> u8 {
        if self.mirror_files {
            square ^= 7;
        }
        if self.mirror_ranks {
            square ^= 56;
        }
        if self.reflect {
            let (rank, file) = (square >> 3, square & 7);
            square = (7 - file) * 8 + (7 - rank);
        }
        square
    }
}

/// Reverses the files within every rank.
fn mirror_files(mut set: u64) -> u64 {
    set = ((set >> 1) & 0x5555_5555_5555_5555) | ((set & 0x5555_5555_5555_5555) << 1);
    set = ((set >> 2) & 0x3333_3333_3333_3333) | ((set & 0x3333_3333_3333_3333) << 2);
    ((set >> 4) & 0x0f0f_0f0f_0f0f_0f0f) | ((set & 0x0f0f_0f0f_0f0f_0f0f) << 4)
}

/// Sends (rank r, file f) to (7 − f, 7 − r) by swapping ever smaller blocks across the h1–a8 diagonal.
fn reflect(mut set: u64) -> u64 {
    let swap = set ^ (set << 36);
    set ^= 0xf0f0_f0f0_0f0f_0f0f & (swap ^ (set >> 36));
    let swap = 0xcccc_0000_cccc_0000 & (set ^ (set << 18));
    set ^= swap ^ (swap >> 18);
    let swap = 0xaa00_aa00_aa00_aa00 & (set ^ (set << 9));
    set ^ swap ^ (swap >> 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_turns() -> impl Iterator<Item = Turn> {
        (0..8).map(|i| Turn {
            mirror_files: i & 1 != 0,
            mirror_ranks: i & 2 != 0,
            reflect: i & 4 != 0,
        })
    }

    #[test]
    fn bitboards_turn_as_their_squares_do() {
        for turn in all_turns() {
            for square in 0..64u8 {
                assert_eq!(
                    turn.apply(1 << square),
                    1 << turn.square(square),
                    "{turn:?} {square}"
                );
            }
        }
    }

    #[test]
    fn reflection_keeps_the_long_diagonal_and_swaps_a1_with_h8() {
        let turn = Turn {
            reflect: true,
            ..Turn::NONE
        };
        assert_eq!(turn.square(7), 7);
        assert_eq!(turn.square(56), 56);
        assert_eq!(turn.square(0), 63);
    }
}
