//! The training loop: batches, steps, log, validation, checkpoints, resuming. Prints nothing; what happens is
//! told to an observer.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam::channel::{Receiver, bounded};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::adamw::{AdamW, Rule, StepSettings};
use super::batch::Batch;
use super::checkpoint::{self, Progress, Validation};
use super::config::{Optimizer, TrainConfig};
use super::games::{self, GameBatch, GameReader, Share};
use super::gradient::{LossWeights, Sums, Workers};
use super::kind::{AnyBatch, ModelConfig};
use super::reader::{Reader, ReaderState, mix, spread};
use super::report::write_report;
use super::{Sample, TrainError};
use crate::model::transformer::piece_reaches;
use crate::model::weight_file::Init;

/// A line of the log: means over the steps since the line before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Steps taken.
    pub step: u64,
    /// Positions seen.
    pub positions: u64,
    /// The loss that is minimised.
    pub loss: f64,
    /// Cross-entropy of the policy, in nats.
    pub policy: f64,
    /// Cross-entropy of the value, in nats.
    pub value: f64,
    /// Share of positions whose highest policy output is the teacher's choice.
    pub top1: f64,
    /// Of the last step.
    pub learning_rate: f64,
    /// Mean norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Positions a second.
    pub rate: f64,
    /// The validation of the averaged weights at this step, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

/// What a run tells while it goes on.
pub enum Told<'a> {
    /// It begins, at this step.
    Begins(u64),
    /// So many steps are taken.
    Step(u64),
    /// A line was logged.
    Line(&'a LogLine),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All steps are taken.
    Done,
    /// It was asked to stop, and saved.
    Stopped,
}

/// The log in a run's folder.
pub fn log_path(folder: &Path) -> PathBuf {
    folder.join("log.jsonl")
}

/// The best checkpoint in a run's folder.
pub fn best_path(folder: &Path) -> PathBuf {
    folder.join("best.checkpoint")
}

/// Trains until all steps are taken or `stop` is set. With `resume` it goes on from the last checkpoint in the
/// folder, else the folder must hold none.
///
/// # Errors
/// Files that cannot be read or written, settings that changed, a loss that is no number. Checkpoints that are
/// there stay.
pub fn train(
    config: &TrainConfig,
    resume: bool,
    stop: &AtomicBool,
    mut tell: impl FnMut(Told),
) -> Result<Ended, TrainError> {
    let folder = &config.output.folder;
    fs::create_dir_all(folder).map_err(|e| TrainError::io("make", folder, e))?;
    let _lock = lock(folder)?;
    let (mut progress, mut adam) = match (checkpoint::list(folder).pop(), resume) {
        (Some((_, path)), true) => resumed(&path, config)?,
        (Some((_, path)), false) => {
            return Err(TrainError::Checkpoint {
                path,
                why: "it is there already; go on with --resume, or name another folder".to_owned(),
            });
        }
        (None, _) => (
            begun(config),
            AdamW::new(initial(&config.model, config.train.seed)?)?,
        ),
    };
    let feed = Feed::start(config, &progress.reader)?;
    if progress.data_hash.is_empty() {
        progress.data_hash.clone_from(&feed.data_hash);
    } else if progress.data_hash != feed.data_hash {
        return Err(TrainError::Checkpoint {
            path: folder.clone(),
            why: "the training data are not those it was made with".to_owned(),
        });
    }
    let weights = LossWeights {
        value: config.train.value_weight,
        moves_left: config.train.moves_left_weight,
    };
    let workers = Workers::new(
        config.threads(),
        &config.model,
        &adam.weights,
        config.train.arithmetic,
        weights,
    )
    .map_err(|e| TrainError::io("start threads for", folder, e))?;
    let validation = validation_batches(config)?;
    let rules = rules(config);
    cut_log(folder, adam.step)?;
    tell(Told::Begins(adam.step));

    let mut since = Since::new();
    while adam.step < config.train.steps {
        let mut gradients: Option<Vec<Tensor>> = None;
        for _ in 0..config.train.accumulate {
            let fed = feed.next()?;
            progress.reader = fed.after;
            let (more, sums) = workers.gradients(&fed.batch)?;
            since.sums.add(&sums);
            gradients = Some(match gradients {
                None => more,
                Some(all) => add(&all, &more)?,
            });
        }
        let parts = config.train.accumulate as f64;
        let gradients: Vec<Tensor> = gradients
            .unwrap_or_default()
            .iter()
            .map(|g| g.f_mul_scalar(1.0 / parts))
            .collect::<Result<_, _>>()?;
        let settings = StepSettings {
            learning_rate: config.learning_rate(adam.step),
            weight_decay: config.train.weight_decay,
            clip: config.train.clip,
            ema: config.train.ema,
        };
        let norm = adam.step(&gradients, &rules, &settings)?;
        if !norm.is_finite() || !since.sums.is_finite() {
            return Err(TrainError::NotANumber { step: adam.step });
        }
        since.norms += norm;
        since.steps += 1;
        progress.step = adam.step;
        tell(Told::Step(adam.step));

        let last = adam.step == config.train.steps;
        let stopping = stop.load(Ordering::Relaxed);
        let saving = last || stopping || adam.step.is_multiple_of(config.output.checkpoint_every);
        if !saving && !adam.step.is_multiple_of(config.output.log_every) {
            continue;
        }
        let mut line = since.line(&progress, settings.learning_rate, weights);
        if saving {
            progress.validation = match !stopping || last {
                true => Some(validate(&workers, &validation, &adam, weights)?),
                false => None,
            };
            line.validation = progress.validation;
            save(config, &mut progress, &adam)?;
        }
        append(folder, &line)?;
        if saving {
            write_report(folder)?;
        }
        tell(Told::Line(&line));
        since = Since::new();
        if stopping && !last {
            return Ok(Ended::Stopped);
        }
    }
    Ok(Ended::Done)
}

