//! One conversation: hands commands to the engine and prints what comes back. Refuses to search,
//! load or judge moves.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, bounded};

use super::command::{self, Command, HELP, Start, SyntaxError};
use super::exit::exit_now;
use super::genfens::GenFens;
use super::input::{Input, MAX_LINE_BYTES, next_line};
use super::output::Output;
use super::{board, info};
use crate::chess::genfens;
use crate::engine::{Engine, Event, GoRequest, Listener, SearchEvent};
use crate::options::{Options, TABLE};

/// The process is gone this long after `quit` or the end of input, whatever is going on.
const LAST_BREATH: Duration = Duration::from_millis(850);

/// How long a search may go on by itself after the end of input.
const GRACE: Duration = Duration::from_millis(400);

/// Lines read ahead of the one being handled.
const READ_AHEAD: usize = 1024;

/// What a GUI can set up before a conversation begins.
pub struct Setup {
    /// The options, `engine.toml` and flags applied.
    pub options: Options,
    /// Said before anything else, for example why `engine.toml` was not used.
    pub remarks: Vec<String>,
    /// What `bench` does.
    pub bench: Bench,
}

/// Runs the benchmark with the words that follow `bench` and returns its lines.
pub type Bench = Arc<dyn Fn(&[String]) -> Vec<String> + Send + Sync>;

/// One conversation.
pub struct Session {
    output: Arc<Output>,
    engine: Engine,
    bench: Bench,
    /// Set where the commands are arguments, whose exit code tells of a failure.
    exit_code: Option<Arc<AtomicI32>>,
}

impl Session {
    /// A conversation with nothing said yet but the remarks of the set-up.
    pub fn new(setup: Setup) -> Session {
        let output = Arc::new(Output::default());
        let listener: Listener = {
            let output = Arc::clone(&output);
            Arc::new(move |event| print(&output, event))
        };
        let session = Session {
            engine: Engine::new(setup.options, listener),
            output,
            bench: setup.bench,
            exit_code: None,
        };
        session.follow_log_file();
        for remark in setup.remarks {
            session.output.info_string(&remark);
        }
        session
    }

    /// Talks on standard input and output until `quit` or the end of input; then the process ends.
    pub fn run(mut self) -> ! {
        let inputs = read_ahead(Arc::clone(&self.output));
        while let Ok((received, input)) = inputs.recv() {
            match input {
                Input::Line(line) => {
                    if self.line(&line, received) {
                        self.leave(Duration::ZERO);
                    }
                }
                Input::TooLong { bytes } => self.output.info_string(&format!(
                    "a line of {bytes} bytes was not read: at most {MAX_LINE_BYTES} are"
                )),
                Input::End => break,
            }
        }
        self.leave(GRACE)
    }

    /// Does `lines` one after the other, each to its end, then ends the process.
    pub fn run_lines(mut self, lines: &[String]) -> ! {
        let exit_code = Arc::new(AtomicI32::new(0));
        self.exit_code = Some(Arc::clone(&exit_code));
        for line in lines {
            if self.line(line, Instant::now()) {
                break;
            }
            while !self.engine.waits_for_stop() && !self.engine.wait(Duration::from_secs(1)) {}
        }
        self.engine.end_search();
        exit_now(exit_code.load(Ordering::SeqCst))
    }

    /// Ends a search, lets anything else finish while there is time, and ends the process.
    fn leave(mut self, grace: Duration) -> ! {
        let output = Arc::clone(&self.output);
        thread::spawn(move || {
            thread::sleep(LAST_BREATH);
            output.leave();
        });
        self.engine.wait(grace);
        self.engine.end_search();
        while !self.engine.wait(LAST_BREATH) {}
        self.output.leave()
    }

    /// Handles one line; true for `quit`.
    fn line(&mut self, line: &str, received: Instant) -> bool {
        self.output.received(line);
        match command::parse(line) {
            Ok(None) => {}
            Ok(Some(Command::Quit)) => return true,
            Ok(Some(command)) => self.command(command, received),
            Err(error @ SyntaxError::GenFens(_)) => {
                fail(&self.output, self.exit_code.as_deref(), &error.to_string());
            }
            Err(error) => self.output.info_string(&error.to_string()),
        }
        false
    }

    fn command(&mut self, command: Command, received: Instant) {
        match command {
            Command::Uci => self.output.say(&identification()),
            Command::IsReady => {
                self.output.owe_ready();
                self.engine.ready();
            }
            Command::SetOption { name, value } => self.set_option(&name, value.as_deref()),
            Command::NewGame => self.engine.new_game(),
            Command::Position { start, moves } => self.position(&start, &moves),
            Command::Go {
                request,
                complaints,
            } => self.go(&request, &complaints, received),
            Command::Stop => self.engine.stop(),
            Command::PonderHit => self.engine.ponderhit(),
            Command::Debug(on) => self.engine.set_debug(on),
            // Nothing needs a registration.
            Command::Register | Command::Quit => {}
            Command::Display => self.output.say(&board::describe(
                self.engine.game(),
                self.engine.options().uci_chess960,
            )),
            Command::Eval => self.engine.evaluate(),
            Command::Bench(words) => {
                let (bench, output) = (Arc::clone(&self.bench), Arc::clone(&self.output));
                self.engine
                    .run(Box::new(move |_| output.say(&bench(&words).join("\n"))));
            }
            Command::Perft(depth) => self.engine.perft(depth),
            Command::Flip => {
                let fen = board::flipped(self.engine.game().current());
                self.position(&Start::Fen(fen), &[]);
            }
            Command::Help => self.output.say(HELP),
            Command::GenFens(wish) => {
                let output = Arc::clone(&self.output);
                let exit_code = self.exit_code.clone();
                self.engine.run(Box::new(move |_| {
                    if let Err(problem) = generate(&output, &wish) {
                        fail(&output, exit_code.as_deref(), &problem);
                    }
                }));
            }
        }
    }

