//! One file per subcommand; turns flags into calls of the other rooms. Decides nothing about chess.

mod backendbench;
mod bench;
mod contestant;
mod describe;
mod matches;
mod perft;
mod raw;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::options::{Domain, Options, TABLE};

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
    Match(matches::MatchArgs),
}

/// Options whose flags `--help` shows; `describe --options` lists them all.
const COMMON: &[&str] = &[
    "weights",
    "backend",
    "device",
    "precision",
    "policy_head",
    "value_head",
    "history_fill",
    "threads",
    "minibatch_size",
];

/// Entry point of the binary: exit code 0, or 2 with one line on stderr.
pub fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let matches = command().get_matches();
    match run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(matches: &ArgMatches) -> Result<()> {
    let cli = Cli::from_arg_matches(matches)?;
    let options = options(matches)?;
    match cli.command {
        None => Ok(()),
        Some(Command::Raw(args)) => raw::run(&args, &options),
        Some(Command::BackendBench(args)) => backendbench::run(&args, &options),
        Some(Command::Bench(args)) => bench::run(&args, &options, is_given(matches, "weights")),
        Some(Command::Describe(args)) => describe::run(&args, &options),
        Some(Command::Perft(args)) => perft::run(&args),
        Some(Command::Match(args)) => matches::run(&args),
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
                .hide(!COMMON.contains(&spec.key))
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

/// Defaults, then `engine.toml`, then flags.
fn options(matches: &ArgMatches) -> Result<Options> {
    let mut options = Options::default();
    if let Some(file) = engine_toml() {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        options
            .apply_toml(&text)
            .with_context(|| file.display().to_string())?;
    }
    // Global flags may stand before or after the subcommand.
    let mut level = Some(matches);
    while let Some(current) = level {
        for spec in TABLE {
            if let Ok(Some(text)) = current.try_get_one::<String>(&option_id(spec.key)) {
                spec.set_text(&mut options, text)?;
            }
        }
        level = current.subcommand().map(|(_, inner)| inner);
    }
    Ok(options)
}

/// `engine.toml` beside the binary, else in the working directory.
fn engine_toml() -> Option<std::path::PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.join("engine.toml")));
    beside
        .into_iter()
        .chain([Path::new("engine.toml").to_owned()])
        .find(|path| path.is_file())
}
