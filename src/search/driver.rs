//! One search from `go` to its best move: starts workers, keeps time, reports, chooses. Knows no
//! protocol.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::chess::{Game, Move};
use crate::eval::panic_text;
use crate::options::Options;

use super::choose::{Temperature, ranked};
use super::clock::Budget;
use super::control::{Control, Orders};
use super::event::{BestMove, Event, Info, Line, Score};
use super::mate::{self, Mate};
use super::report::{Style, move_stats, snapshot};
use super::request::EventSink;
use super::score;
use super::stoppers::Chain;
use super::worker::{Lane, Shared, StopCheck, run};

/// Everything one search needs besides what its workers share.
pub struct Plan {
    /// When the command came.
    pub received: Instant,
    /// Clocks start at ponderhit.
    pub ponder: bool,
    /// Only `stop` ends the search.
    pub endless: bool,
    /// Time for this move.
    pub budget: Option<Budget>,
    /// A mate in so many moves is looked for.
    pub mate: Option<u32>,
    /// How infos look.
    pub style: Style,
    /// How the move is drawn.
    pub temperature: Temperature,
    /// Seed of the draw.
    pub seed: u64,
    /// The options at `go`.
    pub options: Arc<Options>,
    /// Where events go.
    pub on_event: EventSink,
    /// A way to get leaves evaluated, for each worker.
    pub lanes: Vec<Lane>,
}

/// How long a search that is stopped before its first evaluation waits for it.
const STOP_GRACE: Duration = Duration::from_millis(200);

/// How often the driver looks at the tree for news.
const LOOK: Duration = Duration::from_millis(20);

/// Longest silence: who watches sees that the engine is alive, even when the tree is full.
const SILENCE: Duration = Duration::from_secs(1);

/// Time the first evaluation may take beyond the limit: without it there is nothing to choose by.
const GRACE: Duration = Duration::from_millis(40);

/// Stack of a worker; walking down needs some hundred bytes a ply.
const STACK: usize = 64 << 20;

/// True when the search must go on whatever the limits say.
fn is_held(endless: bool, ponder: bool, orders: Orders) -> bool {
    endless || ponder && orders.ponderhit.is_none()
}

/// The check workers make after each minibatch.
pub fn after_minibatch(
    mut chain: Chain,
    received: Instant,
    endless: bool,
    ponder: bool,
) -> StopCheck {
    Box::new(move |shared| {
        let orders = shared.control.orders();
        if is_held(endless, ponder, orders) {
            return false;
        }
        let start = orders.ponderhit.unwrap_or(received);
        chain.should_stop(&snapshot(shared, start.elapsed()))
    })
}

/// Runs a search and sends its events; the last one is the best move, whatever happens. False when
/// the tree must not be used again.
pub fn drive(shared: &Shared, plan: Plan) -> bool {
    let Plan {
        on_event: mut sink, ..
    } = plan;
    let mut lanes = plan.lanes;
    let game = shared.tree.game().clone();
    let mut driver = Driver {
        shared,
        received: plan.received,
        ponder: plan.ponder,
        endless: plan.endless,
        budget: plan.budget,
        mate: plan.mate,
        answer: Arc::default(),
        told_full: false,
        style: plan.style,
        temperature: plan.temperature,
        seed: plan.seed,
        options: plan.options,
        last: None,
        sink: &mut sink,
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| driver.search(&mut lanes)));
    let (best, sound) = match outcome {
        Ok((best, sound)) => (best, sound),
        Err(panic) => {
            shared.control.abort();
            let text = panic_text(&*panic);
            sink(Event::Message(format!("the search panicked: {text}")));
            (fallback(&game, shared), false)
        }
    };
    sink(Event::BestMove(best));
    sound
}

/// A legal move when nothing better is known.
fn fallback(game: &Game, shared: &Shared) -> BestMove {
    let legal = game.current().legal_moves();
    let allowed = legal.iter().find(|m| shared.filter.allows(**m));
    BestMove {
        best: allowed.or(legal.first()).copied(),
        ponder: None,
    }
}

struct Driver<'a> {
    shared: &'a Shared,
    received: Instant,
    ponder: bool,
    endless: bool,
    budget: Option<Budget>,
    mate: Option<u32>,
    /// Whether there is that mate, once it is known.
    answer: Arc<OnceLock<Mate>>,
    /// The tree is full, and that was said.
    told_full: bool,
    style: Style,
    temperature: Temperature,
    seed: u64,
    options: Arc<Options>,
    /// The info sent last.
    last: Option<(Info, Instant)>,
    sink: &'a mut EventSink,
}

