//! The dialogue with one engine: handshake, options, position, go, answer, quit. Knows the order
//! of UCI, and neither rules of chess nor whose clock it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::RecvTimeoutError;

use super::error::ClientError;
use super::info::Info;
use super::limits::Limits;
use super::option::EngineOption;
use super::process::{Line, Process};

/// How often a wait looks at the interrupt flag.
const SLICE: Duration = Duration::from_millis(100);
/// Lines that are not UCI, in one wait, after which no answer is expected any more.
const MAX_GARBAGE: usize = 1000;
/// Complaints about one handshake.
const MAX_COMPLAINTS: usize = 20;
/// Characters of a foreign line quoted in a message.
const QUOTED: usize = 120;
/// How long the last output of an ended process may take to reach us.
const DRAIN: Duration = Duration::from_millis(200);
/// How long a process that closed its output may take to end.
const DYING: Duration = Duration::from_secs(1);

/// How to start an engine and what to tell it first.
#[derive(Clone, Debug, Default)]
pub struct EngineConfig {
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory, ours if absent.
    pub dir: Option<PathBuf>,
    /// Environment variables added to ours.
    pub env: Vec<(String, String)>,
    /// Options set after the handshake, in this order; an empty value presses a button.
    pub options: Vec<(String, String)>,
    /// How long it may take.
    pub timeouts: Timeouts,
}

/// The longest waits for what is not a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of the process to `uciok`.
    pub handshake: Duration,
    /// From `isready` to `readyok` (loading a network included).
    pub ready: Duration,
    /// From `stop` to `bestmove`.
    pub stop: Duration,
    /// From `quit` to the end of the process, which is killed then.
    pub quit: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(30),
            ready: Duration::from_secs(120),
            stop: Duration::from_secs(5),
            quit: Duration::from_secs(2),
        }
    }
}

/// A `bestmove` line. The moves are what was printed, legal or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The move to play.
    pub best: String,
    /// The reply the engine would ponder on.
    pub ponder: Option<String>,
    /// From just before `go` was sent until the line was read.
    pub elapsed: Duration,
}

/// How an engine took its leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with exit code 0.
    Clean,
    /// By itself, with another code or by a signal.
    Failed,
    /// Not in time; it had to be killed.
    Killed,
}

/// A running engine that has answered the handshake.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    process: Process,
    cancel: Arc<AtomicBool>,
    name: String,
    author: String,
    options: Vec<EngineOption>,
    complaints: Vec<String>,
    go_sent: Instant,
    last_line: String,
    strays: u32,
    /// A search was begun whose `bestmove` has not come: if it comes late, that is no stray.
    owes_bestmove: bool,
    unresponsive: bool,
}

impl Engine {
    /// Starts the engine, shakes hands, sets its options and waits until it is ready.
    ///
    /// # Errors
    /// No such program, a process that ends, or one that does not answer in time.
    pub fn start(config: EngineConfig) -> Result<Self, ClientError> {
        Self::start_with(config, Arc::new(AtomicBool::new(false)))
    }

    /// As [`Engine::start`], with a flag that ends every wait with [`ClientError::Cancelled`].
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with(config: EngineConfig, cancel: Arc<AtomicBool>) -> Result<Self, ClientError> {
        let process = spawn(&config)?;
        let mut engine = Self {
            config,
            process,
            cancel,
            name: String::new(),
            author: String::new(),
            options: Vec::new(),
            complaints: Vec::new(),
            go_sent: Instant::now(),
            last_line: String::new(),
            strays: 0,
            owes_bestmove: false,
            unresponsive: false,
        };
        engine.shake_hands()?;
        Ok(engine)
    }

    /// Kills the process, dead or not, and starts it again with the same options.
    ///
    /// # Errors
    /// As [`Engine::start`]; the engine is unusable then until another restart succeeds.
    pub fn restart(&mut self) -> Result<(), ClientError> {
        self.process.kill();
        self.process = spawn(&self.config)?;
        self.unresponsive = false;
        self.last_line.clear();
        self.options.clear();
        self.complaints.clear();
        self.shake_hands()
    }

