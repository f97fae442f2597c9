//! The thread that owns network and search and works off tasks in order. Refuses to read commands:
//! whoever sends them is never blocked by what happens here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, never, select};

use super::control::{Answer, Control};
use super::event::{Evaluated, Event, Listener};
use super::network::{self, Loaded, NetworkWish};
use super::tables::Opened;
use crate::chess::perft::perft_by_move;
use crate::chess::{Game, Move};
use crate::eval::{Backend, EvalParams, Leaf};
use crate::options::Options;
use crate::search::{Limits, Oracle, Request, Search};

/// How often a wait for the network looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(5);

/// A search more than twice this late is told to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Visits of the stand-in search when the network does not come in time.
const STAND_IN_NODES: u64 = 100;

/// Something to do.
pub enum Job {
    Go(Box<GoJob>),
    Perft {
        control: Arc<Control>,
        game: Arc<Game>,
        chess960: bool,
        depth: u32,
    },
    /// Load what is to be loaded, then say so.
    Ready {
        control: Arc<Control>,
        wish: NetworkWish,
    },
    Evaluate {
        control: Arc<Control>,
        game: Arc<Game>,
        wish: NetworkWish,
    },
    /// Forget tree and cache.
    Clear,
    /// Use these tablebases, or none.
    Tables(Opened),
    /// Anything else that may take its time and talks through the listener.
    Run {
        control: Arc<Control>,
        work: Work,
    },
}

/// A task of its own.
pub type Work = Box<dyn FnOnce(&Listener) + Send>;

/// A `go` with everything it needs.
pub struct GoJob {
    pub control: Arc<Control>,
    pub answer: Answer,
    pub game: Arc<Game>,
    pub wish: NetworkWish,
    pub limits: Limits,
    pub searchmoves: Vec<Move>,
    pub ponder: bool,
    pub received: Instant,
    /// Tell more than was asked.
    pub debug: bool,
}

pub struct Driver {
    listener: Listener,
    jobs: Receiver<Job>,
    /// What was last asked for, and whether it came.
    attempted: Option<(NetworkWish, bool)>,
    loading: Option<Receiver<Loaded>>,
    /// To be loaded once the present load, no longer wanted, is through.
    queued: Option<NetworkWish>,
    /// `isready`s that wait for the network.
    waiting: u32,
    /// Those of them that are tasks of their own.
    readying: Vec<Arc<Control>>,
    backend: Option<Arc<dyn Backend>>,
    /// What whoever debugs is to be told at the next `go`: outside of one some clients take any line
    /// for a fault.
    news: Vec<String>,
    /// With the options it was made with.
    search: Option<(Search, Arc<Options>)>,
    tables: Option<Arc<dyn Oracle>>,
}

impl Driver {
    pub fn new(listener: Listener, jobs: Receiver<Job>) -> Driver {
        Driver {
            listener,
            jobs,
            attempted: None,
            loading: None,
            queued: None,
            waiting: 0,
            readying: Vec::new(),
            backend: None,
            news: Vec::new(),
            search: None,
            tables: None,
        }
    }

    /// Works until the other side is gone.
    pub fn run(mut self) {
        loop {
            let loaded = self.loading.clone().unwrap_or_else(never);
            select! {
                recv(self.jobs) -> job => match job {
                    Ok(job) => self.work(job),
                    Err(_) => return,
                },
                recv(loaded) -> result => self.install(result.ok()),
            }
        }
    }

