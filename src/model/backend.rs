//! Networks as backends: leaves are encoded, run in padded minibatches, and the outputs read back as
//! evaluations. Knows no search.

use parking_lot::Mutex;
use tch::Device;

use crate::encode::{HistoryFill, InputPlanes, POLICY_SIZE, Turn, move_index};
use crate::eval::{
    Attributes, Backend, EvalError, EvalParams, Evaluation, Evaluator, Leaf, OpenPolicy, Policy,
    Wdl,
};

use super::error::ModelError;
use super::format::NetFormat;
use super::runner::{ROW, Runner};
use super::settings::{ModelOptions, device, device_name};
use super::torch::Outputs;
use super::weights::NetworkWeights;

const MAX_BATCH_CPU: usize = 256;
const MAX_BATCH_GPU: usize = 1024;
const PREFERRED_BATCH_CPU: usize = 16;
const PREFERRED_BATCH_GPU: usize = 256;

/// Networks up to this size are run by the search workers themselves on a CPU: nothing is handed from
/// core to core, and a minibatch of 16 takes some 20 ms at most, so a search still stops at once.
const MOST_INLINE_PARAMETERS: usize = 4_000_000;

/// A network on a device; see [`super::load_backend`].
pub struct TorchBackend {
    attributes: Attributes,
    /// It may move between threads but not be used by two: evaluators take clones.
    runner: Mutex<Runner>,
    reader: Reader,
}

/// What is needed to get from leaves to planes and from outputs to evaluations.
#[derive(Clone, Debug)]
struct Reader {
    name: String,
    format: NetFormat,
    history_fill: HistoryFill,
}

/// What size of network, device and options decide; the rest is to be filled in.
pub fn attributes(gpu: bool, parameters: usize, options: &ModelOptions) -> Attributes {
    let max_batch = if gpu { MAX_BATCH_GPU } else { MAX_BATCH_CPU };
    Attributes {
        name: String::new(),
        device: String::new(),
        precision: String::new(),
        preferred_batch: match options.minibatch_size {
            0 if gpu => PREFERRED_BATCH_GPU,
            0 => PREFERRED_BATCH_CPU,
            size => size.min(max_batch),
        },
        max_batch,
        evaluators: if gpu { 2 } else { options.threads },
        has_wdl: false,
        has_moves_left: false,
        inline: !gpu && parameters <= MOST_INLINE_PARAMETERS,
        cached: true,
    }
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
            tch::set_num_threads(1);
        }
        let _guard = tch::no_grad_guard();
        let attributes = attributes(gpu, weights.parameters(), options);
        let preferred = attributes.preferred_batch;
        let (mut runner, precision) = Runner::new(weights, device, options.precision, preferred)?;
        runner.warm_up(preferred)?;
        let attributes = Attributes {
            name: weights.name.clone(),
            device: device_name(device),
            precision: precision.name().to_owned(),
            has_wdl: weights.format.wdl,
            has_moves_left: weights.format.moves_left,
            ..attributes
        };
        Ok(TorchBackend {
            attributes,
            runner: Mutex::new(runner),
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
            runner: self.runner.lock().clone(),
            reader: self.reader.clone(),
            max_batch: self.attributes.max_batch,
            planes: Vec::new(),
            turns: Vec::new(),
            threads_set: self.attributes.device != "cpu",
        }))
    }
}

struct TorchEvaluator {
    runner: Runner,
    reader: Reader,
    max_batch: usize,
    planes: Vec<f32>,
    turns: Vec<Turn>,
    /// On a CPU, one intra-op thread for each evaluator: several spin at barriers. OpenMP keeps the number
    /// for each thread, so an evaluator sets it on the one it finds itself on.
    threads_set: bool,
}

impl Evaluator for TorchEvaluator {
    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        params: &EvalParams,
    ) -> Result<Vec<Evaluation>, EvalError> {
        self.read(leaves, |reader, leaf, turn, row, outputs| {
            reader.evaluation(leaf, turn, row, outputs, params)
        })
    }

    fn open_policy(&mut self, leaves: &[Leaf]) -> Result<Option<Vec<OpenPolicy>>, EvalError> {
        self.read(leaves, Reader::open_policy).map(Some)
    }
}

impl TorchEvaluator {
    /// Runs leaves and reads something from the outputs of each.
    fn read<T>(
        &mut self,
        leaves: &[Leaf],
        read: impl Fn(&Reader, &Leaf, Turn, usize, &Outputs) -> Result<T, EvalError>,
    ) -> Result<Vec<T>, EvalError> {
        let _guard = tch::no_grad_guard();
        if !std::mem::replace(&mut self.threads_set, true) {
            tch::set_num_threads(1);
        }
        let mut all = Vec::with_capacity(leaves.len());
        for chunk in leaves.chunks(self.max_batch) {
            let size = self.runner.padded(chunk.len());
            self.planes.resize(size * ROW, 0.0);
            self.reader.encode(chunk, &mut self.planes, &mut self.turns);
            let outputs =
                self.runner
                    .forward(&self.planes, size)
                    .map_err(|e| EvalError::Backend {
                        backend: self.reader.name.clone(),
                        reason: e.to_string(),
                    })?;
            for (row, (leaf, &turn)) in chunk.iter().zip(&self.turns).enumerate() {
                all.push(read(&self.reader, leaf, turn, row, &outputs)?);
            }
        }
        Ok(all)
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
        let logits = self.policy_row(row, outputs);
        let map = self.format.policy;
        self.indices(leaf, turn)?
            .into_iter()
            .map(|index| {
                let logit = logits.get(map.output(index)).copied();
                logit.ok_or_else(|| EvalError::Backend {
                    backend: self.name.clone(),
                    reason: format!("{} policy outputs, none for index {index}", logits.len()),
                })
            })
            .collect()
    }

    fn policy_row<'a>(&self, row: usize, outputs: &'a Outputs) -> &'a [f32] {
        let width = self.format.policy.outputs();
        let range = row * width..(row + 1) * width;
        outputs.policy.get(range).unwrap_or_default()
    }

    /// The policy index of each legal move.
    fn indices(&self, leaf: &Leaf, turn: Turn) -> Result<Vec<u16>, EvalError> {
        let index = |&m| {
            move_index(m, leaf.position.turn(), turn).ok_or_else(|| EvalError::Backend {
                backend: self.name.clone(),
                reason: format!("no policy output for {m} in {}", leaf.position.to_fen(true)),
            })
        };
        leaf.moves.iter().map(index).collect()
    }

    /// The 1858 moves that an Lc0 network can name; what else its map has room for is no move.
    fn open_policy(
        &self,
        leaf: &Leaf,
        turn: Turn,
        row: usize,
        outputs: &Outputs,
    ) -> Result<OpenPolicy, EvalError> {
        let row = self.policy_row(row, outputs);
        let output = |index| row.get(self.format.policy.output(index)).copied();
        let logits = (0..POLICY_SIZE as u16).map_while(output).collect();
        let legal = self.indices(leaf, turn)?;
        Ok(OpenPolicy {
            logits,
            legal: legal.into_iter().map(usize::from).collect(),
        })
    }
}
