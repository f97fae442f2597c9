//! Standard output and the log file: whole lines, written at once and flushed. Refuses to know
//! what the lines mean.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::bounded;
use parking_lot::Mutex;

use super::exit::exit_now;

/// How long what is said last may take: a reader that has stopped reading does not keep us.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The way out to the GUI. Lines of several threads never mix.
pub struct Output {
    started: Instant,
    log: Mutex<Option<Log>>,
    /// `isready`s without an answer so far.
    owed: AtomicU32,
}

struct Log {
    file: File,
    path: PathBuf,
    /// A full disk must not end a game, and is told of once.
    failed: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output {
            started: Instant::now(),
            log: Mutex::new(None),
            owed: AtomicU32::new(0),
        }
    }
}

impl Output {
    /// Writes one line or several that belong together. A reader that has gone away ends the
    /// process quietly: nobody is left to talk to.
    pub fn say(&self, text: &str) {
        let mut log = self.log.lock();
        let problem = self.note(&mut log, "<<", text);
        let mut whole = String::with_capacity(text.len() + 1);
        whole.push_str(text);
        whole.push('\n');
        if let Some(problem) = problem {
            whole.push_str(&format!("info string {problem}\n"));
        }
        let mut stdout = io::stdout().lock();
        if stdout
            .write_all(whole.as_bytes())
            .and_then(|()| stdout.flush())
            .is_err()
        {
            exit_now(0);
        }
    }

    /// `info string` with a message kept to one line.
    pub fn info_string(&self, message: &str) {
        let one_line = message
            .split(['\n', '\r'])
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" ");
        self.say(&format!("info string {}", one_line.trim()));
    }

    /// An `isready` came, which is owed an answer.
    pub fn owe_ready(&self) {
        self.owed.fetch_add(1, Ordering::SeqCst);
    }

    /// Answers an `isready`.
    pub fn ready(&self) {
        let paid = |owed: u32| owed.checked_sub(1);
        if self
            .owed
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, paid)
            .is_ok()
        {
            self.say("readyok");
        }
    }

    /// Answers what is owed, as far as somebody reads it, and ends the process.
    pub fn leave(self: &Arc<Self>) -> ! {
        let output = Arc::clone(self);
        let (sender, said) = bounded(1);
        thread::spawn(move || {
            while output.owed.load(Ordering::SeqCst) > 0 {
                output.ready();
            }
            let _ = sender.send(());
        });
        let _ = said.recv_timeout(LAST_WORDS);
        exit_now(0)
    }

    /// Notes what came in.
    pub fn received(&self, line: &str) {
        let problem = self.note(&mut self.log.lock(), ">>", line);
        if let Some(problem) = problem {
            self.info_string(&problem);
        }
    }

    /// Starts, moves or (with `None`) ends the log of both directions.
    ///
    /// # Errors
    /// When the file cannot be opened for appending; the log stays where it was.
    pub fn log_to(&self, path: Option<&Path>) -> io::Result<()> {
        let log = match path {
            Some(path) => Some(Log {
                file: open_log(path)?,
                path: path.to_owned(),
                failed: false,
            }),
            None => None,
        };
        *self.log.lock() = log;
        Ok(())
    }

    /// Logs lines; the first time that fails, says so.
    fn note(&self, log: &mut Option<Log>, direction: &str, text: &str) -> Option<String> {
        let log = log.as_mut()?;
        let seconds = self.started.elapsed().as_secs_f64();
        let lines: String = text
            .lines()
            .map(|line| format!("{seconds:.3} {direction} {line}\n"))
            .collect();
        let error = log.file.write_all(lines.as_bytes()).err()?;
        if std::mem::replace(&mut log.failed, true) {
            return None;
        }
        let path = log.path.display();
        Some(format!("LogFile {path} cannot be written: {error}"))
    }
}

/// Opens what can be written without waiting for a reader: opening a named pipe may take for ever.
fn open_log(path: &Path) -> io::Result<File> {
    if let Ok(there) = path.metadata() {
        let kind = there.file_type();
        #[cfg(unix)]
        let is_device = std::os::unix::fs::FileTypeExt::is_char_device(&kind);
        #[cfg(not(unix))]
        let is_device = false;
        if !kind.is_file() && !is_device {
            return Err(io::Error::other("not a regular file"));
        }
    }
    OpenOptions::new().create(true).append(true).open(path)
}
