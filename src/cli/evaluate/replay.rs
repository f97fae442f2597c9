//! `simurgh evaluate replay`: the checkpoints of a training run measured one by one and shown with a slider.
//! Trains nothing.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::interrupt::on_interrupt;
use crate::cli::stdout;
use crate::eval::{Backend, Evaluator, Leaf};
use crate::measure::evaluate::elo::Rating;
use crate::measure::replay::{Moment, page, to_json};
use crate::model::weight_file::{WeightFile, write};
use crate::model::{ModelOptions, TransformerBackend};
use crate::options::Options;
use crate::train::checkpoint::{self, Validation};
use crate::train::kind::ModelConfig;
use crate::train::reader::spread;
use crate::train::{Sample, trainer};

/// Positions that the legality is measured on.
const POSITIONS: usize = 500;
/// Positions of one network call.
const CALL: usize = 32;

/// A training run played back: loss, top-1, legality and Elo of its checkpoints, with a slider
///
/// Losses and top-1 are the log's; legality without a mask is measured on the run's validation positions, for the
/// checkpoints that are still there. Writes replay.json and replay.html.
#[derive(Args)]
pub struct Replay {
    /// The run's folder
    run: PathBuf,
    /// Where replay.json and replay.html go; default: the run's folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Also play a short ladder against Stockfish with each checkpoint
    #[arg(long)]
    with_elo: bool,
    /// Games a rung of it
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    ladder_games: u32,
    /// Nodes a move of it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    ladder_nodes: u64,
}

pub fn run(args: &Replay, options: &Options) -> Result<()> {
    let log = trainer::read_log(&args.run)?;
    let mut moments: Vec<Moment> = log
        .iter()
        .filter_map(|line| {
            let seen = line.validation.as_ref()?;
            Some(moment(line.step, line.positions, Some(seen)))
        })
        .collect();
    let checkpoints = checkpoint::list(&args.run);
    if moments.is_empty() && checkpoints.is_empty() {
        bail!(
            "{}: the run has neither a validation nor a checkpoint yet",
            args.run.display()
        );
    }
    let stop = on_interrupt("interrupted: writing what is measured")?;
    let bar = ProgressBar::new(checkpoints.len() as u64).with_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} checkpoints, {eta} left  {msg}",
    )?);
    for (step, path) in &checkpoints {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        bar.set_message(format!("step {step}"));
        let (progress, adam) = checkpoint::load(path)?;
        let ModelConfig::Transformer(model) = &progress.config.model else {
            bail!("{}: a run of a GPT, which is not replayed", path.display());
        };
        let file = WeightFile {
            name: format!("step {step}"),
            tensors: checkpoint::averaged(&progress.config.model, &adam)?,
            config: model.clone(),
            manifest: serde_json::Value::Null,
        };
        let measured = match legality(&file, &progress.config.data.validation, options) {
            Ok(share) => Some(share),
            Err(error) => {
                bar.suspend(|| stdout::warn(format_args!("step {step}: no legality: {error:#}")));
                None
            }
        };
        let elo = match args.with_elo {
            true => ladder(args, &file, *step)?,
            false => None,
        };
        let known = moments.iter().position(|m| m.step == *step);
        let at = known.unwrap_or_else(|| {
            let seen = progress.validation.as_ref();
            moments.push(moment(*step, progress.reader.positions, seen));
            moments.len() - 1
        });
        if let Some(moment) = moments.get_mut(at) {
            moment.legality = measured;
            moment.elo = elo;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    moments.sort_by_key(|moment| moment.step);
    let folder = args.output.as_deref().unwrap_or(&args.run);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let name = args.run.file_name().unwrap_or(args.run.as_os_str());
    save(folder, "replay.json", &to_json(&moments)?)?;
    save(
        folder,
        "replay.html",
        &page(&name.to_string_lossy(), &moments),
    )?;
    Ok(stdout::say(format_args!(
        "{} moments, {} of them with a checkpoint: {}",
        moments.len(),
        checkpoints.len(),
        folder.join("replay.html").display()
    ))?)
}

fn moment(step: u64, positions: u64, seen: Option<&Validation>) -> Moment {
    Moment {
        step,
        positions,
        loss: seen.map(|v| v.loss),
        policy: seen.map(|v| v.policy),
        value: seen.map(|v| v.value),
        top1: seen.map(|v| v.top1),
        ..Moment::default()
    }
}

/// Share of validation positions whose highest policy output is a legal move.
fn legality(
    file: &crate::model::TransformerFile,
    validation: &Path,
    options: &Options,
) -> Result<f64> {
    let samples = spread(validation, POSITIONS)?;
    let leaves: Vec<Leaf> = samples.iter().map(Sample::leaf).collect();
    let backend = TransformerBackend::new(file, &ModelOptions::new(options)?)?;
    let mut evaluator: Box<dyn Evaluator> = backend.evaluator()?;
    let (mut legal, mut all) = (0_usize, 0_usize);
    for call in leaves.chunks(CALL) {
        let open = evaluator
            .open_policy(call)?
            .ok_or_else(|| anyhow!("the network gives no policy without a mask"))?;
        for policy in open {
            let best = policy
                .logits
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .map(|(output, _)| output);
            all += 1;
            legal += usize::from(best.is_some_and(|output| policy.legal.contains(&output)));
        }
    }
    Ok(legal as f64 / all as f64)
}

/// A short ladder, played by this program's own evaluation; its answers are kept beside the run.
fn ladder(
    args: &Replay,
    file: &crate::model::TransformerFile,
    step: u64,
) -> Result<Option<Rating>> {
    let folder = args.output.as_deref().unwrap_or(&args.run).join("ladder");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let network = folder.join(format!("step-{step:08}.safetensors"));
    write(&network, &file.config, &file.manifest, &file.tensors, false)?;
    let output = folder.join(format!("step-{step:08}"));
    let program = std::env::current_exe().context("where is this program?")?;
    let done = std::process::Command::new(program)
        .args(["evaluate", "--suite", "ladder", "--network"])
        .arg(&network)
        .args(["--ladder-games", &args.ladder_games.to_string()])
        .args(["--ladder-nodes", &args.ladder_nodes.to_string()])
        .arg("--output")
        .arg(&output)
        .stdout(std::process::Stdio::null())
        .status()
        .context("cannot run this program's evaluation")?;
    if !done.success() {
        bail!("step {step}: the ladder was not played ({done})");
    }
    let path = output.join("results.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let results: serde_json::Value = serde_json::from_str(&text)?;
    let rating = results
        .pointer("/rows/0/ladder/rating")
        .cloned()
        .unwrap_or_default();
    Ok(serde_json::from_value(rating)?)
}

fn save(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
