//! `simurgh evaluate`: turns flags into an evaluation and shows how it goes. Measures nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};

use super::stockfish::stockfish;
use crate::cli::contestant;
use crate::cli::interrupt::on_interrupt;
use crate::cli::stdout;
use crate::client::{EngineConfig, Limits};
use crate::engine::NETWORK_KEYS;
use crate::measure::adjudication::{DrawRule, ResignRule};
use crate::measure::book::{Book, Order};
use crate::measure::evaluate::desk::{Clock, Desk, Sampling, Told};
use crate::measure::evaluate::engine::EnginePlayer;
use crate::measure::evaluate::judge::Judge;
use crate::measure::evaluate::ladder::{self, LadderPlan, Manner, Opponent};
use crate::measure::evaluate::network::NetworkPlayer;
use crate::measure::evaluate::player::{Identity, Player};
use crate::measure::evaluate::results::{Effort, Results};
use crate::measure::evaluate::store::{Store, sha256};
use crate::measure::evaluate::suite::{Measure, Suite};
use crate::measure::evaluate::{Aids, Files, Materials, evaluate, html, markdown};
use crate::measure::matches::{Contestant, Pace, Rules, utc};
use crate::model::{self, ModelOptions};
use crate::options::{Options, TABLE};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const SUITE: &str = "\
What is measured: full, quick, or names separated by commas (with quick among them: a tenth of it)

  name       what                                      how many      needs
  legality   choices without a mask that are legal     1,000         --pgn
  accuracy   the human's move found, by rating         1,000         --pgn
  puzzles    solved by policy alone and with search    2,000 a band  --puzzles
  epd        best moves, moves to avoid, points        all           --epd
  cploss     centipawns lost a move                    500           --pgn, Stockfish
  diversity  entropy of openings against itself        200 games
  agreement  with a deeper search of its own           500           --pgn
  ladder     Elo from games against Stockfish          20 a rung     Stockfish";

/// Flags of the evaluation itself.
#[derive(Args)]
pub struct RunArgs {
    /// What is measured: full, quick, or names separated by commas
    #[arg(long, value_name = "SUITE", default_value = "quick", long_help = SUITE)]
    suite: Suite,
    /// A network to measure, may be repeated; without any and without --engine, the one --weights names
    #[arg(long, value_name = "FILE")]
    network: Vec<PathBuf>,
    #[command(flatten)]
    engines: Engines,
    /// Games of people, PGN, plain or gzipped; ratings are their WhiteElo and BlackElo tags
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Files")]
    pgn: Vec<PathBuf>,
    /// Puzzles, CSV with the columns FEN, Moves, Rating (as Lichess has them) and perhaps Game
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Files")]
    puzzles: Vec<PathBuf>,
    /// EPD suites: bm, am, and moves with points as in STS
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Files")]
    epd: Vec<PathBuf>,
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
    /// Nodes of the deeper search that agreement is with
    #[arg(long, value_name = "N", default_value_t = 800, value_parser = clap::value_parser!(u64).range(1..))]
    deep_nodes: u64,
    /// Temperature of moves sampled from the policy
    #[arg(long, value_name = "T", default_value_t = 0.6, value_parser = temperature)]
    sample_temperature: f32,
    /// Most probable outputs that a move is sampled from
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    sample_top_k: u32,
    /// Which positions and puzzles are drawn from the files
    #[arg(long, value_name = "N", default_value_t = 1)]
    draw_seed: u64,
    /// Stockfish, which judges moves and is the ladder; default: on PATH or in /usr/games
    #[arg(long, value_name = "PROGRAM", help_heading = "Stockfish")]
    stockfish: Option<PathBuf>,
    /// Depth at which moves are judged
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=60), help_heading = "Stockfish")]
    judge_depth: u32,
    /// Nodes a move on the ladder; 1 is the policy alone, its first choice
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Stockfish")]
    ladder_nodes: u64,
    /// Games a rung; default: 20, with quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Stockfish")]
    ladder_games: Option<u32>,
    /// Seconds a move of Stockfish's on the ladder
    #[arg(
        long,
        value_name = "S",
        default_value_t = 0.1,
        help_heading = "Stockfish"
    )]
    ladder_time: f64,
    /// More rungs, as UCI_Elo; always there: Skill Level 0 to 3, the lowest UCI_Elo, 1500, 1800 and 2000
    #[arg(long, value_name = "ELO", num_args = 1.., help_heading = "Stockfish")]
    ladder_elo: Vec<u32>,
    /// Openings of the ladder: EPD, FEN lines or PGN; default: the start position, from which a network that never
    /// varies plays much the same game again and again
    #[arg(long, value_name = "FILE", help_heading = "Stockfish")]
    openings: Option<PathBuf>,
    /// A game of the ladder that reaches this many full moves is cut, and a draw
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Stockfish")]
    max_moves: u32,
    /// Adjudicate a draw on the ladder: "movenumber=34 movecount=8 score=20"
    #[arg(long, value_name = "RULE", help_heading = "Stockfish")]
    draw: Option<DrawRule>,
    /// Adjudicate a loss on the ladder: "movecount=3 score=600 twosided=true"
    #[arg(long, value_name = "RULE", help_heading = "Stockfish")]
    resign: Option<ResignRule>,
    /// Games of the ladder at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Stockfish")]
    concurrency: u32,
}

