//! What a training run is: network, data, schedule, output. Read from one TOML file; trains nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::kind::ModelConfig;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The network.
    pub model: ModelConfig,
    /// What it learns from.
    pub data: DataConfig,
    /// How.
    pub train: ScheduleConfig,
    /// Where everything goes.
    pub output: OutputConfig,
}

/// Sources and targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Files of training data (for a GPT, of games); each gives a share of every minibatch.
    pub sources: Vec<SourceConfig>,
    /// A file that is never trained on; for a GPT, a file of games of which the held-out ones are looked at.
    pub validation: PathBuf,
    /// Positions (for a GPT, about so many tokens) of it that are looked at.
    #[serde(default = "default_validation_positions")]
    pub validation_positions: usize,
    /// Chunks that are shuffled together.
    #[serde(default = "default_shuffle_chunks")]
    pub shuffle_chunks: usize,
    /// Softmax temperature of scores, in units of expected score.
    #[serde(default = "default_temperature")]
    pub policy_temperature: f32,
    /// Weight of the game's result in the value target; the rest is the teacher's value.
    #[serde(default)]
    pub result_weight: f32,
    /// Swap the files of half the positions in which nobody may castle.
    #[serde(default = "yes")]
    pub mirror: bool,
    /// GPT: shortest games that are read, in plies.
    #[serde(default)]
    pub min_plies: usize,
    /// GPT: lowest rating of both players.
    #[serde(default)]
    pub min_rating: u16,
    /// GPT: highest rating of both players.
    #[serde(default = "highest_rating")]
    pub max_rating: u16,
    /// GPT: the rating of players whose game does not say; without it such games are left out.
    #[serde(default)]
    pub unrated: Option<u16>,
    /// GPT: one game in so many, by its moves, is never trained on; 0 = none.
    #[serde(default = "default_held_out")]
    pub held_out: u64,
}

/// One file and its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The file.
    pub file: PathBuf,
    /// Its share, in proportion to the others'.
    #[serde(default = "one")]
    pub weight: f64,
}

/// Optimiser and schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// Positions a step.
    pub batch: usize,
    /// Minibatches whose gradients are added up to one step's.
    #[serde(default = "one_batch")]
    pub accumulate: usize,
    /// Optimiser steps.
    pub steps: u64,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Steps over which it rises from 0; then it falls along a cosine to a tenth.
    pub warmup: u64,
    /// What moves the matrices inside the network; AdamW moves the rest.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// On tensors of two or more dimensions.
    #[serde(default = "default_decay")]
    pub weight_decay: f64,
    /// Largest norm of the gradient.
    #[serde(default = "one")]
    pub clip: f64,
    /// Share of the averaged weights that stays at each step.
    #[serde(default = "default_ema")]
    pub ema: f64,
    /// Weight of the value's cross-entropy; the policy's is 1.
    #[serde(default = "one")]
    pub value_weight: f64,
    /// Weight of the moves-left loss (Huber, in units of 20 plies).
    #[serde(default = "default_moves_left")]
    pub moves_left_weight: f64,
    /// Arithmetic of forward and backward passes.
    #[serde(default)]
    pub arithmetic: Arithmetic,
    /// Worker threads; 0 = all cores. The minibatch is divided among them.
    #[serde(default)]
    pub threads: usize,
    /// Of everything random.
    #[serde(default)]
    pub seed: u64,
}

/// Optimisers of the matrices inside the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    #[default]
    Adamw,
    /// Steps along the momentum made orthogonal.
    Muon,
}

/// Numbers in forward and backward passes; the weights themselves are fp32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    #[default]
    Fp32,
    Bf16,
}

/// Folder and intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// Checkpoints, log and report.
    pub folder: PathBuf,
    /// Steps between two lines of the log.
    #[serde(default = "default_log")]
    pub log_every: u64,
    /// Steps between two checkpoints, each with a validation.
    pub checkpoint_every: u64,
    /// Checkpoints that are kept besides the best.
    #[serde(default = "default_keep")]
    pub keep: usize,
}

fn highest_rating() -> u16 {
    u16::MAX
}
fn default_held_out() -> u64 {
    50
}
fn yes() -> bool {
    true
}
fn one() -> f64 {
    1.0
}
fn one_batch() -> usize {
    1
}
fn default_validation_positions() -> usize {
    10_000
}
fn default_shuffle_chunks() -> usize {
    16
}
fn default_temperature() -> f32 {
    0.05
}
fn default_decay() -> f64 {
    0.1
}
fn default_ema() -> f64 {
    0.999
}
fn default_moves_left() -> f64 {
    0.1
}
fn default_log() -> u64 {
    20
}
fn default_keep() -> usize {
    2
}