    fn set_option(&mut self, name: &str, value: Option<&str>) {
        let log_file = self.engine.options().log_file.clone();
        match self.engine.set_option(name, value.unwrap_or_default()) {
            Ok(spec) if spec.key == "log_file" => {
                if !self.follow_log_file() {
                    // It was accepted once, so it is accepted again.
                    let _ = self.engine.set_option(spec.uci, &log_file);
                }
            }
            Ok(_) => {}
            Err(error) => self.output.info_string(&error.to_string()),
        }
    }

    /// Logs to where LogFile says; false when that is impossible.
    fn follow_log_file(&self) -> bool {
        let path = &self.engine.options().log_file;
        let target = (!path.is_empty()).then_some(Path::new(path));
        if let Err(error) = self.output.log_to(target) {
            self.output
                .info_string(&format!("LogFile {path} cannot be written: {error}"));
            return false;
        }
        true
    }

    fn position(&mut self, start: &Start, moves: &[String]) {
        let fen = match start {
            Start::Startpos => None,
            Start::Fen(fen) => Some(fen.as_str()),
        };
        let moves = moves.iter().map(String::as_str);
        let (repairs, outcome) = self.engine.set_position(fen, moves);
        let repairs: Vec<String> = repairs.iter().map(ToString::to_string).collect();
        if !repairs.is_empty() {
            self.output
                .info_string(&format!("position repaired: {}", repairs.join("; ")));
        }
        if let Err(error) = outcome {
            self.output.info_string(&error.to_string());
        }
    }

    fn go(&mut self, request: &GoRequest, complaints: &[SyntaxError], received: Instant) {
        // The search before ends first, with its best move.
        self.engine.end_search();
        if !complaints.is_empty() {
            let all: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            self.output.info_string(&all.join("; "));
        }
        if let Some(depth) = request.perft {
            self.engine.perft(depth);
            return;
        }
        let refused = self.engine.go(request, received);
        if !refused.is_empty() {
            let all: Vec<String> = refused.iter().map(ToString::to_string).collect();
            self.output.info_string(&all.join("; "));
        }
    }
}

/// Reads standard input on a thread of its own, which also sees to it that the process ends in time
/// once that was asked for, even while a command is being handled.
fn read_ahead(output: Arc<Output>) -> Receiver<(Instant, Input)> {
    let (sender, receiver) = bounded(READ_AHEAD);
    thread::spawn(move || {
        let mut reader = BufReader::new(std::io::stdin());
        loop {
            let input = next_line(&mut reader);
            let last = match &input {
                Input::Line(line) => matches!(command::parse(line), Ok(Some(Command::Quit))),
                Input::TooLong { .. } => false,
                Input::End => true,
            };
            if last {
                let output = Arc::clone(&output);
                thread::spawn(move || {
                    thread::sleep(LAST_BREATH);
                    output.leave();
                });
            }
            if sender.send((Instant::now(), input)).is_err() || last {
                return;
            }
        }
    });
    receiver
}

/// Says what went wrong: to the GUI, or where commands are arguments on standard error.
fn fail(output: &Output, exit_code: Option<&AtomicI32>, problem: &str) {
    match exit_code {
        Some(exit_code) => {
            eprintln!("error: {problem}");
            exit_code.store(2, Ordering::SeqCst);
        }
        None => output.info_string(problem),
    }
}

/// Prints opening positions the way OpenBench reads them.
fn generate(output: &Output, wish: &GenFens) -> Result<(), String> {
    let book = match wish.book.as_deref().map(genfens::read_book) {
        None => Vec::new(),
        Some(Ok(book)) => book,
        Some(Err(error)) => return Err(format!("genfens: {error}")),
    };
    let found = genfens::genfens(wish.count, wish.seed, &book);
    for position in &found {
        output.info_string(&format!("genfens {}", position.to_fen(false)));
    }
    if found.len() < wish.count {
        let (most, made) = (genfens::MAX, found.len());
        return Err(format!(
            "genfens: {made} made; the book gives no more, or over {most}"
        ));
    }
    Ok(())
}

/// The answer to `uci`.
fn identification() -> String {
    let mut lines = vec![
        format!("id name Simurgh {}", env!("CARGO_PKG_VERSION")),
        "id author the Simurgh authors".to_owned(),
    ];
    lines.extend(TABLE.iter().flat_map(|spec| spec.uci_lines()));
    lines.push("uciok".to_owned());
    lines.join("\n")
}

fn print(output: &Output, event: Event) {
    match event {
        Event::Search {
            game,
            options,
            event,
        } => match event {
            SearchEvent::Info(news) => output.say(&info::info(&news, &game, &options)),
            SearchEvent::Message(text) => output.info_string(&text),
            SearchEvent::BestMove(best) => {
                output.say(&info::best_move(&best, &game, options.uci_chess960));
            }
        },
        Event::Ready => output.ready(),
        Event::Message(text) => output.info_string(&text),
        Event::Perft {
            game,
            chess960,
            counts,
        } => {
            output.say(&info::perft(&counts, &game, chess960));
        }
        Event::Evaluated(answer) => output.say(&info::evaluated(&answer)),
    }
}
