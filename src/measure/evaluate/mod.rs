//! What a network or an engine is worth, measured: legality, accuracy, puzzles, suites, Elo and more, one row of
//! figures each. Knows no flags and no terminal.
//!
//! A [`player::Player`] answers, a [`desk::Desk`] asks it what the [`store::Store`] does not know yet, and each measure
//! makes figures of the answers. What cannot be measured stays `None`.

pub mod agreement;
pub mod desk;
pub mod diversity;
pub mod elo;
pub mod engine;
pub mod html;
pub mod judge;
pub mod ladder;
pub mod markdown;
pub mod network;
pub mod only_moves;
pub mod player;
pub mod plot;
pub mod policy;
pub mod positions;
pub mod puzzles;
pub mod results;
pub mod store;
pub mod suite;
pub mod suites;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::chess::Game;
use crate::measure::matches::{Contestant, MatchError};

use desk::Desk;
use judge::Judge;
use ladder::{LadderPlan, Manner};
use player::PlayerError;
use positions::Sample;
use puzzles::{Puzzle, PuzzleError};
use results::{Row, Spent};
use store::StoreError;
use suite::{Measure, Suite};
use suites::EpdSuite;

/// Positions of a full suite, for legality and for accuracy.
pub const POSITIONS: usize = 1000;
/// Puzzles a band of a full suite.
pub const PUZZLES: usize = 2000;
/// Positions of a full suite that moves are judged in.
pub const JUDGED: usize = 500;
/// Games of a full suite that a player begins against itself.
pub const OWN_GAMES: usize = 200;
/// Positions of a full suite that are searched deeper.
pub const DEEPER: usize = 500;

/// Why an evaluation ended early.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// It was told to.
    #[error("interrupted; the answers so far are kept, and the same command goes on from them")]
    Interrupted,
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A puzzle file is none.
    #[error("{path}: {error}")]
    Puzzles {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: PuzzleError,
    },
    /// The player gave no answer.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The games against an engine cannot be played.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The ladder cannot be set up or was given up.
    #[error("the ladder: {0}")]
    Ladder(String),
    /// The store holds a move that is not legal where it was made.
    #[error("the store of answers holds an impossible move: {0}")]
    StoredMove(String),
}

impl EvaluateError {
    fn read(path: &Path, source: io::Error) -> EvaluateError {
        EvaluateError::Read {
            path: path.to_owned(),
            source,
        }
    }
}

/// The files an evaluation reads.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Games of people.
    pub pgn: Vec<PathBuf>,
    /// Puzzles.
    pub puzzles: Vec<PathBuf>,
    /// EPD suites.
    pub epd: Vec<PathBuf>,
}

/// What is measured on positions of games.
const OF_GAMES: [Measure; 4] = [
    Measure::Legality,
    Measure::Accuracy,
    Measure::Loss,
    Measure::Agreement,
];

/// What every player is shown.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    /// Positions of games; empty without games.
    pub samples: Vec<Sample>,
    /// Puzzles; empty without any.
    pub puzzles: Vec<Puzzle>,
    /// EPD suites; empty without any.
    pub suites: Vec<EpdSuite>,
    /// What was left out.
    pub notes: Vec<String>,
}

impl Materials {
    /// Reads what the suite needs; the same files, suite and seed give the same.
    ///
    /// # Errors
    /// A file that cannot be read, or is not what it should be.
    pub fn read(files: &Files, suite: &Suite, seed: u64) -> Result<Materials, EvaluateError> {
        let mut materials = Materials::default();
        if OF_GAMES.iter().any(|&measure| suite.has(measure)) {
            let count = suite.size(POSITIONS);
            let (samples, refused) = positions::sample(&files.pgn, count, seed)?;
            if refused > 0 {
                let note = format!("{refused} games that could not be read were left out");
                materials.notes.push(note);
            }
            materials.samples = samples;
        }
        if suite.has(Measure::Puzzles) {
            let mut all = Vec::new();
            for path in &files.puzzles {
                all.extend(puzzles::read(path)?);
            }
            let easiest = puzzles::BANDS[0].1;
            let easy = |puzzle: &&Puzzle| puzzle.rating.is_some_and(|rating| rating < easiest);
            match all.iter().filter(easy).count() {
                0 => {}
                left_out => materials.notes.push(format!(
                    "{left_out} puzzles rated below {easiest} were left out"
                )),
            }
            materials.puzzles = puzzles::pick(all, suite.size(PUZZLES), seed);
        }
        if suite.has(Measure::Epd) {
            for path in &files.epd {
                let mut epd = suites::read(path)?;
                if epd.refused > 0 {
                    let note = format!(
                        "{}: {} records without a usable bm, am or points were left out",
                        epd.name, epd.refused
                    );
                    materials.notes.push(note);
                }
                if suite.quick {
                    // Suites are ordered by theme: every tenth position has some of each.
                    epd.tasks = epd.tasks.into_iter().step_by(10).collect();
                }
                materials.suites.push(epd);
            }
        }
        Ok(materials)
    }
}

/// Engines and numbers that some measures need.
#[derive(Default)]
pub struct Aids<'a> {
    /// Who judges moves; without it, centipawn losses are not measured.
    pub judge: Option<&'a mut Judge>,
    /// The ladder; without it, no rating.
    pub ladder: Option<&'a LadderPlan>,
    /// The player as a contestant of it, and how it chooses its moves there.
    pub contestant: Option<(Contestant, Manner)>,
    /// Nodes of the deeper search.
    pub deep_nodes: u64,
}

