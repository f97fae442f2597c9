//! `simurgh datagen --output F`: flags, progress and Ctrl-C of data generation. The games are
//! `train::generate`'s.

use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::cli::interrupt::on_interrupt;
use crate::client::EngineConfig;
use crate::model::{self, ModelOptions};
use crate::options::Options;
use crate::search;
use crate::train::TrainError;
use crate::train::generate::{
    self, Openings, Plan, Progress, Rules, SelfPlay, Teacher, UciTeacher,
};

pub const ABOUT: &str = "\
Training data: make it, import it, look at it.

Without a command, games are played and labelled into --output until it holds --games of them. A UCI
engine (Stockfish by default) plays both sides and gives each position its best lines with scores, WDL
and, at the end, the result; with --self-play it is our own search and a network, and the labels are
root visits. Moves are now and then not the best ones. A position that has a label in the file gets
no second one. Ctrl-C saves the finished games; the same command goes on from there. Every game's seed
is in its record; with the same --seed the same games are not played again.";

pub const EXAMPLES: &str = "\
Examples:
  simurgh datagen --output a.chunks --games 1000 --nodes 800-4000 --openings 8moves_v3.pgn.gz
  simurgh datagen --output a.chunks --engine \"stockfish-16 --flag\" --engine-option SyzygyPath=/tb
  simurgh datagen --output b.chunks --self-play --weights my.safetensors --nodes 400
  simurgh datagen show a.chunks --game 3 --ply 20";

/// Without a terminal: a line of progress this often.
const LINE_EVERY: Duration = Duration::from_secs(30);

#[derive(Args)]
pub struct Generate {
    /// The file to write; one that is there grows
    #[arg(long, value_name = "FILE", help_heading = "Generation")]
    output: Option<PathBuf>,
    /// Games in the file at the end, those of earlier runs included
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        help_heading = "Generation"
    )]
    games: u64,
    /// The engine that plays and labels, with its arguments; default: stockfish
    #[arg(long, value_name = "CMD", help_heading = "Generation")]
    engine: Option<String>,
    /// A UCI option of the engine; may be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Generation")]
    engine_option: Vec<String>,
    /// Lines that the engine labels in each position
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Generation")]
    lines: u32,
    /// Our own search plays itself with the network of --weights
    #[arg(long, conflicts_with_all = ["engine", "engine_option", "lines"], help_heading = "Generation")]
    self_play: bool,
    /// Nodes a move, N or LEAST-MOST; default: 800-4000, with --self-play 400
    #[arg(long, value_name = "RANGE", value_parser = range, help_heading = "Generation")]
    nodes: Option<RangeInclusive<u64>>,
    /// Games at a time; default: one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Generation")]
    concurrency: Option<u32>,
    /// Openings: EPD, FEN lines or PGN, plain or gzipped; default: the start position
    #[arg(long, value_name = "FILE", help_heading = "Generation")]
    openings: Option<PathBuf>,
    /// Random plies after the opening, N or LEAST-MOST; default: 0-2 with --openings, else 2-10
    #[arg(long, value_name = "RANGE", value_parser = range, help_heading = "Generation")]
    random_plies: Option<RangeInclusive<u64>>,
    /// Share of games that begin with three to seven men anywhere on the board
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share, help_heading = "Generation")]
    endings: f64,
    /// Probability of a move drawn from the label; default: 0.15, with --self-play 1
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Generation")]
    drawn_moves: Option<f64>,
    /// Plies after the opening in which moves are drawn; default: all, with --self-play 30
    #[arg(long, value_name = "N", help_heading = "Generation")]
    drawn_plies: Option<usize>,
    /// Probability of any legal move; default: 0.02, with --self-play 0
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Generation")]
    random_moves: Option<f64>,
    /// Share of Dirichlet noise in the root's priors of --self-play
    #[arg(long, value_name = "SHARE", default_value_t = 0.25, value_parser = share, help_heading = "Generation")]
    noise: f64,
    /// Plies after the opening that end a game without a result
    #[arg(
        long,
        value_name = "N",
        default_value_t = 400,
        help_heading = "Generation"
    )]
    max_plies: usize,
    /// Centipawns that win a game when six plies agree; 0 = play to the end
    #[arg(long, value_name = "CP", default_value_t = 3000, value_parser = clap::value_parser!(i16).range(0..), help_heading = "Generation")]
    adjudicate: i16,
}

