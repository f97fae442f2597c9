//! `simurgh uci` and `simurgh "go nodes 10" quit`: sets up a UCI conversation. Speaks none itself.

use std::sync::Arc;

use anyhow::{Result, bail};

use super::bench::{self, Bench};
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
        bench: Arc::new(bench),
    })
}

/// `bench [NODES]` in a conversation: the same lines as `simurgh bench`, on the built-in stand-in.
fn bench(words: &[String]) -> Vec<String> {
    let nodes = words.first().and_then(|word| word.parse().ok());
    let args = Bench::signature(nodes);
    bench::lines(&args, &Options::default(), false)
        .unwrap_or_else(|error| vec![format!("info string bench: {error:#}")])
}
