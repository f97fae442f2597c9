//! One player at its desk: asks it what the store does not know yet, and keeps the answers. Knows no measure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::chess::{Game, Move};
use crate::eval::OpenPolicy;

use super::EvaluateError;
use super::player::{Identity, Player, Thought, View};
use super::results::Effort;
use super::store::{Key, Store, position_key};

/// Positions a call.
const BATCH: usize = 64;
/// Moves kept of a policy, best first.
const KEPT: usize = 3;

/// How moves are sampled from a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sampling {
    /// Softmax(logits / temperature); above 0.
    pub temperature: f32,
    /// Only so many of the most probable outputs are left in.
    pub top_k: usize,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 0.6,
            top_k: 20,
        }
    }
}

/// What the store keeps of a [`View`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyAnswer {
    /// Whether the most probable of all outputs is a legal move; `None` where only legal ones can be had.
    pub argmax_legal: Option<bool>,
    /// Whether one sampled from all outputs is.
    pub sampled_legal: Option<bool>,
    /// The most probable legal moves, best first, in UCI notation.
    pub top: Vec<String>,
    /// The value, from the side to move.
    pub q: f32,
}

/// What the store keeps of a [`Thought`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchAnswer {
    /// The move to play.
    pub best: String,
    /// The value, from the side to move.
    pub q: Option<f32>,
    /// Nodes searched.
    pub nodes: u64,
    /// Milliseconds taken.
    pub ms: f64,
    /// Each change of mind: move, nodes, milliseconds.
    pub trail: Vec<(String, u64, f64)>,
}

/// News of a measure under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told<'a> {
    /// A measure begins, with so many steps.
    Begin(&'a str, u64),
    /// So many steps are done.
    Step(u64),
}

/// A player with its store.
pub struct Desk<'a> {
    /// Who is asked.
    pub player: &'a mut dyn Player,
    /// Who that is.
    pub identity: &'a Identity,
    /// Where answers are kept.
    pub store: &'a Store,
    /// How moves are sampled.
    pub sampling: Sampling,
    /// Nodes of a search.
    pub nodes: u64,
    /// Set to end as soon as possible.
    pub cancel: &'a Arc<AtomicBool>,
    /// Hears how it goes.
    pub told: &'a mut dyn FnMut(Told<'_>),
    /// What takes its time.
    pub clock: Clock,
}

/// The seconds that each measure took.
#[derive(Debug, Default)]
pub struct Clock {
    running: Option<(String, Instant)>,
    spent: Vec<(String, f64)>,
}

impl Clock {
    fn begin(&mut self, measure: &str) {
        self.end();
        self.running = Some((measure.to_owned(), Instant::now()));
    }

    fn end(&mut self) {
        if let Some((measure, since)) = self.running.take() {
            self.spent.push((measure, since.elapsed().as_secs_f64()));
        }
    }

    /// What was spent since the last call, in order; what runs ends.
    pub fn take(&mut self) -> Vec<(String, f64)> {
        self.end();
        std::mem::take(&mut self.spent)
    }
}

impl Desk<'_> {
    /// Ends the evaluation if that was asked for.
    ///
    /// # Errors
    /// [`EvaluateError::Interrupted`] then.
    pub fn go_on(&self) -> Result<(), EvaluateError> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(EvaluateError::Interrupted),
            false => Ok(()),
        }
    }

    /// What the policy says of each position; `None` from a player without one.
    ///
    /// # Errors
    /// When the player or the store fails.
    pub fn policies(
        &mut self,
        games: &[Arc<Game>],
    ) -> Result<Option<Vec<PolicyAnswer>>, EvaluateError> {
        let Sampling { temperature, top_k } = self.sampling;
        let settings = format!(
            "{} t={temperature} k={top_k}",
            self.identity.policy_settings
        );
        let mut answers = Vec::with_capacity(games.len());
        for batch in games.chunks(BATCH) {
            self.go_on()?;
            let keys: Vec<String> = batch.iter().map(|game| position_key(game)).collect();
            let key = |position| Key {
                network: &self.identity.sha256,
                settings: &settings,
                task: "policy",
                position,
            };
            let mut known: Vec<Option<PolicyAnswer>> = Vec::with_capacity(batch.len());
            for position in &keys {
                known.push(self.store.get(key(position))?);
            }
            let unknown: Vec<usize> = (0..batch.len()).filter(|&i| known[i].is_none()).collect();
            if !unknown.is_empty() {
                let asked: Vec<Arc<Game>> =
                    unknown.iter().map(|&i| Arc::clone(&batch[i])).collect();
                let Some(views) = self.player.views(&asked)? else {
                    return Ok(None);
                };
                self.store.together(|| {
                    for (&i, view) in unknown.iter().zip(&views) {
                        let answer = answered(&batch[i], view, self.sampling, &keys[i]);
                        self.store.put(key(&keys[i]), &answer)?;
                        known[i] = Some(answer);
                    }
                    Ok::<_, EvaluateError>(())
                })?;
            }
            answers.extend(known.into_iter().flatten());
        }
        Ok(Some(answers))
    }

    /// The policy's first choice in each position; `None` from a player without one.
    ///
    /// # Errors
    /// When the player or the store fails.
    pub fn first_choices(
        &mut self,
        games: &[Arc<Game>],
    ) -> Result<Option<Vec<Move>>, EvaluateError> {
        let Some(answers) = self.policies(games)? else {
            return Ok(None);
        };
        let moves = games.iter().zip(&answers).map(|(game, answer)| {
            let best = answer.top.first().map_or("", String::as_str);
            parse(game, best)
        });
        moves.collect::<Result<Vec<Move>, _>>().map(Some)
    }

    /// What a search of `nodes` nodes gives, or one at the player's own pace; `None` from a player that does not
    /// search.
    ///
    /// # Errors
    /// When the player or the store fails.
    pub fn search(
        &mut self,
        game: &Arc<Game>,
        nodes: u64,
    ) -> Result<Option<SearchAnswer>, EvaluateError> {
        self.go_on()?;
        let settings = match &self.identity.own_pace {
            Some(pace) => format!("{} {pace}", self.identity.search_settings),
            None => format!("{} nodes={nodes}", self.identity.search_settings),
        };
        let position = position_key(game);
        let key = Key {
            network: &self.identity.sha256,
            settings: &settings,
            task: "search",
            position: &position,
        };
        if let Some(answer) = self.store.get(key)? {
            return Ok(Some(answer));
        }
        let Some(thought) = self.player.think(game, nodes)? else {
            return Ok(None);
        };
        let answer = SearchAnswer::new(game, &thought);
        self.store.put(key, &answer)?;
        Ok(Some(answer))
    }

    /// What a move of [`Desk::search`] costs with so many nodes.
    pub fn effort(&self, nodes: u64) -> Effort {
        let pace = self.identity.own_pace.clone();
        Effort {
            nodes: pace.is_none().then_some(nodes),
            pace,
        }
    }

    /// Says that a measure begins; the one before it has ended.
    pub fn begin(&mut self, measure: &str, steps: usize) {
        self.clock.begin(measure);
        (self.told)(Told::Begin(measure, steps as u64));
    }

    /// Says that so many steps of it are done.
    pub fn step(&mut self, steps: usize) {
        (self.told)(Told::Step(steps as u64));
    }
}

