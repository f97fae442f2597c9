//! The reins of one task: stop, ponderhit, and the promise that a `go` is answered exactly once.
//! Refuses to know how a search works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::event::{Event, Listener};
use crate::chess::{Game, Move};
use crate::options::Options;
use crate::search::{self, BestMove, Handle, Info, Line, Score};

/// A task as both sides see it: the front that takes commands and the driver that works.
pub struct Control {
    /// Set by `stop` and by whatever ends a task early; read by tasks that count.
    pub stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    handle: Mutex<Option<Handle>>,
    listener: Listener,
}

#[derive(Default)]
struct State {
    ponderhit: bool,
    /// The network is there; `isready` need not wait for the end of the task.
    prepared: bool,
    /// How many `isready` wait for `prepared`.
    waiting: u32,
    done: bool,
    /// The best line so far, in case nothing better comes.
    best_so_far: Vec<Move>,
}

impl Control {
    /// A task that has not begun.
    pub fn new(listener: Listener) -> Arc<Control> {
        Arc::new(Control {
            stop: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
            handle: Mutex::new(None),
            listener,
        })
    }

    /// Asks the task to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(handle) = self.handle.lock().as_ref() {
            handle.stop();
        }
        self.notify();
    }

    /// True once someone asked the task to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// The opponent played the expected move.
    pub fn ponderhit(&self) {
        self.state.lock().ponderhit = true;
        if let Some(handle) = self.handle.lock().as_ref() {
            handle.ponderhit();
        }
        self.notify();
    }

    /// Hands over the search, which learns at once what happened before it was there.
    pub fn attach(&self, handle: Handle) {
        let mut slot = self.handle.lock();
        if self.state.lock().ponderhit {
            handle.ponderhit();
        }
        if self.is_stopped() {
            handle.stop();
        }
        *slot = Some(handle);
    }

    /// Takes the search back, to wait for its end.
    pub fn detach(&self) -> Option<Handle> {
        self.handle.lock().take()
    }

    /// The network is ready; those who asked are told.
    pub fn prepared(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.prepared = true;
            std::mem::take(&mut state.waiting)
        };
        for _ in 0..waiting {
            (self.listener)(Event::Ready);
        }
    }

    /// Takes over the `isready`s that wait for the network.
    pub fn take_waiting(&self) -> u32 {
        std::mem::take(&mut self.state.lock().waiting)
    }

    /// Answers one `isready`, now or as soon as the network is there. False once the task is done:
    /// then another must answer.
    pub fn ready_when_prepared(&self) -> bool {
        let mut state = self.state.lock();
        if state.done {
            return false;
        }
        if !state.prepared {
            state.waiting += 1;
            return true;
        }
        drop(state);
        (self.listener)(Event::Ready);
        true
    }

    /// Marks the end of a task that owes no best move.
    pub fn finish(&self) {
        self.prepared();
        self.state.lock().done = true;
        self.notify();
    }

    /// True once the task has ended or its best move was sent.
    pub fn is_done(&self) -> bool {
        self.state.lock().done
    }

    /// Waits for the end, at most `patience`; true when it came.
    pub fn wait(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        while !state.done {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return state.done;
            }
        }
        true
    }

    /// Waits until a search that must not end by itself may end: at `stop`, or at `ponderhit`
    /// where that is enough.
    pub fn wait_for_release(&self, ponderhit_releases: bool) {
        let mut state = self.state.lock();
        while !(self.is_stopped() || ponderhit_releases && state.ponderhit) {
            // The flag is set outside the lock, so a wake-up may be missed.
            self.changed.wait_for(&mut state, Duration::from_millis(20));
        }
    }

    fn notify(&self) {
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Passes an event of the search on. What follows the best move is dropped.
    fn search_event(&self, game: &Arc<Game>, options: &Arc<Options>, event: search::Event) {
        let last = matches!(event, search::Event::BestMove(_));
        {
            let mut state = self.state.lock();
            if state.done {
                return;
            }
            if let search::Event::Info(info) = &event
                && let Some(line) = info.lines.first()
            {
                state.best_so_far.clone_from(&line.pv);
            }
            if !last {
                drop(state);
                self.send(game, options, event);
                return;
            }
        }
        // Those who asked whether we are ready hear it before the move.
        self.prepared();
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.done, true) {
            self.send(game, options, event);
        }
        self.changed.notify_all();
    }

    fn send(&self, game: &Arc<Game>, options: &Arc<Options>, event: search::Event) {
        (self.listener)(Event::Search {
            game: Arc::clone(game),
            options: Arc::clone(options),
            event,
        });
    }
}

