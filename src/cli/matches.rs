//! `simurgh match`: plays UCI engines against each other and prints the result. Flags, signals
//! and the terminal; the match itself is `measure`'s.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::chess::{Tablebases, pgn};
use crate::client::Engine;
use crate::measure::adjudication::{DrawRule, ResignRule};
use crate::measure::book::{Book, Order};
use crate::measure::matches::{
    self, Contestant, GameRecord, MatchPlan, Rules, Summary, Tournament,
};
use crate::measure::sprt::{Model, Sprt};

use super::contestant;
use super::stdout::{self, StdoutError};

const ABOUT: &str = "\
Plays UCI engines against each other: PGN, Elo with error bars, faults counted by kind.
With three or more the first one meets each of the others, or everybody everybody (--tournament round-robin).

Every round is one opening played twice with colours swapped. Time is measured by this side, from
`go` sent to `bestmove` read. Elo, its 95 % error, LOS and the bounds of the score come from pairs
(pentanomial); only before the first complete pair from single games, and the result says so.
A crash, a stall, an illegal move or an overrun clock loses the game; the engine is started again and
the match goes on. Every `info … pv` is checked for legality.
Ctrl-C ends the match and prints the result so far; pressed again it ends at once.";

const EXAMPLES: &str = "\
Examples:
  simurgh match --engine --engine cmd=stockfish option.Threads=1 --each nodes=1000 --rounds 50
  simurgh match --engine cmd=self name=A option.WeightsFile=a.pb.gz \\
                --engine cmd=lc0 name=Lc0 args=\"--weights=a.pb.gz\" \\
                --each nodes=400 --openings 8moves_v3.pgn.gz --order random --seed 7 \\
                --rounds 100 --concurrency 2 --pgn-out games.pgn --json result.json
  simurgh match --engine --engine --each tc=1+0.01 --openings frc.epd --rounds 10 --strict";

