//! What is to be measured and on how many positions: the suites by name. Measures nothing.

use std::fmt;
use std::str::FromStr;

/// Something to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Choices without a mask that are legal.
    Legality,
    /// The human's move found.
    Accuracy,
    /// Puzzles solved.
    Puzzles,
    /// EPD suites.
    Epd,
    /// Games against an engine of known strengths.
    Ladder,
    /// Centipawns lost a move.
    Loss,
    /// Different openings.
    Diversity,
    /// Policy and value against a deeper search.
    Agreement,
}

impl Measure {
    /// All of them, in the order they are taken and reported.
    pub const ALL: [Measure; 8] = [
        Measure::Legality,
        Measure::Accuracy,
        Measure::Puzzles,
        Measure::Epd,
        Measure::Loss,
        Measure::Diversity,
        Measure::Agreement,
        Measure::Ladder,
    ];

    /// Its name in `--suite`.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Legality => "legality",
            Measure::Accuracy => "accuracy",
            Measure::Puzzles => "puzzles",
            Measure::Epd => "epd",
            Measure::Ladder => "ladder",
            Measure::Loss => "cploss",
            Measure::Diversity => "diversity",
            Measure::Agreement => "agreement",
        }
    }
}

/// Measures and their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Only a tenth of the positions.
    pub quick: bool,
    text: String,
}

/// A suite that is none.
#[derive(Debug, thiserror::Error)]
#[error("suite {found:?}: expected quick, full or some of {known}, separated by commas")]
pub struct SuiteError {
    found: String,
    known: String,
}

impl FromStr for Suite {
    type Err = SuiteError;

    /// `full`, `quick`, or measures by name at full size; together with `quick` at a tenth of it.
    fn from_str(text: &str) -> Result<Suite, SuiteError> {
        let mut suite = Suite {
            measures: Vec::new(),
            quick: false,
            text: text.to_owned(),
        };
        for word in text.split(',').map(str::trim) {
            match Measure::ALL.iter().find(|one| one.name() == word) {
                Some(&measure) => suite.measures.push(measure),
                None if word == "quick" => suite.quick = true,
                None if word == "full" => {}
                None => {
                    return Err(SuiteError {
                        found: word.to_owned(),
                        known: Measure::ALL.map(Measure::name).join(", "),
                    });
                }
            }
        }
        if suite.measures.is_empty() {
            suite.measures = Measure::ALL.to_vec();
        }
        Ok(suite)
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Suite {
    /// Whether something is measured.
    pub fn has(&self, measure: Measure) -> bool {
        self.measures.contains(&measure)
    }

    /// How many of what a full suite has `full` of.
    pub fn size(&self, full: usize) -> usize {
        match self.quick {
            true => full.div_ceil(10),
            false => full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_by_name() {
        let suite = |text: &str| text.parse::<Suite>().unwrap();
        assert_eq!(suite("full").measures, Measure::ALL);
        assert_eq!(
            (suite("full").size(2000), suite("quick").size(2000)),
            (2000, 200)
        );
        let two = suite("puzzles, legality");
        assert!(two.has(Measure::Puzzles) && two.has(Measure::Legality));
        assert!(!two.has(Measure::Accuracy) && !two.quick);
        assert!(suite("quick,accuracy").quick && !suite("quick,accuracy").has(Measure::Puzzles));
        let error = "fast".parse::<Suite>().unwrap_err().to_string();
        assert!(
            error.contains("fast") && error.contains("accuracy"),
            "{error}"
        );
    }
}
