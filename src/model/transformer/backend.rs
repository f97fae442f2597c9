//! The transformer as a backend: leaves become tokens, outputs evaluations. Knows no search.

use std::collections::HashMap;

use parking_lot::Mutex;
use tch::{Device, Kind, Tensor};

use super::{CpuTransformer, Transformer, TransformerFile};
use crate::encode::{SQUARE_POLICY, SquareTokens, TOKENS_ROW, square_policy_output};
use crate::eval::{
    Attributes, Backend, EvalError, EvalParams, Evaluation, Evaluator, Leaf, OpenPolicy, Policy,
    Wdl,
};
use crate::model::backend::attributes;
use crate::model::settings::{device, device_name};
use crate::model::weight_file::{NetworkConfig, WeightFile};
use crate::model::{ModelError, ModelOptions, Precision};

/// A transformer on a device; see [`crate::model::load_backend`].
pub struct TransformerBackend {
    attributes: Attributes,
    network: Network,
}

/// Where the numbers are.
enum Network {
    /// In our own forward pass on CPU cores.
    Cpu(Mutex<CpuTransformer>),
    /// In libtorch. Tensors may move between threads but not be used by two: evaluators take clones.
    Torch {
        tensors: Mutex<HashMap<String, Tensor>>,
        config: super::Config,
        place: Place,
    },
}

#[derive(Clone, Copy)]
struct Place {
    device: Device,
    kind: Kind,
}

impl<C: NetworkConfig> WeightFile<C> {
    /// Every tensor by name, rounded to `storage` first, to be computed with in `kind`.
    pub(in crate::model) fn on_device(
        &self,
        device: Device,
        storage: Kind,
        kind: Kind,
    ) -> Result<HashMap<String, Tensor>, ModelError> {
        let mut tensors = HashMap::new();
        for parameter in self.config.parameters() {
            let values = self
                .tensors
                .get(&parameter.name)
                .map_or(&[][..], Vec::as_slice);
            let tensor = Tensor::f_from_slice(values)?
                .f_reshape(&parameter.shape)?
                .f_to_kind(storage)?
                .f_to_kind(kind)?
                .f_to_device(device)?;
            tensors.insert(parameter.name, tensor);
        }
        Ok(tensors)
    }
}

impl TransformerBackend {
    /// Puts a network on the device the options name, in their precision.
    ///
    /// # Errors
    /// When the device is missing or libtorch refuses.
    pub fn new(
        file: &TransformerFile,
        options: &ModelOptions,
    ) -> Result<TransformerBackend, ModelError> {
        let device = device(&options.device)?;
        if device == Device::Cpu {
            tch::set_num_threads(1);
        }
        let (kind, precision) = match (options.precision, device) {
            (Precision::Bf16, _) => (Kind::BFloat16, Precision::Bf16),
            (Precision::Fp16, Device::Cpu) => (Kind::Float, Precision::Fp16),
            (Precision::Fp16, _) | (Precision::Auto, Device::Cuda(_)) => {
                (Kind::Half, Precision::Fp16)
            }
            _ => (Kind::Float, Precision::Fp32),
        };
        let storage = match precision {
            Precision::Fp16 => Kind::Half,
            _ => kind,
        };
        let attributes = Attributes {
            name: file.name.clone(),
            device: device_name(device),
            precision: precision.name().to_owned(),
            has_wdl: true,
            has_moves_left: file.config.moves_left,
            ..attributes(device != Device::Cpu, file.parameters(), options)
        };
        let backend = |network| TransformerBackend {
            attributes,
            network,
        };
        if (device, precision) == (Device::Cpu, Precision::Fp32)
            && let Some(network) = CpuTransformer::new(&file.config, &file.tensors)
        {
            return Ok(backend(Network::Cpu(Mutex::new(network))));
        }
        let tensors = file.on_device(device, storage, kind)?;
        Ok(backend(Network::Torch {
            tensors: Mutex::new(tensors),
            config: file.config.clone(),
            place: Place { device, kind },
        }))
    }
}

