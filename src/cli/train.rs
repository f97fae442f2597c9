//! `simurgh train`: runs a training, shows how it goes, writes out a network. Computes nothing.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::interrupt::on_interrupt;
use super::stdout;
use crate::train::config::TrainConfig;
use crate::train::kind::ModelConfig;
use crate::train::trainer::{self, Ended, LogLine, Told};
use crate::train::{checkpoint, report};

/// Train a transformer; write a checkpoint out as a network; draw a run's curves
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Train {
    #[command(subcommand)]
    command: Option<Command>,
    /// The run: a TOML file
    #[arg(long)]
    config: Option<PathBuf>,
    /// Go on from the last checkpoint in the run's folder
    #[arg(long)]
    resume: bool,
}

#[derive(Subcommand)]
enum Command {
    /// The averaged weights of a checkpoint as a network file
    Export(Export),
    /// How many parameters a network has: the keys of a run's [model] as a TOML file, - for standard input
    Size {
        /// The file
        model: PathBuf,
    },
    /// The curves of a run as report.html in its folder; a run writes it with each checkpoint
    Report {
        /// The run's folder
        folder: PathBuf,
    },
}

#[derive(Args)]
struct Export {
    /// A checkpoint
    checkpoint: PathBuf,
    /// The network file to write, .safetensors
    #[arg(long)]
    output: PathBuf,
    /// fp16 or fp32
    #[arg(long, default_value = "fp16", value_parser = ["fp16", "fp32"])]
    precision: String,
    /// What the manifest says of the data
    #[arg(long, default_value = "")]
    data: String,
    /// What the manifest says of the licence
    #[arg(long, default_value = "GPL-3.0-or-later")]
    license: String,
}

pub fn run(args: &Train) -> Result<()> {
    match (&args.command, &args.config) {
        (Some(Command::Export(args)), _) => export(args),
        (Some(Command::Report { folder }), _) => {
            let path = report::write_report(folder)?;
            Ok(stdout::say(path.display())?)
        }
        (Some(Command::Size { model }), _) => size(model),
        (None, Some(_)) => train(args),
        (None, None) => bail!("expected --config FILE, or one of export, size and report"),
    }
}

fn size(path: &Path) -> Result<()> {
    let text = match path == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin())?,
        false => std::fs::read_to_string(path)
            .map_err(|e| anyhow!("cannot read {}: {e}", path.display()))?,
    };
    let model: ModelConfig = toml::from_str(&text)?;
    model.check().map_err(|why| anyhow!("{why}"))?;
    Ok(stdout::say(model.size())?)
}

fn train(args: &Train) -> Result<()> {
    let path = args
        .config
        .as_ref()
        .ok_or_else(|| anyhow!("expected --config FILE"))?;
    let config = TrainConfig::read(path)?;
    let stop = on_interrupt("interrupted: saving after this step; once more to end at once")?;
    let bar = ProgressBar::new(config.train.steps).with_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} steps, {per_sec}, {eta} left  {msg}",
    )?);
    let hidden = bar.is_hidden();
    let mut trouble = None;
    let ended = trainer::train(&config, args.resume, &stop, |told| match told {
        Told::Begins(step) => {
            bar.set_position(step);
            bar.reset_eta();
        }
        Told::Step(step) => bar.set_position(step),
        Told::Line(line) => {
            bar.set_message(short(line));
            if line.validation.is_some() || hidden {
                let said = bar.suspend(|| stdout::say(in_full(line)));
                trouble = trouble.take().or(said.err());
            }
        }
    })?;
    bar.finish_and_clear();
    if let Some(trouble) = trouble {
        return Err(trouble.into());
    }
    let folder = config.output.folder.display();
    match ended {
        Ended::Done => stdout::say(format_args!("done; the best checkpoint is in {folder}"))?,
        Ended::Stopped => stdout::say(format_args!("saved in {folder}; go on with --resume"))?,
    }
    Ok(())
}

fn short(line: &LogLine) -> String {
    format!(
        "loss {:.3}, top-1 {:.1} %, {:.0} positions/s",
        line.loss,
        100.0 * line.top1,
        line.rate
    )
}

fn in_full(line: &LogLine) -> String {
    let mut text = format!(
        "step {} loss {:.4} policy {:.4} value {:.4} top-1 {:.2} % rate {:.2e} norm {:.2} {:.0}/s",
        line.step,
        line.loss,
        line.policy,
        line.value,
        100.0 * line.top1,
        line.learning_rate,
        line.gradient_norm,
        line.rate,
    );
    if let Some(seen) = &line.validation {
        text += &format!(
            "\n    validation: policy {:.4} (least {:.4}) value {:.4} top-1 {:.2} % Q error {:.3}",
            seen.policy,
            seen.policy_floor,
            seen.value,
            100.0 * seen.top1,
            seen.q_error,
        );
    }
    text
}

fn export(args: &Export) -> Result<()> {
    let (progress, adam) = checkpoint::load(&args.checkpoint)?;
    let tensors = checkpoint::averaged(&progress.config.model, &adam)?;
    let manifest = json!({
        "steps": progress.step,
        "positions": progress.reader.positions,
        "data": args.data,
        "data_hash": progress.data_hash,
        "git_revision": progress.git_revision,
        "validation": progress.validation,
        "training": progress.config.train,
        "license": args.license,
    });
    let half = args.precision == "fp16";
    let model = &progress.config.model;
    model.write(&args.output, &manifest, &tensors, half)?;
    let bytes = std::fs::metadata(&args.output)?.len();
    stdout::say(format_args!("{}: {bytes} bytes", args.output.display()))?;
    Ok(())
}
