//! What a search hands to a backend: a position with its history, legal moves and path from the
//! root. Knows nothing of trees.

use std::sync::Arc;

use crate::chess::{Game, Move, Position};

/// A position to evaluate. The path lets a backend share work between leaves of one root.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The game up to the root of the search.
    pub root: Arc<Game>,
    /// Moves from the root to this leaf.
    pub path: Vec<Move>,
    /// The position after them.
    pub position: Position,
    /// Its legal moves; the policy comes back in this order.
    pub moves: Vec<Move>,
    /// How often the position occurred earlier, in the game or on the path.
    pub repetitions: u8,
}

impl Leaf {
    /// The current position of a game as a leaf of its own.
    pub fn of_game(root: Arc<Game>) -> Leaf {
        let position = root.current().clone();
        Leaf {
            path: Vec::new(),
            moves: position.legal_moves().to_vec(),
            repetitions: root.repetitions(),
            position,
            root,
        }
    }

    /// All positions up to this one, replayed along the path.
    pub fn history(&self) -> History<'_> {
        let mut positions: Vec<Position> = Vec::with_capacity(self.path.len());
        let mut repeated = Vec::with_capacity(self.path.len());
        for &m in &self.path {
            let mut next = positions
                .last()
                .unwrap_or_else(|| self.root.current())
                .clone();
            next.play(m);
            repeated.push(self.occurred_before(&positions, &next));
            positions.push(next);
        }
        History {
            root: &self.root,
            positions,
            repeated,
        }
    }

    fn occurred_before(&self, path: &[Position], next: &Position) -> bool {
        path.iter()
            .rev()
            .chain(self.root.positions().iter().rev())
            .take(next.rule50() as usize)
            .skip(1)
            .step_by(2)
            .any(|past| past == next)
    }
}

/// The positions of a game and a path behind it, counted back from the current one.
#[derive(Debug)]
pub struct History<'a> {
    root: &'a Game,
    positions: Vec<Position>,
    repeated: Vec<bool>,
}

impl History<'_> {
    /// How many positions there are, the current one included; at least 1.
    pub fn len(&self) -> usize {
        self.positions.len() + self.root.positions().len()
    }

    /// Never true: the current position is always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The position `back` plies ago (0 = current) and whether it had occurred before it then.
    pub fn get(&self, back: usize) -> Option<(&Position, bool)> {
        if let Some(index) = self.positions.len().checked_sub(back + 1) {
            return Some((&self.positions[index], self.repeated[index]));
        }
        let index = self.len().checked_sub(back + 1)?;
        Some((&self.root.positions()[index], self.root.repeated(index)))
    }

    /// True when the game began from the start position of standard chess.
    pub fn starts_from_startpos(&self) -> bool {
        self.root.starts_from_startpos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_the_same_however_it_is_split() {
        let moves = [
            "g1f3", "g8f6", "f3g1", "f6g8", "e2e4", "e7e5", "g1f3", "b8c6",
        ];
        let mut whole = Game::default();
        for text in moves {
            let m = whole.current().parse_uci(text).unwrap();
            whole.play(m);
        }
        for split in 0..=moves.len() {
            let mut root = Game::default();
            for &m in &whole.moves()[..split] {
                root.play(m);
            }
            let mut leaf = Leaf::of_game(Arc::new(root));
            leaf.path = whole.moves()[split..].to_vec();
            let history = leaf.history();
            assert_eq!(history.len(), whole.positions().len());
            for back in 0..history.len() {
                let index = history.len() - 1 - back;
                let (position, repeated) = history.get(back).unwrap();
                assert_eq!(*position, whole.positions()[index]);
                assert_eq!(repeated, whole.repeated(index), "{split} {back}");
            }
            assert!(history.get(history.len()).is_none());
        }
        assert!(whole.repeated(4));
    }
}
