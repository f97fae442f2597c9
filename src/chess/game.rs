//! A game: the start position and everything played since, with repetitions. Knows no notation.

use super::moves::Move;
use super::position::Position;

/// A start position and the moves played from it. All positions are kept, oldest first.
#[derive(Clone, Debug)]
pub struct Game {
    positions: Vec<Position>,
    repetitions: Vec<u8>,
    moves: Vec<Move>,
}

impl Default for Game {
    fn default() -> Game {
        Game::new(Position::startpos())
    }
}

impl Game {
    /// A game without moves.
    pub fn new(start: Position) -> Game {
        Game {
            positions: vec![start],
            repetitions: vec![0],
            moves: Vec::new(),
        }
    }

    /// The position the game began with.
    pub fn start(&self) -> &Position {
        &self.positions[0]
    }

    /// The position after the last move.
    pub fn current(&self) -> &Position {
        &self.positions[self.positions.len() - 1]
    }

    /// All positions, oldest first; one more than [`Game::moves`].
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// The moves played, oldest first.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Plays a legal move.
    pub fn play(&mut self, m: Move) {
        let mut next = self.current().clone();
        next.play(m);
        let count = count_earlier(&self.positions, &next);
        self.positions.push(next);
        self.repetitions.push(count);
        self.moves.push(m);
    }

    /// How often position `index` occurred earlier in the game.
    pub fn repetitions_at(&self, index: usize) -> u8 {
        self.repetitions.get(index).copied().unwrap_or(0)
    }

    /// True when position `index` occurred earlier in the game.
    pub fn repeated(&self, index: usize) -> bool {
        self.repetitions_at(index) > 0
    }

    /// How often the current position occurred earlier in the game.
    pub fn repetitions(&self) -> u8 {
        self.repetitions_at(self.positions.len() - 1)
    }

    /// True when the game began from the start position of standard chess, counters ignored.
    pub fn starts_from_startpos(&self) -> bool {
        *self.start() == Position::startpos()
    }

    /// True when `other` began alike and continues with more (or no more) moves.
    pub fn is_prefix_of(&self, other: &Game) -> bool {
        self.start() == other.start()
            && self.start().rule50() == other.start().rule50()
            && other.moves.starts_with(&self.moves)
    }
}

/// How often `next` occurs among `earlier` (oldest first), which it follows directly.
pub(super) fn count_earlier(earlier: &[Position], next: &Position) -> u8 {
    let reach = next.rule50() as usize;
    let count = earlier
        .iter()
        .rev()
        .take(reach)
        .skip(1)
        .step_by(2)
        .filter(|past| *past == next)
        .count();
    count.min(usize::from(u8::MAX)) as u8
}