    fn work(&mut self, job: Job) {
        match job {
            Job::Go(job) => self.go(*job),
            Job::Perft {
                control,
                game,
                chess960,
                depth,
            } => {
                control.prepared();
                match perft_by_move(game.current(), depth, &control.stop) {
                    Some(counts) => self.say(Event::Perft {
                        game,
                        chess960,
                        counts,
                    }),
                    None => self.message("perft stopped".to_owned()),
                }
                control.finish();
            }
            Job::Ready { control, wish } => {
                self.want(&wish);
                // What is set after this is loaded after it: each has its own answer.
                if self.await_network(&control, None) {
                    self.say(Event::Ready);
                    control.finish();
                } else {
                    self.readying.push(control);
                }
            }
            Job::Evaluate {
                control,
                game,
                wish,
            } => {
                self.want(&wish);
                self.await_network(&control, None);
                if let Err(reason) = self.evaluate(game, wish.options.uci_chess960) {
                    self.message(reason);
                }
                control.finish();
            }
            Job::Clear => {
                if let Some((search, _)) = &mut self.search {
                    search.clear();
                }
            }
            Job::Tables(opened) => {
                self.tables = opened.tables;
                self.news.extend(opened.news);
                if let Some((search, _)) = &mut self.search {
                    search.set_oracle(self.tables.clone());
                    // What the tree knows came from the old ones.
                    search.clear();
                }
            }
            Job::Run { control, work } => {
                control.prepared();
                if catch_unwind(AssertUnwindSafe(|| work(&self.listener))).is_err() {
                    self.message("the task failed".to_owned());
                }
                control.finish();
            }
        }
    }

    fn say(&self, event: Event) {
        (self.listener)(event);
    }

    fn message(&self, text: String) {
        self.say(Event::Message(text));
    }

    /// Starts loading what `wish` asks for, unless it is there, coming, or failed already.
    fn want(&mut self, wish: &NetworkWish) {
        if let Some((attempted, came)) = &self.attempted
            && attempted.same_network(wish)
            && (*came || attempted.generation == wish.generation)
        {
            return;
        }
        // Until it fails it counts as there.
        self.attempted = Some((wish.clone(), true));
        if self.loading.is_some() {
            self.queued = Some(wish.clone());
        } else {
            self.loading = Some(network::start_loading(wish.clone(), self.backend.is_some()));
        }
    }

    /// Takes what a load brought; `None` where the loading thread died.
    fn install(&mut self, loaded: Option<Loaded>) {
        self.loading = None;
        if let Some(wish) = self.queued.take() {
            self.loading = Some(network::start_loading(wish, self.backend.is_some()));
            return;
        }
        let loaded = loaded.unwrap_or_else(|| Loaded {
            backend: None,
            problem: Some("no thread to load the network on".to_owned()),
        });
        if let Some((_, came)) = &mut self.attempted {
            *came = loaded.problem.is_none();
        }
        if let Some(backend) = loaded.backend {
            let a = backend.attributes();
            if loaded.problem.is_none() {
                self.news.push(format!(
                    "network {} on {}, {}",
                    a.name, a.device, a.precision
                ));
            }
            self.backend = Some(backend);
            // The next search is made on it.
            self.search = None;
        }
        if let Some(problem) = loaded.problem {
            self.message(problem);
        }
        for _ in 0..std::mem::take(&mut self.waiting) {
            self.say(Event::Ready);
        }
        for control in std::mem::take(&mut self.readying) {
            self.say(Event::Ready);
            control.finish();
        }
    }

