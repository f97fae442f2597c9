//! Standard output (and error) of the commands that are no conversation. Refuses to panic when nobody reads it.

use std::io::{self, ErrorKind, Write};

use thiserror::Error;

/// Why nothing more can be printed.
#[derive(Debug, Error)]
pub enum StdoutError {
    /// Whoever read it has gone away: that is no failure of ours.
    #[error("nobody reads standard output")]
    Closed,
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
}

/// Prints a line, or several that belong together.
///
/// # Errors
/// When nobody reads them, or they cannot be written.
pub fn say(text: impl std::fmt::Display) -> Result<(), StdoutError> {
    print(&format!("{text}\n"))
}

/// Says something beside the output, on standard error. Nobody need read it.
pub fn warn(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints text that ends with a line end of its own.
///
/// # Errors
/// As [`say`].
pub fn print(text: &str) -> Result<(), StdoutError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => StdoutError::Closed,
            _ => StdoutError::Write(error),
        })
}