impl Backend for TransformerBackend {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn evaluator(&self) -> Result<Box<dyn Evaluator>, EvalError> {
        let reader = Reader {
            name: self.attributes.name.clone(),
        };
        let (tensors, config, place) = match &self.network {
            Network::Cpu(network) => {
                return Ok(Box::new(CpuEvaluator {
                    network: network.lock().share(),
                    reader,
                }));
            }
            Network::Torch {
                tensors,
                config,
                place,
            } => (tensors, config, *place),
        };
        let network = Transformer::new(config, &tensors.lock());
        Ok(Box::new(TransformerEvaluator {
            network: network.map_err(|e| EvalError::Backend {
                backend: self.attributes.name.clone(),
                reason: e.to_string(),
            })?,
            reader,
            place,
            max_batch: self.attributes.max_batch,
            rows: Vec::new(),
            threads_set: place.device != Device::Cpu,
        }))
    }
}

/// What turns leaves into tokens and outputs into evaluations.
struct Reader {
    name: String,
}

impl Reader {
    fn tokens(&self, leaf: &Leaf) -> SquareTokens {
        let history = leaf.history();
        SquareTokens::encode(&leaf.position, |back| history.get(back))
    }

    /// Logits of the legal moves and of win, draw and loss.
    fn evaluation(
        &self,
        leaf: &Leaf,
        logits: Vec<f32>,
        value: [f32; 3],
        moves_left: Option<f32>,
        params: &EvalParams,
    ) -> Result<Evaluation, EvalError> {
        let what = if logits.iter().any(|logit| !logit.is_finite()) {
            Some("a policy")
        } else if value.iter().any(|logit| !logit.is_finite()) {
            Some("a value")
        } else if moves_left.is_some_and(|plies| !plies.is_finite()) {
            Some("moves left")
        } else {
            None
        };
        if let Some(what) = what {
            return Err(EvalError::NotANumber {
                network: self.name.clone(),
                what,
                fen: leaf.position.to_fen(true),
            });
        }
        let p = Policy::softmax(value.to_vec(), 1.0).0;
        Ok(Evaluation {
            wdl: Wdl {
                win: p[0],
                draw: p[1],
                loss: p[2],
            },
            policy: Policy::softmax(logits, params.policy_temperature),
            moves_left,
        })
    }
}

struct CpuEvaluator {
    network: CpuTransformer,
    reader: Reader,
}

impl Evaluator for CpuEvaluator {
    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        params: &EvalParams,
    ) -> Result<Vec<Evaluation>, EvalError> {
        let evaluate = |leaf: &Leaf| {
            let tokens = self.reader.tokens(leaf);
            let moves = leaf.moves.iter();
            let outputs = moves.map(|&m| square_policy_output(&leaf.position, m, false));
            let mut logits = Vec::with_capacity(leaf.moves.len());
            let answer = self.network.forward(&tokens, outputs, &mut logits);
            self.reader
                .evaluation(leaf, logits, answer.value, answer.moves_left, params)
        };
        leaves.iter().map(evaluate).collect()
    }

    fn open_policy(&mut self, leaves: &[Leaf]) -> Result<Option<Vec<OpenPolicy>>, EvalError> {
        let open = |leaf: &Leaf| {
            let mut logits = Vec::with_capacity(SQUARE_POLICY);
            let all = 0..SQUARE_POLICY;
            self.network
                .forward(&self.reader.tokens(leaf), all, &mut logits);
            let output = |&m| square_policy_output(&leaf.position, m, false);
            OpenPolicy {
                logits,
                legal: leaf.moves.iter().map(output).collect(),
            }
        };
        Ok(Some(leaves.iter().map(open).collect()))
    }
}

struct TransformerEvaluator {
    network: Transformer,
    reader: Reader,
    place: Place,
    max_batch: usize,
    /// `[B, 64, F]`
    rows: Vec<f32>,
    /// On a CPU, one intra-op thread for each evaluator; OpenMP keeps the number for each thread.
    threads_set: bool,
}

