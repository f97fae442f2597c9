//! Records of whole games: moves, labels and result. Whole, so that every position keeps its history.
//! Knows no file format and no network.

use std::collections::HashSet;

use super::TrainError;
use crate::chess::{GameResult, Move, Position};

/// A game as it is stored: everything else follows by playing the moves.
#[derive(Clone, Debug, PartialEq)]
pub struct GameRecord {
    /// The position before the first ply; positions before it are not known.
    pub start: Position,
    /// The plies in order. Those without any label are history only.
    pub plies: Vec<Ply>,
    /// How the game ended, or was adjudicated.
    pub result: GameResult,
    /// Who made the record.
    pub source: Source,
    /// Seed of the random choices in this game; 0 where there is none.
    pub seed: u64,
}

/// One position of a game, what was played there and what a teacher says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ply {
    /// The move played, not always a good one.
    pub played: Move,
    /// The teacher's value.
    pub wdl: Option<WdlLabel>,
    /// The teacher's moves.
    pub policy: PolicyLabel,
}

/// Win, draw and loss in per mille, from the side to move. They sum to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WdlLabel {
    win: u16,
    loss: u16,
}

/// What a teacher says of the moves of a position. No move stands twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyLabel {
    /// Nothing.
    #[default]
    None,
    /// Scores of the best few moves, best first, in centipawns from the side to move; mate in n
    /// moves is ±(32000 − n).
    Scores(Vec<(Move, i16)>),
    /// Root visits of a search, or other weights in proportion to the probability of a move. Legal
    /// moves that are not listed have none.
    Visits(Vec<(Move, u32)>),
}

/// Who made a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A label file in text.
    #[default]
    Labels,
    /// A UCI engine that played and labelled.
    Engine,
    /// Our own search.
    SelfPlay,
    /// Lc0 training records.
    Lc0,
}

impl Source {
    /// Every source, in the order of their numbers on disk.
    pub const ALL: [Source; 4] = [
        Source::Labels,
        Source::Engine,
        Source::SelfPlay,
        Source::Lc0,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Source::Labels => "label file",
            Source::Engine => "engine",
            Source::SelfPlay => "self-play",
            Source::Lc0 => "Lc0 records",
        }
    }
}

impl WdlLabel {
    /// From per mille; `None` unless they sum to 1000.
    pub fn new(win: u16, draw: u16, loss: u16) -> Option<WdlLabel> {
        let sum = u32::from(win) + u32::from(draw) + u32::from(loss);
        (sum == 1000).then_some(WdlLabel { win, loss })
    }

    /// Q = W − L in [−1, 1] and D, rounded to per mille; values outside are brought inside.
    pub fn from_q_d(q: f32, d: f32) -> WdlLabel {
        let per_mille = |x: f32| (x.clamp(0.0, 1.0) * 1000.0).round() as u16;
        let draw = if d.is_finite() {
            d.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let most = 1.0 - draw;
        let q = if q.is_finite() {
            q.clamp(-most, most)
        } else {
            0.0
        };
        let win = per_mille((1.0 - draw + q) / 2.0);
        let loss = per_mille((1.0 - draw - q) / 2.0).min(1000 - win);
        WdlLabel { win, loss }
    }

    /// P(the side to move wins), per mille.
    pub fn win(self) -> u16 {
        self.win
    }

    /// P(draw), per mille.
    pub fn draw(self) -> u16 {
        1000 - self.win - self.loss
    }

    /// P(the side to move loses), per mille.
    pub fn loss(self) -> u16 {
        self.loss
    }
}

impl Ply {
    /// A ply without labels.
    pub fn played(m: Move) -> Ply {
        Ply {
            played: m,
            wdl: None,
            policy: PolicyLabel::None,
        }
    }

    /// True when there is something to learn from.
    pub fn is_labelled(&self) -> bool {
        self.wdl.is_some() || self.policy != PolicyLabel::None
    }
}

impl PolicyLabel {
    /// The moves that are spoken of.
    pub fn moves(&self) -> impl Iterator<Item = Move> {
        let (scores, visits) = match self {
            PolicyLabel::None => (&[][..], &[][..]),
            PolicyLabel::Scores(scores) => (&scores[..], &[][..]),
            PolicyLabel::Visits(visits) => (&[][..], &visits[..]),
        };
        let scores = scores.iter().map(|&(m, _)| m);
        scores.chain(visits.iter().map(|&(m, _)| m))
    }

    /// The teacher's choice: the first of the scored moves, or the first of the most visited ones.
    pub fn best(&self) -> Option<Move> {
        match self {
            PolicyLabel::None => None,
            PolicyLabel::Scores(scores) => scores.first().map(|&(m, _)| m),
            PolicyLabel::Visits(visits) => visits
                .iter()
                .rev()
                .max_by_key(|&&(_, count)| count)
                .map(|&(m, _)| m),
        }
    }
}

impl GameRecord {
    /// A record without plies.
    pub fn new(start: Position, source: Source) -> GameRecord {
        GameRecord {
            start,
            plies: Vec::new(),
            result: GameResult::Unknown,
            source,
            seed: 0,
        }
    }

