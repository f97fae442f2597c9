//! The engine behind a protocol: owns options, game, network and search, and says what happens as
//! [`Event`]s. Refuses to parse or print.
//!
//! Commands never block on a search, a load or a count: those run on a thread of their own, in
//! order. One promise stands above all: every [`Engine::go`] is answered by exactly one best move,
//! legal in the last accepted position.

mod control;
mod driver;
mod error;
mod event;
mod files;
mod limits;
mod network;
mod request;
mod tables;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam::channel::{Sender, unbounded};

pub use driver::Work;
pub use error::EngineError;
pub use event::{Evaluated, Event, Listener};
pub use files::{SETTINGS_FILE, apply_settings, settings_text};
pub use network::NETWORK_KEYS;
pub use request::GoRequest;

pub use crate::search::{BestMove, Event as SearchEvent, Info, Line, Score};

use self::control::{Answer, Control, WeakAnswer};
use self::driver::{Driver, GoJob, Job};
use self::network::{FileStamp, NetworkWish};
use self::tables::Tables;
use crate::chess::{Game, Position, Repair};
use crate::options::{Options, Spec};

/// How long a search may take to end once asked to, before it is answered over its head.
const PATIENCE: Duration = Duration::from_secs(3);

/// An engine in one game.
pub struct Engine {
    options: Arc<Options>,
    game: Arc<Game>,
    /// See [`NetworkWish::generation`].
    generation: u64,
    /// See [`NetworkWish::stamp`].
    stamp: FileStamp,
    /// Whether a `go` says what network it uses.
    debug: bool,
    current: Current,
    jobs: Sender<Job>,
    listener: Listener,
}

/// What was begun last.
#[derive(Default)]
struct Current {
    /// Of any kind; what was begun before it ends before it.
    task: Option<Arc<Control>>,
    /// Those that answer an `isready` after its load, the last one perhaps the task.
    readies: Vec<Arc<Control>>,
    /// The last `go`.
    search: Option<(Arc<Control>, WeakAnswer)>,
    /// True where only a command ends that.
    endless: bool,
}

impl Engine {
    /// An engine at the start position; events go to `listener`.
    pub fn new(options: Options, listener: Listener) -> Engine {
        let (jobs, receiver) = unbounded();
        let driver = Driver::new(Arc::clone(&listener), receiver);
        // Should there be no thread, the channel has no receiver and every task is answered at once.
        let _ = std::thread::Builder::new()
            .name("driver".to_owned())
            .spawn(|| driver.run());
        let engine = Engine {
            stamp: network::file_stamp(&options),
            options: Arc::new(options),
            game: Arc::new(Game::default()),
            generation: 0,
            debug: false,
            current: Current::default(),
            jobs,
            listener,
        };
        if !engine.options.syzygy_path.is_empty() {
            engine.load_tables();
        }
        engine
    }

    /// The options as they are.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The game as it is.
    pub fn game(&self) -> &Arc<Game> {
        &self.game
    }

    /// Tells more than was asked, or no longer.
    pub fn set_debug(&mut self, debug: bool) {
        self.debug = debug;
    }