/// One `go`: whoever holds it can answer it, and dropping it answers it with what is known.
#[derive(Clone)]
pub struct Answer(Arc<AnswerOnDrop>);

struct AnswerOnDrop {
    control: Arc<Control>,
    game: Arc<Game>,
    options: Arc<Options>,
    received: Instant,
}

impl Answer {
    /// A promise to answer for the current position of `game`.
    pub fn new(
        control: Arc<Control>,
        game: Arc<Game>,
        options: Arc<Options>,
        received: Instant,
    ) -> Answer {
        Answer(Arc::new(AnswerOnDrop {
            control,
            game,
            options,
            received,
        }))
    }

    /// Passes an event of the search on.
    pub fn event(&self, event: search::Event) {
        self.0
            .control
            .search_event(&self.0.game, &self.0.options, event);
    }

    /// A remark that belongs to this `go`.
    pub fn message(&self, text: String) {
        self.event(search::Event::Message(text));
    }

    /// Answers without a search, after `reason`: the best line seen, else any legal move, else
    /// none. Harmless when the answer was given.
    pub fn give_up(&self, reason: Option<String>) {
        self.0.give_up(reason);
    }

    /// The final line of a root without legal moves, ahead of its answer.
    pub fn announce_end_of_game(&self) {
        self.0.announce(None);
    }

    /// A way to answer that does not keep the promise alive.
    pub fn downgrade(&self) -> WeakAnswer {
        WeakAnswer(Arc::downgrade(&self.0))
    }
}

/// See [`Answer::downgrade`].
pub struct WeakAnswer(Weak<AnswerOnDrop>);

impl WeakAnswer {
    /// See [`Answer::give_up`].
    pub fn give_up(&self, reason: String) {
        if let Some(answer) = self.0.upgrade() {
            answer.give_up(Some(reason));
        }
    }
}

impl AnswerOnDrop {
    fn give_up(&self, reason: Option<String>) {
        let seen = {
            let state = self.control.state.lock();
            if state.done {
                return;
            }
            state.best_so_far.clone()
        };
        if let Some(reason) = reason {
            self.event(search::Event::Message(reason));
        }
        let moves = self.game.current().legal_moves();
        let best = seen
            .first()
            .copied()
            .filter(|m| moves.contains(m))
            .or(moves.first().copied());
        if seen.is_empty() {
            self.announce(best);
        }
        self.event(search::Event::BestMove(BestMove { best, ponder: None }));
    }

    fn event(&self, event: search::Event) {
        self.control.search_event(&self.game, &self.options, event);
    }

    /// A final line that claims nothing: even with a move, the result without one.
    fn announce(&self, best: Option<Move>) {
        let (depth, score, wdl) = match best {
            Some(_) => (1, Score::Cp(0), [0, 1000, 0]),
            None if self.game.current().is_check() => (0, Score::Mate(0), [0, 0, 1000]),
            None => (0, Score::Cp(0), [0, 1000, 0]),
        };
        self.event(search::Event::Info(Info {
            depth,
            seldepth: depth,
            time: self.received.elapsed(),
            nodes: 0,
            nps: 0,
            hashfull: 0,
            tbhits: 0,
            lines: vec![Line {
                score,
                wdl,
                moves_left: None,
                nodes: 0,
                pv: best.into_iter().collect(),
            }],
        }));
    }
}

impl Drop for AnswerOnDrop {
    fn drop(&mut self) {
        self.give_up(Some(
            "the search ended without a move; answering with the best one seen".into(),
        ));
    }
}
