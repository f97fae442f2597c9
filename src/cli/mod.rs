//! One file per subcommand; turns flags into calls of the other rooms. Decides nothing about chess.

mod backendbench;
mod bench;
mod contestant;
mod datagen;
mod describe;
mod evaluate;
mod interrupt;
mod matches;
mod perft;
mod raw;
mod stdout;
mod train;
mod uci;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::engine::{self, NETWORK_KEYS};
use crate::options::{Domain, Options, TABLE};

use self::stdout::StdoutError;

/// A UCI chess engine on transformer and Lc0 networks. Without a command it speaks UCI.
#[derive(Parser)]
#[command(name = "simurgh", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Raw(raw::Raw),
    #[command(name = "backendbench")]
    BackendBench(backendbench::BackendBench),
    Bench(bench::Bench),
    Describe(describe::Describe),
    Perft(perft::Perft),
    Datagen(datagen::Datagen),
    Train(train::Train),
    Match(matches::MatchArgs),
    Evaluate(evaluate::Evaluate),
    /// Speaks UCI on standard input and output; the same as no command.
    Uci,
    /// UCI commands, each an argument, and then the end: simurgh "go nodes 100" quit.
    #[command(external_subcommand)]
    Lines(Vec<String>),
}

/// Entry point of the binary: exit code 0, or 2 with one line on stderr.
pub fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let matches = command().get_matches();
    match run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if matches!(error.downcast_ref(), Some(StdoutError::Closed)) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", in_words(&error));
            ExitCode::from(2)
        }
    }
}

/// An error with its causes, leaving out those that the words before them already tell.
fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words.push_str(": ");
            words.push_str(&cause);
        }
    }
    words
}

fn run(matches: &ArgMatches) -> Result<()> {
    let cli = Cli::from_arg_matches(matches)?;
    let mut options = Options::default();
    let settings = engine::apply_settings(&mut options);
    apply_flags(&mut options, matches)?;
    // A GUI does not look at exit codes: it is told, and the game goes on.
    let remark = settings.as_ref().err().map(ToString::to_string);
    match cli.command {
        None | Some(Command::Uci) => uci::run(options, remark.into_iter().collect()),
        Some(Command::Lines(lines)) => {
            return uci::run_arguments(options, remark.into_iter().collect(), &lines);
        }
        _ => {}
    }
    settings?;
    match cli.command {
        None | Some(Command::Uci | Command::Lines(_)) => Ok(()),
        Some(Command::Raw(args)) => raw::run(&args, &options),
        Some(Command::BackendBench(args)) => backendbench::run(&args, &options),
        Some(Command::Bench(args)) => bench::run(&args, &options, is_given(matches, "weights")),
        Some(Command::Describe(args)) => describe::run(&args, &options),
        Some(Command::Perft(args)) => perft::run(&args),
        Some(Command::Datagen(args)) => datagen::run(&args, &options),
        Some(Command::Train(args)) => train::run(&args),
        Some(Command::Match(args)) => matches::run(&args),
        Some(Command::Evaluate(args)) => evaluate::run(&args, &options),
    }
}

/// The clap command with one global flag for each option of the table.
fn command() -> clap::Command {
    TABLE
        .iter()
        .filter(|spec| !matches!(spec.domain, Domain::Button))
        .fold(Cli::command(), |command, spec| {
            let arg = Arg::new(option_id(spec.key))
                .long(spec.flag())
                .global(true)
                .allow_negative_numbers(true)
                .value_name(spec.uci)
                .help_heading("Options (see also: simurgh describe --options)")
                .hide(!NETWORK_KEYS.contains(&spec.key))
                .help(spec.help);
            command.arg(arg)
        })
}

/// True when the option was given as a flag.
fn is_given(matches: &ArgMatches, key: &str) -> bool {
    let id = option_id(key);
    let mut level = Some(matches);
    while let Some(current) = level {
        if matches!(current.try_get_one::<String>(&id), Ok(Some(_))) {
            return true;
        }
        level = current.subcommand().map(|(_, inner)| inner);
    }
    false
}

fn option_id(key: &str) -> String {
    format!("option:{key}")
}

/// Flags win over what the options hold.
fn apply_flags(options: &mut Options, matches: &ArgMatches) -> Result<()> {
    // Global flags may stand before or after the subcommand.
    let mut level = Some(matches);
    while let Some(current) = level {
        for spec in TABLE {
            if let Ok(Some(text)) = current.try_get_one::<String>(&option_id(spec.key)) {
                spec.set_text(options, text)?;
            }
        }
        level = current.subcommand().map(|(_, inner)| inner);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let told = anyhow::Error::from(crate::model::ModelError::Io {
            path: "a.pb".into(),
            source: missing(),
        });
        let cause = missing().to_string();
        assert_eq!(in_words(&told).matches(&cause).count(), 1, "{told:#}");
        let untold = Err::<(), _>(missing())
            .context("cannot read a")
            .unwrap_err();
        assert_eq!(in_words(&untold), format!("cannot read a: {cause}"));
    }
}
