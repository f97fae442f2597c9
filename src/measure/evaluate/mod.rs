//! What a network or an engine is worth, measured: legality, accuracy, puzzles, suites, Elo and more, one row of
//! figures each. Knows no flags and no terminal.
//!
//! A [`player::Player`] answers, a [`desk::Desk`] asks it what the [`store::Store`] does not know yet, and each measure
//! makes figures of the answers. What cannot be measured stays `None`.

pub mod desk;
pub mod markdown;
pub mod network;
pub mod player;
pub mod policy;
pub mod positions;
pub mod puzzles;
pub mod results;
pub mod store;
pub mod suite;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chess::Game;

use desk::Desk;
use player::PlayerError;
use positions::Sample;
use puzzles::{Puzzle, PuzzleError};
use results::{Row, Spent};
use store::StoreError;
use suite::{Measure, Suite};

/// Positions of a full suite, for legality and for accuracy.
pub const POSITIONS: usize = 1000;
/// Puzzles a band of a full suite.
pub const PUZZLES: usize = 2000;

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
}

/// What every player is shown.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    /// Positions of games; empty without games.
    pub samples: Vec<Sample>,
    /// Puzzles; empty without any.
    pub puzzles: Vec<Puzzle>,
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
        if [Measure::Legality, Measure::Accuracy]
            .iter()
            .any(|&measure| suite.has(measure))
        {
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
            materials.puzzles = puzzles::pick(all, suite.size(PUZZLES), seed);
        }
        Ok(materials)
    }
}

/// Measures one player.
///
/// # Errors
/// When the player or the store fails, or the evaluation was interrupted; what is known by then is in the store.
pub fn evaluate(
    desk: &mut Desk<'_>,
    suite: &Suite,
    materials: &Materials,
) -> Result<Row, EvaluateError> {
    let mut row = Row {
        name: desk.identity.name.clone(),
        kind: desk.identity.kind,
        sha256: desk.identity.sha256.clone(),
        settings: desk.identity.search_settings.clone(),
        notes: materials.notes.clone(),
        ..Row::default()
    };
    let outcome = measure(desk, suite, materials, &mut row);
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
    outcome.map(|()| row)
}

fn measure(
    desk: &mut Desk<'_>,
    suite: &Suite,
    materials: &Materials,
    row: &mut Row,
) -> Result<(), EvaluateError> {
    for &measure in &Measure::ALL {
        if !suite.has(measure) {
            continue;
        }
        let missing = match measure {
            Measure::Legality | Measure::Accuracy if materials.samples.is_empty() => {
                Some("no games (--pgn)")
            }
            Measure::Puzzles if materials.puzzles.is_empty() => Some("no puzzles (--puzzles)"),
            _ => None,
        };
        if let Some(missing) = missing {
            row.notes
                .push(format!("{}: not measured, {missing}", measure.name()));
            continue;
        }
        let found = match measure {
            Measure::Legality => {
                let games: Vec<Arc<Game>> = materials
                    .samples
                    .iter()
                    .map(|sample| Arc::clone(&sample.game))
                    .collect();
                row.legality = policy::legality(desk, &games)?;
                row.legality.is_some()
            }
            Measure::Accuracy => {
                row.accuracy = policy::accuracy(desk, &materials.samples)?;
                row.accuracy.is_some()
            }
            Measure::Puzzles => {
                row.puzzles = puzzles::puzzles(desk, &materials.puzzles)?;
                row.puzzles.is_some()
            }
        };
        if !found {
            row.notes.push(format!(
                "{}: not measured, {} cannot be asked for it",
                measure.name(),
                row.name
            ));
        }
    }
    Ok(())
}
