//! Adds up the games of a match as they come in, in any order. Knows no statistics.

use std::collections::{BTreeMap, HashMap};

use crate::measure::sprt::{Sprt, Verdict};
use crate::measure::stats::{Counts, Estimate, Pentanomial};

use super::record::{Cause, GameRecord, Usage};
use super::resume::Played;
use super::{Faults, MatchPlan, Pairing};

/// The games of two contestants so far, seen from the first of them.
#[derive(Clone, Debug, Default)]
pub struct Encounter {
    /// All finished games.
    pub counts: Counts,
    /// Those with White.
    pub as_white: Counts,
    /// Complete pairs.
    pub pentanomial: Pentanomial,
    /// Half points of the first game of a round whose other one is not in yet.
    halves: HashMap<usize, u8>,
}

/// The games of a match so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Results, one for each encounter of the plan.
    pub encounters: Vec<Encounter>,
    /// Faults of each contestant.
    pub faults: Vec<Faults>,
    /// What each contestant used.
    pub usage: Vec<Usage>,
    /// How games ended, and how many did.
    pub causes: BTreeMap<&'static str, u64>,
    /// Games that were cut off.
    pub unfinished: u64,
    /// Games taken over from an earlier part of the match.
    pub resumed: u64,
    /// Why the match ended before its last game, if it did.
    pub given_up: Option<String>,
    /// What the plan's test has decided.
    pub decided: Option<Verdict>,
}

impl Tally {
    /// No games yet.
    pub fn new(plan: &MatchPlan) -> Self {
        Self {
            encounters: vec![Encounter::default(); plan.encounters().len()],
            faults: vec![Faults::default(); plan.contestants.len()],
            usage: vec![Usage::default(); plan.contestants.len()],
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
        let (first, _) = plan.encounters()[game.pairing.encounter];
        let Some(halves) = game.half_points(first) else {
            self.unfinished += 1;
            return;
        };
        *self.causes.entry(kind(&game.cause)).or_default() += 1;
        self.count(plan, &game.pairing, halves);
    }

    /// Adds a game of an earlier part of the match.
    pub fn add_played(&mut self, plan: &MatchPlan, played: &Played) {
        let (first, _) = plan.encounters()[played.pairing.encounter];
        let halves = match played.pairing.white == first {
            true => played.white_halves,
            false => 2 - played.white_halves,
        };
        self.resumed += 1;
        self.count(plan, &played.pairing, halves);
    }

    fn count(&mut self, plan: &MatchPlan, pairing: &Pairing, halves: u8) {
        let (first, _) = plan.encounters()[pairing.encounter];
        let encounter = &mut self.encounters[pairing.encounter];
        count(&mut encounter.counts, halves);
        if pairing.white == first {
            count(&mut encounter.as_white, halves);
        }
        if plan.games_a_round == 2 {
            match encounter.halves.remove(&pairing.round) {
                Some(other) => encounter.pentanomial.add(other, halves),
                None => {
                    encounter.halves.insert(pairing.round, halves);
                }
            }
        }
    }

    /// The test's log-likelihood ratio for the first encounter: of pairs, or of single games where there are none
    /// by plan.
    pub fn ratio(&self, plan: &MatchPlan, sprt: &Sprt) -> Option<f64> {
        let encounter = self.encounters.first()?;
        match plan.games_a_round {
            2 => sprt.of_pairs(&encounter.pentanomial),
            _ => sprt.of_games(&encounter.counts),
        }
    }

    /// Finished games.
    pub fn games(&self) -> u64 {
        self.encounters.iter().map(|one| one.counts.games()).sum()
    }
}

impl Encounter {
    /// Games of the first contestant with Black.
    pub fn as_black(&self) -> Counts {
        Counts {
            wins: self.counts.wins - self.as_white.wins,
            draws: self.counts.draws - self.as_white.draws,
            losses: self.counts.losses - self.as_white.losses,
        }
    }

    /// Score and error: from pairs, before the first one from games.
    pub fn estimate(&self) -> Option<Estimate> {
        self.pentanomial
            .estimate()
            .or_else(|| self.counts.estimate())
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
