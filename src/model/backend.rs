//! Networks as backends: leaves are encoded, run in padded minibatches, and the outputs read back as
//! evaluations. Knows no search.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tch::{Device, Kind};

use crate::encode::{HistoryFill, InputPlanes, PLANES, SQUARES, Turn, move_index};
use crate::eval::{
    Attributes, Backend, EvalError, EvalParams, Evaluation, Evaluator, Leaf, Policy, Wdl,
};

use super::error::ModelError;
use super::format::NetFormat;
use super::settings::{ModelOptions, Precision, device, device_name};
use super::torch::{Network, Outputs, Placement};
use super::weights::NetworkWeights;

/// Minibatches are padded to one of these sizes.
const SIZES: [usize; 33] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160,
    192, 224, 256, 320, 384, 512, 640, 768, 1024,
];
const MAX_BATCH_CPU: usize = 256;
const MAX_BATCH_GPU: usize = 1024;
const PREFERRED_BATCH_CPU: usize = 16;
const PREFERRED_BATCH_GPU: usize = 256;
const ROW: usize = PLANES * SQUARES;
/// Longest time spent on running padded sizes once at load.
const WARM_UP: Duration = Duration::from_millis(300);

/// A network on a device; see [`super::load_backend`].
pub struct TorchBackend {
    attributes: Attributes,
    /// A `Network` may move between threads but not be used by two: evaluators take clones.
    network: Mutex<Network>,
    reader: Reader,
}

/// What is needed to get from leaves to planes and from outputs to evaluations.
#[derive(Clone, Debug)]
struct Reader {
    name: String,
    format: NetFormat,
    history_fill: HistoryFill,
}

impl TorchBackend {
    /// Puts a network on the device the options name, in their precision, and warms it up.
    ///
    /// # Errors
    /// When the device is missing or libtorch refuses.
    pub fn new(
        weights: &NetworkWeights,
        options: &ModelOptions,
    ) -> Result<TorchBackend, ModelError> {
        let device = device(&options.device)?;
        let gpu = device != Device::Cpu;
        if !gpu {
            // Evaluator threads inherit it; more than one intra-op thread spins at barriers.
            tch::set_num_threads(1);
        }
        let _guard = tch::no_grad_guard();
        let max_batch = if gpu { MAX_BATCH_GPU } else { MAX_BATCH_CPU };
        let preferred = match options.minibatch_size {
            0 if gpu => PREFERRED_BATCH_GPU,
            0 => PREFERRED_BATCH_CPU,
            size => size.min(max_batch),
        };
        let (network, precision) = place(weights, device, options.precision, preferred)?;
        warm_up(&network, preferred)?;
        let attributes = Attributes {
            name: weights.name.clone(),
            device: device_name(device),
            precision: precision.name().to_owned(),
            preferred_batch: preferred,
            max_batch,
            evaluators: if gpu { 2 } else { options.threads },
            has_wdl: weights.format.wdl,
            has_moves_left: weights.format.moves_left,
            inline: false,
        };
        Ok(TorchBackend {
            attributes,
            network: Mutex::new(network),
            reader: Reader {
                name: weights.name.clone(),
                format: weights.format,
                history_fill: options.history_fill,
            },
        })
    }
}

impl Backend for TorchBackend {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn evaluator(&self) -> Result<Box<dyn Evaluator>, EvalError> {
        Ok(Box::new(TorchEvaluator {
            network: self.network.lock().clone(),
            reader: self.reader.clone(),
            max_batch: self.attributes.max_batch,
            planes: Vec::new(),
            turns: Vec::new(),
        }))
    }
}

/// The network in the precision asked for; `auto` is the faster one of those that could be.
fn place(
    weights: &NetworkWeights,
    device: Device,
    precision: Precision,
    batch: usize,
) -> Result<(Network, Precision), ModelError> {
    let build = |precision: Precision| {
        let (kind, storage) = match (precision, device) {
            (Precision::Bf16, _) => (Kind::BFloat16, Kind::BFloat16),
            (Precision::Fp16, Device::Cpu) => (Kind::Float, Kind::Half),
            (Precision::Fp16, _) => (Kind::Half, Kind::Half),
            _ => (Kind::Float, Kind::Float),
        };
        let placement = Placement {
            device,
            kind,
            storage,
        };
        Network::new(placement, weights)
    };
    let candidates: &[Precision] = match (precision, device) {
        (Precision::Auto, Device::Cpu) if has_fast_bf16() => &[Precision::Fp32, Precision::Bf16],
        (Precision::Auto, Device::Cpu | Device::Mps) => &[Precision::Fp32],
        (Precision::Auto, _) => &[Precision::Fp16],
        _ => std::slice::from_ref(&precision),
    };
    let mut best: Option<(Duration, Network, Precision)> = None;
    for &precision in candidates {
        let network = build(precision)?;
        let time = match candidates.len() {
            1 => Duration::ZERO,
            _ => time(&network, batch)?,
        };
        if best.as_ref().is_none_or(|(fastest, ..)| time < *fastest) {
            best = Some((time, network, precision));
        }
    }
    best.map(|(_, network, precision)| (network, precision))
        .ok_or(ModelError::UnknownSetting {
            setting: "precision",
            found: precision.name().to_owned(),
            expected: "auto, fp32, bf16 or fp16",
        })
}