/// Plays games until the file holds as many as were asked for, or Ctrl-C.
///
/// # Errors
/// Bad flags, an engine or network that is not there or fails, a file that cannot be written.
pub fn run(args: &Generate, options: &Options) -> Result<()> {
    let Some(output) = &args.output else {
        bail!("expected --output FILE, or a command (see simurgh datagen --help)");
    };
    let plan = plan(args, options)?;
    eprintln!("run seed {}", plan.seed);
    match args.self_play {
        true => {
            let source = model::Source::of_options(options)
                .ok_or_else(|| anyhow!("no network: name one with --weights"))?;
            let backend = model::load_backend(&source, &ModelOptions::new(options)?)?;
            let playouts = args.nodes.clone().unwrap_or(400..=400);
            if playouts.start() != playouts.end() || *playouts.start() == 0 {
                bail!("--nodes with --self-play: expected one number above 0");
            }
            let teacher =
                || SelfPlay::new(Arc::clone(&backend), options, *playouts.start(), args.noise);
            generate(&plan, output, &teacher, None)
        }
        false => {
            let cancel = interrupt()?;
            let config = engine(args, plan.openings.needs_chess960())?;
            let nodes = args.nodes.clone().unwrap_or(800..=4000);
            if *nodes.start() == 0 {
                bail!("--nodes: expected 1 or more");
            }
            let chess960 = plan.openings.needs_chess960();
            let told = AtomicBool::new(false);
            let teacher = || {
                let teacher = UciTeacher::start(config.clone(), nodes.clone(), chess960, &cancel)?;
                if !told.swap(true, Ordering::Relaxed) {
                    for complaint in teacher.complaints() {
                        eprintln!("warning: {}: {complaint}", teacher.name());
                    }
                }
                Ok(teacher)
            };
            generate(&plan, output, &teacher, Some(&cancel))
        }
    }
}

fn interrupt() -> Result<Arc<AtomicBool>> {
    on_interrupt("interrupted: saving the finished games")
}

fn plan(args: &Generate, options: &Options) -> Result<Plan> {
    let book = args.openings.as_deref();
    let default_plies = if book.is_some() { 0..=2 } else { 2..=10 };
    let plies = args.random_plies.clone().unwrap_or(default_plies);
    let plies = match (u32::try_from(*plies.start()), u32::try_from(*plies.end())) {
        (Ok(least), Ok(most)) if most <= 1000 => least..=most,
        _ => bail!("--random-plies: expected at most 1000"),
    };
    let own = args.self_play;
    let (drawn, drawn_plies, random) = match own {
        true => (1.0, 30, 0.0),
        false => (0.15, usize::MAX, 0.02),
    };
    Ok(Plan {
        seed: match options.seed {
            0 => rand::random(),
            seed => seed as u64,
        },
        games: args.games,
        workers: match args.concurrency {
            Some(count) => count as usize,
            None => search::threads(options),
        },
        openings: Openings::new(book, plies, args.endings)?,
        rules: Rules {
            drawn_moves: args.drawn_moves.unwrap_or(drawn),
            drawn_plies: args.drawn_plies.unwrap_or(drawn_plies),
            random_moves: args.random_moves.unwrap_or(random),
            max_plies: args.max_plies,
            adjudicate_cp: args.adjudicate,
        },
    })
}

