//! The figures of an evaluation as they are written to `results.json`. What was not measured is null. Measures
//! nothing.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::agreement::Agreement;
use super::desk::Sampling;
use super::diversity::Diversity;
use super::judge::Losses;
use super::ladder::Ladder;
use super::policy::{Accuracy, Legality};
use super::puzzles::Puzzles;
use super::suites::SuiteResult;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// How many did.
    pub hits: u64,
    /// Of how many.
    pub of: u64,
}

impl Rate {
    /// Counts one more.
    pub fn add(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }

    /// The share, `None` of nothing.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Rate", 3)?;
        object.serialize_field("hits", &self.hits)?;
        object.serialize_field("of", &self.of)?;
        object.serialize_field("rate", &self.share())?;
        object.end()
    }
}

/// What a player spends on a move of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Nodes; `None` for an engine with a pace of its own.
    pub nodes: Option<u64>,
    /// That pace.
    pub pace: Option<String>,
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.pace, self.nodes) {
            (Some(pace), _) => f.write_str(pace),
            (None, Some(1)) => f.write_str("1 node"),
            (None, Some(nodes)) => write!(f, "{nodes} nodes"),
            (None, None) => f.write_str("search"),
        }
    }
}

/// Everything that one run of `simurgh evaluate` found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Version of this program.
    pub simurgh: String,
    /// When it ended, `2026-12-01 14:30` UTC.
    pub date: String,
    /// The suite as it was asked for.
    pub suite: String,
    /// How moves are sampled from a policy.
    pub sampling: Sampling,
    /// Nodes of a search.
    pub nodes: u64,
    /// One for each network or engine.
    pub rows: Vec<Row>,
}

/// The figures of one network or engine; `None` is not measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// `network` or `engine`.
    pub kind: &'static str,
    /// SHA-256 of the file, or of an engine's program and settings.
    pub sha256: String,
    /// How it was run.
    pub settings: String,
    /// Legal choices without a mask.
    pub legality: Option<Legality>,
    /// The human's move found.
    pub accuracy: Option<Accuracy>,
    /// Puzzles solved.
    pub puzzles: Option<Puzzles>,
    /// EPD suites, in the order they were named.
    pub suites: Option<Vec<SuiteResult>>,
    /// Centipawns lost a move.
    pub losses: Option<Losses>,
    /// Openings of games against itself.
    pub diversity: Option<Diversity>,
    /// Policy and value against a deeper search.
    pub agreement: Option<Agreement>,
    /// Games against an engine of known strengths, and the rating.
    pub ladder: Option<Ladder>,
    /// What was not measured and why, and what is to be known of the figures.
    pub notes: Vec<String>,
    /// Seconds each measure took, over all runs that filled the store.
    pub spent: Vec<Spent>,
}

/// Time of one measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// Which.
    pub measure: String,
    /// Over all runs.
    pub seconds: f64,
    /// In this run; what the store knew costs next to nothing.
    pub this_run: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_is_null() {
        let json = serde_json::to_value(Row::default()).unwrap();
        let measures = [
            "legality",
            "accuracy",
            "puzzles",
            "suites",
            "losses",
            "diversity",
            "agreement",
            "ladder",
        ];
        for measure in measures {
            assert!(json[measure].is_null(), "{measure}");
        }
        let json = serde_json::to_value(Rate::default()).unwrap();
        assert!(json["rate"].is_null());
        let json = serde_json::to_value(Rate { hits: 1, of: 4 }).unwrap();
        assert_eq!(json["rate"], 0.25);
    }
}