    fn shake_hands(&mut self) -> Result<(), ClientError> {
        self.send("uci")?;
        let mut wait = Wait::new("uciok", self.config.timeouts.handshake);
        loop {
            let line = self.line(&mut wait)?.text;
            if line == "uciok" {
                break;
            } else if let Some(name) = line.strip_prefix("id name ") {
                self.name = name.trim().to_owned();
            } else if let Some(author) = line.strip_prefix("id author ") {
                self.author = author.trim().to_owned();
            } else if line.starts_with("option ") {
                match line.parse() {
                    Ok(option) => self.options.push(option),
                    Err(error) => self.complaints.push(format!("{error}: {:?}", quote(&line))),
                }
            } else {
                wait.judge(&line)?;
            }
        }
        for (name, value) in self.config.options.clone() {
            match self.option(&name) {
                None => self.complaints.push(format!(
                    "the engine lists no option {name:?}; sent all the same"
                )),
                Some(option) => {
                    if let Err(error) = option.check(&value) {
                        self.complaints.push(format!("{error}; sent all the same"));
                    }
                }
            }
            self.set_option(&name, &value)?;
        }
        self.ready(&mut |line, complaints| {
            if is_complaint(line) && complaints.len() < MAX_COMPLAINTS {
                complaints.push(format!("it says {:?}", quote(line)));
            }
        })
    }

    /// The name the engine gives itself, empty if none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The author the engine names, empty if none.
    pub fn author(&self) -> &str {
        &self.author
    }

    /// The options it lists.
    pub fn options(&self) -> &[EngineOption] {
        &self.options
    }

    /// The option of that name, in any case.
    pub fn option(&self, name: &str) -> Option<&EngineOption> {
        self.options
            .iter()
            .find(|option| option.name.eq_ignore_ascii_case(name))
    }

    /// What was odd about the handshake and the configured options, one sentence each.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// `bestmove` lines nobody asked for since the last call.
    pub fn take_strays(&mut self) -> u32 {
        std::mem::take(&mut self.strays)
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.wait_exit(Instant::now()).is_none()
    }

    /// Sets an option; an empty value is a button's, or the empty text.
    ///
    /// # Errors
    /// A line break in name or value.
    pub fn set_option(&mut self, name: &str, value: &str) -> Result<(), ClientError> {
        match value {
            "" => self.send(&format!("setoption name {name}")),
            _ => self.send(&format!("setoption name {name} value {value}")),
        }
    }

    /// Waits until everything sent so far has been dealt with.
    ///
    /// # Errors
    /// No `readyok` in time.
    pub fn is_ready(&mut self) -> Result<(), ClientError> {
        self.ready(&mut |_, _| {})
    }

    fn ready(&mut self, hear: &mut dyn FnMut(&str, &mut Vec<String>)) -> Result<(), ClientError> {
        self.send("isready")?;
        let mut wait = Wait::new("readyok", self.config.timeouts.ready);
        loop {
            let line = self.line(&mut wait)?.text;
            if line == "readyok" {
                return Ok(());
            }
            hear(&line, &mut self.complaints);
            self.idle_line(&line);
            wait.judge(&line)?;
        }
    }

    /// Says that the next position is of another game, and waits until the engine is ready.
    ///
    /// # Errors
    /// No `readyok` in time.
    pub fn new_game(&mut self) -> Result<(), ClientError> {
        self.send("ucinewgame")?;
        self.is_ready()
    }

    /// Sends a position: the start position or a FEN, and the moves played from it.
    ///
    /// # Errors
    /// A line break in one of them.
    pub fn position(&mut self, fen: Option<&str>, moves: &[String]) -> Result<(), ClientError> {
        let mut line = match fen {
            None => "position startpos".to_owned(),
            Some(fen) => format!("position fen {fen}"),
        };
        if !moves.is_empty() {
            line.push_str(" moves");
            for one in moves {
                line.push(' ');
                line.push_str(one);
            }
        }
        self.send(&line)
    }