impl TrainConfig {
    /// Reads a run's file.
    ///
    /// # Errors
    /// Names the line, or the setting that is out of range.
    pub fn read(path: &Path) -> Result<TrainConfig, TrainError> {
        let text = std::fs::read_to_string(path).map_err(|e| TrainError::io("read", path, e))?;
        TrainConfig::parse(&text).map_err(|why| TrainError::Config {
            path: path.to_owned(),
            why,
        })
    }

    fn parse(text: &str) -> Result<TrainConfig, String> {
        let config: TrainConfig = toml::from_str(text).map_err(|e| e.to_string())?;
        config.model.check().map_err(|why| format!("model.{why}"))?;
        let (train, data) = (&config.train, &config.data);
        let fraction = |x: f64| (0.0..=1.0).contains(&x);
        let checks = [
            (
                "data.sources is empty, expected a file",
                !data.sources.is_empty(),
            ),
            (
                "data.sources has a weight that is not positive",
                data.sources
                    .iter()
                    .all(|s| s.weight > 0.0 && s.weight.is_finite()),
            ),
            (
                "data.validation_positions is 0",
                data.validation_positions > 0,
            ),
            ("data.shuffle_chunks is 0", data.shuffle_chunks > 0),
            (
                "data.policy_temperature is not positive",
                data.policy_temperature > 0.0,
            ),
            (
                "data.result_weight is not in 0..1",
                fraction(f64::from(data.result_weight)),
            ),
            (
                "train.batch is not in 1..65536",
                (1..=65_536).contains(&train.batch),
            ),
            ("train.accumulate is 0", train.accumulate > 0),
            ("train.steps is 0", train.steps > 0),
            (
                "train.learning_rate is not positive",
                train.learning_rate > 0.0,
            ),
            ("train.weight_decay is negative", train.weight_decay >= 0.0),
            ("train.clip is not positive", train.clip > 0.0),
            ("train.ema is not in 0..1", fraction(train.ema)),
            ("train.threads is more than 1024", train.threads <= 1024),
            ("output.log_every is 0", config.output.log_every > 0),
            (
                "output.checkpoint_every is 0",
                config.output.checkpoint_every > 0,
            ),
            ("output.keep is 0", config.output.keep > 0),
        ];
        match checks.iter().find(|(_, fine)| !fine) {
            Some((why, _)) => Err((*why).to_owned()),
            None => Ok(config),
        }
    }

    /// Worker threads.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match self.train.threads {
            0 => cores(),
            threads => threads,
        };
        threads.min(self.train.batch).max(1)
    }

    /// The learning rate of a step (from 0): linear warm-up, then a cosine down to a tenth.
    pub fn learning_rate(&self, step: u64) -> f64 {
        let t = &self.train;
        if step < t.warmup {
            return t.learning_rate * (step + 1) as f64 / t.warmup as f64;
        }
        let rest = t.steps.saturating_sub(t.warmup).max(1) as f64;
        let done = ((step - t.warmup) as f64 / rest).min(1.0);
        t.learning_rate * (0.1 + 0.45 * (1.0 + (std::f64::consts::PI * done).cos()))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const TINY: &str = r#"
        [model]
        width = 16
        layers = 2
        heads = 2
        head_depth = 8
        ff = 16
        policy_width = 8
        value_hidden = 8
        moves_left = true

        [data]
        sources = [{ file = "train.chunks" }]
        validation = "validation.chunks"
        validation_positions = 40
        shuffle_chunks = 2
        result_weight = 0.2

        [train]
        batch = 12
        steps = 8
        learning_rate = 0.01
        warmup = 2
        threads = 2
        seed = 3

        [output]
        folder = "run"
        log_every = 1
        checkpoint_every = 4
    "#;

    #[test]
    fn the_rate_rises_and_falls() {
        let config = TrainConfig::parse(TINY).unwrap();
        let rates: Vec<f64> = (0..9).map(|step| config.learning_rate(step)).collect();
        assert_eq!((rates[0], rates[1], rates[2]), (0.005, 0.01, 0.01));
        assert!((rates[5] - 0.0055).abs() < 1e-12);
        assert!((rates[8] - 0.001).abs() < 1e-12);
        assert!(rates[2..].is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn settings_out_of_range_are_named() {
        for (from, to, says) in [
            ("batch = 12", "batch = 0", "train.batch"),
            ("steps = 8", "steps = 0", "train.steps"),
            ("width = 16", "width = 0", "model.width is 0"),
            (
                "sources = [{ file = \"train.chunks\" }]",
                "sources = []",
                "data.sources",
            ),
            ("seed = 3", "speed = 3", "speed"),
            ("moves_left = true", "norm = \"both\"", "both"),
            (
                "width = 16",
                "kind = \"rnn\"",
                "expected \"transformer\" or \"gpt\"",
            ),
            ("width = 16", "kind = \"gpt\"", "unknown field"),
            (
                "result_weight = 0.2",
                "result_weight = 2",
                "data.result_weight",
            ),
        ] {
            let error = TrainConfig::parse(&TINY.replace(from, to)).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
