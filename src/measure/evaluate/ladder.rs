//! Games against an engine of known strengths, rung by rung, and the rating that follows. The games themselves are
//! the match room's; this knows neither flags nor networks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::{Engine, EngineConfig, OptionKind};
use crate::measure::book::Book;
use crate::measure::matches::{
    self, Cause, Contestant, MatchPlan, Pace, Pairing, Played, Rules, Tournament,
};
use crate::measure::stats::Counts;

use super::EvaluateError;
use super::desk::Told;
use super::elo::{self, Rating};
use super::player::PlayerError;
use super::results::Effort;
use super::store::{Key, Store};

/// Games a rung of a full suite.
pub const GAMES: usize = 20;
/// What `Skill Level` 0 to 3 are taken for; nobody has measured them.
const SKILLS: [u32; 4] = [800, 950, 1100, 1250];
/// The rungs above the engine's own minimum.
const ELOS: [u32; 3] = [1500, 1800, 2000];
/// How far a move may overrun its time: what lies between two processes on a busy machine.
const MARGIN: Duration = Duration::from_millis(1000);

/// An opponent: the engine at one strength.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// `skill-0`, `elo-1500`.
    pub name: String,
    /// Its rating, nominal.
    pub elo: u32,
    options: Vec<(String, String)>,
}

/// The engine of the ladder.
#[derive(Clone, Debug)]
pub struct Opponent {
    /// Its name with its version.
    pub name: String,
    /// How to start it.
    pub config: EngineConfig,
    /// Its rungs, weakest first.
    pub rungs: Vec<Rung>,
}

/// A ladder to be played.
#[derive(Clone, Debug)]
pub struct LadderPlan {
    /// The opponent.
    pub opponent: Opponent,
    /// Games a rung, even: colours are swapped.
    pub games: usize,
    /// The opponent's time for a move.
    pub move_time: Duration,
    /// Where games begin.
    pub book: Book,
    /// Openings and rules in words, for the keys of the store and the report.
    pub rules_text: String,
    /// Rules beyond those of chess.
    pub rules: Rules,
    /// Games at a time.
    pub concurrency: usize,
}

/// How the contestant chooses its moves, to be told with every Elo.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Manner {
    /// What a move costs.
    #[serde(flatten)]
    pub effort: Effort,
    /// Temperature by visits; 0 = the best move, `None` = not known.
    pub temperature: Option<f64>,
    /// Outputs a move is sampled from; `None` = all.
    pub top_k: Option<u32>,
}

/// A ladder that was played.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// The opponent's name with its version.
    pub engine: String,
    /// Its time for a move.
    pub move_time_ms: u64,
    /// How the contestant chose its moves.
    pub manner: Manner,
    /// Openings and rules.
    pub rules: String,
    /// The rating; `None` without games.
    pub rating: Option<Rating>,
    /// Results by rung.
    pub rungs: Vec<RungResult>,
}

/// Results against one rung, seen from the contestant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RungResult {
    /// The rung.
    pub rung: String,
    /// Its nominal rating.
    pub elo: u32,
    /// Wins, draws and losses.
    pub counts: Counts,
    /// Points over games.
    pub score: Option<f64>,
    /// Games that reached the limit on moves; they count as draws.
    pub cut: u64,
    /// Games decided by what the engines said of them, or by tablebases.
    pub adjudicated: u64,
    /// Games lost by a crash, a stall, an illegal move or time, by either side.
    pub faults: u64,
}

/// What the store keeps of a game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// The contestant's half points.
    halves: u8,
    cut: bool,
    adjudicated: bool,
    fault: bool,
}

impl Opponent {
    /// Starts the engine once to learn its name and its lowest `UCI_Elo`. `more` are rungs beyond the usual ones.
    ///
    /// # Errors
    /// An engine that is not there, or has no strengths to set.
    pub fn introduce(
        config: EngineConfig,
        more: &[u32],
        cancel: &Arc<AtomicBool>,
    ) -> Result<Opponent, EvaluateError> {
        let mut engine =
            Engine::start_with(config.clone(), Arc::clone(cancel)).map_err(PlayerError::Client)?;
        let name = engine.name().to_owned();
        let range = match engine.option("UCI_Elo").map(|option| &option.kind) {
            Some(&OptionKind::Spin {
                min: Some(min),
                max: Some(max),
                ..
            }) => Some((min, max)),
            _ => None,
        };
        let skills = engine.option("Skill Level").is_some();
        engine.quit();
        let Some((min, max)) = range else {
            return Err(EvaluateError::Ladder(format!(
                "{name} has no option UCI_Elo with a range; a ladder needs one, as Stockfish has it"
            )));
        };
        if let Some(elo) = more.iter().find(|&&elo| !(min..=max).contains(&elo.into())) {
            return Err(EvaluateError::Ladder(format!(
                "rung {elo}: {name} takes UCI_Elo from {min} to {max}"
            )));
        }
        Ok(Opponent {
            name,
            config,
            rungs: rungs(min, max, skills, more),
        })
    }
}