    /// Starts a search. Lines left over from before are read away first.
    ///
    /// # Errors
    /// A line break in a search move.
    pub fn go(&mut self, limits: &Limits) -> Result<(), ClientError> {
        while let Some(line) = self.process.try_receive() {
            self.idle_line(&line.text);
        }
        self.owes_bestmove = true;
        self.go_sent = Instant::now();
        self.send(&limits.to_string())
    }

    /// Waits for the `bestmove` of the search, `limit` counted from `go`, handing on every info.
    ///
    /// After a [`ClientError::Timeout`] the search still runs: [`Engine::stop`], then this again
    /// with a longer limit, gets its answer if there is one to come.
    ///
    /// # Errors
    /// A dead, silent or babbling engine, or a malformed answer.
    pub fn answer(
        &mut self,
        limit: Duration,
        on_info: &mut dyn FnMut(Info),
    ) -> Result<Answer, ClientError> {
        let mut wait = Wait {
            since: self.go_sent,
            ..Wait::new("bestmove", limit)
        };
        loop {
            let line = self.line(&mut wait)?;
            let words: Vec<&str> = line.text.split_whitespace().collect();
            match words[..] {
                ["bestmove", best] => return Ok(self.answered(&line, best, None)),
                ["bestmove", best, "ponder", ponder] => {
                    return Ok(self.answered(&line, best, Some(ponder)));
                }
                ["bestmove", ..] => {
                    self.owes_bestmove = false;
                    return Err(ClientError::BadBestmove(quote(&line.text)));
                }
                ["info", ..] => {
                    if let Some(info) = Info::parse(&line.text) {
                        on_info(info);
                    }
                }
                _ => wait.judge(&line.text)?,
            }
        }
    }

    fn answered(&mut self, line: &Line, best: &str, ponder: Option<&str>) -> Answer {
        self.unresponsive = false;
        self.owes_bestmove = false;
        Answer {
            best: best.to_owned(),
            ponder: ponder.map(str::to_owned),
            elapsed: line.at.saturating_duration_since(self.go_sent),
        }
    }

    /// Tells the engine to end its search.
    ///
    /// # Errors
    /// None in practice: a dead engine shows in the next wait.
    pub fn stop(&mut self) -> Result<(), ClientError> {
        self.send("stop")
    }

    /// Ends the search and waits for its answer as long as [`Timeouts::stop`] allows.
    ///
    /// # Errors
    /// As [`Engine::answer`].
    pub fn stop_and_answer(
        &mut self,
        on_info: &mut dyn FnMut(Info),
    ) -> Result<Answer, ClientError> {
        self.stop()?;
        let limit = self.go_sent.elapsed() + self.config.timeouts.stop;
        self.answer(limit, on_info)
    }

    /// Tells a pondering engine that the expected move was played: its time starts now.
    ///
    /// # Errors
    /// None in practice: a dead engine shows in the next wait.
    pub fn ponder_hit(&mut self) -> Result<(), ClientError> {
        self.go_sent = Instant::now();
        self.send("ponderhit")
    }

    /// Asks the engine to end, and makes sure that it does. What it still prints is read away.
    pub fn quit(&mut self) -> Exit {
        let exit = self.leave();
        let deadline = Instant::now() + DRAIN;
        while let Ok(line) = self.process.receive(deadline) {
            self.idle_line(&line.text);
        }
        exit
    }

