//! A strong engine that judges moves, its answers kept in the store; and what a player's moves lose by its judgement.
//! Plays no games.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::chess::{Game, Move};
use crate::client::{Bound, Engine, EngineConfig, Info, Limits, Score};

use super::EvaluateError;
use super::desk::Desk;
use super::engine::ask;
use super::player::PlayerError;
use super::positions::Sample;
use super::results::Effort;
use super::store::{Key, Store, position_key};

/// No score counts for more, so that a missed mate is not worth a thousand pawns.
const MOST_CP: i64 = 1000;

/// The judging engine at a depth.
pub struct Judge {
    engine: Engine,
    depth: u32,
}

/// A move with what the judge thinks of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// In UCI notation.
    pub m: String,
    /// Centipawns for the side to move, at most 1000 either way; a mate is 1000.
    pub cp: i64,
}

/// What moves lose against the judge's own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// The judge's name.
    pub judge: String,
    /// Its depth.
    pub depth: u32,
    /// The policy's first choices; `None` without a policy.
    pub policy: Option<Loss>,
    /// The moves of a search; `None` if the player does not search.
    pub search: Option<Loss>,
    /// What a move of that search cost.
    pub effort: Effort,
}

/// Mean loss of moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// Centipawns a move.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    /// Moves that were judged.
    pub positions: usize,
}

impl Judge {
    /// Starts the engine.
    ///
    /// # Errors
    /// An engine that is not there or does not answer.
    pub fn start(
        config: EngineConfig,
        depth: u32,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Judge, PlayerError> {
        Ok(Judge {
            engine: Engine::start_with(config, Arc::clone(cancel))?,
            depth,
        })
    }

    /// The engine's name with its version.
    pub fn name(&self) -> &str {
        self.engine.name()
    }

    /// The `lines` best moves, best first; with `only`, that move alone.
    ///
    /// # Errors
    /// When the engine or the store fails.
    pub fn judge(
        &mut self,
        store: &Store,
        game: &Game,
        only: Option<Move>,
        lines: u32,
    ) -> Result<Vec<Judged>, EvaluateError> {
        let only = only.map(|m| game.current().move_to_uci(m, false));
        let position = match &only {
            Some(m) => format!("{} {m}", position_key(game)),
            None => position_key(game),
        };
        let settings = format!("depth={} lines={lines}", self.depth);
        let name = self.engine.name().to_owned();
        let key = Key {
            network: &name,
            settings: &settings,
            task: "judge",
            position: &position,
        };
        if let Some(known) = store.get(key)? {
            return Ok(known);
        }
        let judged = self.look(game, only, lines)?;
        store.put(key, &judged)?;
        Ok(judged)
    }

    fn look(
        &mut self,
        game: &Game,
        only: Option<String>,
        lines: u32,
    ) -> Result<Vec<Judged>, PlayerError> {
        let limits = Limits {
            depth: Some(self.depth),
            search_moves: only.into_iter().collect(),
            ..Limits::default()
        };
        self.engine.set_option("MultiPV", &lines.to_string())?;
        self.engine.new_game()?;
        let mut found: Vec<Option<Judged>> = vec![None; lines as usize];
        let mut keep = |info: Info| {
            let rank = info.multipv.unwrap_or(1).max(1) as usize - 1;
            let (Some(score), Some(m), Some(slot)) =
                (info.score, info.pv.first(), found.get_mut(rank))
            else {
                return;
            };
            if info.bound == Bound::Exact {
                *slot = Some(Judged {
                    m: m.clone(),
                    cp: centipawns(score),
                });
            }
        };
        let (best, _) = ask(&mut self.engine, game, &limits, &mut keep)?;
        let found: Vec<Judged> = found.into_iter().map_while(|line| line).collect();
        match found.is_empty() {
            true => Err(PlayerError::NoMove {
                player: self.engine.name().to_owned(),
                answer: format!("{best} without a score"),
                fen: game.current().to_fen(true),
            }),
            false => Ok(found),
        }
    }
}

fn centipawns(score: Score) -> i64 {
    match score {
        Score::Cp(cp) => cp.clamp(-MOST_CP, MOST_CP),
        Score::Mate(n) if n > 0 => MOST_CP,
        Score::Mate(_) => -MOST_CP,
    }
}

/// What a move loses: the judge's score of its own move less that of `m`, never below 0.
fn loss(judge: &mut Judge, store: &Store, game: &Game, m: Move) -> Result<i64, EvaluateError> {
    let best = judge.judge(store, game, None, 1)?;
    let Some(best) = best.first() else {
        return Ok(0);
    };
    if game.current().parse_uci(&best.m) == Ok(m) {
        return Ok(0);
    }
    let played = judge.judge(store, game, Some(m), 1)?;
    Ok(played.first().map_or(0, |one| (best.cp - one.cp).max(0)))
}

/// Judges a player's moves, the policy's and a search's. `None` from a player that makes none.
///
/// # Errors
/// When the player, the judge or the store fails.
pub fn losses(
    desk: &mut Desk<'_>,
    judge: &mut Judge,
    samples: &[Sample],
) -> Result<Option<Losses>, EvaluateError> {
    desk.begin("centipawn loss, policy only", samples.len());
    let mut by_policy = Vec::with_capacity(samples.len());
    for samples in samples.chunks(64) {
        let games: Vec<Arc<Game>> = samples.iter().map(|one| Arc::clone(&one.game)).collect();
        let Some(moves) = desk.first_choices(&games)? else {
            break;
        };
        for (game, m) in games.iter().zip(moves) {
            desk.go_on()?;
            by_policy.push(loss(judge, desk.store, game, m)?);
            desk.step(1);
        }
    }
    desk.begin("centipawn loss, with search", samples.len());
    let mut by_search = Vec::with_capacity(samples.len());
    for sample in samples {
        let Some(answer) = desk.search(&sample.game, desk.nodes)? else {
            break;
        };
        let m = answer.best_move(&sample.game)?;
        by_search.push(loss(judge, desk.store, &sample.game, m)?);
        desk.step(1);
    }
    let (policy, search) = (mean(&by_policy), mean(&by_search));
    Ok((policy.is_some() || search.is_some()).then(|| Losses {
        judge: judge.name().to_owned(),
        depth: judge.depth,
        policy,
        search,
        effort: desk.effort(desk.nodes),
    }))
}

fn mean(losses: &[i64]) -> Option<Loss> {
    if losses.is_empty() {
        return None;
    }
    let count = losses.len() as f64;
    let mean = losses.iter().sum::<i64>() as f64 / count;
    let squares: f64 = losses.iter().map(|&x| (x as f64 - mean).powi(2)).sum();
    Some(Loss {
        mean,
        error: (squares / (count - 1.0).max(1.0) / count).sqrt(),
        positions: losses.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_their_errors() {
        assert_eq!(mean(&[]), None);
        let loss = mean(&[0, 0, 100, 100]).unwrap();
        assert_eq!((loss.mean, loss.positions), (50.0, 4));
        assert!((loss.error - (10_000.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-9);
        assert_eq!(centipawns(Score::Mate(-3)), -1000);
        assert_eq!(centipawns(Score::Cp(2500)), 1000);
    }
}