/// Whether bf16 is worth a try: elsewhere it is emulated, many times slower.
fn has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The best of three runs after one that does not count.
fn time(network: &Network, batch: usize) -> Result<Duration, ModelError> {
    let planes = vec![0.0; batch * ROW];
    network.forward(&planes, batch)?;
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        network.forward(&planes, batch)?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

/// Runs the padded sizes up to twice the preferred one, as far as time allows.
fn warm_up(network: &Network, preferred: usize) -> Result<(), ModelError> {
    let start = Instant::now();
    let largest = SIZES.partition_point(|&size| size <= 2 * preferred);
    for &size in &SIZES[..largest] {
        network.forward(&vec![0.0; size * ROW], size)?;
        if start.elapsed() > WARM_UP {
            break;
        }
    }
    Ok(())
}

/// The smallest padded size that holds `count` leaves.
fn padded(count: usize) -> usize {
    let index = SIZES.partition_point(|&size| size < count);
    SIZES.get(index).copied().unwrap_or(count)
}

struct TorchEvaluator {
    network: Network,
    reader: Reader,
    max_batch: usize,
    planes: Vec<f32>,
    turns: Vec<Turn>,
}

impl Evaluator for TorchEvaluator {
    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        params: &EvalParams,
    ) -> Result<Vec<Evaluation>, EvalError> {
        let _guard = tch::no_grad_guard();
        let mut evaluations = Vec::with_capacity(leaves.len());
        for chunk in leaves.chunks(self.max_batch) {
            let size = padded(chunk.len());
            self.planes.resize(size * ROW, 0.0);
            self.reader.encode(chunk, &mut self.planes, &mut self.turns);
            let outputs =
                self.network
                    .forward(&self.planes, size)
                    .map_err(|e| EvalError::Backend {
                        backend: self.reader.name.clone(),
                        reason: e.to_string(),
                    })?;
            for (row, (leaf, &turn)) in chunk.iter().zip(&self.turns).enumerate() {
                let read = self.reader.evaluation(leaf, turn, row, &outputs, params)?;
                evaluations.push(read);
            }
        }
        Ok(evaluations)
    }
}

impl Reader {
    /// One row of planes and one turn per leaf; rows beyond them keep what they hold.
    fn encode(&self, leaves: &[Leaf], planes: &mut [f32], turns: &mut Vec<Turn>) {
        turns.clear();
        for (leaf, row) in leaves.iter().zip(planes.as_chunks_mut::<ROW>().0) {
            let history = leaf.history();
            let encoded = InputPlanes::encode(
                self.format.input,
                self.history_fill,
                &leaf.position,
                |back| history.get(back),
            );
            encoded.write(row);
            turns.push(encoded.turn);
        }
    }

    fn evaluation(
        &self,
        leaf: &Leaf,
        turn: Turn,
        row: usize,
        outputs: &Outputs,
        params: &EvalParams,
    ) -> Result<Evaluation, EvalError> {
        let not_a_number = |what| EvalError::NotANumber {
            network: self.name.clone(),
            what,
            fen: leaf.position.to_fen(true),
        };
        let wdl = self
            .wdl(row, outputs)
            .ok_or_else(|| not_a_number("a value"))?;
        let logits = self.logits(leaf, turn, row, outputs)?;
        if logits.iter().any(|logit| !logit.is_finite()) {
            return Err(not_a_number("a policy"));
        }
        let moves_left = match self.format.moves_left {
            true => {
                let plies = outputs.moves_left.get(row).copied().unwrap_or(f32::NAN);
                if !plies.is_finite() {
                    return Err(not_a_number("moves left"));
                }
                Some(plies.max(0.0))
            }
            false => None,
        };
        Ok(Evaluation {
            wdl,
            policy: Policy::softmax(logits, params.policy_temperature),
            moves_left,
        })
    }

    /// Softmax of three logits or tanh of one; `None` if that is no number.
    fn wdl(&self, row: usize, outputs: &Outputs) -> Option<Wdl> {
        let wdl = if self.format.wdl {
            let logits = outputs.value.get(3 * row..3 * row + 3)?;
            let p = Policy::softmax(logits.to_vec(), 1.0).0;
            Wdl {
                win: *p.first()?,
                draw: *p.get(1)?,
                loss: *p.get(2)?,
            }
        } else {
            Wdl::from_q_d(outputs.value.get(row)?.tanh(), 0.0)
        };
        wdl.is_finite().then_some(wdl)
    }

    fn logits(
        &self,
        leaf: &Leaf,
        turn: Turn,
        row: usize,
        outputs: &Outputs,
    ) -> Result<Vec<f32>, EvalError> {
        let map = self.format.policy;
        let mover = leaf.position.turn();
        let width = map.outputs();
        let logits = outputs
            .policy
            .get(row * width..(row + 1) * width)
            .unwrap_or_default();
        leaf.moves
            .iter()
            .map(|&m| {
                let index = move_index(m, mover, turn);
                let logit = index.and_then(|index| logits.get(map.output(index)));
                logit.copied().ok_or_else(|| EvalError::Backend {
                    backend: self.name.clone(),
                    reason: format!("no policy output for {m} in {}", leaf.position.to_fen(true)),
                })
            })
            .collect()
    }
}
