//! A UCI engine as a player: it has no policy to look at, only moves. Knows no network.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::chess::Game;
use crate::client::{Bound, Engine, EngineConfig, Info, Limits};

use super::player::{Player, PlayerError, Step, Thought};

/// The longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// An engine process.
pub struct EnginePlayer {
    engine: Engine,
    /// Its own pace, instead of a number of nodes.
    pace: Option<Limits>,
}

impl EnginePlayer {
    /// Starts the engine. With a `pace` it takes that for every move, else the nodes it is asked for.
    ///
    /// # Errors
    /// An engine that is not there or does not answer.
    pub fn start(
        config: EngineConfig,
        pace: Option<Limits>,
        cancel: &Arc<AtomicBool>,
    ) -> Result<EnginePlayer, PlayerError> {
        Ok(EnginePlayer {
            engine: Engine::start_with(config, Arc::clone(cancel))?,
            pace,
        })
    }

    /// The name the engine gives itself.
    pub fn name(&self) -> &str {
        self.engine.name()
    }
}

impl Player for EnginePlayer {
    fn views(
        &mut self,
        _games: &[Arc<Game>],
    ) -> Result<Option<Vec<super::player::View>>, PlayerError> {
        Ok(None)
    }

    fn think(&mut self, game: &Arc<Game>, nodes: u64) -> Result<Option<Thought>, PlayerError> {
        let limits = self.pace.clone().unwrap_or_else(|| Limits::nodes(nodes));
        self.engine.new_game()?;
        let mut infos = Vec::new();
        let answer = ask(&mut self.engine, game, &limits, &mut |info| {
            infos.push(info);
        })?;
        let position = game.current();
        let best = position
            .parse_uci(&answer.0)
            .map_err(|_| PlayerError::NoMove {
                player: self.engine.name().to_owned(),
                answer: answer.0.clone(),
                fen: position.to_fen(true),
            })?;
        let mut thought = Thought {
            best,
            q: None,
            nodes: 0,
            time: answer.1,
            trail: Vec::new(),
        };
        for info in infos.iter().filter(|info| info.multipv.unwrap_or(1) == 1) {
            thought.nodes = info.nodes.unwrap_or(thought.nodes);
            if let Some([win, _, loss]) = info.wdl {
                thought.q = Some((win as f32 - loss as f32) / 1000.0);
            }
            let first = info.pv.first().filter(|_| info.bound == Bound::Exact);
            let Some(m) = first.and_then(|text| position.parse_uci(text).ok()) else {
                continue;
            };
            if thought.trail.last().is_none_or(|step| step.best != m) {
                thought.trail.push(Step {
                    best: m,
                    nodes: thought.nodes,
                    time: Duration::from_millis(info.time_ms.unwrap_or(0)),
                });
            }
        }
        if thought.trail.last().is_none_or(|step| step.best != best) {
            thought.trail.push(Step {
                best,
                nodes: thought.nodes,
                time: thought.time,
            });
        }
        Ok(Some(thought))
    }
}

/// Sends a game and a search, and waits for its move as it was printed, and the time it took.
///
/// # Errors
/// A dead, silent or babbling engine.
pub fn ask(
    engine: &mut Engine,
    game: &Game,
    limits: &Limits,
    on_info: &mut dyn FnMut(Info),
) -> Result<(String, Duration), PlayerError> {
    let start = game.start();
    let fen = (!game.starts_from_startpos() || start.fullmoves() != 1 || start.rule50() != 0)
        .then(|| start.to_fen(false));
    let moves: Vec<String> = game
        .positions()
        .iter()
        .zip(game.moves())
        .map(|(position, &m)| position.move_to_uci(m, false))
        .collect();
    engine.position(fen.as_deref(), &moves)?;
    engine.go(limits)?;
    let answer = engine.answer(PATIENCE, on_info)?;
    Ok((answer.best, answer.elapsed))
}