    /// Sets an option, after ending a search. A network is loaded at the next [`Engine::ready`] or
    /// [`Engine::go`].
    ///
    /// # Errors
    /// Names the option, the value and what was expected; the old value stays.
    pub fn set_option(&mut self, name: &str, value: &str) -> Result<&'static Spec, EngineError> {
        self.end_search();
        let mut options = Options::clone(&self.options);
        let spec = options.set(name, value)?;
        self.options = Arc::new(options);
        if NETWORK_KEYS.contains(&spec.key) {
            self.generation += 1;
        }
        match spec.key {
            "weights" => self.stamp = network::file_stamp(&self.options),
            "clear_hash" => self.submit(Job::Clear),
            "syzygy_path" | "syzygy_fast_play" => self.load_tables(),
            _ => {}
        }
        Ok(spec)
    }

    /// Sets the game, after ending a search: a FEN (`None` for the start position) and moves in UCI
    /// notation. What was repaired in the FEN is returned.
    ///
    /// # Errors
    /// A refused FEN leaves the old game. A refused move leaves the game up to it.
    pub fn set_position<'a>(
        &mut self,
        fen: Option<&str>,
        moves: impl IntoIterator<Item = &'a str>,
    ) -> (Vec<Repair>, Result<(), EngineError>) {
        self.end_search();
        let (start, repairs) = match fen.map(Position::from_fen) {
            None => (Position::startpos(), Vec::new()),
            Some(Ok(parsed)) => parsed,
            Some(Err(error)) => return (Vec::new(), Err(error.into())),
        };
        let mut game = Game::new(start);
        let mut outcome = Ok(());
        for (index, text) in moves.into_iter().enumerate() {
            match game.current().parse_uci(text) {
                Ok(m) => game.play(m),
                Err(error) => {
                    outcome = Err(EngineError::MoveList {
                        number: index + 1,
                        error,
                    });
                    break;
                }
            }
        }
        self.game = Arc::new(game);
        (repairs, outcome)
    }

    /// Forgets tree and cache, after ending a search. The position stays.
    pub fn new_game(&mut self) {
        self.end_search();
        self.submit(Job::Clear);
    }

    /// Begins a search, after ending the one before. Root moves that are not legal are returned and
    /// skipped.
    pub fn go(&mut self, request: &GoRequest, received: Instant) -> Vec<EngineError> {
        self.end_search();
        let position = self.game.current();
        let mut searchmoves = Vec::new();
        let mut refused = Vec::new();
        for text in &request.searchmoves {
            match position.parse_uci(text) {
                Ok(m) => searchmoves.push(m),
                Err(error) => refused.push(EngineError::SearchMove(error)),
            }
        }
        let options = Arc::clone(&self.options);
        let limits = limits::limits(request, position.turn(), &options);
        let control = Control::new(Arc::clone(&self.listener));
        let answer = Answer::new(
            Arc::clone(&control),
            Arc::clone(&self.game),
            Arc::clone(&options),
            received,
        );
        self.current.task = Some(Arc::clone(&control));
        self.current.search = Some((Arc::clone(&control), answer.downgrade()));
        self.current.endless = limits.is_endless() || request.ponder;
        // Should the driver be gone, the job is dropped and its answer with it: given all the same.
        self.submit(Job::Go(Box::new(GoJob {
            control,
            answer,
            game: Arc::clone(&self.game),
            wish: NetworkWish {
                options,
                ..self.wish()
            },
            limits,
            searchmoves,
            ponder: request.ponder,
            received,
            debug: self.debug,
        })));
        refused
    }

    /// Counts leaf positions, after ending a search; [`Engine::stop`] ends it without an answer.
    pub fn perft(&mut self, depth: u32) {
        self.end_search();
        let control = self.begin();
        self.submit(Job::Perft {
            control,
            game: Arc::clone(&self.game),
            chess960: self.options.uci_chess960,
            depth,
        });
    }

    /// Ends a search with its best move, soon; a count without an answer. Silent when there is
    /// neither.
    pub fn stop(&self) {
        let search = self.current.search.as_ref().map(|(control, _)| control);
        let tasks = self.current.task.iter().chain(&self.current.readies);
        for control in search.into_iter().chain(tasks) {
            control.stop();
        }
    }

    /// The opponent played the move pondered on. Silent when there is no search.
    pub fn ponderhit(&self) {
        if let Some((control, _)) = &self.current.search {
            control.ponderhit();
        }
    }

    /// [`Event::Ready`] follows: at once during a search, and after a load when it is through.
    pub fn ready(&mut self) {
        let search = self.current.search.as_ref().map(|(control, _)| control);
        let readies = &mut self.current.readies;
        readies.retain(|control| !control.is_done());
        // Each `isready` has its own answer, after what was set before it.
        let task = self.current.task.as_ref().filter(|task| {
            let is_one = |ready: &Arc<Control>| Arc::ptr_eq(ready, task);
            !readies.iter().any(is_one)
        });
        let mut others = search.into_iter().chain(task);
        if others.any(|control| control.ready_when_prepared()) {
            return;
        }
        let control = self.begin();
        self.current.readies.push(Arc::clone(&control));
        let wish = self.wish();
        self.submit(Job::Ready { control, wish });
    }

    /// [`Event::Evaluated`] follows, or a message why not; after a running search.
    pub fn evaluate(&mut self) {
        let control = self.begin();
        let wish = self.wish();
        self.submit(Job::Evaluate {
            control,
            game: Arc::clone(&self.game),
            wish,
        });
    }

    /// Does `work` in its turn, after ending a search.
    pub fn run(&mut self, work: Work) {
        self.end_search();
        let control = self.begin();
        self.submit(Job::Run { control, work });
    }

    /// Waits for the end of everything begun, at most `patience`; true when it came.
    pub fn wait(&self, patience: Duration) -> bool {
        self.current
            .task
            .as_ref()
            .is_none_or(|control| control.wait(patience))
    }

    /// True while a search runs that only a command ends.
    pub fn waits_for_stop(&self) -> bool {
        let running = |(control, _): &(Arc<Control>, _)| !control.is_done();
        self.current.endless && self.current.search.as_ref().is_some_and(running)
    }

    /// Ends a search with its best move and waits for that.
    pub fn end_search(&mut self) {
        let Some((control, answer)) = &self.current.search else {
            return;
        };
        if control.is_done() {
            return;
        }
        control.stop();
        if !control.wait(PATIENCE) {
            answer.give_up("the search does not stop; answering without it".to_owned());
        }
    }

    fn begin(&mut self) -> Arc<Control> {
        let control = Control::new(Arc::clone(&self.listener));
        self.current.task = Some(Arc::clone(&control));
        control
    }

    /// Takes the tablebases of the options, at once, and says what came of it.
    fn load_tables(&self) {
        let opened = Tables::open(&self.options);
        if let Some(problem) = &opened.problem {
            (self.listener)(Event::Message(problem.clone()));
        }
        self.submit(Job::Tables(opened));
    }

    fn wish(&self) -> NetworkWish {
        NetworkWish {
            options: Arc::clone(&self.options),
            generation: self.generation,
            stamp: self.stamp,
        }
    }

    fn submit(&self, job: Job) {
        if let Err(refused) = self.jobs.send(job) {
            let job = refused.into_inner();
            (self.listener)(Event::Message("the engine's own thread is gone".to_owned()));
            if matches!(job, Job::Ready { .. }) {
                (self.listener)(Event::Ready);
            }
            if let Job::Perft { control, .. }
            | Job::Ready { control, .. }
            | Job::Evaluate { control, .. }
            | Job::Run { control, .. } = &job
            {
                control.finish();
            }
        }
    }
}

/// A search does not outlive its engine.
impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}