impl Driver<'_> {
    fn search(&mut self, lanes: &mut Vec<Lane>) -> (BestMove, bool) {
        let game = self.shared.tree.game().clone();
        let fallback = fallback(&game, self.shared);
        let Some(first_legal) = fallback.best else {
            self.report_finished_game(&game);
            self.wait_for_release();
            return (fallback, true);
        };
        let control = &self.shared.control;
        control.set_workers(lanes.len());
        let sound = std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for (index, lane) in lanes.drain(..).enumerate() {
                let shared = self.shared;
                let worker = std::thread::Builder::new()
                    .name(format!("search-{index}"))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || guarded(shared, lane));
                match worker {
                    Ok(worker) => workers.push(worker),
                    Err(e) => {
                        control.worker_left();
                        control.fail(format!("cannot start a search thread: {e}"));
                    }
                }
            }
            if let Some(moves) = self.mate {
                let (shared, answer) = (self.shared, self.answer.clone());
                // Without a thread the tree alone has to find it.
                let _ = std::thread::Builder::new()
                    .name("mate".to_owned())
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || look_for_mate(shared, moves, &answer));
            }
            self.watch(first_legal);
            control.abort();
            // A worker that panicked left the tree in an unknown state.
            let unsound = workers
                .into_iter()
                .filter_map(|worker| (!worker.join().unwrap_or(false)).then_some(()))
                .count();
            unsound == 0
        });
        if let Some(message) = control.take_failure() {
            (self.sink)(Event::Message(message));
        }
        self.tell_full();
        (self.conclude(first_legal), sound)
    }

    /// Reports and keeps time until the search is over.
    fn watch(&mut self, first_legal: Move) {
        let control = &self.shared.control;
        let mut orders = control.orders();
        let mut stopped: Option<Instant> = None;
        loop {
            let held = is_held(self.endless, self.ponder, orders);
            if orders.workers == 0 && (orders.stop || !held) {
                return;
            }
            if orders.stop {
                // A move without a look at the position would be any legal one.
                let looked = self.shared.root().visits() > 0 || control.is_aborted();
                let since = stopped.get_or_insert_with(Instant::now).elapsed();
                if looked || since >= STOP_GRACE {
                    return;
                }
                orders = control.wait(Duration::from_millis(1), orders);
                continue;
            }
            if !held && (self.is_out_of_time(orders) || self.is_answered()) {
                return;
            }
            if let Some(message) = control.take_failure() {
                (self.sink)(Event::Message(message));
            }
            self.tell_full();
            self.report_news(first_legal);
            let pause = match self.next_look(orders) {
                Some(left) if !held => left.min(LOOK),
                _ => LOOK,
            };
            orders = control.wait(pause, orders);
        }
    }

    /// Time until the next moment at which the search may have to end.
    fn next_look(&self, orders: Orders) -> Option<Duration> {
        let budget = self.budget?;
        let elapsed = orders.ponderhit.unwrap_or(self.received).elapsed();
        let usual = budget.usual.saturating_sub(elapsed);
        let left = match usual.is_zero() {
            true => budget.most.saturating_sub(elapsed),
            false => usual,
        };
        Some(left.max(Duration::from_micros(200)))
    }

    fn is_out_of_time(&mut self, orders: Orders) -> bool {
        let Some(budget) = self.budget else {
            return false;
        };
        let elapsed = orders.ponderhit.unwrap_or(self.received).elapsed();
        if self.shared.root().visits() == 0 {
            return elapsed >= budget.most.max(GRACE);
        }
        if elapsed >= budget.most {
            return true;
        }
        elapsed >= budget.usual
            && self
                .shared
                .after_minibatch
                .try_lock()
                .is_some_and(|mut check| check(self.shared))
    }

    fn report_news(&mut self, first_legal: Move) {
        if self.shared.root().visits() == 0 {
            return;
        }
        let info = self.info(None, first_legal);
        let due = match &self.last {
            None => true,
            Some((last, when)) => {
                let best = |info: &Info| info.lines.first().and_then(|l| l.pv.first().copied());
                best(last) != best(&info) || last.depth != info.depth || when.elapsed() >= SILENCE
            }
        };
        if due {
            self.send(info);
        }
    }

    /// The tree as it is now, with the mate that was found beside it.
    fn info(&self, first: Option<Move>, first_legal: Move) -> Info {
        let found = match self.answer.get() {
            Some(Mate::Found(line)) => Some(line),
            _ => None,
        };
        let first = found.and_then(|line| line.first().copied()).or(first);
        let elapsed = self.received.elapsed();
        let mut info = self
            .style
            .info(self.shared, elapsed, first, Some(first_legal));
        if let (Some(pv), Some(line)) = (found, info.lines.first_mut()) {
            let plies = pv.len() as u32;
            line.score = score::mate(plies, true);
            line.wdl = [1000, 0, 0];
            line.moves_left = Some(plies);
            line.pv = pv.clone();
            info.seldepth = info.seldepth.max(plies);
        }
        info
    }

    /// True when there is nothing more to learn of the mate that was asked for.
    fn is_answered(&self) -> bool {
        self.shared.root().visits() > 0 && self.answer.get().is_some()
    }

    /// Says once that the tree cannot grow any more.
    fn tell_full(&mut self) {
        let full = self.shared.tally.memory_full.load(Ordering::Relaxed);
        if full && !self.told_full {
            self.told_full = true;
            let size = self.shared.max_bytes >> 20;
            (self.sink)(Event::Message(format!(
                "the tree is full: {size} MiB; raise Hash or RamLimitMb for a longer search"
            )));
        }
    }

    fn send(&mut self, info: Info) {
        self.last = Some((info.clone(), Instant::now()));
        (self.sink)(Event::Info(info));
    }

    /// The final info and the move it begins with.
    fn conclude(&mut self, first_legal: Move) -> BestMove {
        let shared = self.shared;
        let moves = ranked(shared.tree.pool(), shared.root(), Some(&shared.filter));
        let drawn = self.temperature.draw(&moves, self.seed);
        let chosen = match self.answer.get() {
            Some(Mate::Found(line)) => line.first().copied(),
            _ => moves.get(drawn).map(|m| m.mv),
        };
        let chosen = chosen.unwrap_or(first_legal);
        if self.options.verbose_move_stats {
            let position = shared.tree.game().current();
            let chess960 = self.options.uci_chess960;
            for line in move_stats(shared, |m| position.move_to_uci(m, chess960)) {
                (self.sink)(Event::Message(line));
            }
        }
        let info = self.info(Some(chosen), first_legal);
        let ponder = info.lines.first().and_then(|line| line.pv.get(1)).copied();
        self.send(info);
        BestMove {
            best: Some(chosen),
            ponder,
        }
    }

    /// Mate or stalemate on the board: nothing to search.
    fn report_finished_game(&mut self, game: &Game) {
        let mated = game.current().is_check();
        (self.sink)(Event::Info(Info {
            depth: 0,
            seldepth: 0,
            time: self.received.elapsed(),
            nodes: 0,
            nps: 0,
            hashfull: self.shared.cache.hashfull(),
            tbhits: 0,
            lines: vec![Line {
                score: if mated { Score::Mate(0) } else { Score::Cp(0) },
                wdl: if mated { [0, 0, 1000] } else { [0, 1000, 0] },
                moves_left: None,
                nodes: 0,
                pv: Vec::new(),
            }],
        }));
    }

    fn wait_for_release(&self) {
        let mut orders = self.shared.control.orders();
        while is_held(self.endless, self.ponder, orders) && !orders.stop {
            orders = self.shared.control.wait(Duration::from_secs(1), orders);
        }
    }
}

/// The question whether there is a mate in so many moves, apart from the tree.
fn look_for_mate(shared: &Shared, moves: u32, answer: &OnceLock<Mate>) {
    let found = mate::solve(shared.tree.game(), moves, &shared.filter, || {
        shared.control.is_aborted()
    });
    if let Some(found) = found {
        let _ = answer.set(found);
    }
}

/// A worker whose panics are reported; false after one.
fn guarded(shared: &Shared, lane: Lane) -> bool {
    let result = catch_unwind(AssertUnwindSafe(|| run(shared, lane)));
    if let Err(panic) = &result {
        let text = panic_text(&**panic);
        shared
            .control
            .fail(format!("a search thread panicked: {text}"));
    }
    shared.control.worker_left();
    result.is_ok()
}

/// Marks the search as finished even if its thread dies.
pub struct FinishGuard(pub Arc<Control>);

impl Drop for FinishGuard {
    fn drop(&mut self) {
        self.0.finish();
    }
}
