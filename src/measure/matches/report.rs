//! The result of a match as figures, as text and as JSON. Formats what others have counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::measure::sprt::{Model, Sprt, Verdict};
use crate::measure::stats::{Counts, Estimate, Pentanomial, Sample};

use super::tally::Tally;
use super::{Faults, MatchPlan, Weight};

/// Everything that is known of a match. Figures that games so far say nothing about are absent
/// (null), never 0.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The two engines.
    pub engines: Vec<EngineSummary>,
    /// Games the plan has.
    pub games_planned: u64,
    /// Games finished.
    pub games: u64,
    /// Games cut off.
    pub unfinished: u64,
    /// Why the match ended early.
    pub given_up: Option<String>,
    /// Results of the first engine.
    pub results: Counts,
    /// Its results with White.
    pub as_white: Counts,
    /// Its results with Black.
    pub as_black: Counts,
    /// Complete pairs by its points: 0, ½, 1, 1½, 2.
    pub pentanomial: Pentanomial,
    /// Its score over all finished games, 0..=1.
    pub score: Option<f64>,
    /// What the errors below were taken from.
    pub error_from: Option<Sample>,
    /// Pairs or games that they were taken from.
    pub samples: u64,
    /// Mean score of those.
    pub sample_score: Option<f64>,
    /// Lower bound of the score, 95 % two-sided.
    pub score_low: Option<f64>,
    /// Upper bound of the score, 95 % two-sided.
    pub score_high: Option<f64>,
    /// Elo difference, positive if the first engine is better.
    pub elo: Option<f64>,
    /// Half the width of its 95 % interval.
    pub elo_error: Option<f64>,
    /// Lower bound of the Elo difference.
    pub elo_low: Option<f64>,
    /// Upper bound of the Elo difference.
    pub elo_high: Option<f64>,
    /// Normalised Elo.
    pub normalised_elo: Option<f64>,
    /// Half the width of its 95 % interval.
    pub normalised_elo_error: Option<f64>,
    /// Chance that the first engine is the better one, 0..=1.
    pub los: Option<f64>,
    /// The sequential test, if the plan has one.
    pub sprt: Option<SprtSummary>,
    /// How games ended.
    pub causes: BTreeMap<&'static str, u64>,
}

/// A sequential test and where it stands.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SprtSummary {
    /// The test.
    #[serde(flatten)]
    pub test: Sprt,
    /// Log-likelihood ratio of elo1 to elo0.
    pub llr: Option<f64>,
    /// Where elo0 is accepted.
    pub lower: f64,
    /// Where elo1 is accepted.
    pub upper: f64,
    /// What was decided.
    pub verdict: Verdict,
}

impl fmt::Display for SprtSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sprt {
            elo0,
            elo1,
            alpha,
            beta,
            model,
        } = self.test;
        let model = match model {
            Model::Logistic => "logistic",
            Model::Normalised => "normalised",
        };
        let llr = self.llr.map_or("n/a".to_owned(), |llr| format!("{llr:.2}"));
        write!(
            f,
            "SPRT: LLR {llr} ({:.2}, {:.2}) [{elo0}, {elo1}] {model} Elo, alpha {alpha}, beta {beta}: {}",
            self.lower,
            self.upper,
            match self.verdict {
                Verdict::H0 => format!("H0 accepted, no gain of {elo1}"),
                Verdict::H1 => format!("H1 accepted, more than {elo0}"),
                Verdict::Open => "open".to_owned(),
            }
        )
    }
}

/// One engine's part.
#[derive(Clone, Debug, Serialize)]
pub struct EngineSummary {
    /// Its name.
    pub name: String,
    /// What it did wrong.
    pub faults: Faults,
    /// Moves made.
    pub moves: u64,
    /// Mean time a move, milliseconds.
    pub mean_time_ms: Option<f64>,
    /// Longest time a move, milliseconds.
    pub longest_time_ms: Option<f64>,
    /// Mean nodes a move.
    pub mean_nodes: Option<f64>,
    /// Nodes a second over all its moves.
    pub nps: Option<f64>,
    /// Mean depth.
    pub mean_depth: Option<f64>,
}