/// Skill levels, the lowest `UCI_Elo`, the usual ones above it, and more.
fn rungs(min: i64, max: i64, skills: bool, more: &[u32]) -> Vec<Rung> {
    let skill = |(level, &elo): (usize, &u32)| Rung {
        name: format!("skill-{level}"),
        elo,
        options: vec![("Skill Level".to_owned(), level.to_string())],
    };
    let mut rungs: Vec<Rung> = SKILLS.iter().enumerate().map(skill).collect();
    if !skills {
        rungs.clear();
    }
    let lowest = u32::try_from(min).unwrap_or(0);
    let mut elos: Vec<u32> = ELOS.iter().chain(more).copied().chain([lowest]).collect();
    elos.sort_unstable();
    elos.dedup();
    elos.retain(|&elo| (min..=max).contains(&i64::from(elo)));
    rungs.extend(elos.into_iter().map(|elo| Rung {
        name: format!("elo-{elo}"),
        elo,
        options: vec![
            ("UCI_LimitStrength".to_owned(), "true".to_owned()),
            ("UCI_Elo".to_owned(), elo.to_string()),
        ],
    }));
    rungs
}

/// Plays the games that the store does not hold yet. `identity` and `settings` say who `contestant` is.
///
/// # Errors
/// An engine that cannot be started, a store that fails, or an interruption.
pub fn ladder(
    plan: &LadderPlan,
    contestant: &Contestant,
    manner: &Manner,
    (identity, settings): (&str, &str),
    store: &Store,
    cancel: &Arc<AtomicBool>,
    told: &mut dyn FnMut(Told<'_>),
) -> Result<Ladder, EvaluateError> {
    let rungs = &plan.opponent.rungs;
    let match_plan = match_plan(plan, contestant);
    let settings = format!(
        "{settings} {} against {} {} ms, {}",
        manner.effort,
        plan.opponent.name,
        plan.move_time.as_millis(),
        plan.rules_text
    );
    let position = |pairing: &Pairing| {
        let colour = if pairing.white == 0 { "white" } else { "black" };
        let rung = &rungs[pairing.encounter].name;
        format!("{rung} round {} {colour}", pairing.round + 1)
    };
    let put = |pairing: &Pairing, kept: &Kept| {
        let position = position(pairing);
        store.put(key(identity, &settings, &position), kept)
    };
    let (mut kept, mut played) = (HashMap::new(), Vec::new());
    for number in 0..match_plan.games() {
        let pairing = match_plan.pairing(number);
        let known: Option<Kept> = store.get(key(identity, &settings, &position(&pairing)))?;
        if let Some(known) = known {
            let white_halves = match pairing.white {
                0 => known.halves,
                _ => 2 - known.halves.min(2),
            };
            played.push(Played {
                pairing,
                white_halves,
            });
            kept.insert(number, known);
        }
    }
    told(Told::Step(played.len() as u64));
    let mut failed = None;
    let tally = matches::run(&match_plan, &played, cancel, &mut |game, _| {
        let Some(halves) = game.half_points(0) else {
            return;
        };
        let one = Kept {
            halves,
            cut: game.cause == Cause::MaxMoves,
            adjudicated: matches!(game.cause, Cause::Scores(_) | Cause::Tablebases(_)),
            fault: game.cause.is_fault(),
        };
        // A game that a fault decided is played again by the next run.
        if !one.fault
            && let Err(error) = put(&game.pairing, &one)
        {
            failed.get_or_insert(error);
        }
        kept.insert(game.pairing.number, one);
        told(Told::Step(1));
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if let Some(why) = tally.given_up {
        return Err(EvaluateError::Ladder(why));
    }
    if cancel.load(Ordering::Relaxed) {
        return Err(EvaluateError::Interrupted);
    }
    let mut results: Vec<RungResult> = rungs
        .iter()
        .map(|rung| RungResult {
            rung: rung.name.clone(),
            elo: rung.elo,
            ..RungResult::default()
        })
        .collect();
    for (number, kept) in &kept {
        results[match_plan.pairing(*number).encounter].add(kept);
    }
    Ok(Ladder {
        engine: plan.opponent.name.clone(),
        move_time_ms: plan.move_time.as_millis() as u64,
        manner: manner.clone(),
        rules: plan.rules_text.clone(),
        rating: rating(&results),
        rungs: results,
    })
}

fn key<'a>(network: &'a str, settings: &'a str, position: &'a str) -> Key<'a> {
    Key {
        network,
        settings,
        task: "game",
        position,
    }
}

/// The contestant against every rung.
fn match_plan(plan: &LadderPlan, contestant: &Contestant) -> MatchPlan {
    let rung = |rung: &Rung| {
        let mut engine = plan.opponent.config.clone();
        engine.options.push(("Threads".to_owned(), "1".to_owned()));
        engine.options.extend(rung.options.iter().cloned());
        Contestant {
            name: rung.name.clone(),
            engine,
            pace: Pace {
                move_time: Some(plan.move_time),
                margin: MARGIN,
                ..Pace::default()
            },
            restart: false,
        }
    };
    let contestants =
        std::iter::once(contestant.clone()).chain(plan.opponent.rungs.iter().map(rung));
    MatchPlan {
        contestants: contestants.collect(),
        tournament: Tournament::Gauntlet,
        book: plan.book.clone(),
        rounds: plan.games.div_ceil(2),
        games_a_round: 2,
        concurrency: plan.concurrency,
        rules: plan.rules.clone(),
        event: "Ladder".to_owned(),
        sprt: None,
    }
}

impl RungResult {
    fn add(&mut self, game: &Kept) {
        match game.halves {
            0 => self.counts.losses += 1,
            1 => self.counts.draws += 1,
            _ => self.counts.wins += 1,
        }
        self.cut += u64::from(game.cut);
        self.adjudicated += u64::from(game.adjudicated);
        self.faults += u64::from(game.fault);
        self.score = self.counts.score();
    }
}

/// The rating that the results of all rungs make most likely.
pub fn rating(rungs: &[RungResult]) -> Option<Rating> {
    let mut games = Vec::new();
    for rung in rungs {
        let Counts {
            wins,
            draws,
            losses,
        } = rung.counts;
        for (score, count) in [(1.0, wins), (0.5, draws), (0.0, losses)] {
            games.extend((0..count).map(|_| elo::Game {
                opponent: f64::from(rung.elo),
                score,
            }));
        }
    }
    elo::rating(&games, 1)
}

impl Ladder {
    /// The rating with everything it depends on: `1007 (95 % 920 to 1101)`, then engine, sampling and nodes.
    pub fn sentence(&self) -> String {
        format!(
            "{} against {} at {} ms a move; {}",
            self.rating
                .map_or("n/a".to_owned(), |rating| rating.to_string()),
            self.engine,
            self.move_time_ms,
            self.manner
        )
    }
}

impl std::fmt::Display for Rating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = |end: Option<f64>| end.map_or("open".to_owned(), |elo| format!("{elo:.0}"));
        match (self.elo, self.low, self.high) {
            (Some(elo), low, high) => {
                write!(f, "{elo:.0} (95 % {} to {})", end(low), end(high))
            }
            (None, Some(low), _) => write!(f, "above {low:.0} (all games won; 95 %)"),
            (None, None, Some(high)) => write!(f, "below {high:.0} (all games lost; 95 %)"),
            (None, None, None) => f.write_str("n/a"),
        }
    }
}