/// Outputs on the host.
struct Numbers {
    policy: Vec<f32>,
    value: Vec<f32>,
    moves_left: Vec<f32>,
}

impl TransformerEvaluator {
    fn forward(&self, batch: usize) -> Result<Numbers, tch::TchError> {
        let tokens = Tensor::f_from_slice(&self.rows[..batch * TOKENS_ROW])?
            .f_reshape([batch as i64, 64, -1])?
            .f_to_device(self.place.device)?
            .f_to_kind(self.place.kind)?;
        let outputs = self.network.forward(&tokens)?;
        let numbers = |tensor: &Tensor| {
            let tensor = tensor
                .f_to_kind(Kind::Float)?
                .f_to_device(Device::Cpu)?
                .f_contiguous()?;
            let mut values = vec![0.0_f32; tensor.numel()];
            let count = values.len();
            tensor.f_copy_data(&mut values, count)?;
            Ok::<_, tch::TchError>(values)
        };
        Ok(Numbers {
            policy: numbers(&outputs.policy)?,
            value: numbers(&outputs.value)?,
            moves_left: outputs
                .moves_left
                .as_ref()
                .map_or(Ok(Vec::new()), numbers)?,
        })
    }

    fn evaluation(
        &self,
        leaf: &Leaf,
        row: usize,
        numbers: &Numbers,
        params: &EvalParams,
    ) -> Result<Evaluation, EvalError> {
        let logits = &numbers.policy[row * SQUARE_POLICY..(row + 1) * SQUARE_POLICY];
        let output = |&m| logits[square_policy_output(&leaf.position, m, false)];
        let logits = leaf.moves.iter().map(output).collect();
        let value = std::array::from_fn(|i| numbers.value[3 * row + i]);
        let moves_left = numbers.moves_left.get(row).copied();
        self.reader
            .evaluation(leaf, logits, value, moves_left, params)
    }
}

impl Evaluator for TransformerEvaluator {
    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        params: &EvalParams,
    ) -> Result<Vec<Evaluation>, EvalError> {
        self.read(leaves, |this, leaf, row, numbers| {
            this.evaluation(leaf, row, numbers, params)
        })
    }

    fn open_policy(&mut self, leaves: &[Leaf]) -> Result<Option<Vec<OpenPolicy>>, EvalError> {
        let open = |_: &Self, leaf: &Leaf, row: usize, numbers: &Numbers| {
            let output = |&m| square_policy_output(&leaf.position, m, false);
            Ok(OpenPolicy {
                logits: numbers.policy[row * SQUARE_POLICY..(row + 1) * SQUARE_POLICY].to_vec(),
                legal: leaf.moves.iter().map(output).collect(),
            })
        };
        self.read(leaves, open).map(Some)
    }
}

impl TransformerEvaluator {
    /// Runs leaves and reads something from the outputs of each.
    fn read<T>(
        &mut self,
        leaves: &[Leaf],
        read: impl Fn(&Self, &Leaf, usize, &Numbers) -> Result<T, EvalError>,
    ) -> Result<Vec<T>, EvalError> {
        let _guard = tch::no_grad_guard();
        if !std::mem::replace(&mut self.threads_set, true) {
            tch::set_num_threads(1);
        }
        let mut all = Vec::with_capacity(leaves.len());
        for chunk in leaves.chunks(self.max_batch) {
            self.rows.resize(chunk.len() * TOKENS_ROW, 0.0);
            let rows = self.rows.as_chunks_mut::<TOKENS_ROW>().0;
            for (leaf, row) in chunk.iter().zip(rows) {
                self.reader.tokens(leaf).write(row);
            }
            let numbers = self.forward(chunk.len()).map_err(|e| EvalError::Backend {
                backend: self.reader.name.clone(),
                reason: e.to_string(),
            })?;
            for (row, leaf) in chunk.iter().enumerate() {
                all.push(read(self, leaf, row, &numbers)?);
            }
        }
        Ok(all)
    }
}
