//! The result of a match as figures, as text and as JSON. Formats what others have counted.

use std::cmp::Ordering::Equal;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::measure::sprt::{Model, Sprt, Verdict};
use crate::measure::stats::{Counts, Estimate, Pentanomial, Sample, ratings};

use super::tally::{Encounter, Tally};
use super::{Faults, MatchPlan, Weight};

/// Everything that is known of a match. Figures that games so far say nothing about are absent
/// (null), never 0.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The engines.
    pub engines: Vec<EngineSummary>,
    /// Games the plan has.
    pub games_planned: u64,
    /// Games finished.
    pub games: u64,
    /// Games cut off.
    pub unfinished: u64,
    /// Of the finished ones, those taken over from an earlier part; their faults and times are not known.
    pub resumed: u64,
    /// Why the match ended early.
    pub given_up: Option<String>,
    /// The result between two engines; with more of them `encounters` has the results.
    #[serde(flatten)]
    pub result: Option<EncounterSummary>,
    /// Results of everyone who met, where there are more than two engines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub encounters: Vec<EncounterSummary>,
    /// The sequential test, if the plan has one.
    pub sprt: Option<SprtSummary>,
    /// How games ended.
    pub causes: BTreeMap<&'static str, u64>,
}

/// What came of the games of two engines, seen from the first.
#[derive(Clone, Debug, Serialize)]
pub struct EncounterSummary {
    /// Its name.
    pub first: String,
    /// The other one's.
    pub second: String,
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
    /// Elo from all games, the mean of all engines being 0; absent between two engines, and for one that won or
    /// lost every game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<f64>,
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
        let mut encounters: Vec<EncounterSummary> = plan
            .encounters()
            .into_iter()
            .zip(&tally.encounters)
            .map(|((first, second), encounter)| {
                let name = |index: usize| plan.contestants[index].name.clone();
                EncounterSummary::new(name(first), name(second), encounter)
            })
            .collect();
        let mut engines: Vec<EngineSummary> = (0..plan.contestants.len())
            .map(|index| EngineSummary::new(plan, tally, index))
            .collect();
        let two = engines.len() == 2;
        if !two {
            let counts: Vec<_> = tally.encounters.iter().map(|one| one.counts).collect();
            let ratings = ratings(engines.len(), &plan.encounters(), &counts);
            for (engine, rating) in engines.iter_mut().zip(ratings) {
                engine.rating = rating;
            }
        }
        Self {
            engines,
            games_planned: plan.games() as u64,
            games: tally.games(),
            unfinished: tally.unfinished,
            resumed: tally.resumed,
            given_up: tally.given_up.clone(),
            result: if two { encounters.pop() } else { None },
            encounters,
            sprt: plan.sprt.map(|test| SprtSummary::new(test, plan, tally)),
            causes: tally.causes.clone(),
        }
    }

    /// Faults of all engines that cost a game or break the protocol.
    pub fn faults(&self) -> u64 {
        self.engines
            .iter()
            .map(|engine| engine.faults.total())
            .sum()
    }

    /// The state in a few words, for a progress bar.
    pub fn short(&self) -> String {
        let mut text = String::new();
        match &self.result {
            Some(result) => {
                let Counts {
                    wins,
                    draws,
                    losses,
                } = result.results;
                text.push_str(&format!("+{wins} ={draws} -{losses}"));
                if let (Some(elo), Some(error)) = (result.elo, result.elo_error) {
                    text.push_str(&format!(", Elo {elo:+.1} ± {error:.1}"));
                }
            }
            None => {
                let best = self.engines.iter().filter(|one| one.rating.is_some());
                let best = best.max_by(|a, b| a.rating.partial_cmp(&b.rating).unwrap_or(Equal));
                text.push_str(&best.map_or(String::new(), |one| format!("{} leads", one.name)));
            }
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

impl EncounterSummary {
    fn new(first: String, second: String, encounter: &Encounter) -> Self {
        let estimate = encounter.estimate();
        let finite = |value: f64| value.is_finite().then_some(value);
        let score = estimate.and_then(|one| one.score_interval());
        let elo = estimate.and_then(|one| one.elo_interval());
        Self {
            first,
            second,
            results: encounter.counts,
            as_white: encounter.as_white,
            as_black: encounter.as_black(),
            pentanomial: encounter.pentanomial,
            score: encounter.counts.score(),
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
        }
    }

    /// `+101.3 ± 31.8`
    fn elo_text(&self) -> String {
        let elo = match (self.elo, self.sample_score) {
            (Some(elo), _) => format!("{elo:+.1}"),
            (None, Some(score)) if score > 0.5 => "+inf".to_owned(),
            _ => "-inf".to_owned(),
        };
        let error = self
            .elo_error
            .map_or("n/a".to_owned(), |error| format!("{error:.1}"));
        format!("{elo} ± {error}")
    }
}

impl SprtSummary {
    fn new(test: Sprt, plan: &MatchPlan, tally: &Tally) -> Self {
        let llr = tally.ratio(plan, &test);
        let (lower, upper) = test.bounds();
        Self {
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
            rating: None,
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
        if let Some(why) = &self.given_up {
            writeln!(f, "Match given up: {why}")?;
        }
        match &self.result {
            Some(result) => self.fmt_result(f, result)?,
            None => self.fmt_tournament(f)?,
        }
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
        if self.resumed > 0 {
            writeln!(
                f,
                "Of an earlier part, without endings, faults and times: {} games",
                self.resumed
            )?;
        }
        writeln!(f)?;
        self.fmt_engines(f)
    }
}

impl Summary {
    fn fmt_result(&self, f: &mut fmt::Formatter<'_>, result: &EncounterSummary) -> fmt::Result {
        writeln!(
            f,
            "Score of {} vs {}: {}",
            result.first,
            result.second,
            counts(&result.results)
        )?;
        writeln!(f, "  with White: {}", counts(&result.as_white))?;
        writeln!(f, "  with Black: {}", counts(&result.as_black))?;
        self.fmt_estimate(f, result)?;
        if let Some(sprt) = &self.sprt {
            writeln!(f, "{sprt}")?;
        }
        let pairs = &result.pentanomial;
        writeln!(
            f,
            "Pairs with 0, ½, 1, 1½, 2 points: {:?}, {} complete",
            pairs.0,
            pairs.pairs()
        )
    }

    fn fmt_estimate(&self, f: &mut fmt::Formatter<'_>, result: &EncounterSummary) -> fmt::Result {
        let Some(sample) = result.error_from else {
            return writeln!(f, "Elo difference: no finished game");
        };
        let source = match sample {
            Sample::Pairs => format!("pentanomial, {} pairs", result.samples),
            Sample::Games => format!("trinomial, {} games, no complete pair", result.samples),
        };
        writeln!(f, "Elo difference: {} (95 %, {source})", result.elo_text())?;
        if let (Some(low), Some(high)) = (result.score_low, result.score_high) {
            let score = result.sample_score.unwrap_or_default();
            let [score, low, high] = [score, low, high].map(|one| 100.0 * one);
            writeln!(
                f,
                "Score: {score:.2} %, 95 % lower bound {low:.2} %, upper bound {high:.2} %"
            )?;
        }
        if let (Some(los), Some(elo), Some(error)) = (
            result.los,
            result.normalised_elo,
            result.normalised_elo_error,
        ) {
            writeln!(
                f,
                "LOS: {:.1} %, normalised Elo: {elo:+.1} ± {error:.1}",
                100.0 * los
            )?;
        }
        Ok(())
    }

    /// Every encounter in a line, then the crosstable by rating.
    fn fmt_tournament(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |names: &mut dyn Iterator<Item = &str>| {
            names.map(|name| name.chars().count()).max().unwrap_or(0)
        };
        let first = width(&mut self.encounters.iter().map(|one| one.first.as_str()));
        let second = width(&mut self.encounters.iter().map(|one| one.second.as_str()));
        for one in &self.encounters {
            let elo = match one.error_from {
                Some(_) => format!("Elo {}", one.elo_text()),
                None => String::new(),
            };
            writeln!(
                f,
                "{:<first$} vs {:<second$}  {}  {elo}",
                one.first,
                one.second,
                counts(&one.results)
            )?;
        }
        writeln!(f)?;
        let mut order: Vec<&EngineSummary> = self.engines.iter().collect();
        // Who has no rating won or lost everything: the share of the points says which.
        let share = |engine: &EngineSummary| {
            let met = self
                .engines
                .iter()
                .filter_map(|one| self.points(&engine.name, &one.name));
            let (points, games) = met.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            points / games.max(1) as f64
        };
        order.sort_by(|a, b| match (a.rating, b.rating) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            _ => share(b).total_cmp(&share(a)),
        });
        let name = width(&mut order.iter().map(|one| one.name.as_str())).max(6);
        write!(f, "{:<name$} {:>7} {:>11}", "", "Elo", "points")?;
        for number in 1..=order.len() {
            write!(f, " {number:>9}")?;
        }
        writeln!(f)?;
        for engine in &order {
            let rating = engine
                .rating
                .map_or("n/a".to_owned(), |rating| format!("{rating:+.0}"));
            let cells: Vec<Option<(f64, u64)>> = order
                .iter()
                .map(|other| self.points(&engine.name, &other.name))
                .collect();
            let all = cells.iter().flatten();
            let (points, games) = all.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let total = format!("{points}/{games}");
            write!(f, "{:<name$} {rating:>7} {total:>11}", engine.name)?;
            for cell in cells {
                let text = cell.map_or("·".to_owned(), |(points, games)| {
                    format!("{points}/{games}")
                });
                write!(f, " {text:>9}")?;
            }
            writeln!(f)?;
        }
        writeln!(f)
    }

    /// Points and games of one engine against another; `None` if they do not meet.
    fn points(&self, engine: &str, other: &str) -> Option<(f64, u64)> {
        self.encounters.iter().find_map(|one| {
            let Counts {
                wins,
                draws,
                losses,
            } = one.results;
            let own = match (one.first == engine, one.second == engine) {
                (true, _) if one.second == other => wins,
                (_, true) if one.first == other => losses,
                _ => return None,
            };
            Some((own as f64 + 0.5 * draws as f64, wins + draws + losses))
        })
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
