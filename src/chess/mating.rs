//! Moves that mate at once, found without making every move. Knows no search.

use shakmaty::{Bitboard, Board, Color, Position as _, Role, attacks};

use super::moves::Move;
use super::position::Position;

impl Position {
    /// The first of the legal `moves` that mates. Only moves that can give check are tried: those that
    /// attack the king from where they land, uncover an attack, castle or take en passant.
    pub fn mating_move(&self, moves: &[Move]) -> Option<Move> {
        let board = self.board();
        let mover = self.turn();
        let king = board.king_of(!mover)?;
        let occupied = board.occupied();
        let knights = attacks::knight_attacks(king);
        let bishops = attacks::bishop_attacks(king, occupied);
        let rooks = attacks::rook_attacks(king, occupied);
        let pawns = attacks::pawn_attacks(!mover, king);
        let uncovering = uncovering(board, mover, king);
        let can_check = |m: &Move| {
            if uncovering.contains(m.from()) {
                return true;
            }
            if let Some(role) = m.promotion() {
                let occupied = occupied.without(m.from());
                return attacks::attacks(m.to(), role.of(mover), occupied).contains(king);
            }
            match board.role_at(m.from()) {
                Some(Role::Pawn) => pawns.contains(m.to()) || self.takes_en_passant(*m),
                Some(Role::Knight) => knights.contains(m.to()),
                Some(Role::Bishop) => bishops.contains(m.to()),
                Some(Role::Rook) => rooks.contains(m.to()),
                Some(Role::Queen) => (bishops | rooks).contains(m.to()),
                Some(Role::King) => self.is_castling(*m),
                None => false,
            }
        };
        moves.iter().copied().filter(can_check).find(|&m| {
            self.to_shakmaty(m).is_some_and(|played| {
                let mut after = self.inner().clone();
                after.play_unchecked(played);
                after.is_checkmate()
            })
        })
    }

    fn takes_en_passant(&self, m: Move) -> bool {
        m.from().file() != m.to().file() && !self.board().occupied().contains(m.to())
    }
}

/// Pieces of `mover` that alone stand between one of its bishops, rooks or queens and the king.
fn uncovering(board: &Board, mover: Color, king: shakmaty::Square) -> Bitboard {
    let own = board.by_color(mover);
    let snipers = attacks::rook_attacks(king, Bitboard::EMPTY) & board.rooks_and_queens()
        | attacks::bishop_attacks(king, Bitboard::EMPTY) & board.bishops_and_queens();
    let mut found = Bitboard::EMPTY;
    for sniper in snipers & own {
        let between = attacks::between(king, sniper) & board.occupied();
        if between.count() == 1 {
            found |= between & own;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn by_playing(position: &Position) -> Vec<Move> {
        let mates = |m: &&Move| {
            let mut after = position.clone();
            after.play(**m);
            after.is_check() && after.legal_moves().is_empty()
        };
        position
            .legal_moves()
            .iter()
            .filter(mates)
            .copied()
            .collect()
    }

    fn check(position: &Position) -> bool {
        let mates = by_playing(position);
        let found = position.mating_move(&position.legal_moves());
        assert_eq!(found, mates.first().copied(), "{}", position.to_fen(true));
        found.is_some()
    }

    #[test]
    fn every_kind_of_mate_is_seen() {
        for (fen, mate) in [
            ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "a1a8"),
            ("6rk/6pp/8/6N1/8/8/8/6K1 w - - 0 1", "g5f7"),
            ("7k/5P1p/6pP/8/8/8/8/K6B w - - 0 1", "f7f8q"),
            ("8/8/8/8/8/6k1/4p3/7K b - - 0 1", "e2e1q"),
        ] {
            let position = Position::from_fen(fen).unwrap().0;
            check(&position);
            let found = position.mating_move(&position.legal_moves());
            let text = found.map_or(String::new(), |m| position.move_to_uci(m, false));
            assert_eq!(text, mate, "{fen}");
        }
    }

    #[test]
    fn the_answer_is_that_of_playing_every_move() {
        let mut random = StdRng::seed_from_u64(5);
        let mut seen = 0;
        for _ in 0..150 {
            let mut position = Position::startpos();
            for _ in 0..random.random_range(20..250) {
                seen += u32::from(check(&position));
                let moves = position.legal_moves();
                let Some(&m) = moves.choose(&mut random) else {
                    break;
                };
                position.play(m);
            }
        }
        assert!(seen > 100, "{seen} mates only");
    }
}