impl std::fmt::Display for Manner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.temperature {
            Some(temperature) => write!(f, "temperature {temperature}")?,
            None => f.write_str("the engine's own temperature")?,
        }
        match self.top_k {
            Some(k) => write!(f, ", top-k {k}")?,
            None => f.write_str(", no top-k")?,
        }
        write!(f, ", {} a move", self.effort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_start_at_the_engines_own_minimum() {
        let names = |min, skills, more: &[u32]| -> Vec<String> {
            rungs(min, 2850, skills, more)
                .into_iter()
                .map(|rung| rung.name)
                .collect()
        };
        let all = names(1350, true, &[2200]);
        assert_eq!(all.len(), 9);
        assert_eq!(
            all[3..],
            [
                "skill-3", "elo-1350", "elo-1500", "elo-1800", "elo-2000", "elo-2200"
            ]
        );
        assert_eq!(names(1320, false, &[])[0], "elo-1320");
        assert_eq!(
            names(1600, false, &[]),
            ["elo-1600", "elo-1800", "elo-2000"]
        );
    }

    #[test]
    fn a_hundred_even_games_against_one_rung_are_its_elo() {
        let rung = RungResult {
            elo: 1500,
            counts: Counts {
                wins: 50,
                draws: 0,
                losses: 50,
            },
            ..RungResult::default()
        };
        let rating = rating(&[rung]).unwrap();
        assert!((rating.elo.unwrap() - 1500.0).abs() < 1e-6);
        let sd = (rating.high.unwrap() - rating.low.unwrap()) / (2.0 * 1.96);
        assert!((31.0..39.0).contains(&sd), "{sd}");
    }

    #[test]
    fn the_sentence_says_what_the_rating_depends_on() {
        let ladder = Ladder {
            engine: "Stockfish 15.1".to_owned(),
            move_time_ms: 100,
            manner: Manner {
                effort: Effort {
                    nodes: Some(1),
                    pace: None,
                },
                temperature: Some(0.0),
                ..Manner::default()
            },
            rules: String::new(),
            rating: elo::rating(
                &[elo::Game {
                    opponent: 800.0,
                    score: 0.0,
                }; 20],
                1,
            ),
            rungs: Vec::new(),
        };
        let sentence = ladder.sentence();
        for word in [
            "below",
            "Stockfish 15.1",
            "100 ms",
            "temperature 0",
            "no top-k",
            "1 node",
        ] {
            assert!(sentence.contains(word), "{sentence}");
        }
    }
}