fn engine(args: &Generate, chess960: bool) -> Result<EngineConfig> {
    let words = match &args.engine {
        Some(text) => shlex::split(text)
            .with_context(|| format!("--engine {text:?}: a quote is not closed"))?,
        None => vec!["stockfish".to_owned()],
    };
    let Some((command, arguments)) = words.split_first() else {
        bail!("--engine: expected a program");
    };
    let command = match args.engine {
        Some(_) => PathBuf::from(command),
        None => stockfish(),
    };
    let mut set: Vec<(String, String)> = Vec::new();
    for text in &args.engine_option {
        let (name, value) = text
            .split_once('=')
            .with_context(|| format!("--engine-option {text:?}: expected NAME=VALUE"))?;
        set.push((name.to_owned(), value.to_owned()));
    }
    let lines = args.lines.to_string();
    let mut wanted = vec![
        ("Threads", "1"),
        ("Hash", "16"),
        ("MultiPV", &lines),
        ("UCI_ShowWDL", "true"),
    ];
    if chess960 {
        wanted.push(("UCI_Chess960", "true"));
    }
    let is_set = |name: &str| {
        set.iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let mut options: Vec<_> = wanted
        .into_iter()
        .filter(|(name, _)| !is_set(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    options.extend(set);
    Ok(EngineConfig {
        command,
        args: arguments.to_vec(),
        options,
        ..EngineConfig::default()
    })
}

/// The one on the PATH, else where Debian puts it.
fn stockfish() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).any(|folder| folder.join("stockfish").is_file());
    let debian = Path::new("/usr/games/stockfish");
    match !on_path && debian.is_file() {
        true => debian.to_owned(),
        false => PathBuf::from("stockfish"),
    }
}

fn generate<T: Teacher>(
    plan: &Plan,
    output: &Path,
    teacher: &(dyn Fn() -> Result<T, TrainError> + Sync),
    cancel: Option<&Arc<AtomicBool>>,
) -> Result<()> {
    let cancel = match cancel {
        Some(cancel) => Arc::clone(cancel),
        None => interrupt()?,
    };
    let mut shown = Shown::new(plan.games);
    let progress = generate::run(plan, output, teacher, &cancel, &mut |progress| {
        shown.note(progress);
    })
    .with_context(|| format!("{} holds the games finished so far", output.display()))?;
    shown.finish();
    if progress.games < plan.games {
        eprintln!(
            "{} of {} games; the same command goes on",
            progress.games, plan.games
        );
    }
    super::stats(output)
}

/// A bar on a terminal, lines elsewhere.
struct Shown {
    bar: Option<ProgressBar>,
    wanted: u64,
    began: Instant,
    said: Instant,
}

impl Shown {
    fn new(wanted: u64) -> Shown {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(wanted);
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} games, {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Shown {
            bar,
            wanted,
            began: Instant::now(),
            said: Instant::now(),
        }
    }

    fn note(&mut self, progress: &Progress) {
        if progress.played == 0 {
            // The file is read; the games begin.
            self.began = Instant::now();
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let left = seconds / progress.played.max(1) as f64
            * self.wanted.saturating_sub(progress.games) as f64;
        let text = format!(
            "{} positions ({} repeats left out), {:.1} positions/s, {} left",
            progress.positions,
            progress.repeats,
            progress.labelled as f64 / seconds.max(1e-3),
            match progress.played {
                0 => "?".to_owned(),
                _ => HumanDuration(Duration::from_secs_f64(left)).to_string(),
            },
        );
        match &self.bar {
            Some(bar) => {
                bar.set_position(progress.games);
                bar.set_message(text);
            }
            None if self.said.elapsed() >= LINE_EVERY => {
                self.said = Instant::now();
                eprintln!("{}/{} games, {text}", progress.games, self.wanted);
            }
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

/// `N` or `LEAST-MOST`.
fn range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) if least <= most => Ok(least..=most),
        _ => Err("expected N or LEAST-MOST, whole numbers".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_shares_are_checked() {
        assert_eq!(range("5"), Ok(5..=5));
        assert_eq!(range("800-4000"), Ok(800..=4000));
        for text in ["", "-", "5-", "9-5", "x", "1-2-3"] {
            assert!(range(text).is_err(), "{text}");
        }
        assert_eq!(share("0.25"), Ok(0.25));
        for text in ["", "-0.1", "1.1", "NaN", "x"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