/// Keeps a second run out of the folder for as long as the file is open.
fn lock(folder: &Path) -> Result<fs::File, TrainError> {
    let path = folder.join("lock");
    let file = fs::File::create(&path).map_err(|e| TrainError::io("write", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(TrainError::Folder {
            path: folder.to_owned(),
            why: "another run is at work in this folder; end it first, or name another folder"
                .to_owned(),
        }),
        Err(fs::TryLockError::Error(e)) => Err(TrainError::io("lock", &path, e)),
    }
}

fn begun(config: &TrainConfig) -> Progress {
    Progress {
        step: 0,
        reader: ReaderState::default(),
        config: config.clone(),
        data_hash: String::new(),
        git_revision: git_revision(),
        validation: None,
        best_loss: None,
    }
}

fn resumed(path: &Path, config: &TrainConfig) -> Result<(Progress, AdamW), TrainError> {
    let (mut progress, adam) = checkpoint::load(path)?;
    let differs = |what: &str| TrainError::Checkpoint {
        path: path.to_owned(),
        why: format!("its {what} differ from the configuration's"),
    };
    if progress.config.model != config.model {
        return Err(differs("network settings"));
    }
    let order = |c: &TrainConfig| {
        let files: Vec<_> = c.data.sources.iter().map(|s| s.weight.to_bits()).collect();
        (files, c.data.shuffle_chunks, c.train.seed)
    };
    if order(&progress.config) != order(config) {
        return Err(differs("sources, shuffle_chunks or seed"));
    }
    progress.config = config.clone();
    progress.git_revision = git_revision();
    Ok((progress, adam))
}

/// The commit the program was built from, if that was in a repository.
fn git_revision() -> Option<String> {
    option_env!("SIMURGH_REVISION").map(str::to_owned)
}

/// Weights before the first step, from the seed alone.
pub(super) fn initial(config: &ModelConfig, seed: u64) -> Result<Vec<Tensor>, TrainError> {
    let mut random = StdRng::seed_from_u64(mix(seed, u64::MAX));
    let mut normal = || {
        // Box and Muller.
        let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    let mut tensors = Vec::new();
    for parameter in config.parameters() {
        let count = parameter.size();
        let deviation = match parameter.init {
            Init::Xavier(gain) => {
                let (from, to) = (parameter.shape[0] as f64, parameter.shape[1] as f64);
                gain * (2.0 / (from + to)).sqrt()
            }
            Init::Normal(deviation) => deviation,
            Init::Zeros | Init::Ones | Init::PieceMoves(_) => 0.0,
        };
        let values: Vec<f32> = match parameter.init {
            Init::Zeros => vec![0.0; count],
            Init::Ones => vec![1.0; count],
            Init::PieceMoves(high) => (0..count)
                .map(|i| match piece_reaches(i / 4096, i / 64 % 64, i % 64) {
                    true => high as f32,
                    false => 0.0,
                })
                .collect(),
            _ => (0..count).map(|_| (normal() * deviation) as f32).collect(),
        };
        tensors.push(Tensor::f_from_slice(&values)?.f_reshape(&parameter.shape)?);
    }
    Ok(tensors)
}

/// What moves each tensor. Muon takes the matrices inside the network; query, key and value, and the branches of
/// a gated layer, are matrices of their own.
fn rules(config: &TrainConfig) -> Vec<Rule> {
    let gated = match &config.model {
        ModelConfig::Transformer(model) => model.activation.is_gated(),
        ModelConfig::Gpt(_) => false,
    };
    let rule = |name: &str, shape: &[i64]| {
        let mut parts = ["layers.", "policy.", "blocks."].into_iter();
        let inside = parts.any(|part| name.starts_with(part)) && shape.len() == 2;
        if config.train.optimizer == Optimizer::Adamw || !inside {
            return Rule::Adam;
        }
        match gated {
            _ if name.ends_with("qkv.weight") => Rule::Muon(3),
            true if name.ends_with("ff.1.weight") => Rule::Muon(2),
            _ => Rule::Muon(1),
        }
    };
    let parameters = config.model.parameters();
    parameters.iter().map(|p| rule(&p.name, &p.shape)).collect()
}

fn add(a: &[Tensor], b: &[Tensor]) -> Result<Vec<Tensor>, TrainError> {
    let sums = a.iter().zip(b).map(|(a, b)| a.f_add(b));
    Ok(sums.collect::<Result<_, _>>()?)
}

/// Sums since the last line of the log.
struct Since {
    sums: Sums,
    norms: f64,
    steps: u64,
    began: Instant,
}

impl Since {
    fn new() -> Since {
        Since {
            sums: Sums::default(),
            norms: 0.0,
            steps: 0,
            began: Instant::now(),
        }
    }

    fn line(&self, progress: &Progress, learning_rate: f64, weights: LossWeights) -> LogLine {
        let positions = self.sums.positions.max(1) as f64;
        LogLine {
            step: progress.step,
            positions: progress.reader.positions,
            loss: self.sums.loss(weights),
            policy: self.sums.policy / self.sums.policies.max(1) as f64,
            value: self.sums.value / positions,
            top1: self.sums.best / self.sums.policies.max(1) as f64,
            learning_rate,
            gradient_norm: self.norms / self.steps.max(1) as f64,
            rate: positions / self.began.elapsed().as_secs_f64().max(1e-9),
            validation: None,
        }
    }
}

/// A minibatch and where the reader stands after it.
struct Fed {
    batch: AnyBatch,
    after: ReaderState,
}

/// What makes the next minibatch.
type NextBatch = Box<dyn FnMut() -> Result<Fed, TrainError> + Send>;

/// Minibatches, made ahead on a thread of their own.
struct Feed {
    fed: Option<Receiver<Result<Fed, TrainError>>>,
    thread: Option<JoinHandle<()>>,
    data_hash: String,
}

impl Feed {
    fn start(config: &TrainConfig, state: &ReaderState) -> Result<Feed, TrainError> {
        let files: Vec<(PathBuf, f64)> = config
            .data
            .sources
            .iter()
            .map(|source| (source.file.clone(), source.weight))
            .collect();
        let seed = config.train.seed;
        let (data, size) = (config.data.clone(), config.train.batch);
        let (data_hash, mut next): (_, NextBatch) = match &config.model {
            ModelConfig::Transformer(_) => {
                let mut reader = Reader::open(&files, data.shuffle_chunks, seed, state)?;
                let hash = reader.data_hash();
                let next = move || {
                    let mirror = data.mirror.then(|| mix(seed, reader.state().positions));
                    let samples = reader.next(size)?;
                    Ok(Fed {
                        batch: AnyBatch::Positions(Batch::encode(&samples, &data, mirror)),
                        after: reader.state(),
                    })
                };
                (hash, Box::new(next))
            }
            ModelConfig::Gpt(model) => {
                let mut reader = GameReader::open(&files, &data, seed, state)?;
                let context = model.context as usize;
                let hash = reader.data_hash();
                let next = move || {
                    let batch = AnyBatch::Games(reader.next(size, context));
                    let after = reader.state();
                    Ok(Fed { batch, after })
                };
                (hash, Box::new(next))
            }
        };
        let (sender, fed) = bounded(2);
        let thread = std::thread::Builder::new()
            .name("feed".to_owned())
            .spawn(move || {
                loop {
                    let fed = next();
                    let failed = fed.is_err();
                    if sender.send(fed).is_err() || failed {
                        break;
                    }
                }
            })
            .map_err(|e| TrainError::io("start a thread for", &config.output.folder, e))?;
        Ok(Feed {
            fed: Some(fed),
            thread: Some(thread),
            data_hash,
        })
    }

    fn next(&self) -> Result<Fed, TrainError> {
        let fed = self.fed.as_ref().and_then(|fed| fed.recv().ok());
        fed.unwrap_or_else(|| {
            let gone = "the thread that reads training data ended early".to_owned();
            Err(TrainError::Torch(tch::TchError::Torch(gone)))
        })
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.fed = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has shown as an early end.
            let _ = thread.join();
        }
    }
}

/// What is looked at at every checkpoint, as minibatches.
fn validation_batches(config: &TrainConfig) -> Result<Vec<AnyBatch>, TrainError> {
    match &config.model {
        ModelConfig::Transformer(_) => validation_positions(config),
        ModelConfig::Gpt(model) => validation_games(config, model.context as usize),
    }
}

/// Held-out games of the validation file.
fn validation_games(config: &TrainConfig, context: usize) -> Result<Vec<AnyBatch>, TrainError> {
    let data = &config.data;
    let share = match data.held_out {
        0 => Share::All,
        _ => Share::HeldOut,
    };
    let rows = games::read(&data.validation, data, share)?.rows;
    let mut batches = Vec::new();
    let mut tokens = 0;
    for part in rows.chunks(config.train.batch) {
        if tokens >= data.validation_positions {
            break;
        }
        let batch = GameBatch::encode(part, context);
        tokens += batch.counted();
        batches.push(AnyBatch::Games(batch));
    }
    Ok(batches)
}

/// The validation file's positions at even distances, as minibatches.
fn validation_positions(config: &TrainConfig) -> Result<Vec<AnyBatch>, TrainError> {
    let samples = spread(&config.data.validation, config.data.validation_positions)?;
    let mut data = config.data.clone();
    // The teacher's word alone, so that runs with other weights compare.
    data.result_weight = 0.0;
    let parts = samples.chunks(config.train.batch.max(256));
    let encode = |part: &[Sample]| AnyBatch::Positions(Batch::encode(part, &data, None));
    Ok(parts.map(encode).collect())
}

fn validate(
    workers: &Workers,
    batches: &[AnyBatch],
    adam: &AdamW,
    weights: LossWeights,
) -> Result<Validation, TrainError> {
    let mut sums = Sums::default();
    for batch in batches {
        sums.add(&workers.evaluate(batch, &adam.ema)?);
    }
    let (all, policies) = (sums.positions.max(1) as f64, sums.policies.max(1) as f64);
    Ok(Validation {
        positions: sums.positions,
        loss: (sums.policy + weights.value * sums.value) / all,
        policy: sums.policy / policies,
        policy_floor: sums.policy_floor / policies,
        value: sums.value / all,
        top1: sums.best / policies,
        q_error: (sums.q_error / all).sqrt(),
    })
}

fn save(config: &TrainConfig, progress: &mut Progress, adam: &AdamW) -> Result<(), TrainError> {
    let folder = &config.output.folder;
    let path = checkpoint::path_of(folder, adam.step);
    let loss = progress.validation.map(|seen| seen.loss);
    let best = match (loss, progress.best_loss) {
        (Some(loss), Some(best)) => loss < best,
        (loss, None) => loss.is_some(),
        (None, _) => false,
    };
    if best {
        progress.best_loss = loss;
    }
    checkpoint::save(&path, progress, adam)?;
    if best {
        let target = best_path(folder);
        let partial = target.with_extension("partial");
        fs::copy(&path, &partial)
            .and_then(|_| fs::rename(&partial, &target))
            .map_err(|e| TrainError::io("write", &target, e))?;
    }
    let mut all = checkpoint::list(folder);
    while all.len() > config.output.keep {
        let (_, old) = all.remove(0);
        fs::remove_file(&old).map_err(|e| TrainError::io("remove", &old, e))?;
    }
    Ok(())
}

fn append(folder: &Path, line: &LogLine) -> Result<(), TrainError> {
    let path = log_path(folder);
    let text = serde_json::to_string(line).unwrap_or_default();
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{text}"))
        .map_err(|e| TrainError::io("write", &path, e))
}

/// The lines of a run's log.
///
/// # Errors
/// When it cannot be read.
pub fn read_log(folder: &Path) -> Result<Vec<LogLine>, TrainError> {
    let path = log_path(folder);
    let file = fs::File::open(&path).map_err(|e| TrainError::io("read", &path, e))?;
    let mut lines = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|e| TrainError::io("read", &path, e))?;
        // The last line of a run that was killed may be cut off.
        lines.extend(serde_json::from_str::<LogLine>(&line));
    }
    Ok(lines)
}

