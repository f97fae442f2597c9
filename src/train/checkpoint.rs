//! A training run on disk: weights, averages, moments, step, where the reader stands, and what made it. One
//! safetensors file, whole or not there. Trains nothing.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use super::TrainError;
use super::adamw::AdamW;
use super::config::TrainConfig;
use super::kind::ModelConfig;
use super::reader::ReaderState;
use crate::model::weight_file::Parameter;

const FORMAT: &str = "simurgh-checkpoint-1";
const KINDS: [&str; 4] = ["weights", "ema", "first", "second"];

/// Everything of a checkpoint that is no tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Optimiser steps taken.
    pub step: u64,
    /// Where the reader stands.
    pub reader: ReaderState,
    /// The run.
    pub config: TrainConfig,
    /// Of all sources.
    pub data_hash: String,
    /// Of the program's source, where it is known.
    pub git_revision: Option<String>,
    /// The validation at this step.
    pub validation: Option<Validation>,
    /// The lowest validation loss so far.
    pub best_loss: Option<f64>,
}

/// Means over the validation positions, of the averaged weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Positions looked at.
    pub positions: u64,
    /// Policy and value cross-entropy, weighed as in training.
    pub loss: f64,
    /// Cross-entropy of the policy, in nats.
    pub policy: f64,
    /// Entropy of its targets.
    pub policy_floor: f64,
    /// Cross-entropy of the value, in nats.
    pub value: f64,
    /// Share of positions whose highest policy output is the teacher's choice.
    pub top1: f64,
    /// Root of the mean squared error of Q.
    pub q_error: f64,
}

/// Writes a checkpoint; it takes its name once it is whole.
///
/// # Errors
/// When it cannot be written.
pub fn save(path: &Path, progress: &Progress, adam: &AdamW) -> Result<(), TrainError> {
    let failed = |text: String| TrainError::io("write", path, std::io::Error::other(text));
    let lists = [&adam.weights, &adam.ema, &adam.first, &adam.second];
    let mut packed: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    for (kind, list) in KINDS.iter().zip(lists) {
        for (parameter, tensor) in progress.config.model.parameters().iter().zip(list) {
            let values = numbers(tensor)?;
            packed.push((
                format!("{kind}/{}", parameter.name),
                parameter.shape.iter().map(|&n| n as usize).collect(),
                values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ));
        }
    }
    let mut views = Vec::new();
    for (name, shape, bytes) in &packed {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        views.push((name, view.map_err(|e| failed(format!("{name}: {e}")))?));
    }
    let text = serde_json::to_string(progress).map_err(|e| failed(e.to_string()))?;
    let metadata = HashMap::from([
        ("format".to_owned(), FORMAT.to_owned()),
        ("progress".to_owned(), text),
    ]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(|e| failed(e.to_string()))?;
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    // On the disk before it takes the name, so that a machine that dies leaves a whole one.
    fs::File::create(&partial)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .map_err(|e| TrainError::io("write", &partial, e))?;
    fs::rename(&partial, path).map_err(|e| TrainError::io("write", path, e))
}

/// Reads a checkpoint.
///
/// # Errors
/// What is damaged, missing or of the wrong size.
pub fn load(path: &Path) -> Result<(Progress, AdamW), TrainError> {
    let bad = |why: String| TrainError::Checkpoint {
        path: path.to_owned(),
        why,
    };
    let bytes = fs::read(path).map_err(|e| TrainError::io("read", path, e))?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| bad(e.to_string()))?;
    let text = |key: &str| metadata.metadata().as_ref().and_then(|map| map.get(key));
    if text("format").map(String::as_str) != Some(FORMAT) {
        let found = text("format").map_or("no format", String::as_str);
        return Err(bad(format!("its metadata have {found}, expected {FORMAT}")));
    }
    let progress = text("progress").map_or("", String::as_str);
    let progress: Progress =
        serde_json::from_str(progress).map_err(|e| bad(format!("its progress: {e}")))?;
    progress.config.model.check().map_err(&bad)?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| bad(e.to_string()))?;
    let list = |kind: &str| {
        let parameters = progress.config.model.parameters();
        let tensors = parameters.iter().map(|p| tensor(&file, kind, p));
        tensors.collect::<Result<Vec<_>, String>>().map_err(&bad)
    };
    let adam = AdamW {
        weights: list("weights")?,
        ema: list("ema")?,
        first: list("first")?,
        second: list("second")?,
        step: progress.step,
    };
    Ok((progress, adam))
}

fn tensor(file: &SafeTensors, kind: &str, parameter: &Parameter) -> Result<Tensor, String> {
    let name = format!("{kind}/{}", parameter.name);
    let view = file
        .tensor(&name)
        .map_err(|_| format!("there is no tensor {name}"))?;
    let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
    if shape != parameter.shape || view.dtype() != Dtype::F32 {
        return Err(format!(
            "tensor {name} is {:?} {shape:?}, expected F32 {:?}",
            view.dtype(),
            parameter.shape
        ));
    }
    let chunks = view.data().as_chunks::<4>().0.iter();
    let values: Vec<f32> = chunks.map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let tensor = Tensor::f_from_slice(&values).and_then(|t| t.f_reshape(&shape));
    tensor.map_err(|e| e.to_string())
}

/// A tensor's numbers.
///
/// # Errors
/// When libtorch refuses.
pub fn numbers(tensor: &Tensor) -> Result<Vec<f32>, TrainError> {
    let flat = tensor.f_detach()?.f_to_kind(Kind::Float)?.f_contiguous()?;
    let mut values = vec![0.0_f32; flat.numel()];
    let count = values.len();
    flat.f_copy_data(&mut values, count)?;
    Ok(values)
}

/// The averaged weights by name, as a network file holds them.
///
/// # Errors
/// When libtorch refuses.
pub fn averaged(
    config: &ModelConfig,
    adam: &AdamW,
) -> Result<HashMap<String, Vec<f32>>, TrainError> {
    let parameters = config.parameters().into_iter().zip(&adam.ema);
    parameters
        .map(|(parameter, tensor)| Ok((parameter.name, numbers(tensor)?)))
        .collect()
}

/// The checkpoint of a step in a run's folder.
pub fn path_of(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("step-{step:08}.checkpoint"))
}

/// Steps and files of a run's checkpoints, oldest first.
pub fn list(folder: &Path) -> Vec<(u64, PathBuf)> {
    let mut found: Vec<(u64, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let step = name.strip_prefix("step-")?.strip_suffix(".checkpoint")?;
            Some((step.parse().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found
}
