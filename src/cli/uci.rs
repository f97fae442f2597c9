//! `simurgh uci` and `simurgh "go nodes 10" quit`: sets up a UCI conversation. Speaks none itself.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::options::Options;
use crate::uci::{COMMAND_WORDS, Session, Setup, lines_of_arguments};

/// A conversation on standard input and output.
pub fn run(options: Options, remarks: Vec<String>) -> ! {
    session(options, remarks).run()
}

/// UCI commands given as arguments, each done to its end.
///
/// # Errors
/// When the first of them is no such command.
pub fn run_arguments(options: Options, remarks: Vec<String>, arguments: &[String]) -> Result<()> {
    let lines = lines_of_arguments(arguments);
    let first = lines.first().map_or("", String::as_str);
    let word = first.split_whitespace().next().unwrap_or_default();
    if !COMMAND_WORDS.contains(&word) {
        bail!("unknown command '{word}' (see simurgh --help)");
    }
    session(options, remarks).run_lines(&lines)
}

fn session(options: Options, remarks: Vec<String>) -> Session {
    Session::new(Setup {
        options,
        remarks,
        bench: Arc::new(|_| vec!["info string bench: start it as simurgh bench".to_owned()]),
    })
}
