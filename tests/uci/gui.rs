//! A GUI of few words: starts the real program, sends lines, and waits for lines with a limit.
//! Knows nothing of what the lines mean.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Generous: only a hang reaches it, even on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Gui {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything read so far.
    pub transcript: Vec<String>,
}

/// The program with arguments, in a folder without an `engine.toml`.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simurgh"));
    command.args(arguments).current_dir(std::env::temp_dir());
    command
}

impl Gui {
    /// Without a network: material values, one thread.
    pub fn new() -> Gui {
        Gui::with(&["--backend", "material", "--threads", "1"])
    }

    pub fn with(arguments: &[&str]) -> Gui {
        Gui::start(program(arguments))
    }

    pub fn start(mut command: Command) -> Gui {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Gui {
            child,
            stdin,
            lines,
            transcript: Vec::new(),
        }
    }

    pub fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// The next line, if one comes within `patience`.
    pub fn next_within(&mut self, patience: Duration) -> Option<String> {
        let line = self.lines.recv_timeout(patience).ok()?;
        let word = line.split_whitespace().next().unwrap_or_default();
        if ["info", "bestmove", "readyok", "id", "option", "uciok"].contains(&word) {
            assert_eq!(line.trim(), line, "outer blanks");
        }
        self.transcript.push(line.clone());
        Some(line)
    }

    /// All lines up to and with the first one that begins with `start`.
    pub fn until(&mut self, start: &str) -> Vec<String> {
        let mut read = Vec::new();
        loop {
            match self.next_within(PATIENCE) {
                Some(line) => read.push(line),
                None => panic!("no line that begins with {start:?} came; instead {read:#?}"),
            }
            if read.last().is_some_and(|line| line.starts_with(start)) {
                return read;
            }
        }
    }

    /// Everything that is on its way, up to the answer to `isready`, which is left out.
    pub fn sync(&mut self) -> Vec<String> {
        self.send("isready");
        let mut read = self.until("readyok");
        read.pop();
        read
    }

    /// Sends a line and returns what comes of it at once.
    pub fn ask(&mut self, line: &str) -> Vec<String> {
        self.send(line);
        self.sync()
    }

    /// Sends a line that is wrong: exactly one `info string` must come, with all of `parts` in it.
    #[track_caller]
    pub fn complaint(&mut self, line: &str, parts: &[&str]) -> String {
        let read = self.ask(line);
        assert_eq!(read.len(), 1, "{line:?}: {read:#?}");
        assert!(read[0].starts_with("info string "), "{line:?}: {read:#?}");
        for part in parts {
            assert!(
                read[0].contains(part),
                "{line:?}: {part:?} is not in {:?}",
                read[0]
            );
        }
        read[0].clone()
    }

    /// Sends a line that must be accepted in silence.
    #[track_caller]
    pub fn quiet(&mut self, line: &str) {
        let read = self.ask(line);
        assert!(read.is_empty(), "{line:?}: {read:#?}");
    }

    /// Sends a `go` and returns its lines, the last of them `bestmove`.
    pub fn search(&mut self, go: &str) -> Vec<String> {
        self.send(go);
        self.until("bestmove")
    }

    /// The FEN that `d` shows.
    pub fn fen(&mut self) -> String {
        let read = self.ask("d");
        read.iter()
            .find_map(|line| line.strip_prefix("Fen: "))
            .unwrap()
            .to_owned()
    }

    /// Ends the input without a word.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the process: its exit status and how long it took.
    pub fn wait(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            assert!(start.elapsed() < PATIENCE, "the process does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a clean end in time, and returns the last lines.
    pub fn ends(&mut self) -> Vec<String> {
        let (status, took) = self.wait();
        assert_eq!(status.code(), Some(0));
        // One second is promised; the rest is for a loaded machine.
        assert!(took < Duration::from_millis(1500), "took {took:?}");
        let mut read = Vec::new();
        while let Some(line) = self.next_within(Duration::from_millis(200)) {
            read.push(line);
        }
        read
    }

    pub fn quit(&mut self) -> Vec<String> {
        self.send("quit");
        self.ends()
    }
}

impl Drop for Gui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The move of the `bestmove` line that ends `lines`.
pub fn best(lines: &[String]) -> String {
    let last = lines.last().unwrap();
    last.strip_prefix("bestmove ")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

/// The word after `key` in an info line.
pub fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split(' ');
    words.find(|&word| word == key)?;
    words.next()
}

/// The number after `key` in an info line.
pub fn number(line: &str, key: &str) -> i64 {
    field(line, key)
        .unwrap_or_else(|| panic!("no {key} in {line:?}"))
        .parse()
        .unwrap_or_else(|_| panic!("{key} is no number in {line:?}"))
}

/// The moves after `pv`.
pub fn pv(line: &str) -> Vec<String> {
    line.split_once(" pv ").map_or(Vec::new(), |(_, moves)| {
        moves.split(' ').map(str::to_owned).collect()
    })
}

/// The info lines with a score.
pub fn scored(lines: &[String]) -> Vec<&String> {
    lines
        .iter()
        .filter(|line| line.starts_with("info depth"))
        .collect()
}