impl Summary {
    /// The state of a match.
    pub fn new(plan: &MatchPlan, tally: &Tally) -> Self {
        let estimate = tally
            .pentanomial
            .estimate()
            .or_else(|| tally.counts.estimate());
        let finite = |value: f64| value.is_finite().then_some(value);
        let score = estimate.and_then(|one| one.score_interval());
        let elo = estimate.and_then(|one| one.elo_interval());
        Self {
            engines: (0..plan.contestants.len())
                .map(|index| EngineSummary::new(plan, tally, index))
                .collect(),
            games_planned: plan.games() as u64,
            games: tally.counts.games(),
            unfinished: tally.unfinished,
            given_up: tally.given_up.clone(),
            results: tally.counts,
            as_white: tally.as_white,
            as_black: tally.as_black(),
            pentanomial: tally.pentanomial,
            score: tally.counts.score(),
            error_from: estimate.map(|one| one.sample),
            samples: estimate.map_or(0, |one| one.samples),
            sample_score: estimate.map(|one| one.score),
            score_low: score.map(|(low, _)| low),
            score_high: score.map(|(_, high)| high),
            elo: estimate.map(|one| one.elo()).and_then(finite),
            elo_error: estimate.and_then(|one| one.elo_error()).and_then(finite),
            elo_low: elo.map(|(low, _)| low).and_then(finite),
            elo_high: elo.map(|(_, high)| high).and_then(finite),
            normalised_elo: estimate.and_then(|one| one.normalised_elo()),
            normalised_elo_error: estimate.and_then(|one| one.normalised_elo_error()),
            los: estimate.and_then(|one: Estimate| one.los()),
            sprt: plan.sprt.map(|test| {
                let llr = tally.ratio(plan, &test);
                let (lower, upper) = test.bounds();
                SprtSummary {
                    test,
                    llr,
                    lower,
                    upper,
                    // Games that came in after the decision do not take it back.
                    verdict: tally
                        .decided
                        .or(llr.map(|llr| test.verdict(llr)))
                        .unwrap_or(Verdict::Open),
                }
            }),
            causes: tally.causes.clone(),
        }
    }

    /// Faults of both engines that cost a game or break the protocol.
    pub fn faults(&self) -> u64 {
        self.engines
            .iter()
            .map(|engine| engine.faults.total())
            .sum()
    }

    /// The state in a few words, for a progress bar.
    pub fn short(&self) -> String {
        let Counts {
            wins,
            draws,
            losses,
        } = self.results;
        let mut text = format!("+{wins} ={draws} -{losses}");
        if let (Some(elo), Some(error)) = (self.elo, self.elo_error) {
            text.push_str(&format!(", Elo {elo:+.1} ± {error:.1}"));
        }
        if let Some(llr) = self.sprt.and_then(|sprt| sprt.llr) {
            text.push_str(&format!(", LLR {llr:.2}"));
        }
        match self.faults() {
            0 => {}
            faults => text.push_str(&format!(", {faults} faults")),
        }
        text
    }
}