/// Measures one player.
///
/// # Errors
/// When the player or the store fails, or the evaluation was interrupted; what is known by then is in the store.
pub fn evaluate(
    desk: &mut Desk<'_>,
    suite: &Suite,
    materials: &Materials,
    aids: &mut Aids<'_>,
) -> Result<Row, EvaluateError> {
    let mut row = Row {
        name: desk.identity.name.clone(),
        kind: desk.identity.kind,
        sha256: desk.identity.sha256.clone(),
        settings: desk.identity.search_settings.clone(),
        notes: materials.notes.clone(),
        ..Row::default()
    };
    let mut outcome = Ok(());
    for &measure in Measure::ALL.iter().filter(|&&one| suite.has(one)) {
        if let Some(missing) = missing(measure, materials, aids) {
            let note = format!("{}: not measured, {missing}", measure.name());
            row.notes.push(note);
            continue;
        }
        match take(measure, desk, suite, materials, aids, &mut row) {
            Ok(true) => {}
            Ok(false) => row.notes.push(format!(
                "{}: not measured, {} cannot be asked for it",
                measure.name(),
                row.name
            )),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    // What an interrupted run took counts too.
    for (measure, this_run) in desk.clock.take() {
        let identity = desk.identity;
        let settings = format!("{suite} nodes={}", desk.nodes);
        let seconds = desk
            .store
            .spend(&identity.sha256, &settings, &measure, this_run)?;
        row.spent.push(Spent {
            measure,
            seconds,
            this_run,
        });
    }
    match outcome {
        Ok(()) => Ok(row),
        // An engine that was waited for ends the wait with an error of its own.
        Err(_) if desk.cancel.load(Ordering::Relaxed) => Err(EvaluateError::Interrupted),
        Err(error) => Err(error),
    }
}

/// What a measure would need and has not got.
fn missing(measure: Measure, materials: &Materials, aids: &Aids<'_>) -> Option<&'static str> {
    match measure {
        measure if OF_GAMES.contains(&measure) && materials.samples.is_empty() => {
            Some("no games (--pgn)")
        }
        Measure::Puzzles if materials.puzzles.is_empty() => Some("no puzzles (--puzzles)"),
        Measure::Epd if materials.suites.is_empty() => Some("no suites (--epd)"),
        Measure::Loss if aids.judge.is_none() => Some("no Stockfish (--stockfish)"),
        Measure::Ladder if aids.ladder.is_none() || aids.contestant.is_none() => {
            Some("no Stockfish (--stockfish)")
        }
        _ => None,
    }
}

/// Takes one measure; false if the player cannot be asked for it.
fn take(
    measure: Measure,
    desk: &mut Desk<'_>,
    suite: &Suite,
    materials: &Materials,
    aids: &mut Aids<'_>,
    row: &mut Row,
) -> Result<bool, EvaluateError> {
    let samples = |full| {
        let count = suite.size(full).min(materials.samples.len());
        &materials.samples[..count]
    };
    Ok(match measure {
        Measure::Legality => {
            let games: Vec<Arc<Game>> = samples(POSITIONS)
                .iter()
                .map(|sample| Arc::clone(&sample.game))
                .collect();
            row.legality = policy::legality(desk, &games)?;
            row.legality.is_some()
        }
        Measure::Accuracy => {
            row.accuracy = policy::accuracy(desk, samples(POSITIONS))?;
            row.accuracy.is_some()
        }
        Measure::Puzzles => {
            row.puzzles = puzzles::puzzles(desk, &materials.puzzles)?;
            let without = row.puzzles.as_ref().map_or(0, |one| one.without_game);
            if without > 0 {
                row.notes.push(format!(
                    "{without} puzzles without a game were not shown to {}, which reads games",
                    row.name
                ));
            }
            row.puzzles.is_some()
        }
        Measure::Epd => {
            let mut results = Vec::new();
            for suite in &materials.suites {
                results.push(suites::take(desk, suite)?);
            }
            row.suites = Some(results);
            true
        }
        Measure::Loss => {
            if let Some(judge) = &mut aids.judge {
                row.losses = judge::losses(desk, judge, samples(JUDGED))?;
            }
            row.losses.is_some()
        }
        Measure::Diversity => {
            row.diversity = diversity::diversity(desk, suite.size(OWN_GAMES))?;
            row.diversity.is_some()
        }
        Measure::Agreement => {
            row.agreement = agreement::agreement(desk, samples(DEEPER), aids.deep_nodes)?;
            row.agreement.is_some()
        }
        Measure::Ladder => {
            if let (Some(plan), Some((contestant, manner))) = (aids.ladder, &aids.contestant) {
                let games = plan.games.div_ceil(2) * 2 * plan.opponent.rungs.len();
                desk.begin("ladder", games);
                let identity = desk.identity;
                let found = ladder::ladder(
                    plan,
                    contestant,
                    manner,
                    (&identity.sha256, &identity.search_settings),
                    desk.store,
                    desk.cancel,
                    &mut *desk.told,
                )?;
                row.ladder = Some(found);
            }
            row.ladder.is_some()
        }
    })
}
