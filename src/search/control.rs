//! Orders to a running search and what its workers report: flags, a condition variable, nothing
//! else. Knows no tree.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};

/// Shared by the handle, the driver and the workers of one search.
pub struct Control {
    state: Mutex<State>,
    changed: Condvar,
    /// Workers leave as soon as they see it; what is in flight is given up.
    abort: AtomicBool,
    /// Closed on abort, so that workers waiting for the network wake up.
    open: Mutex<Option<Sender<()>>>,
    closed: Receiver<()>,
}

#[derive(Default)]
struct State {
    stop: bool,
    ponderhit: Option<Instant>,
    workers: usize,
    finished: bool,
    failure: Failure,
}

/// What went wrong in this search.
#[derive(Debug, Default, PartialEq, Eq)]
enum Failure {
    #[default]
    None,
    /// Not told yet.
    New(String),
    /// Told; later ones are its consequences.
    Told,
}

/// What the driver finds when it wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Someone asked to stop.
    pub stop: bool,
    /// When ponderhit came.
    pub ponderhit: Option<Instant>,
    /// Workers still at work.
    pub workers: usize,
}

impl Default for Control {
    fn default() -> Control {
        let (open, closed) = bounded(0);
        Control {
            state: Mutex::default(),
            changed: Condvar::new(),
            abort: AtomicBool::new(false),
            open: Mutex::new(Some(open)),
            closed,
        }
    }
}

impl Control {
    /// Asks the driver to end the search.
    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// The clocks start now.
    pub fn ponderhit(&self) {
        let mut state = self.state.lock();
        state.ponderhit.get_or_insert_with(Instant::now);
        drop(state);
        self.changed.notify_all();
    }

    /// Workers leave; the driver goes on.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::Release);
        self.open.lock().take();
        self.changed.notify_all();
    }

    /// True once workers have to leave.
    pub fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::Acquire)
    }

    /// Disconnected on abort.
    pub fn closed(&self) -> &Receiver<()> {
        &self.closed
    }

    /// Before the workers start.
    pub fn set_workers(&self, workers: usize) {
        self.state.lock().workers = workers;
    }

    /// A worker has left.
    pub fn worker_left(&self) {
        self.state.lock().workers -= 1;
        self.changed.notify_all();
    }

    /// Something went wrong: the first message is kept and the workers leave.
    pub fn fail(&self, message: String) {
        let mut state = self.state.lock();
        if state.failure == Failure::None {
            state.failure = Failure::New(message);
        }
        drop(state);
        self.abort();
    }

    /// The message of [`Control::fail`], once.
    pub fn take_failure(&self) -> Option<String> {
        let mut state = self.state.lock();
        match std::mem::take(&mut state.failure) {
            Failure::New(message) => {
                state.failure = Failure::Told;
                Some(message)
            }
            other => {
                state.failure = other;
                None
            }
        }
    }

    /// Sleeps until something changes, at most `timeout`.
    pub fn wait(&self, timeout: Duration, seen: Orders) -> Orders {
        let mut state = self.state.lock();
        if state.orders() == seen && !timeout.is_zero() {
            self.changed.wait_for(&mut state, timeout);
        }
        state.orders()
    }

    /// The orders as they are.
    pub fn orders(&self) -> Orders {
        self.state.lock().orders()
    }

    /// The best move was sent and the tree is at rest.
    pub fn finish(&self) {
        self.state.lock().finished = true;
        self.changed.notify_all();
    }

    /// Sleeps until [`Control::finish`].
    pub fn wait_finished(&self) {
        let mut state = self.state.lock();
        while !state.finished {
            self.changed.wait(&mut state);
        }
    }

    /// True after [`Control::finish`].
    pub fn is_finished(&self) -> bool {
        self.state.lock().finished
    }
}

impl State {
    fn orders(&self) -> Orders {
        Orders {
            stop: self.stop,
            ponderhit: self.ponderhit,
            workers: self.workers,
        }
    }
}
