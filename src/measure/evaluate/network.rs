//! A network as a player: its backend for the policy, the project's search for moves. Knows no engine and no
//! measure.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use crate::chess::Game;
use crate::eval::{Backend, EvalParams, Evaluator, Leaf};
use crate::options::Options;
use crate::search::{Event, Limits, Request, Search};

use super::player::{Player, PlayerError, Step, Thought, View};

/// A network behind the project's own search.
pub struct NetworkPlayer {
    name: String,
    evaluator: Box<dyn Evaluator>,
    search: Search,
    options: Arc<Options>,
}

impl NetworkPlayer {
    /// A player on `backend`, searching as `options` say.
    ///
    /// # Errors
    /// When the backend makes no evaluator.
    pub fn new(backend: Arc<dyn Backend>, options: &Options) -> Result<NetworkPlayer, PlayerError> {
        Ok(NetworkPlayer {
            name: backend.attributes().name.clone(),
            evaluator: backend.evaluator()?,
            search: Search::new(backend, options)?,
            options: Arc::new(options.clone()),
        })
    }
}

impl Player for NetworkPlayer {
    fn views(&mut self, games: &[Arc<Game>]) -> Result<Option<Vec<View>>, PlayerError> {
        let leaves: Vec<Leaf> = games
            .iter()
            .map(|game| Leaf::of_game(Arc::clone(game)))
            .collect();
        let evaluations = self.evaluator.evaluate(&leaves, &EvalParams::default())?;
        let mut open = self.evaluator.open_policy(&leaves)?.map(Vec::into_iter);
        let views = leaves.into_iter().zip(evaluations);
        let views = views.map(|(leaf, evaluation)| View {
            open: open.as_mut().and_then(Iterator::next),
            moves: leaf.moves,
            priors: evaluation.policy.0,
            q: evaluation.wdl.q(),
        });
        Ok(Some(views.collect()))
    }

    fn think(&mut self, game: &Arc<Game>, nodes: u64) -> Result<Option<Thought>, PlayerError> {
        self.search.clear();
        let (sender, events) = mpsc::channel();
        let received = Instant::now();
        let handle = self.search.start(Request {
            game: Arc::clone(game),
            limits: Limits::nodes(nodes),
            options: Arc::clone(&self.options),
            searchmoves: Vec::new(),
            ponder: false,
            received,
            on_event: Box::new(move |event| {
                // Nobody listens any more only if this thread has gone.
                let _ = sender.send(event);
            }),
        });
        handle.join();
        let time = received.elapsed();
        let (mut trail, mut q, mut best) = (Vec::<Step>::new(), None, None);
        let mut trouble = None;
        for event in events.try_iter() {
            match event {
                Event::Info(info) => {
                    let Some(line) = info.lines.first() else {
                        continue;
                    };
                    q = Some((line.wdl[0] as f32 - line.wdl[2] as f32) / 1000.0);
                    if let Some(&m) = line.pv.first()
                        && trail.last().is_none_or(|step| step.best != m)
                    {
                        trail.push(Step {
                            best: m,
                            nodes: info.nodes,
                            time: info.time,
                        });
                    }
                }
                Event::Message(text) => trouble = Some(text),
                Event::BestMove(found) => best = found.best,
            }
        }
        let best = best.ok_or_else(|| PlayerError::NoMove {
            player: self.name.clone(),
            answer: trouble.unwrap_or_else(|| "nothing".to_owned()),
            fen: game.current().to_fen(true),
        })?;
        let nodes = self.search.totals().playouts;
        if trail.last().is_none_or(|step| step.best != best) {
            trail.push(Step { best, nodes, time });
        }
        Ok(Some(Thought {
            best,
            q,
            nodes,
            time,
            trail,
        }))
    }
}