    /// How many plies have labels.
    pub fn labelled(&self) -> usize {
        self.plies.iter().filter(|ply| ply.is_labelled()).count()
    }

    /// Takes the labels off every position whose key is in `seen`, and adds the others' keys to it.
    /// The positions stay as history. Returns how many labels went.
    pub fn unlabel_repeats(&mut self, seen: &mut HashSet<u64>) -> usize {
        let mut position = self.start.clone();
        let mut gone = 0;
        for ply in &mut self.plies {
            if ply.is_labelled() && !seen.insert(position.key()) {
                *ply = Ply::played(ply.played);
                gone += 1;
            }
            position.play(ply.played);
        }
        gone
    }

    /// Checks that every move is legal where it stands and no label names one twice.
    ///
    /// # Errors
    /// Names the first ply that does not fit.
    pub fn check(&self) -> Result<(), TrainError> {
        let mut position = self.start.clone();
        for (index, ply) in self.plies.iter().enumerate() {
            let fault = |why: String| TrainError::Record { ply: index, why };
            let legal = position.legal_moves();
            let mut seen = HashSet::new();
            for m in ply.policy.moves() {
                if !legal.contains(&m) {
                    let fen = position.to_fen(false);
                    return Err(fault(format!("label for {m}, which is not legal in {fen}")));
                }
                if !seen.insert(m) {
                    return Err(fault(format!("two labels for {m}, expected one")));
                }
            }
            if !legal.contains(&ply.played) {
                let fen = position.to_fen(false);
                return Err(fault(format!("{} is not legal in {fen}", ply.played)));
            }
            position.play(ply.played);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(moves: &str) -> GameRecord {
        let mut record = GameRecord::new(Position::startpos(), Source::Engine);
        let mut position = Position::startpos();
        for text in moves.split_whitespace() {
            let m = position.parse_uci(text).unwrap();
            record.plies.push(Ply {
                wdl: WdlLabel::new(300, 400, 300),
                ..Ply::played(m)
            });
            position.play(m);
        }
        record
    }

    #[test]
    fn wdl_labels_sum_to_a_thousand() {
        assert!(WdlLabel::new(500, 400, 101).is_none());
        assert!(WdlLabel::new(u16::MAX, u16::MAX, 1000).is_none());
        let label = WdlLabel::new(668, 332, 0).unwrap();
        assert_eq!((label.win(), label.draw(), label.loss()), (668, 332, 0));
        for (q, d, expected) in [
            (0.25, 0.5, (375, 500, 125)),
            (1.0, 0.0, (1000, 0, 0)),
            (-1.0, 0.0, (0, 0, 1000)),
            (-3.0, 7.0, (0, 1000, 0)),
            (f32::NAN, f32::NAN, (500, 0, 500)),
            (0.0005, 0.0, (500, 0, 500)),
        ] {
            let label = WdlLabel::from_q_d(q, d);
            assert_eq!(
                (label.win(), label.draw(), label.loss()),
                expected,
                "{q} {d}"
            );
        }
    }

    #[test]
    fn repeats_lose_their_labels_and_stay_as_history() {
        let mut seen = HashSet::new();
        let mut first = record("g1f3 g8f6 f3g1 f6g8 e2e4");
        // The start position comes twice.
        assert_eq!(first.unlabel_repeats(&mut seen), 1);
        assert!(!first.plies[4].is_labelled() && first.plies[0].is_labelled());
        let mut second = record("e2e4 e7e5");
        assert_eq!(second.unlabel_repeats(&mut seen), 1);
        assert_eq!((second.plies.len(), second.labelled()), (2, 1));
    }

    #[test]
    fn the_best_move_is_the_first_of_the_highest() {
        let [a, b] = ["e2e4", "d2d4"].map(|text| Position::startpos().parse_uci(text).unwrap());
        assert_eq!(PolicyLabel::Scores(vec![(a, 1), (b, 9)]).best(), Some(a));
        assert_eq!(PolicyLabel::Visits(vec![(a, 1), (b, 9)]).best(), Some(b));
        assert_eq!(PolicyLabel::Visits(vec![(a, 9), (b, 9)]).best(), Some(a));
    }

    #[test]
    fn records_that_do_not_fit_are_named() {
        let mut wrong = record("e2e4 e7e5 g1f3");
        assert!(wrong.check().is_ok());
        wrong.plies[2].policy = PolicyLabel::Scores(vec![(wrong.plies[0].played, 0)]);
        let error = wrong.check().unwrap_err().to_string();
        assert!(
            error.starts_with("ply 2 of a game record: label for e2e4"),
            "{error}"
        );
        let twice = wrong.plies[1].played;
        wrong.plies[1].policy = PolicyLabel::Visits(vec![(twice, 1), (twice, 2)]);
        let error = wrong.check().unwrap_err().to_string();
        assert!(error.contains("two labels for e7e5"), "{error}");
    }
}
