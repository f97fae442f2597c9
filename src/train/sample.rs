//! One position of a stored game as the trainer wants it: with history, legal moves and targets.
//! Knows no file and no tensor.

use std::sync::Arc;

use super::record::{GameRecord, Ply, PolicyLabel};
use crate::chess::{Color, Game, GameResult, Move, MoveList, Position};
use crate::eval::{Leaf, Wdl};

/// Scores from here on (±) are mates: mate in n moves is `MATE_CP` − n.
pub const MATE_CP: i16 = 32_000;

/// Centipawns by which the odds of the expected score grow e-fold. Far flatter than Stockfish's own
/// WDL (80 fits that best), so that moves of won and lost positions are still told apart.
const LOGISTIC_CP: f32 = 250.0;

/// The expected score in 0..=1 of a centipawn score, both of the same side.
pub fn win_probability(cp: i16) -> f32 {
    1.0 / (1.0 + (-f32::from(cp) / LOGISTIC_CP).exp())
}

/// A stored game with its positions.
#[derive(Clone, Debug)]
pub struct TrainingGame {
    record: GameRecord,
    game: Game,
}

/// A position of a stored game. Cheap to clone: the game is shared.
#[derive(Clone, Debug)]
pub struct Sample {
    game: Arc<TrainingGame>,
    ply: usize,
}

impl TrainingGame {
    /// Plays the moves of a record, which must be legal ([`GameRecord::check`]).
    pub fn new(record: GameRecord) -> TrainingGame {
        let mut game = Game::new(record.start.clone());
        for ply in &record.plies {
            game.play(ply.played);
        }
        TrainingGame { record, game }
    }

    /// What was stored.
    pub fn record(&self) -> &GameRecord {
        &self.record
    }

    /// Positions, repetitions and moves; one position more than plies.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// The positions that have labels, in order.
    pub fn samples(self: &Arc<Self>) -> impl Iterator<Item = Sample> {
        let plies = self.record.plies.iter().enumerate();
        let labelled = plies.filter(|(_, ply)| ply.is_labelled());
        labelled.map(|(ply, _)| Sample {
            game: Arc::clone(self),
            ply,
        })
    }
}

impl Sample {
    /// The position before ply `ply` (from 0); `None` past the last one.
    pub fn new(game: Arc<TrainingGame>, ply: usize) -> Option<Sample> {
        (ply < game.record.plies.len()).then_some(Sample { game, ply })
    }

    /// The game it is from.
    pub fn game(&self) -> &Arc<TrainingGame> {
        &self.game
    }

    /// Its number in the game, from 0.
    pub fn ply(&self) -> usize {
        self.ply
    }

    /// What is stored of it.
    pub fn label(&self) -> &Ply {
        &self.game.record.plies[self.ply]
    }

    /// The position.
    pub fn position(&self) -> &Position {
        &self.game.game.positions()[self.ply]
    }

    /// The position `back` plies ago (0 = this one) and whether it had occurred before it then;
    /// `None` before the first one. Made for [`crate::encode::InputPlanes::encode`].
    pub fn history(&self, back: usize) -> Option<(&Position, bool)> {
        let index = self.ply.checked_sub(back)?;
        let game = &self.game.game;
        Some((&game.positions()[index], game.repeated(index)))
    }

    /// How often the position had occurred earlier in the game.
    pub fn repetitions(&self) -> u8 {
        self.game.game.repetitions_at(self.ply)
    }

    /// Legal moves in the order of the move generator.
    pub fn legal_moves(&self) -> MoveList {
        self.position().legal_moves()
    }

    /// The same as a search would hand it to a backend. Copies the game up to here.
    pub fn leaf(&self) -> Leaf {
        let mut game = Game::new(self.game.game.start().clone());
        for &m in &self.game.game.moves()[..self.ply] {
            game.play(m);
        }
        Leaf::of_game(Arc::new(game))
    }

    /// The teacher's choice.
    pub fn best_move(&self) -> Option<Move> {
        self.label().policy.best()
    }

    /// Probabilities of the moves that the label names; they sum to one, other legal moves have
    /// none. Empty without a policy label.
    ///
    /// Scores: p ∝ exp(e / `temperature`) with e = [`win_probability`]; a move listed later never
    /// counts for more than those before it, because its score may come from a shallower search.
    /// Visits: p ∝ n, whatever the temperature.
    pub fn policy_target(&self, temperature: f32) -> Vec<(Move, f32)> {
        let mut target: Vec<(Move, f32)> = match &self.label().policy {
            PolicyLabel::None => return Vec::new(),
            PolicyLabel::Scores(scores) => {
                let best = scores.first().map_or(0.0, |&(_, cp)| win_probability(cp));
                let mut least = best;
                let weigh = |&(m, cp): &(Move, i16)| {
                    least = win_probability(cp).min(least);
                    (m, ((least - best) / temperature).exp())
                };
                scores.iter().map(weigh).collect()
            }
            PolicyLabel::Visits(visits) => visits.iter().map(|&(m, n)| (m, n as f32)).collect(),
        };
        let sum: f32 = target.iter().map(|(_, p)| p).sum();
        if sum <= 0.0 {
            return Vec::new();
        }
        target.iter_mut().for_each(|(_, p)| *p /= sum);
        target
    }

    /// The teacher's value, from the side to move.
    pub fn wdl(&self) -> Option<Wdl> {
        let label = self.label().wdl?;
        Some(Wdl {
            win: f32::from(label.win()) / 1000.0,
            draw: f32::from(label.draw()) / 1000.0,
            loss: f32::from(label.loss()) / 1000.0,
        })
    }

