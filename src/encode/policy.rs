//! Moves ↔ the 1858 policy indices, and where the attention and convolution policies keep each of
//! them. Knows squares as numbers; nothing of tensors.

use std::sync::LazyLock;

/// Number of policy indices.
pub const POLICY_SIZE: usize = 1858;
/// Outputs of an attention policy: `[64 from, 64 to]`, then `[8 from-file, 8 to-file, 3]`.
pub const ATTENTION_OUTPUTS: usize = 64 * 64 + 8 * 8 * 3;
/// Outputs of a convolution policy: `[80 planes, 64 from]`.
pub const CONVOLUTION_OUTPUTS: usize = 80 * 64;

const PLAIN: u16 = 1792;
const NONE: u16 = u16::MAX;

/// Piece a promoting pawn becomes where the index tells it apart; a knight promotion is the plain pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// To a queen.
    Queen,
    /// To a rook.
    Rook,
    /// To a bishop.
    Bishop,
}

/// What a policy index means: squares as the mover sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedMove {
    /// Origin, a1 = 0.
    pub from: u8,
    /// Destination; the rook's square when castling.
    pub to: u8,
    /// Promotion to a queen, rook or bishop.
    pub promotion: Option<Promotion>,
}

struct Tables {
    by_pair: [u16; 64 * 64],
    moves: Vec<IndexedMove>,
    attention: Vec<u16>,
    convolution: Vec<u16>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::build);

/// Which of a network's policy outputs belongs to each policy index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyMap {
    /// The outputs are the 1858 indices.
    Flat,
    /// From-square × to-square, then promotions.
    Attention,
    /// Move-kind planes × from-square.
    Convolution,
}

impl PolicyMap {
    /// Number of outputs of a network with this kind of policy.
    pub fn outputs(self) -> usize {
        match self {
            PolicyMap::Flat => POLICY_SIZE,
            PolicyMap::Attention => ATTENTION_OUTPUTS,
            PolicyMap::Convolution => CONVOLUTION_OUTPUTS,
        }
    }

    /// The output that holds the logit of policy index `index` (below 1858).
    pub fn output(self, index: u16) -> usize {
        match self {
            PolicyMap::Flat => usize::from(index),
            PolicyMap::Attention => usize::from(TABLES.attention[usize::from(index)]),
            PolicyMap::Convolution => usize::from(TABLES.convolution[usize::from(index)]),
        }
    }
}

/// The policy index of a move given in the mover's view, `None` for a pair of squares no piece could
/// travel between.
pub fn policy_index(m: IndexedMove) -> Option<u16> {
    let Some(promotion) = m.promotion else {
        let index = TABLES.by_pair[usize::from(m.from) * 64 + usize::from(m.to)];
        return (index != NONE).then_some(index);
    };
    let (from, to) = (u16::from(m.from & 7), u16::from(m.to & 7));
    if m.from >> 3 != 6 || m.to >> 3 != 7 || from.abs_diff(to) > 1 {
        return None;
    }
    // From-file a has two targets, every other three (h two, but nothing follows it).
    let pair = if from == 0 {
        to
    } else {
        3 * from - 1 + (to + 1 - from)
    };
    let piece = match promotion {
        Promotion::Queen => 0,
        Promotion::Rook => 1,
        Promotion::Bishop => 2,
    };
    Some(PLAIN + 3 * pair + piece)
}

/// The move a policy index stands for, `None` from 1858 on.
pub fn indexed_move(index: u16) -> Option<IndexedMove> {
    TABLES.moves.get(usize::from(index)).copied()
}

/// Whether a queen or a knight on `from` reaches `to` on an empty board.
pub fn reachable(from: u8, to: u8) -> bool {
    let file = (from & 7).abs_diff(to & 7);
    let rank = (from >> 3).abs_diff(to >> 3);
    from != to && (file == 0 || rank == 0 || file == rank || file * rank == 2)
}

