//! Adds up the games of a match as they come in, in any order. Knows no statistics.

use std::collections::{BTreeMap, HashMap};

use crate::measure::sprt::{Sprt, Verdict};
use crate::measure::stats::{Counts, Pentanomial};

use super::record::{Cause, GameRecord, Usage};
use super::{Faults, MatchPlan};

/// The games of a match so far, seen from its first contestant.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// All finished games.
    pub counts: Counts,
    /// Those with White.
    pub as_white: Counts,
    /// Complete pairs.
    pub pentanomial: Pentanomial,
    /// Faults of each contestant.
    pub faults: Vec<Faults>,
    /// What each contestant used.
    pub usage: Vec<Usage>,
    /// How games ended, and how many did.
    pub causes: BTreeMap<&'static str, u64>,
    /// Games that were cut off.
    pub unfinished: u64,
    /// Why the match ended before its last game, if it did.
    pub given_up: Option<String>,
    /// What the plan's test has decided.
    pub decided: Option<Verdict>,
    /// Half points of the first game of a round whose other one is not in yet.
    halves: HashMap<usize, u8>,
}

impl Tally {
    /// No games yet.
    pub fn new(contestants: usize) -> Self {
        Self {
            faults: vec![Faults::default(); contestants],
            usage: vec![Usage::default(); contestants],
            ..Self::default()
        }
    }

    /// Adds a game.
    pub fn add(&mut self, plan: &MatchPlan, game: &GameRecord) {
        let players = [game.pairing.white, game.pairing.black];
        for (faults, player) in game.faults.iter().zip(players) {
            self.faults[player].add(faults);
        }
        let mut mover = usize::from(plan.book.opening(game.pairing.round).turn_is_black());
        for record in &game.moves {
            self.usage[players[mover]].add_move(record);
            mover = 1 - mover;
        }
        let Some(halves) = game.half_points(0) else {
            self.unfinished += 1;
            return;
        };
        *self.causes.entry(kind(&game.cause)).or_default() += 1;
        count(&mut self.counts, halves);
        if game.pairing.white == 0 {
            count(&mut self.as_white, halves);
        }
        if plan.games_a_round == 2 {
            match self.halves.remove(&game.pairing.round) {
                Some(first) => self.pentanomial.add(first, halves),
                None => {
                    self.halves.insert(game.pairing.round, halves);
                }
            }
        }
    }

    /// The test's log-likelihood ratio: of pairs, or of single games where there are none by plan.
    pub fn ratio(&self, plan: &MatchPlan, sprt: &Sprt) -> Option<f64> {
        match plan.games_a_round {
            2 => sprt.of_pairs(&self.pentanomial),
            _ => sprt.of_games(&self.counts),
        }
    }

    /// Those with Black.
    pub fn as_black(&self) -> Counts {
        Counts {
            wins: self.counts.wins - self.as_white.wins,
            draws: self.counts.draws - self.as_white.draws,
            losses: self.counts.losses - self.as_white.losses,
        }
    }
}

fn count(counts: &mut Counts, halves: u8) {
    match halves {
        0 => counts.losses += 1,
        1 => counts.draws += 1,
        _ => counts.wins += 1,
    }
}

fn kind(cause: &Cause) -> &'static str {
    use crate::measure::referee::Ending;
    match cause {
        Cause::Rules(Ending::Checkmate) => "checkmate",
        Cause::Rules(Ending::Stalemate) => "stalemate",
        Cause::Rules(Ending::InsufficientMaterial) => "insufficient material",
        Cause::Rules(Ending::Repetition) => "3-fold repetition",
        Cause::Rules(Ending::FiftyMoves) => "fifty moves",
        Cause::MaxMoves => "limit on moves",
        Cause::Scores(_) => "adjudication by scores",
        Cause::Tablebases(_) => "adjudication by tablebases",
        Cause::TimeLoss(_) => "time loss",
        Cause::Stall(..) => "stall",
        Cause::Crash(..) => "crash",
        Cause::IllegalMove(..) => "illegal move",
        Cause::Interrupted => "unfinished",
    }
}
