//! One worker's copy of one contestant: its process, started when needed, and what it was last
//! told. Turns a [`ClientError`] into a fault; knows no other side.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::client::{ClientError, Engine, Exit};

use super::{Contestant, Faults};

/// A contestant's process in one worker.
pub(super) struct Seat<'a> {
    pub contestant: &'a Contestant,
    cancel: Arc<AtomicBool>,
    engine: Option<Engine>,
    chess960: bool,
    /// Faults since they were last taken.
    pub faults: Faults,
}

impl<'a> Seat<'a> {
    pub fn new(contestant: &'a Contestant, cancel: Arc<AtomicBool>) -> Self {
        Self {
            contestant,
            cancel,
            engine: None,
            chess960: false,
            faults: Faults::default(),
        }
    }

    /// Makes sure that a process runs and knows that a game begins. A process that died between
    /// games is counted and replaced.
    pub fn sit_down(&mut self, chess960: bool) -> Result<&mut Engine, ClientError> {
        if self.contestant.restart {
            self.leave();
        }
        if self
            .engine
            .as_mut()
            .is_some_and(|engine| !engine.is_alive())
        {
            self.faults.crashes += 1;
            self.engine = None;
        }
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                self.chess960 = false;
                Engine::start_with(self.contestant.engine.clone(), Arc::clone(&self.cancel))?
            }
        };
        if self.chess960 != chess960 {
            engine.set_option("UCI_Chess960", if chess960 { "true" } else { "false" })?;
            self.chess960 = chess960;
        }
        engine.new_game()?;
        self.faults.stray_bestmoves += u64::from(engine.take_strays());
        Ok(self.engine.insert(engine))
    }

    /// The process; there is one from [`Seat::sit_down`] until [`Seat::drop_engine`].
    pub fn engine(&mut self) -> Option<&mut Engine> {
        self.engine.as_mut()
    }

    /// Kills a process that cannot be used any more; the next game starts another.
    pub fn drop_engine(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            engine.kill();
        }
    }

    /// Lets the process end by itself, and counts it if it does not.
    pub fn leave(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            if !engine.is_alive() {
                self.faults.crashes += 1;
            } else if engine.quit() == Exit::Killed {
                self.faults.ignored_quits += 1;
            }
            self.faults.stray_bestmoves += u64::from(engine.take_strays());
        }
    }
}
