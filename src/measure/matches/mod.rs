//! Matches between UCI engines: who plays, by which rules, and what came of it. Knows nothing of
//! flags or terminals.
//!
//! A match is a list of games in pairs, one opening with colours swapped, between two engines or more. Workers take games from
//! it; each keeps its own process of every engine. What a game yields is a [`GameRecord`]; a
//! [`Tally`] adds them up.

mod faults;
mod game;
mod record;
mod report;
mod resume;
mod runner;
mod seat;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use crate::chess::Tablebases;
use crate::client::EngineConfig;

use super::adjudication::{DrawRule, ResignRule};
use super::book::Book;
use super::clock::TimeControl;
use super::sprt::Sprt;

pub use faults::{Faults, Weight};
pub use record::{Cause, GameRecord, MoveRecord, Usage, utc};
pub use report::Summary;
pub use resume::{Played, ResumeError, read_played};
pub use runner::{MatchError, run};
pub use tally::{Encounter, Tally};

/// One engine of a match.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Its name in results and PGN.
    pub name: String,
    /// How to start it.
    pub engine: EngineConfig,
    /// What it may use for a move.
    pub pace: Pace,
    /// Whether it is started anew for every game.
    pub restart: bool,
}

/// What an engine may use for a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// A clock.
    pub control: Option<TimeControl>,
    /// So long a move.
    pub move_time: Option<Duration>,
    /// So many nodes a move.
    pub nodes: Option<u64>,
    /// To this depth.
    pub depth: Option<u32>,
    /// How far a clock or `move_time` may be overrun without losing.
    pub margin: Duration,
}

impl Pace {
    /// Whether nothing at all bounds a search.
    pub fn is_unlimited(&self) -> bool {
        self.control.is_none()
            && self.move_time.is_none()
            && self.nodes.is_none()
            && self.depth.is_none()
    }
}

/// The rules of a match that are not rules of chess.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Full moves, book included, after which the game is a draw.
    pub max_moves: Option<u32>,
    /// How long an engine without a clock may take for a move.
    pub stall: Duration,
    /// Whether games are Chess960.
    pub chess960: bool,
    /// When both engines agree on a draw.
    pub draw: Option<DrawRule>,
    /// When an engine has lost.
    pub resign: Option<ResignRule>,
    /// Tablebases that decide a game.
    pub tables: Option<Arc<Tablebases>>,
}

/// A whole match.
#[derive(Clone, Debug)]
pub struct MatchPlan {
    /// The engines, at least two.
    pub contestants: Vec<Contestant>,
    /// Who meets whom.
    pub tournament: Tournament,
    /// Where games begin.
    pub book: Book,
    /// Rounds: each is one opening.
    pub rounds: usize,
    /// Games a round: two (colours swapped), or one with colours by turns.
    pub games_a_round: usize,
    /// Games at a time.
    pub concurrency: usize,
    /// Rules beyond those of chess.
    pub rules: Rules,
    /// PGN's `Event` tag.
    pub event: String,
    /// A test that ends the match once it has decided.
    pub sprt: Option<Sprt>,
}

impl MatchPlan {
    /// Number of games.
    pub fn games(&self) -> usize {
        self.rounds * self.games_a_round * self.encounters().len()
    }

    /// Who meets whom, by index; results are seen from the first of each.
    pub fn encounters(&self) -> Vec<(usize, usize)> {
        let count = self.contestants.len();
        let firsts = match self.tournament {
            Tournament::Gauntlet => 0..1.min(count),
            Tournament::RoundRobin => 0..count,
        };
        firsts
            .flat_map(|first| (first + 1..count).map(move |second| (first, second)))
            .collect()
    }

    /// Who plays game `number` (from 0), which is below [`MatchPlan::games`]. In a round everybody plays the
    /// same opening.
    pub fn pairing(&self, number: usize) -> Pairing {
        let encounters = self.encounters();
        let (set, in_set) = (number / self.games_a_round, number % self.games_a_round);
        let (round, encounter) = (set / encounters.len(), set % encounters.len());
        let swapped = match self.games_a_round {
            2 => in_set == 1,
            _ => round % 2 == 1,
        };
        let (first, second) = encounters[encounter];
        let (white, black) = if swapped {
            (second, first)
        } else {
            (first, second)
        };
        Pairing {
            number,
            round,
            encounter,
            white,
            black,
        }
    }
}

/// Who meets whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tournament {
    /// The first engine against each of the others.
    #[default]
    Gauntlet,
    /// Everybody against everybody.
    RoundRobin,
}

/// One game to be played: contestants by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// Number of the game, from 0.
    pub number: usize,
    /// Its round, from 0: the opening, and what makes two games of an encounter a pair.
    pub round: usize,
    /// Index of the encounter.
    pub encounter: usize,
    /// Who plays White.
    pub white: usize,
    /// Who plays Black.
    pub black: usize,
}