impl EngineSummary {
    fn new(plan: &MatchPlan, tally: &Tally, index: usize) -> Self {
        let usage = &tally.usage[index];
        let moves = usage.moves as f64;
        let seconds = usage.time.as_secs_f64();
        let any = usage.moves > 0;
        Self {
            name: plan.contestants[index].name.clone(),
            faults: tally.faults[index],
            moves: usage.moves,
            mean_time_ms: any.then(|| 1000.0 * seconds / moves),
            longest_time_ms: any.then_some(1000.0 * usage.longest.as_secs_f64()),
            mean_nodes: (usage.nodes > 0).then(|| usage.nodes as f64 / moves),
            nps: (usage.nodes > 0 && seconds > 0.0).then(|| usage.nodes as f64 / seconds),
            mean_depth: (usage.depth > 0).then(|| usage.depth as f64 / moves),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.engines[..] else {
            return Ok(());
        };
        if let Some(why) = &self.given_up {
            writeln!(f, "Match given up: {why}")?;
        }
        writeln!(
            f,
            "Score of {} vs {}: {}",
            first.name,
            second.name,
            counts(&self.results)
        )?;
        writeln!(f, "  with White: {}", counts(&self.as_white))?;
        writeln!(f, "  with Black: {}", counts(&self.as_black))?;
        self.fmt_estimate(f)?;
        if let Some(sprt) = &self.sprt {
            writeln!(f, "{sprt}")?;
        }
        let pairs = &self.pentanomial;
        writeln!(
            f,
            "Pairs with 0, ½, 1, 1½, 2 points: {:?}, {} complete",
            pairs.0,
            pairs.pairs()
        )?;
        let causes: Vec<_> = self
            .causes
            .iter()
            .map(|(cause, count)| format!("{cause} {count}"))
            .collect();
        writeln!(
            f,
            "Endings: {}",
            if causes.is_empty() {
                "none".to_owned()
            } else {
                causes.join(", ")
            }
        )?;
        if self.unfinished > 0 {
            writeln!(f, "Unfinished games, not counted: {}", self.unfinished)?;
        }
        writeln!(f)?;
        self.fmt_engines(f)
    }
}

impl Summary {
    fn fmt_estimate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(sample) = self.error_from else {
            return writeln!(f, "Elo difference: no finished game");
        };
        let source = match sample {
            Sample::Pairs => format!("pentanomial, {} pairs", self.samples),
            Sample::Games => format!("trinomial, {} games, no complete pair", self.samples),
        };
        let elo = match (self.elo, self.sample_score) {
            (Some(elo), _) => format!("{elo:+.1}"),
            (None, Some(score)) if score > 0.5 => "+inf".to_owned(),
            _ => "-inf".to_owned(),
        };
        let error = self
            .elo_error
            .map_or("n/a".to_owned(), |error| format!("{error:.1}"));
        writeln!(f, "Elo difference: {elo} ± {error} (95 %, {source})")?;
        if let (Some(low), Some(high)) = (self.score_low, self.score_high) {
            let score = self.sample_score.unwrap_or_default();
            let [score, low, high] = [score, low, high].map(|one| 100.0 * one);
            writeln!(
                f,
                "Score: {score:.2} %, 95 % lower bound {low:.2} %, upper bound {high:.2} %"
            )?;
        }
        if let (Some(los), Some(elo), Some(error)) =
            (self.los, self.normalised_elo, self.normalised_elo_error)
        {
            writeln!(
                f,
                "LOS: {:.1} %, normalised Elo: {elo:+.1} ± {error:.1}",
                100.0 * los
            )?;
        }
        Ok(())
    }

    fn fmt_engines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self
            .engines
            .iter()
            .map(|engine| engine.name.chars().count())
            .max()
            .unwrap_or(0)
            .max(9);
        let mut row = |title: &str, cell: &dyn Fn(&EngineSummary) -> String| {
            write!(f, "{title:<26}")?;
            for engine in &self.engines {
                write!(f, "  {:>width$}", cell(engine))?;
            }
            writeln!(f)
        };
        row("", &|engine| engine.name.clone())?;
        for (index, (title, weight, _)) in Faults::default().kinds().into_iter().enumerate() {
            let title = match weight {
                Weight::Note => format!("({title})"),
                Weight::Game | Weight::Protocol => title.to_owned(),
            };
            row(&title, &|engine| engine.faults.kinds()[index].2.to_string())?;
        }
        row("moves", &|engine| engine.moves.to_string())?;
        let number = |value: Option<f64>, digits: usize| {
            value.map_or("n/a".to_owned(), |value| format!("{value:.digits$}"))
        };
        row("mean ms a move", &|engine| number(engine.mean_time_ms, 1))?;
        row("longest ms a move", &|engine| {
            number(engine.longest_time_ms, 1)
        })?;
        row("mean nodes a move", &|engine| number(engine.mean_nodes, 0))?;
        row("nodes a second", &|engine| number(engine.nps, 0))?;
        row("mean depth", &|engine| number(engine.mean_depth, 1))
    }
}

fn counts(counts: &Counts) -> String {
    let Counts {
        wins,
        draws,
        losses,
    } = counts;
    let score = counts
        .score()
        .map_or("n/a".to_owned(), |score| format!("{score:.4}"));
    format!(
        "{wins} wins, {draws} draws, {losses} losses [{score}] {} games",
        counts.games()
    )
}
