//! `simurgh evaluate`: turns flags into an evaluation and shows how it goes. Measures nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::interrupt::on_interrupt;
use crate::cli::stdout;
use crate::measure::evaluate::desk::{Clock, Desk, Sampling, Told};
use crate::measure::evaluate::network::NetworkPlayer;
use crate::measure::evaluate::player::{Identity, Player};
use crate::measure::evaluate::results::Results;
use crate::measure::evaluate::store::{Store, sha256};
use crate::measure::evaluate::suite::Suite;
use crate::measure::evaluate::{Files, Materials, evaluate, markdown};
use crate::measure::matches::utc;
use crate::model::{self, ModelOptions};
use crate::options::{Options, TABLE};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Flags of the evaluation itself.
#[derive(Args)]
pub struct RunArgs {
    /// What is measured: full, quick (a tenth of the positions), or names separated by commas
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    suite: Suite,
    /// A network to measure, may be repeated; without any, the one --weights names
    #[arg(long, value_name = "FILE")]
    network: Vec<PathBuf>,
    /// Games of people, PGN, plain or gzipped: legality and accuracy
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Files")]
    pgn: Vec<PathBuf>,
    /// Puzzles, CSV with the columns FEN, Moves, Rating (as Lichess has them) and perhaps Game
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Files")]
    puzzles: Vec<PathBuf>,
    /// Folder of the reports and of the store of answers; with the store there, nothing is asked twice
    #[arg(
        long,
        value_name = "DIR",
        default_value = "evaluation",
        help_heading = "Files"
    )]
    output: PathBuf,
    /// Nodes of a search
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,
    /// Temperature of moves sampled from the policy
    #[arg(long, value_name = "T", default_value_t = 0.6, value_parser = temperature)]
    sample_temperature: f32,
    /// Most probable outputs that a move is sampled from
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    sample_top_k: u32,
    /// Which positions and puzzles are drawn from the files
    #[arg(long, value_name = "N", default_value_t = 1)]
    draw_seed: u64,
}

fn temperature(text: &str) -> Result<f32, String> {
    let number = text
        .parse()
        .ok()
        .filter(|t: &f32| t.is_finite() && *t > 0.0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}

/// Runs the evaluation.
///
/// # Errors
/// Files that cannot be read or written, networks and engines that fail, Ctrl-C.
pub fn run(args: &RunArgs, options: &Options) -> Result<()> {
    let files = Files {
        pgn: args.pgn.clone(),
        puzzles: args.puzzles.clone(),
    };
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make the folder {}", args.output.display()))?;
    let store = Store::open(&args.output.join("answers.sqlite"))?;
    let cancel = on_interrupt("interrupted: ending; once more to end at once")?;
    eprintln!("reading the files");
    let materials = Materials::read(&files, &args.suite, args.draw_seed)?;
    let sampling = Sampling {
        temperature: args.sample_temperature,
        top_k: args.sample_top_k as usize,
    };
    let mut results = Results {
        simurgh: VERSION.to_owned(),
        date: String::new(),
        suite: args.suite.to_string(),
        sampling,
        nodes: args.nodes,
        rows: Vec::new(),
    };
    for options in networks(args, options) {
        let (mut player, identity) = network(&options)?;
        let mut bar = Bar::default();
        let mut desk = Desk {
            player: &mut *player,
            identity: &identity,
            store: &store,
            sampling,
            nodes: args.nodes,
            cancel: &cancel,
            told: &mut |told| bar.hear(&identity.name, told),
            clock: Clock::default(),
        };
        let row = evaluate(&mut desk, &args.suite, &materials);
        bar.end();
        results.rows.push(row?);
        results.date = now();
        write_reports(&args.output, &results)?;
    }
    stdout::print(&markdown::report(&results))?;
    Ok(())
}

/// The options of each network to measure.
fn networks(args: &RunArgs, options: &Options) -> Vec<Options> {
    let of = |path: &PathBuf| Options {
        weights: path.display().to_string(),
        ..options.clone()
    };
    match args.network.is_empty() {
        true => vec![options.clone()],
        false => args.network.iter().map(of).collect(),
    }
}

fn network(options: &Options) -> Result<(Box<dyn Player>, Identity)> {
    let source = model::Source::of_options(options)
        .ok_or_else(|| anyhow!("no network: name one with --weights or --network"))?;
    let bytes = match &source {
        model::Source::File(path) => {
            fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
        }
        model::Source::Embedded => model::embedded().map_or(Vec::new(), |(_, b)| b.to_vec()),
    };
    let backend = model::load_backend(&source, &ModelOptions::new(options)?)?;
    let attributes = backend.attributes();
    let policy_settings = format!(
        "{} policy={} value={} fill={}",
        attributes.precision, options.policy_head, options.value_head, options.history_fill
    );
    let identity = Identity {
        name: attributes.name.clone(),
        kind: "network",
        sha256: sha256(&bytes),
        search_settings: format!("{policy_settings} simurgh={VERSION}{}", changed(options)),
        policy_settings,
        temperature: Some(options.temperature),
        own_pace: None,
    };
    let player = NetworkPlayer::new(Arc::clone(&backend), options)?;
    Ok((Box::new(player), identity))
}

/// The options that are not at their defaults, but for those that say where a network is or how fast it runs.
fn changed(options: &Options) -> String {
    const ELSEWHERE: [&str; 10] = [
        "weights",
        "backend",
        "device",
        "precision",
        "policy_head",
        "value_head",
        "history_fill",
        "threads",
        "hash",
        "log_file",
    ];
    let default = Options::default();
    TABLE
        .iter()
        .filter(|spec| !ELSEWHERE.contains(&spec.key))
        .filter(|spec| spec.get(options) != spec.get(&default))
        .map(|spec| format!(" {}={}", spec.flag(), spec.get(options)))
        .collect()
}

fn write_reports(folder: &Path, results: &Results) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let json = serde_json::to_string_pretty(results).context("the results as JSON")?;
    write("results.json", &format!("{json}\n"))?;
    write("report.md", &markdown::report(results))
}

/// `2026-12-01 14:30`, UTC.
fn now() -> String {
    let (date, time) = utc(SystemTime::now());
    format!(
        "{} {}",
        date.replace('.', "-"),
        time.get(..5).unwrap_or(&time)
    )
}

/// Progress of one measure after another; without a terminal, a line for each.
#[derive(Default)]
struct Bar {
    bar: Option<ProgressBar>,
}

impl Bar {
    fn hear(&mut self, name: &str, told: Told<'_>) {
        match told {
            Told::Begin(measure, steps) => {
                self.end();
                let bar = ProgressBar::new(steps);
                if bar.is_hidden() {
                    eprintln!("{name}: {measure}, {steps}");
                }
                if let Ok(style) = ProgressStyle::with_template(
                    "{msg:40!} {bar:25} {pos}/{len}, {per_sec}, {eta} left",
                ) {
                    bar.set_style(style);
                }
                bar.set_message(format!("{name}: {measure}"));
                self.bar = Some(bar);
            }
            Told::Step(steps) => {
                if let Some(bar) = &self.bar {
                    bar.inc(steps);
                }
            }
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
