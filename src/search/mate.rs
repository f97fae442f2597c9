//! Is there a mate in so many moves? Full width, apart from the tree: slow but certain. Knows no
//! values, no clock and no threads.

use crate::chess::{Game, Move, Position};

use super::root::RootFilter;

/// Longer mates are left to the tree.
const MOST_MOVES: u32 = 64;

/// What is known for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mate {
    /// The shortest mate with a longest defence.
    Found(Vec<Move>),
    /// There is none.
    Refuted,
}

/// Looks for the shortest mate in at most `moves` moves by the side to move, with an allowed first
/// move. `None` when `stop` said so first or the mate would be too long to look for.
pub fn solve(
    game: &Game,
    moves: u32,
    filter: &RootFilter,
    stop: impl Fn() -> bool,
) -> Option<Mate> {
    let mut keys: Vec<u64> = game.positions().iter().map(Position::key).collect();
    keys.sort_unstable();
    let mut solver = Solver { keys, stop };
    for length in 1..=moves.min(MOST_MOVES) {
        let line = solver.line(game.current(), length, |m| filter.allows(m))?;
        if !line.is_empty() {
            return Some(Mate::Found(line));
        }
    }
    (moves <= MOST_MOVES).then_some(Mate::Refuted)
}

struct Solver<S> {
    /// Positions of the game, in order of their numbers.
    keys: Vec<u64>,
    stop: S,
}

impl<S: Fn() -> bool> Solver<S> {
    /// The line of a mate in at most `length` moves with a longest defence; empty where there is
    /// none, `None` when stopped.
    fn line(
        &mut self,
        position: &Position,
        length: u32,
        allowed: impl Fn(Move) -> bool,
    ) -> Option<Vec<Move>> {
        if (self.stop)() {
            return None;
        }
        for m in position
            .legal_moves()
            .iter()
            .copied()
            .filter(|m| allowed(*m))
        {
            let mut after = position.clone();
            after.play(m);
            if let Some(mut line) = self.defence(&after, length - 1)? {
                line.insert(0, m);
                return Some(line);
            }
        }
        Some(Vec::new())
    }

    /// The longest line until mate with the defender to move, in at most `left` more moves of the
    /// attacker; `Some(None)` where it can be avoided.
    fn defence(&mut self, position: &Position, left: u32) -> Option<Option<Vec<Move>>> {
        if left == 0 && !position.is_check() {
            return Some(None);
        }
        let replies = position.legal_moves();
        if replies.is_empty() {
            return Some(position.is_check().then(Vec::new));
        }
        if left == 0 || self.is_draw(position) {
            return Some(None);
        }
        let mut longest = Vec::new();
        for &reply in replies.iter() {
            let mut after = position.clone();
            after.play(reply);
            if self.is_draw(&after) {
                return Some(None);
            }
            let mut line = Vec::new();
            for length in 1..=left {
                line = self.line(&after, length, |_| true)?;
                if !line.is_empty() {
                    break;
                }
            }
            if line.is_empty() {
                return Some(None);
            }
            if line.len() >= longest.len() {
                line.insert(0, reply);
                longest = line;
            }
        }
        Some(Some(longest))
    }

    /// A draw by what may be claimed; the shortest mate repeats only what happened before it.
    fn is_draw(&self, position: &Position) -> bool {
        let key = position.key();
        let first = self.keys.partition_point(|&other| other < key);
        let before = self.keys[first..].iter().take_while(|&&other| other == key);
        position.rule50() >= 100 || before.count() >= 2
    }
}