impl SearchAnswer {
    fn new(game: &Game, thought: &Thought) -> SearchAnswer {
        let text = |m| game.current().move_to_uci(m, true);
        let ms = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        SearchAnswer {
            best: text(thought.best),
            q: thought.q,
            nodes: thought.nodes,
            ms: ms(thought.time),
            trail: thought
                .trail
                .iter()
                .map(|step| (text(step.best), step.nodes, ms(step.time)))
                .collect(),
        }
    }

    /// The move to play.
    ///
    /// # Errors
    /// When the store held a move of another position.
    pub fn best_move(&self, game: &Game) -> Result<Move, EvaluateError> {
        parse(game, &self.best)
    }
}

fn parse(game: &Game, text: &str) -> Result<Move, EvaluateError> {
    game.current()
        .parse_uci(text)
        .map_err(|error| EvaluateError::StoredMove(error.to_string()))
}

fn answered(game: &Game, view: &View, sampling: Sampling, position: &str) -> PolicyAnswer {
    let mut random = StdRng::seed_from_u64(seed(position));
    let legal = |open: &OpenPolicy, output: Option<usize>| {
        output.is_some_and(|output| open.legal.contains(&output))
    };
    let mut order: Vec<usize> = (0..view.moves.len().min(view.priors.len())).collect();
    // Stable: equals keep the order of the move generator.
    order.sort_by(|&a, &b| view.priors[b].total_cmp(&view.priors[a]));
    let open = view.open.as_ref();
    PolicyAnswer {
        argmax_legal: open.map(|open| legal(open, argmax(&open.logits))),
        sampled_legal: open.map(|open| legal(open, sampled(&open.logits, sampling, &mut random))),
        top: order
            .iter()
            .take(KEPT)
            .map(|&i| game.current().move_to_uci(view.moves[i], true))
            .collect(),
        q: view.q,
    }
}

/// The same position is always sampled alike.
fn seed(position: &str) -> u64 {
    position
        .get(..16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_default()
}

/// Index of the largest logit; the first of equals.
fn argmax(logits: &[f32]) -> Option<usize> {
    let best = |best: usize, at: usize| if logits[at] > logits[best] { at } else { best };
    (0..logits.len()).reduce(best)
}

/// An index drawn from softmax(logits / temperature) over the `top_k` largest.
pub fn sampled(logits: &[f32], sampling: Sampling, random: &mut impl Rng) -> Option<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    order.truncate(sampling.top_k.max(1));
    let largest = logits[*order.first()?];
    let weight = |&index: &usize| f64::from((logits[index] - largest) / sampling.temperature).exp();
    let sum: f64 = order.iter().map(weight).sum();
    let mut left = random.random::<f64>() * sum;
    for index in &order {
        left -= weight(index);
        if left < 0.0 {
            return Some(*index);
        }
    }
    order.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_follows_temperature_and_top_k() {
        let logits = [0.0, (3.0_f32).ln(), -50.0, (3.0_f32).ln() - 50.0];
        let mut random = StdRng::seed_from_u64(1);
        let plain = Sampling {
            temperature: 1.0,
            top_k: 4,
        };
        let hits = (0..4000)
            .filter(|_| sampled(&logits, plain, &mut random) == Some(1))
            .count();
        assert!(
            (2900..3100).contains(&hits),
            "{hits} of 4000, expected 3000"
        );
        let one = Sampling {
            temperature: 1.0,
            top_k: 1,
        };
        assert!((0..100).all(|_| sampled(&logits, one, &mut random) == Some(1)));
        assert_eq!(sampled(&[], one, &mut random), None);
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), Some(1));
    }
}