fn temperature(text: &str) -> Result<f32, String> {
    let number = text
        .parse()
        .ok()
        .filter(|t: &f32| t.is_finite() && *t > 0.0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}

/// The words of each `--engine`, kept apart.
struct Engines(Vec<Vec<String>>);

impl FromArgMatches for Engines {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let all = matches.get_occurrences::<String>("engine");
        let all = all.into_iter().flatten();
        Ok(Engines(all.map(|words| words.cloned().collect()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Engines::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Engines {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.arg(
            Arg::new("engine")
                .long("engine")
                .value_name("KEY=VALUE")
                .num_args(1..)
                .action(ArgAction::Append)
                .help("A UCI engine to measure, may be repeated: cmd=PROGRAM nodes=N ...")
                .long_help(format!(
                    "A UCI engine to measure, may be repeated. It has no policy: what needs one is null. Without a \
                     pace (nodes, depth, st, movetime) it searches the --nodes, on the ladder the --ladder-nodes.\n{}",
                    contestant::KEYS
                )),
        )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// Someone to be measured.
struct Subject {
    player: Box<dyn Player>,
    identity: Identity,
    contestant: Contestant,
    manner: Manner,
}

/// Who is to be measured, before anything is loaded.
enum Named {
    Network(Box<Options>),
    Engine(Vec<String>),
}

/// Runs the evaluation.
///
/// # Errors
/// Files that cannot be read or written, networks and engines that fail, Ctrl-C.
pub fn run(args: &RunArgs, options: &Options) -> Result<()> {
    let files = Files {
        pgn: args.pgn.clone(),
        puzzles: args.puzzles.clone(),
        epd: args.epd.clone(),
    };
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make the folder {}", args.output.display()))?;
    let store = Store::open(&args.output.join("answers.sqlite"))?;
    let cancel = on_interrupt("interrupted: ending; once more to end at once")?;
    stdout::warn(format_args!("reading the files"));
    let materials = Materials::read(&files, &args.suite, args.draw_seed)?;
    let stockfish = stockfish(args.stockfish.as_deref())?;
    let mut judge = match &stockfish {
        Some(config) if args.suite.has(Measure::Loss) && !materials.samples.is_empty() => {
            Some(Judge::start(judging(config), args.judge_depth, &cancel).context("the judge")?)
        }
        _ => None,
    };
    let ladder = match stockfish {
        Some(config) if args.suite.has(Measure::Ladder) => {
            Some(ladder_plan(args, config, &cancel)?)
        }
        _ => None,
    };
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
    for named in named(args, options) {
        let Subject {
            mut player,
            identity,
            contestant,
            manner,
        } = match named {
            Named::Network(options) => network(&options, args.ladder_nodes)?,
            Named::Engine(words) => engine(&words, args.ladder_nodes, &cancel)?,
        };
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
        let mut aids = Aids {
            judge: judge.as_mut(),
            ladder: ladder.as_ref(),
            contestant: Some((contestant, manner)),
            deep_nodes: args.deep_nodes,
        };
        let row = evaluate(&mut desk, &args.suite, &materials, &mut aids);
        bar.end();
        results.rows.push(row?);
        results.date = now();
        write_reports(&args.output, &results)?;
    }
    stdout::print(&markdown::report(&results))?;
    stdout::warn(format_args!(
        "written: {}",
        args.output.join("report.html").display()
    ));
    Ok(())
}

fn named(args: &RunArgs, options: &Options) -> Vec<Named> {
    let network = |path: &PathBuf| {
        Named::Network(Box::new(Options {
            weights: path.display().to_string(),
            ..options.clone()
        }))
    };
    let mut named: Vec<Named> = args.network.iter().map(network).collect();
    named.extend(args.engines.0.iter().cloned().map(Named::Engine));
    if named.is_empty() {
        named.push(Named::Network(Box::new(options.clone())));
    }
    named
}

fn network(options: &Options, ladder_nodes: u64) -> Result<Subject> {
    let source = model::Source::of_options(options)
        .ok_or_else(|| anyhow!("no network: name one with --weights or --network"))?;
    // Before its bytes are taken: it refuses what is no file, or no network.
    let backend = model::load_backend(&source, &ModelOptions::new(options)?)?;
    let (bytes, path) = match &source {
        model::Source::File(path) => {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let whole = fs::canonicalize(path);
            (bytes, Some(whole.unwrap_or_else(|_| path.clone())))
        }
        model::Source::Embedded => {
            let bytes = model::embedded().map_or(Vec::new(), |(_, bytes)| bytes.to_vec());
            (bytes, None)
        }
    };
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
        own_pace: None,
    };
    let mut config = contestant::parse(&[], &[])?.engine;
    config.options = uci_options(options);
    if let Some(path) = path {
        let path = path.display().to_string();
        config.options.push(("WeightsFile".to_owned(), path));
    }
    Ok(Subject {
        player: Box::new(NetworkPlayer::new(Arc::clone(&backend), options)?),
        contestant: Contestant {
            name: identity.name.clone(),
            engine: config,
            pace: Pace {
                nodes: Some(ladder_nodes),
                ..Pace::default()
            },
            restart: false,
        },
        manner: Manner {
            effort: Effort {
                nodes: Some(ladder_nodes),
                pace: None,
            },
            // With one node no move has visits to choose by: the best prior is played.
            temperature: Some(if ladder_nodes == 1 {
                0.0
            } else {
                options.temperature
            }),
            top_k: None,
        },
        identity,
    })
}

fn engine(words: &[String], ladder_nodes: u64, cancel: &Arc<AtomicBool>) -> Result<Subject> {
    let mut contestant = contestant::parse(&[], words)?;
    let (pace, text) = own_pace(&contestant.pace)?;
    let config = &contestant.engine;
    let program = fs::read(&config.command).unwrap_or_default();
    let told = format!("{:?} {:?} {:?}", config.args, config.options, config.env);
    let player = EnginePlayer::start(config.clone(), pace, cancel)?;
    if contestant.name.is_empty() {
        contestant.name = player.name().to_owned();
    }
    if contestant.pace.is_unlimited() {
        contestant.pace.nodes = Some(ladder_nodes);
    }
    let identity = Identity {
        name: contestant.name.clone(),
        kind: "engine",
        // A program on PATH is not looked for: then name, arguments and options tell engines apart.
        sha256: sha256(&[&program, player.name().as_bytes(), told.as_bytes()].concat()),
        policy_settings: String::new(),
        search_settings: player.name().to_owned(),
        own_pace: text.clone(),
    };
    let manner = Manner {
        effort: Effort {
            nodes: contestant.pace.nodes.filter(|_| text.is_none()),
            pace: text,
        },
        ..Manner::default()
    };
    Ok(Subject {
        player: Box::new(player),
        identity,
        contestant,
        manner,
    })
}

/// A pace as limits of one search, and in words; neither where the engine has none.
fn own_pace(pace: &Pace) -> Result<(Option<Limits>, Option<String>)> {
    if pace.control.is_some() {
        bail!(
            "--engine tc=…: a clock has no meaning here; expected nodes=, depth=, st= or movetime="
        );
    }
    if pace.is_unlimited() {
        return Ok((None, None));
    }
    let limits = Limits {
        nodes: pace.nodes,
        depth: pace.depth,
        move_time: pace.move_time,
        ..Limits::default()
    };
    let text = limits.to_string();
    let text = text.trim_start_matches("go ").to_owned();
    Ok((Some(limits), Some(text)))
}

fn judging(config: &EngineConfig) -> EngineConfig {
    let mut config = config.clone();
    for (name, value) in [("Threads", "1"), ("Hash", "64")] {
        config.options.push((name.to_owned(), value.to_owned()));
    }
    config
}

fn ladder_plan(
    args: &RunArgs,
    config: EngineConfig,
    cancel: &Arc<AtomicBool>,
) -> Result<LadderPlan> {
    let move_time = Duration::try_from_secs_f64(args.ladder_time)
        .ok()
        .filter(|time| time.as_millis() > 0)
        .with_context(|| {
            format!(
                "--ladder-time {}: expected seconds above 0",
                args.ladder_time
            )
        })?;
    let book = match &args.openings {
        Some(path) => Book::read(path, 1000, Order::Sequential { first: 0 })?,
        None => Book::startpos(),
    };
    if book.needs_chess960() {
        bail!("--openings: the ladder is played in standard chess");
    }
    let openings = match &args.openings {
        Some(path) => format!("openings from {}", path.display()),
        None => "from the start position".to_owned(),
    };
    let mut rules_text = format!("{openings}, cut after {} moves", args.max_moves);
    if args.draw.is_none() && args.resign.is_none() {
        rules_text.push_str(", nothing adjudicated");
    }
    if let Some(draw) = &args.draw {
        rules_text.push_str(&format!(
            ", drawn from move {} after {} moves within {} cp",
            draw.move_number, draw.move_count, draw.score
        ));
    }
    if let Some(resign) = &args.resign {
        let sides = if resign.two_sided {
            "both sides'"
        } else {
            "the loser's"
        };
        rules_text.push_str(&format!(
            ", decided after {} moves at {} cp by {sides} word",
            resign.move_count, resign.score
        ));
    }
    let games = args
        .ladder_games
        .map_or(args.suite.size(ladder::GAMES), |games| games as usize);
    Ok(LadderPlan {
        opponent: Opponent::introduce(config, &args.ladder_elo, cancel)?,
        games,
        move_time,
        book,
        rules_text,
        rules: Rules {
            max_moves: Some(args.max_moves),
            stall: Duration::from_secs(120),
            draw: args.draw,
            resign: args.resign,
            ..Rules::default()
        },
        concurrency: args.concurrency as usize,
    })
}

/// The options of a process that plays as this one would; its network is told apart.
fn uci_options(options: &Options) -> Vec<(String, String)> {
    let default = Options::default();
    TABLE
        .iter()
        .filter(|spec| !["weights", "log_file"].contains(&spec.key))
        .filter(|spec| spec.get(options) != spec.get(&default))
        .map(|spec| (spec.uci.to_owned(), spec.get(options).to_string()))
        .collect()
}

/// The options that are not at their defaults, but for those that say where a network is or how fast it runs.
fn changed(options: &Options) -> String {
    // The network's own settings have a place of their own in the keys; a minibatch's size changes a search.
    let elsewhere = |key: &str| {
        NETWORK_KEYS.contains(&key) && key != "minibatch_size"
            || ["hash", "log_file"].contains(&key)
    };
    let default = Options::default();
    TABLE
        .iter()
        .filter(|spec| !elsewhere(spec.key))
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
    write("report.md", &markdown::report(results))?;
    write("report.html", &html::report(results))
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
                    stdout::warn(format_args!("{name}: {measure}, {steps}"));
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