impl Tables {
    fn build() -> Tables {
        let mut by_pair = [NONE; 64 * 64];
        let mut moves = Vec::with_capacity(POLICY_SIZE);
        for from in 0..64u8 {
            for to in (0..64u8).filter(|&to| reachable(from, to)) {
                by_pair[usize::from(from) * 64 + usize::from(to)] = moves.len() as u16;
                moves.push(IndexedMove {
                    from,
                    to,
                    promotion: None,
                });
            }
        }
        for from in 48..56u8 {
            for to in (56..64u8).filter(|to| (from & 7).abs_diff(to & 7) <= 1) {
                for promotion in [Promotion::Queen, Promotion::Rook, Promotion::Bishop] {
                    moves.push(IndexedMove {
                        from,
                        to,
                        promotion: Some(promotion),
                    });
                }
            }
        }
        let attention = moves.iter().map(|m| attention_output(*m)).collect();
        let convolution = moves.iter().map(|m| convolution_output(*m)).collect();
        Tables {
            by_pair,
            moves,
            attention,
            convolution,
        }
    }
}

fn attention_output(m: IndexedMove) -> u16 {
    let (from, to) = (u16::from(m.from), u16::from(m.to));
    let Some(promotion) = m.promotion else {
        return from * 64 + to;
    };
    let piece = match promotion {
        Promotion::Queen => 0,
        Promotion::Rook => 1,
        Promotion::Bishop => 2,
    };
    64 * 64 + ((from & 7) * 8 + (to & 7)) * 3 + piece
}

fn convolution_output(m: IndexedMove) -> u16 {
    const DIRECTIONS: [(i8, i8); 8] = [
        (0, 1),
        (1, 1),
        (1, 0),
        (1, -1),
        (0, -1),
        (-1, -1),
        (-1, 0),
        (-1, 1),
    ];
    const KNIGHT: [(i8, i8); 8] = [
        (1, 2),
        (2, 1),
        (2, -1),
        (1, -2),
        (-1, -2),
        (-2, -1),
        (-2, 1),
        (-1, 2),
    ];
    let file = (m.to & 7) as i8 - (m.from & 7) as i8;
    let rank = (m.to >> 3) as i8 - (m.from >> 3) as i8;
    let plane = if let Some(promotion) = m.promotion {
        let piece = match promotion {
            Promotion::Rook => 0,
            Promotion::Bishop => 1,
            Promotion::Queen => 2,
        };
        64 + 3 * (file + 1) as usize + piece
    } else if let Some(jump) = KNIGHT.iter().position(|&step| step == (file, rank)) {
        56 + jump
    } else {
        let step = (file.signum(), rank.signum());
        let direction = DIRECTIONS
            .iter()
            .position(|&d| d == step)
            .unwrap_or_default();
        7 * direction + file.abs().max(rank.abs()) as usize - 1
    };
    (plane * 64) as u16 + u16::from(m.from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_move_are_inverse() {
        assert_eq!(TABLES.moves.len(), POLICY_SIZE);
        for index in 0..POLICY_SIZE as u16 {
            let m = indexed_move(index).unwrap();
            assert_eq!(policy_index(m), Some(index), "{m:?}");
        }
        assert_eq!(indexed_move(POLICY_SIZE as u16), None);
    }

    #[test]
    fn maps_are_injective_and_inside_the_outputs() {
        for map in [
            PolicyMap::Flat,
            PolicyMap::Attention,
            PolicyMap::Convolution,
        ] {
            let mut seen = vec![false; map.outputs()];
            for index in 0..POLICY_SIZE as u16 {
                assert!(
                    !std::mem::replace(&mut seen[map.output(index)], true),
                    "{map:?} {index}"
                );
            }
        }
    }

    #[test]
    fn convolution_promotions_stand_where_the_specification_says() {
        let at = |plane: usize, from: usize| {
            (0..POLICY_SIZE as u16)
                .find(|&i| PolicyMap::Convolution.output(i) == plane * 64 + from)
                .unwrap()
        };
        assert_eq!(at(64, 49), PLAIN + 7);
        assert_eq!(at(66, 49), PLAIN + 6);
    }

    #[test]
    fn unreachable_pairs_have_no_index() {
        let m = |from, to, promotion| IndexedMove {
            from,
            to,
            promotion,
        };
        assert_eq!(policy_index(m(0, 0, None)), None);
        assert_eq!(policy_index(m(0, 11, None)), None);
        assert_eq!(policy_index(m(0, 1, Some(Promotion::Queen))), None);
    }
}