/// Options of `simurgh match`.
#[derive(Args, Debug)]
#[command(about = "Plays UCI engines against each other", long_about = ABOUT, after_help = EXAMPLES)]
pub struct MatchArgs {
    #[command(flatten)]
    engines: EngineWords,
    /// Who meets whom, with three engines or more
    #[arg(long, value_enum, default_value = "gauntlet", help_heading = "Match")]
    tournament: TournamentKind,
    /// Openings: EPD, FEN lines or PGN, plain or gzipped; default: the start position
    #[arg(long, value_name = "FILE", help_heading = "Match")]
    openings: Option<PathBuf>,
    /// Order of the openings
    #[arg(long, value_enum, default_value = "sequential", help_heading = "Match")]
    order: OpeningOrder,
    /// Seed of --order random
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Match")]
    seed: u64,
    /// First opening (from 1) of --order sequential
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Match")]
    first_opening: u32,
    /// Play at most so many plies of PGN openings
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "Match")]
    book_plies: usize,
    /// Rounds, one opening each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Match")]
    rounds: u32,
    /// Games a round: 2 swaps colours, 1 gives White by turns and has no pairs
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2), help_heading = "Match")]
    games: u32,
    /// Games at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Match")]
    concurrency: u32,
    /// Rules of castling; auto looks at the openings
    #[arg(long, value_enum, default_value = "auto", help_heading = "Match")]
    variant: Variant,
    /// A draw when both sides see at most so many centipawns for so many moves, from a move number on:
    /// "movenumber=34 movecount=8 score=20"
    #[arg(long, value_name = "RULE", help_heading = "Match")]
    draw: Option<DrawRule>,
    /// A loss when a side sees so many centipawns against itself for so many moves:
    /// "movecount=3 score=600", with twosided=true also the winner for itself
    #[arg(long, value_name = "RULE", help_heading = "Match")]
    resign: Option<ResignRule>,
    /// Decide games by the Syzygy tablebases in these folders
    #[arg(long, value_name = "PATH", help_heading = "Match")]
    tb: Option<String>,
    /// End the match once this test has decided:
    /// "elo0=0 elo1=10 [alpha=0.05] [beta=0.05] [model=normalised|logistic]"
    #[arg(long, value_name = "TEST", value_parser = sprt, help_heading = "Match")]
    sprt: Option<Sprt>,
    /// A game that reaches this many full moves is a draw; 0 = no limit
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Match")]
    max_moves: u32,
    /// Seconds for a move without a clock, after which the engine counts as stalled
    #[arg(
        long,
        value_name = "S",
        default_value_t = 120.0,
        help_heading = "Match"
    )]
    stall: f64,
    /// Fail (exit code 2) if any fault was counted
    #[arg(long, help_heading = "Match")]
    strict: bool,
    /// Append the games to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pgn_out: Option<PathBuf>,
    /// Go on with a match that was cut: games in the --pgn-out file are not played again
    #[arg(long, requires = "pgn_out", help_heading = "Output")]
    resume: bool,
    /// Write the result to this file as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Without a terminal: a line of progress every so many games
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    report_every: u32,
    /// PGN's Event tag
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "Simurgh match",
        help_heading = "Output"
    )]
    event: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TournamentKind {
    /// The first engine against each of the others
    Gauntlet,
    /// Everybody against everybody
    RoundRobin,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OpeningOrder {
    Sequential,
    Random,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Variant {
    Auto,
    Standard,
    Chess960,
}

/// The words of each `--engine`, kept apart, and of `--each`.
#[derive(Debug)]
struct EngineWords {
    engines: Vec<Vec<String>>,
    each: Vec<String>,
}

impl clap::FromArgMatches for EngineWords {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let words = |id| -> Vec<Vec<String>> {
            let occurrences = matches.get_occurrences::<String>(id).into_iter().flatten();
            occurrences.map(|words| words.cloned().collect()).collect()
        };
        Ok(Self {
            engines: words("engine"),
            each: words("each").concat(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for EngineWords {
    fn augment_args(command: clap::Command) -> clap::Command {
        let words = |id: &'static str| {
            Arg::new(id)
                .long(id)
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help_heading("Engines")
        };
        command
            .arg(
                words("engine")
                    .num_args(0..)
                    .help("One engine; given twice or more. Without words: this binary")
                    .long_help(format!(
                        "One engine; given twice or more (once or never: the rest is this binary).\n{}",
                        contestant::KEYS
                    )),
            )
            .arg(
                words("each")
                    .num_args(1..)
                    .help("Settings of all engines; their own win"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// Runs the command.
///
/// # Errors
/// Bad flags, unreadable openings, engines that are not there; with `--strict` any fault.
pub fn run(args: &MatchArgs) -> Result<()> {
    let cancel = Arc::new(AtomicBool::new(false));
    let plan = plan(args, &cancel)?;
    let played = match (&args.pgn_out, args.resume) {
        (Some(path), true) => matches::read_played(path, &plan)
            .with_context(|| format!("--resume {}", path.display()))?,
        _ => Vec::new(),
    };
    let mut games_out = args.pgn_out.as_deref().map(append).transpose()?;
    let json_out = args.json.as_deref().map(create).transpose()?;
    on_interrupt(&cancel)?;

    let mut progress = Progress::new(&plan, u64::from(args.report_every), played.len() as u64);
    let mut write_error = None;
    let tally = matches::run(&plan, &played, &cancel, &mut |game, tally| {
        if let Some(out) = &mut games_out {
            let text = game.to_pgn(&plan, plan.book.opening(game.pairing.round));
            if let Err(error) = pgn::write(out, &text).and_then(|()| out.flush()) {
                write_error.get_or_insert(error);
            }
        }
        progress.game(&plan, game, &Summary::new(&plan, tally));
    })?;
    progress.finish();

    let summary = Summary::new(&plan, &tally);
    // A closed standard output is no reason to lose the JSON.
    let printed = stdout::print(&summary.to_string());
    if let Some(mut out) = json_out {
        serde_json::to_writer_pretty(&mut out, &summary).context("cannot write the JSON result")?;
        writeln!(out)
            .and_then(|()| out.flush())
            .context("cannot write the JSON result")?;
    }
    if let Some(error) = write_error {
        return Err(error).context("cannot write the games");
    }
    if let Err(error @ StdoutError::Write(_)) = printed {
        return Err(error.into());
    }
    if let Some(why) = &summary.given_up {
        bail!("match given up: {why}");
    }
    match summary.faults() {
        0 => Ok(()),
        faults if args.strict => bail!("{faults} faults, expected none (--strict)"),
        _ => Ok(()),
    }
}

fn plan(args: &MatchArgs, cancel: &Arc<AtomicBool>) -> Result<MatchPlan> {
    let stall = Duration::try_from_secs_f64(args.stall)
        .ok()
        .filter(|time| !time.is_zero());
    let stall =
        stall.with_context(|| format!("--stall {}: expected seconds above 0", args.stall))?;
    let order = match args.order {
        OpeningOrder::Sequential => Order::Sequential {
            first: args.first_opening as usize - 1,
        },
        OpeningOrder::Random => Order::Random { seed: args.seed },
    };
    let book = match &args.openings {
        Some(path) => Book::read(path, args.book_plies, order)?,
        None => Book::startpos(),
    };
    if let Some(first) = book.refused().first() {
        stdout::warn(format_args!(
            "warning: {} openings left out, the first one: {first}",
            book.refused().len()
        ));
    }
    let chess960 = match args.variant {
        Variant::Auto => book.needs_chess960(),
        Variant::Standard if book.needs_chess960() => bail!("the openings need --variant chess960"),
        Variant::Standard => false,
        Variant::Chess960 => true,
    };
    let none = Vec::new();
    let words = args
        .engines
        .engines
        .iter()
        .chain(std::iter::repeat(&none))
        .take(args.engines.engines.len().max(2));
    let mut contestants = words
        .map(|own| contestant::parse(&args.engines.each, own))
        .collect::<Result<Vec<_>>>()?;
    if let Some(one) = contestants.iter().find(|one| one.pace.is_unlimited()) {
        bail!(
            "engine {} has no limit, expected one of tc, st, movetime, nodes, depth in --engine or --each",
            one.engine.command.display()
        );
    }
    for contestant in &mut contestants {
        introduce(contestant, chess960, cancel)?;
    }
    let mut names = HashSet::new();
    for contestant in &mut contestants {
        let name = contestant.name.clone();
        let mut number = 2;
        while !names.insert(contestant.name.clone()) {
            contestant.name = format!("{name} ({number})");
            number += 1;
        }
    }
    Ok(MatchPlan {
        contestants,
        tournament: match args.tournament {
            TournamentKind::Gauntlet => Tournament::Gauntlet,
            TournamentKind::RoundRobin => Tournament::RoundRobin,
        },
        book,
        rounds: args.rounds as usize,
        games_a_round: args.games as usize,
        concurrency: args.concurrency as usize,
        rules: Rules {
            max_moves: Some(args.max_moves).filter(|&max| max > 0),
            stall,
            chess960,
            draw: args.draw,
            resign: args.resign,
            tables: args.tb.as_deref().map(tablebases).transpose()?,
        },
        event: args.event.clone(),
        sprt: args.sprt,
    })
}

/// Opens tablebases, at least one of them.
fn tablebases(path: &str) -> Result<Arc<Tablebases>> {
    let (tables, _, troubles) = Tablebases::new(path);
    if let Some(trouble) = troubles.into_iter().next() {
        return Err(trouble).context("--tb");
    }
    if tables.is_empty() {
        bail!("--tb {path}: no Syzygy tables there");
    }
    Ok(Arc::new(tables))
}

/// `elo0=0 elo1=10 alpha=0.05 beta=0.05 model=normalised`
fn sprt(text: &str) -> Result<Sprt, String> {
    let mut test = Sprt {
        elo0: f64::NAN,
        elo1: f64::NAN,
        alpha: 0.05,
        beta: 0.05,
        model: Model::Normalised,
    };
    for word in text.split_whitespace() {
        let expected = |what: &str| format!("{word:?}: expected {what}");
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || {
            let number = value.parse().ok().filter(|x: &f64| x.is_finite());
            number.ok_or_else(|| expected("a number"))
        };
        let chance = || match number()? {
            chance if 0.0 < chance && chance < 0.5 => Ok(chance),
            _ => Err(expected("a chance above 0 and below 0.5")),
        };
        match key {
            "elo0" => test.elo0 = number()?,
            "elo1" => test.elo1 = number()?,
            "alpha" => test.alpha = chance()?,
            "beta" => test.beta = chance()?,
            "model" => {
                test.model = match value {
                    "normalised" | "normalized" => Model::Normalised,
                    "logistic" => Model::Logistic,
                    _ => return Err(expected("normalised or logistic")),
                }
            }
            _ => {
                return Err(expected(
                    "elo0, elo1, alpha, beta or model, each with =VALUE",
                ));
            }
        }
    }
    match test.elo0 < test.elo1 {
        true => Ok(test),
        false => Err("expected elo0=NUMBER and a larger elo1=NUMBER".to_owned()),
    }
}

/// Starts an engine once: asks for its name, and says what is odd about it before hours are spent.
fn introduce(contestant: &mut Contestant, chess960: bool, cancel: &Arc<AtomicBool>) -> Result<()> {
    let file = contestant
        .engine
        .command
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut name = contestant.name.clone();
    match Engine::start_with(contestant.engine.clone(), Arc::clone(cancel)) {
        Err(error) => {
            return Err(error)
                .with_context(|| format!("{file} does not start; nothing was played"));
        }
        Ok(engine) => {
            for complaint in engine.complaints() {
                stdout::warn(format_args!("warning: {file}: {complaint}"));
            }
            if chess960 && engine.option("UCI_Chess960").is_none() {
                stdout::warn(format_args!(
                    "warning: {file}: the engine lists no option UCI_Chess960; it is sent all the same"
                ));
            }
            if name.is_empty() {
                name = engine.name().to_owned();
            }
        }
    }
    contestant.name = if name.is_empty() { file } else { name };
    Ok(())
}

fn append(path: &Path) -> Result<BufWriter<File>> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    let file = file.with_context(|| format!("cannot write the games to {}", path.display()))?;
    Ok(BufWriter::new(file))
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path);
    let file = file.with_context(|| format!("cannot write the result to {}", path.display()))?;
    Ok(BufWriter::new(file))
}

fn on_interrupt(cancel: &Arc<AtomicBool>) -> Result<()> {
    let cancel = Arc::clone(cancel);
    ctrlc::set_handler(move || {
        if cancel.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        stdout::warn(format_args!("interrupted: ending the match"));
    })
    .context("cannot listen for Ctrl-C")
}

/// A bar on a terminal, lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    every: u64,
    planned: u64,
    done: u64,
    /// Games that were there before.
    before: u64,
    began: Instant,
}

impl Progress {
    fn new(plan: &MatchPlan, every: u64, before: u64) -> Self {
        let planned = plan.games() as u64;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(planned);
            let style = ProgressStyle::with_template(
                "{bar:30} {pos}/{len} games, {msg}, {per_sec}, {eta} left",
            );
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(before);
            bar.reset_eta();
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self {
            bar,
            every,
            planned,
            done: before,
            before,
            began: Instant::now(),
        }
    }

    fn game(&mut self, plan: &MatchPlan, game: &GameRecord, summary: &Summary) {
        self.done += 1;
        for (side, remark) in &game.remarks {
            let player = side.fold_wb(game.pairing.white, game.pairing.black);
            let name = &plan.contestants[player].name;
            let colour = side.fold_wb("White", "Black");
            self.line(&format!(
                "game {}, {name} ({colour}): {remark}",
                game.pairing.number + 1
            ));
        }
        if let Some(bar) = &self.bar {
            bar.set_message(summary.short());
            bar.inc(1);
        } else if self.done.is_multiple_of(self.every) || self.done == self.planned {
            let seconds = self.began.elapsed().as_secs_f64();
            let played = (self.done - self.before) as f64;
            let left = seconds / played * self.planned.saturating_sub(self.done) as f64;
            self.line(&format!(
                "{}/{} games, {}, {:.1} games a minute, {} left",
                self.done,
                self.planned,
                summary.short(),
                60.0 * played / seconds,
                indicatif::HumanDuration(Duration::from_secs_f64(left)),
            ));
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => stdout::warn(format_args!("{text}")),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}