    /// Waits until no load is under way; false when the task was stopped or `deadline` came first.
    fn await_network(&mut self, control: &Control, deadline: Option<Instant>) -> bool {
        while let Some(loading) = self.loading.clone() {
            match loading.recv_timeout(POLL) {
                Ok(loaded) => self.install(Some(loaded)),
                Err(RecvTimeoutError::Disconnected) => self.install(None),
                Err(RecvTimeoutError::Timeout) => {
                    let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    if late || control.is_stopped() {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn go(&mut self, job: GoJob) {
        let GoJob {
            control,
            answer,
            game,
            wish,
            limits,
            searchmoves,
            ponder,
            received,
            debug,
        } = job;
        if game.current().legal_moves().is_empty() {
            control.prepared();
            if limits.is_endless() || ponder {
                answer.announce_end_of_game();
                control.wait_for_release(!limits.is_endless());
            }
            answer.give_up(None);
            return;
        }
        self.want(&wish);
        let deadline = if ponder {
            None
        } else {
            hard_deadline(&limits, received)
        };
        let in_time = self.await_network(&control, deadline);
        if in_time {
            control.prepared();
        } else {
            self.waiting += control.take_waiting();
        }
        if let Err(reason) = self.prepare_search(&wish.options) {
            answer.message(format!("{reason}; answering from material values"));
        }
        if debug {
            for news in self.news.drain(..) {
                answer.message(news);
            }
        }
        let limits = match (in_time, &self.search) {
            (true, _) => limits,
            (false, Some(_)) => Limits::nodes(1),
            (false, None) => Limits::nodes(STAND_IN_NODES),
        };
        let mut stand_in = None;
        let search = match &mut self.search {
            Some((search, _)) => search,
            None => {
                let made = Search::new(network::material(), &wish.options);
                match made {
                    Ok(search) => stand_in.insert(search),
                    Err(error) => {
                        answer.give_up(Some(format!("no search: {error}")));
                        return;
                    }
                }
            }
        };
        // The sink owns the promise to answer: should the search lose it, it is kept all the same.
        let request = Request {
            game,
            limits,
            options: Arc::clone(&wish.options),
            searchmoves,
            ponder,
            received,
            on_event: Box::new(move |event| answer.event(event)),
        };
        let whole = catch_unwind(AssertUnwindSafe(|| {
            control.attach(search.start(request));
            let overdue = deadline.and_then(|deadline| deadline.checked_add(2 * PATIENCE));
            while !control.wait(PATIENCE) {
                if overdue.is_some_and(|overdue| Instant::now() > overdue) {
                    control.stop();
                }
            }
            if let Some(handle) = control.detach() {
                handle.join();
            }
        }));
        if whole.is_err() {
            // Whatever state it is in, it is not used again.
            self.search = None;
        }
    }

    /// A search on the present backend.
    fn prepare_search(&mut self, options: &Arc<Options>) -> Result<(), String> {
        if let Some((_, made_with)) = &self.search
            && same_evaluations(made_with, options)
        {
            return Ok(());
        }
        let backend = self
            .backend
            .clone()
            .ok_or("the network is not loaded yet")?;
        let mut search = Search::new(backend, options).map_err(|error| error.to_string())?;
        search.set_oracle(self.tables.clone());
        self.search = Some((search, Arc::clone(options)));
        Ok(())
    }

    fn evaluate(&mut self, game: Arc<Game>, chess960: bool) -> Result<(), String> {
        if game.current().legal_moves().is_empty() {
            return Err("eval: the game is over".to_owned());
        }
        let backend = self.backend.clone().ok_or("eval: there is no network")?;
        let leaf = Leaf::of_game(Arc::clone(&game));
        let mut answers = backend
            .evaluator()
            .and_then(|mut evaluator| evaluator.evaluate(&[leaf], &EvalParams::default()))
            .map_err(|error| format!("eval: {error}"))?;
        let evaluation = answers.pop().ok_or("eval: the network gave no answer")?;
        let attributes = backend.attributes().clone();
        self.say(Event::Evaluated(Box::new(Evaluated {
            game,
            chess960,
            attributes,
            evaluation,
        })));
        Ok(())
    }
}

/// When an answer must be there whether or not the network is.
fn hard_deadline(limits: &Limits, received: Instant) -> Option<Instant> {
    let clock = limits.clock.map(|clock| {
        let ms = clock.remaining_ms.max(0).unsigned_abs()
            / 2
            / u64::from(clock.moves_to_go.unwrap_or(1).min(2));
        Duration::from_millis(ms)
    });
    let time = [limits.movetime, clock].into_iter().flatten().min()?;
    received.checked_add(time)
}

/// True when priors and cached evaluations of one set of options serve the other; the rest a search
/// adapts to by itself.
fn same_evaluations(a: &Options, b: &Options) -> bool {
    a.cache_history_length == b.cache_history_length && a.policy_temperature == b.policy_temperature
}