/// Takes away lines of steps that will be taken again.
fn cut_log(folder: &Path, step: u64) -> Result<(), TrainError> {
    let path = log_path(folder);
    if !path.exists() {
        return Ok(());
    }
    let mut text = String::new();
    for line in read_log(folder)?.iter().filter(|line| line.step <= step) {
        text += &serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, &path))
        .map_err(|e| TrainError::io("write", &path, e))
}

/// One stop flag that is never set.
pub fn never() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{GameResult, Position};
    use crate::train::chunk::ChunkWriter;
    use crate::train::config::tests::TINY;
    use crate::train::report::report_path;
    use crate::train::{GameRecord, Ply, PolicyLabel, Source, WdlLabel};

    /// Random games whose teacher likes the first legal move best.
    fn data(path: &Path, seed: u64) {
        let mut writer = ChunkWriter::create(path).unwrap();
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..6 {
            let mut position = Position::startpos();
            let mut record = GameRecord::new(position.clone(), Source::Engine);
            record.result = GameResult::WhiteWins;
            for _ in 0..30 {
                let moves = position.legal_moves();
                let Some(&played) = moves.get(random.random_range(0..moves.len().max(1))) else {
                    break;
                };
                let scores = moves.iter().take(3).zip([90, 40, -20]);
                record.plies.push(Ply {
                    wdl: WdlLabel::new(500, 300, 200),
                    policy: PolicyLabel::Scores(scores.map(|(&m, cp)| (m, cp)).collect()),
                    ..Ply::played(played)
                });
                position.play(played);
            }
            writer.push(record).unwrap();
            writer.flush().unwrap();
        }
        writer.finish().unwrap();
    }

    fn run(name: &str) -> (PathBuf, TrainConfig) {
        let base =
            std::env::temp_dir().join(format!("simurgh-train-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).unwrap();
        data(&base.join("train.chunks"), 1);
        data(&base.join("validation.chunks"), 2);
        let path = base.join("run.toml");
        fs::write(&path, TINY).unwrap();
        let mut config = TrainConfig::read(&path).unwrap();
        config.data.sources[0].file = base.join("train.chunks");
        config.data.validation = base.join("validation.chunks");
        config.output.folder = base.join("run");
        config.output.keep = 9;
        (base, config)
    }

    fn end(config: &TrainConfig, step: u64) -> (Progress, Vec<Vec<f32>>) {
        let path = checkpoint::path_of(&config.output.folder, step);
        let (progress, adam) = checkpoint::load(&path).unwrap();
        let lists = [&adam.weights, &adam.ema, &adam.first, &adam.second];
        let all = lists.into_iter().flatten();
        (
            progress,
            all.map(|t| checkpoint::numbers(t).unwrap()).collect(),
        )
    }

    #[test]
    fn a_resumed_run_is_the_whole_run_bit_for_bit() {
        let (base, config) = run("resume");
        assert_eq!(
            train(&config, false, &never(), |_| ()).unwrap(),
            Ended::Done
        );
        let whole = end(&config, 8);
        assert_eq!(read_log(&config.output.folder).unwrap().len(), 8);
        let report = fs::read_to_string(report_path(&config.output.folder)).unwrap();
        assert!(report.contains("8 steps, 96 positions"));
        // The second half again, from the checkpoint between.
        fs::remove_file(checkpoint::path_of(&config.output.folder, 8)).unwrap();
        let mut begins = Vec::new();
        let ended = train(&config, true, &never(), |told| {
            if let Told::Begins(step) = told {
                begins.push(step);
            }
        });
        assert_eq!((ended.unwrap(), begins), (Ended::Done, vec![4]));
        let again = end(&config, 8);
        assert_eq!(whole.1, again.1);
        assert_eq!(whole.0.reader, again.0.reader);
        assert_eq!(read_log(&config.output.folder).unwrap().len(), 8);

        let error = train(&config, false, &never(), |_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("--resume"), "{error}");
        let held = lock(&config.output.folder).unwrap();
        let error = train(&config, true, &never(), |_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("another run is at work"), "{error}");
        drop(held);
        let mut other = config.clone();
        if let ModelConfig::Transformer(model) = &mut other.model {
            model.width = 24;
        }
        let error = train(&other, true, &never(), |_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("network settings"), "{error}");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_gpt_learns_games_and_resumes_bit_for_bit() {
        let base = std::env::temp_dir().join(format!("simurgh-train-gpt-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).unwrap();
        let games =
            "e2e4 e7e5 g1f3 b8c6 f1b5\nd2d4 d7d5 c2c4 e7e6 b1c3 g8f6\ne2e4 c7c5 g1f3 d7d6 d2d4\n";
        fs::write(base.join("games.txt"), games.repeat(4)).unwrap();
        let text = r#"
            [model]
            kind = "gpt"
            layers = 2
            width = 16
            heads = 2
            context = 20
            [data]
            sources = [{ file = "games.txt" }]
            validation = "games.txt"
            unrated = 1500
            held_out = 0
            [train]
            batch = 4
            steps = 40
            learning_rate = 0.02
            warmup = 2
            threads = 2
            optimizer = "muon"
            [output]
            folder = "run"
            log_every = 1
            checkpoint_every = 20
            keep = 9
        "#;
        let path = base.join("run.toml");
        fs::write(&path, text).unwrap();
        let mut config = TrainConfig::read(&path).unwrap();
        config.data.sources[0].file = base.join("games.txt");
        config.data.validation = base.join("games.txt");
        config.output.folder = base.join("run");
        train(&config, false, &never(), |_| ()).unwrap();
        let log = read_log(&config.output.folder).unwrap();
        let (first, last) = (&log[0], &log[39]);
        assert!(last.policy < 0.6 * first.policy, "{first:?} {last:?}");
        let seen = last.validation.unwrap();
        // Moves and the end of each of the twelve games.
        assert_eq!(seen.positions, 4 * (6 + 7 + 6));
        assert!(seen.top1 > 0.5 && seen.value == 0.0, "{seen:?}");
        let whole = end(&config, 40);
        fs::remove_file(checkpoint::path_of(&config.output.folder, 40)).unwrap();
        train(&config, true, &never(), |_| ()).unwrap();
        assert_eq!(whole.1, end(&config, 40).1);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn it_learns_and_stops_when_asked() {
        let (base, mut config) = run("learns");
        config.train.steps = 60;
        config.output.checkpoint_every = 60;
        train(&config, false, &never(), |_| ()).unwrap();
        let log = read_log(&config.output.folder).unwrap();
        let (first, last) = (&log[0], &log[59]);
        assert!(last.loss < 0.8 * first.loss, "{} {}", first.loss, last.loss);
        assert!(best_path(&config.output.folder).exists());
        config.train.steps = 90;
        let ended = train(&config, true, &AtomicBool::new(true), |_| ());
        assert_eq!(ended.unwrap(), Ended::Stopped);
        assert!(checkpoint::path_of(&config.output.folder, 61).exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_rate_that_explodes_ends_the_run_and_leaves_the_checkpoint() {
        let (base, mut config) = run("explodes");
        config.train.steps = 4;
        train(&config, false, &never(), |_| ()).unwrap();
        config.train.steps = 40;
        config.train.learning_rate = 1e30;
        let error = train(&config, true, &never(), |_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("no number after step"), "{error}");
        assert_eq!(end(&config, 4).0.step, 4);
        fs::remove_dir_all(base).unwrap();
    }
}
