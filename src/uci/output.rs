//! Standard output and the log file: whole lines, written at once and flushed. Refuses to know
//! what the lines mean.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use parking_lot::Mutex;

use super::exit::exit_now;

/// The way out to the GUI. Lines of several threads never mix.
pub struct Output {
    started: Instant,
    log: Mutex<Option<File>>,
}

impl Default for Output {
    fn default() -> Output {
        Output {
            started: Instant::now(),
            log: Mutex::new(None),
        }
    }
}

impl Output {
    /// Writes one line or several that belong together. A reader that has gone away ends the
    /// process quietly: nobody is left to talk to.
    pub fn say(&self, text: &str) {
        let mut log = self.log.lock();
        if let Some(file) = log.as_mut() {
            for line in text.lines() {
                note(file, self.started, "<<", line);
            }
        }
        let mut whole = String::with_capacity(text.len() + 1);
        whole.push_str(text);
        whole.push('\n');
        let mut stdout = io::stdout().lock();
        if stdout
            .write_all(whole.as_bytes())
            .and_then(|()| stdout.flush())
            .is_err()
        {
            exit_now();
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

    /// Notes what came in.
    pub fn received(&self, line: &str) {
        if let Some(file) = self.log.lock().as_mut() {
            note(file, self.started, ">>", line);
        }
    }

    /// Starts, moves or (with `None`) ends the log of both directions.
    ///
    /// # Errors
    /// When the file cannot be opened for appending; the log stays where it was.
    pub fn log_to(&self, path: Option<&Path>) -> io::Result<()> {
        let file = match path {
            Some(path) => Some(OpenOptions::new().create(true).append(true).open(path)?),
            None => None,
        };
        *self.log.lock() = file;
        Ok(())
    }
}

/// A full disk must not end a game, so a failing log is not an error.
fn note(file: &mut File, started: Instant, direction: &str, line: &str) {
    let seconds = started.elapsed().as_secs_f64();
    let _ = file.write_all(format!("{seconds:.3} {direction} {line}\n").as_bytes());
}