    /// The game's result as a certainty, from the side to move; `None` if it is not known.
    pub fn result(&self) -> Option<Wdl> {
        let white = match self.game.record.result {
            GameResult::Unknown => return None,
            GameResult::Draw => return Some(Wdl::DRAW),
            GameResult::WhiteWins => Wdl::from_q_d(1.0, 0.0),
            GameResult::BlackWins => Wdl::from_q_d(-1.0, 0.0),
        };
        Some(match self.position().turn() {
            Color::White => white,
            Color::Black => white.flip(),
        })
    }

    /// Plies from here to the end of the game, this one included; at least 1. A game that was
    /// adjudicated ends there.
    pub fn plies_left(&self) -> u32 {
        (self.game.record.plies.len() - self.ply) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{Source, WdlLabel};

    /// The moves of a game, each with the mover's W 600 D 300 L 100 and the label given.
    fn samples(moves: &str, label: impl Fn(&Position) -> PolicyLabel) -> Vec<Sample> {
        let mut record = GameRecord::new(Position::startpos(), Source::Labels);
        record.result = GameResult::WhiteWins;
        let mut position = Position::startpos();
        for text in moves.split_whitespace() {
            let played = position.parse_uci(text).unwrap();
            record.plies.push(Ply {
                played,
                wdl: WdlLabel::new(600, 300, 100),
                policy: label(&position),
            });
            position.play(played);
        }
        Arc::new(TrainingGame::new(record)).samples().collect()
    }

    fn scores(position: &Position, scores: &[(&str, i16)]) -> PolicyLabel {
        let read = |&(text, cp): &(&str, i16)| (position.parse_uci(text).unwrap(), cp);
        PolicyLabel::Scores(scores.iter().map(read).collect())
    }

    #[test]
    fn values_are_the_movers() {
        let samples = samples("e2e4 e7e5 g1f3", |_| PolicyLabel::None);
        let wdl = Wdl {
            win: 0.6,
            draw: 0.3,
            loss: 0.1,
        };
        for (ply, sample) in samples.iter().enumerate() {
            assert_eq!(sample.wdl(), Some(wdl));
            let q = if ply % 2 == 0 { 1.0 } else { -1.0 };
            assert_eq!(sample.result().unwrap().q(), q);
            assert_eq!(sample.plies_left(), 3 - ply as u32);
        }
    }

    #[test]
    fn history_is_that_of_the_leaf() {
        let samples = samples("g1f3 g8f6 f3g1 f6g8 e2e4 e7e5 g1f3 b8c6", |_| {
            PolicyLabel::None
        });
        assert_eq!(samples.len(), 8);
        for sample in &samples {
            let leaf = sample.leaf();
            assert_eq!(leaf.repetitions, sample.repetitions());
            assert_eq!(leaf.moves[..], sample.legal_moves()[..]);
            let history = leaf.history();
            for back in 0..=sample.ply() + 1 {
                assert_eq!(history.get(back), sample.history(back), "{back}");
            }
        }
        assert_eq!(samples[4].repetitions(), 1);
        assert_eq!(
            samples[4].history(0).map(|(_, repeated)| repeated),
            Some(true)
        );
    }

    #[test]
    fn scores_become_probabilities_that_never_rise() {
        let label = |p: &Position| {
            scores(
                p,
                &[("e2e4", 30), ("d2d4", 20), ("c2c4", 90), ("a2a4", -31_990)],
            )
        };
        let sample = &samples("e2e4", label)[0];
        let target = sample.policy_target(0.05);
        let sum: f32 = target.iter().map(|(_, p)| p).sum();
        assert!((sum - 1.0).abs() < 1e-6);
        assert!(target[0].1 > target[1].1);
        assert_eq!(target[1].1, target[2].1);
        let expected = ((win_probability(20) - win_probability(30)) / 0.05).exp();
        assert!((target[1].1 / target[0].1 - expected).abs() < 1e-6);
        assert!(target[3].1 < 1e-4 && target[3].1 >= 0.0);
        assert_eq!(sample.best_move(), Some(target[0].0));
        // Half the temperature, twice the logarithm.
        let colder = sample.policy_target(0.025);
        let (a, b) = (target[1].1 / target[0].1, colder[1].1 / colder[0].1);
        assert!((a * a - b).abs() < 1e-6);
    }

    #[test]
    fn visits_become_shares() {
        let label = |p: &Position| {
            let m = |text| p.parse_uci(text).unwrap();
            PolicyLabel::Visits(vec![(m("e2e4"), 300), (m("d2d4"), 100), (m("a2a3"), 0)])
        };
        let sample = &samples("e2e4", label)[0];
        let shares: Vec<f32> = sample.policy_target(0.3).iter().map(|(_, p)| *p).collect();
        assert_eq!(shares, [0.75, 0.25, 0.0]);
        let none = |p: &Position| PolicyLabel::Visits(vec![(p.parse_uci("e2e4").unwrap(), 0)]);
        assert!(samples("e2e4", none)[0].policy_target(1.0).is_empty());
    }

    #[test]
    fn win_probability_is_symmetric_and_reaches_certainty_at_a_mate() {
        assert_eq!(win_probability(0), 0.5);
        assert!((win_probability(150) + win_probability(-150) - 1.0).abs() < 1e-6);
        assert_eq!(win_probability(MATE_CP - 3), 1.0);
        assert_eq!(win_probability(3 - MATE_CP), 0.0);
    }
}