    /// Kills the process at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    fn leave(&mut self) -> Exit {
        if !self.unresponsive {
            self.process.send("quit");
            let deadline = Instant::now() + self.config.timeouts.quit;
            if let Some(status) = self.process.wait_exit(deadline) {
                return if status.success() {
                    Exit::Clean
                } else {
                    Exit::Failed
                };
            }
        }
        self.process.close_input();
        self.process.kill();
        Exit::Killed
    }

    fn send(&mut self, line: &str) -> Result<(), ClientError> {
        if line.contains(['\n', '\r']) {
            return Err(ClientError::LineBreak(line.to_owned()));
        }
        log::trace!("{} < {line}", self.name);
        // A closed pipe shows as an end of the process in the next wait, with its status.
        self.process.send(line);
        Ok(())
    }

    /// The next line that is not empty, until the wait's limit.
    fn line(&mut self, wait: &mut Wait) -> Result<Line, ClientError> {
        let deadline = wait.since + wait.limit;
        loop {
            let now = Instant::now();
            if self.cancel.load(Ordering::Relaxed) {
                return Err(ClientError::Cancelled {
                    waiting_for: wait.waiting_for,
                });
            }
            if now >= deadline {
                self.unresponsive = true;
                let last_line = match self.last_line.as_str() {
                    "" => String::new(),
                    line => format!("; its last line is {:?}", quote(line)),
                };
                return Err(ClientError::Timeout {
                    waiting_for: wait.waiting_for,
                    after: wait.limit,
                    last_line,
                });
            }
            match self.process.receive(deadline.min(now + SLICE)) {
                Ok(line) if line.text.is_empty() => {}
                Ok(line) => {
                    log::trace!("{} > {}", self.name, line.text);
                    self.last_line.clone_from(&line.text);
                    return Ok(line);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.exited(wait.waiting_for)),
            }
        }
    }

    fn exited(&mut self, waiting_for: &'static str) -> ClientError {
        let status = match self.process.wait_exit(Instant::now() + DYING) {
            Some(status) => status.to_string(),
            None => {
                self.process.kill();
                "it closed its output".to_owned()
            }
        };
        let stderr = match self.process.stderr(Instant::now() + DRAIN).as_str() {
            "" => String::new(),
            text => format!("; on standard error: {text}"),
        };
        ClientError::Exited {
            status,
            waiting_for,
            stderr,
        }
    }

    fn idle_line(&mut self, line: &str) {
        if line.starts_with("bestmove") && !std::mem::take(&mut self.owes_bestmove) {
            self.strays += 1;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.is_alive() {
            self.leave();
        }
    }
}

/// One wait for one kind of line.
struct Wait {
    waiting_for: &'static str,
    since: Instant,
    limit: Duration,
    garbage: usize,
}

impl Wait {
    fn new(waiting_for: &'static str, limit: Duration) -> Self {
        Self {
            waiting_for,
            since: Instant::now(),
            limit,
            garbage: 0,
        }
    }

    /// Counts a line if it is not UCI.
    fn judge(&mut self, line: &str) -> Result<(), ClientError> {
        let first = line.split_whitespace().next().unwrap_or_default();
        let known = [
            "info",
            "bestmove",
            "readyok",
            "uciok",
            "id",
            "option",
            "copyprotection",
            "registration",
        ];
        if known.contains(&first) {
            return Ok(());
        }
        self.garbage += 1;
        if self.garbage < MAX_GARBAGE {
            return Ok(());
        }
        Err(ClientError::Garbage {
            waiting_for: self.waiting_for,
            lines: self.garbage,
            last_line: quote(line),
        })
    }
}

fn spawn(config: &EngineConfig) -> Result<Process, ClientError> {
    // A path is meant from where we are, not from the engine's directory; a bare name is searched.
    let command = match config.command.components().count() {
        0 | 1 => config.command.clone(),
        _ => std::path::absolute(&config.command).unwrap_or_else(|_| config.command.clone()),
    };
    Process::spawn(
        &command,
        &config.args,
        config.dir.as_deref().map(Path::new),
        &config.env,
    )
}

/// Whether a line between the options and `readyok` reads like trouble: an option refused, a network
/// missing. Engines also say how many threads they use.
fn is_complaint(line: &str) -> bool {
    const TROUBLE: [&str; 14] = [
        "no", "not", "cannot", "can't", "unable", "unknown", "invalid", "refused", "missing",
        "error", "fail", "failed", "warning", "expected",
    ];
    line.to_ascii_lowercase()
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .any(|word| TROUBLE.contains(&word))
}

fn quote(line: &str) -> String {
    line.chars().take(QUOTED).collect()
}
