//! Loss and gradients of a minibatch, computed by several threads that share the weights. Each takes a fixed
//! part of the rows and one libtorch thread, and the parts are added in their order: the sum does not depend
//! on who was faster. Knows no optimiser.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, Sender, bounded};
use tch::{Kind, TchError, Tensor};

use super::batch::Batch;
use super::config::Arithmetic;
use super::games::GameBatch;
use super::kind::{AnyBatch, ModelConfig, Network};
use crate::encode::FEATURES;
use crate::encode::game_tokens::PAD;
use crate::model::gpt::Gpt;
use crate::model::transformer::Transformer;

type Result<T> = std::result::Result<T, TchError>;

/// How the parts of the loss are weighed.
#[derive(Clone, Copy, Debug)]
pub struct LossWeights {
    pub value: f64,
    pub moves_left: f64,
}

/// Sums over the positions of a minibatch, or over the tokens to predict, which are policies without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Positions.
    pub positions: u64,
    /// Positions with a policy label.
    pub policies: u64,
    /// Cross-entropy of the policy, in nats.
    pub policy: f64,
    /// Entropy of the policy's targets: the least the cross-entropy can be.
    pub policy_floor: f64,
    /// Cross-entropy of the value, in nats.
    pub value: f64,
    /// Squared error of Q = W − L.
    pub q_error: f64,
    /// Huber loss of the moves left, in units of 20 plies.
    pub moves_left: f64,
    /// How often the highest policy output was the teacher's choice.
    pub best: f64,
}

impl Sums {
    /// Adds another part.
    pub fn add(&mut self, other: &Sums) {
        self.positions += other.positions;
        self.policies += other.policies;
        self.policy += other.policy;
        self.policy_floor += other.policy_floor;
        self.value += other.value;
        self.q_error += other.q_error;
        self.moves_left += other.moves_left;
        self.best += other.best;
    }

    /// The loss that is minimised, a mean over positions.
    pub fn loss(&self, weights: LossWeights) -> f64 {
        (self.policy + weights.value * self.value + weights.moves_left * self.moves_left)
            / self.positions.max(1) as f64
    }

    /// True unless something is no number.
    pub fn is_finite(&self) -> bool {
        (self.policy + self.value + self.moves_left).is_finite()
    }
}

/// Where a row has no move, `[B, M]`.
fn illegal(batch: &Batch) -> Result<Tensor> {
    Tensor::f_from_slice(&batch.legal)?
        .f_reshape([batch.size as i64, batch.most_moves as i64])?
        .f_logical_not()
}

/// The legal moves' logits `[B, M]` in fp32, −∞ where a row has no move, of a network's policy outputs
/// `[B, SQUARE_POLICY]`. Their softmax is what a search takes for priors.
///
/// # Errors
/// When libtorch refuses.
pub fn legal_logits(policy: &Tensor, batch: &Batch) -> Result<Tensor> {
    let index = Tensor::f_from_slice(&batch.outputs)?
        .f_reshape([batch.size as i64, batch.most_moves as i64])?;
    policy
        .f_to_kind(Kind::Float)?
        .f_gather(1, &index, false)?
        .f_masked_fill(&illegal(batch)?, f64::NEG_INFINITY)
}

/// Mean loss over `total` of what is counted in `batch`, as a tensor, and the sums.
fn loss(
    network: &Network,
    batch: &AnyBatch,
    kind: Kind,
    weights: LossWeights,
    total: usize,
) -> Result<(Tensor, Sums)> {
    match (network, batch) {
        (Network::Transformer(network), AnyBatch::Positions(batch)) => {
            position_loss(network, batch, kind, weights, total)
        }
        (Network::Gpt(network), AnyBatch::Games(batch)) => token_loss(network, batch, total),
        _ => Err(TchError::Torch(
            "a minibatch of another kind of network".to_owned(),
        )),
    }
}

fn token_loss(network: &Gpt, batch: &GameBatch, total: usize) -> Result<(Tensor, Sums)> {
    let shape = [batch.size as i64, batch.length as i64];
    let tokens = Tensor::f_from_slice(&batch.tokens)?.f_reshape(shape)?;
    let targets = Tensor::f_from_slice(&batch.targets)?; // [B·T]
    let wanted = targets
        .f_ne(i64::from(PAD))?
        .f_nonzero()?
        .f_squeeze_dim(1)?;
    let logits = network
        .forward(&tokens)?
        .f_to_kind(Kind::Float)?
        .f_flatten(0, 1)?
        .f_index_select(0, &wanted)?; // [counted, V]
    let targets = targets.f_index_select(0, &wanted)?;
    let sum = logits.f_cross_entropy_loss::<Tensor>(
        &targets,
        None,
        tch::Reduction::Sum,
        i64::from(PAD),
        0.0,
    )?;
    let best = {
        let _guard = tch::no_grad_guard();
        let right = logits.f_argmax(1, false)?.f_eq_tensor(&targets)?;
        right.f_sum(Kind::Double)?.f_double_value(&[])?
    };
    let counted = batch.counted() as u64;
    let sums = Sums {
        positions: counted,
        policies: counted,
        policy: sum.f_double_value(&[])?,
        best,
        ..Sums::default()
    };
    Ok((sum.f_mul_scalar(1.0 / total.max(1) as f64)?, sums))
}

fn position_loss(
    network: &Transformer,
    batch: &Batch,
    kind: Kind,
    weights: LossWeights,
    total: usize,
) -> Result<(Tensor, Sums)> {
    let (b, m) = (batch.size as i64, batch.most_moves as i64);
    let tokens = Tensor::f_from_slice(&batch.tokens)?
        .f_reshape([b, 64, FEATURES as i64])?
        .f_to_kind(kind)?;
    let outputs = network.forward(&tokens)?;

    let logits = legal_logits(&outputs.policy, batch)?;
    let log_policy = logits
        .f_log_softmax(1, None::<Kind>)?
        .f_masked_fill(&illegal(batch)?, 0.0)?; // [B, M]
    let target = Tensor::f_from_slice(&batch.policy)?.f_reshape([b, m])?;
    let policy = target.f_mul(&log_policy)?.f_sum(None::<Kind>)?.f_neg()?;

    let log_value = outputs
        .value
        .f_to_kind(Kind::Float)?
        .f_log_softmax(1, None::<Kind>)?;
    let value_target = Tensor::f_from_slice(&batch.value)?.f_reshape([b, 3])?;
    let value = value_target
        .f_mul(&log_value)?
        .f_sum(None::<Kind>)?
        .f_neg()?;

    let mut sum = policy.f_add(&value.f_mul_scalar(weights.value)?)?;
    let mut sums = Sums {
        positions: batch.size as u64,
        policies: batch.best.iter().filter(|&&best| best >= 0).count() as u64,
        policy: policy.f_double_value(&[])?,
        policy_floor: entropy(&batch.policy),
        value: value.f_double_value(&[])?,
        ..Sums::default()
    };
    if let Some(plies) = &outputs.moves_left {
        let target = Tensor::f_from_slice(&batch.plies_left)?.f_mul_scalar(0.05)?;
        let plies = plies.f_to_kind(Kind::Float)?.f_mul_scalar(0.05)?;
        let huber = plies.f_huber_loss(&target, tch::Reduction::Sum, 1.0)?;
        sums.moves_left = huber.f_double_value(&[])?;
        sum = sum.f_add(&huber.f_mul_scalar(weights.moves_left)?)?;
    }
    let _guard = tch::no_grad_guard();
    let best = Tensor::f_from_slice(&batch.best)?;
    sums.best = logits
        .f_argmax(1, false)?
        .f_eq_tensor(&best)?
        .f_sum(Kind::Double)?
        .f_double_value(&[])?;
    let q = |wdl: &Tensor| wdl.f_select(1, 0)?.f_sub(&wdl.f_select(1, 2)?);
    sums.q_error = q(&log_value.f_exp()?)?
        .f_sub(&q(&value_target)?)?
        .f_square()?
        .f_sum(Kind::Double)?
        .f_double_value(&[])?;
    drop(_guard);
    Ok((sum.f_mul_scalar(1.0 / total.max(1) as f64)?, sums))
}

fn entropy(policy: &[f32]) -> f64 {
    let terms = policy.iter().filter(|&&p| p > 0.0);
    -terms
        .map(|&p| f64::from(p) * f64::from(p).ln())
        .sum::<f64>()
}

enum Work {
    /// Part of a minibatch in which so much is counted.
    Train(AnyBatch, usize),
    /// The same without gradients, on these weights.
    Evaluate(AnyBatch, Vec<Tensor>),
}

type Answer = Result<(Vec<Tensor>, Sums)>;

/// The threads.
pub struct Workers {
    lanes: Vec<(Sender<Work>, Receiver<Answer>)>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `threads` threads on `weights`, in the order of [`ModelConfig::parameters`]. They see what the
    /// optimiser does to them.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub fn new(
        threads: usize,
        config: &ModelConfig,
        weights: &[Tensor],
        arithmetic: Arithmetic,
        loss_weights: LossWeights,
    ) -> std::io::Result<Workers> {
        // OpenMP's threads would spin at barriers; new threads inherit this.
        tch::set_num_threads(1);
        let config = Arc::new(config.clone());
        let mut workers = Workers {
            lanes: Vec::new(),
            threads: Vec::new(),
        };
        for index in 0..threads.max(1) {
            let (work, works) = bounded::<Work>(1);
            let (answer, answers) = bounded(1);
            let leaves: Vec<Tensor> = weights
                .iter()
                .map(|weight| weight.detach().set_requires_grad(true))
                .collect();
            let config = Arc::clone(&config);
            let kind = match arithmetic {
                Arithmetic::Fp32 => Kind::Float,
                Arithmetic::Bf16 => Kind::BFloat16,
            };
            let thread = std::thread::Builder::new()
                .name(format!("gradient-{index}"))
                .spawn(move || {
                    tch::set_num_threads(1);
                    while let Ok(work) = works.recv() {
                        let done = match work {
                            Work::Train(batch, total) => {
                                train(&config, &leaves, kind, loss_weights, &batch, total)
                            }
                            Work::Evaluate(batch, weights) => {
                                evaluate(&config, &weights, kind, loss_weights, &batch)
                            }
                        };
                        if answer.send(done).is_err() {
                            break;
                        }
                    }
                })?;
            workers.lanes.push((work, answers));
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Gradients of the mean loss over a minibatch, in the order of the weights, and the sums.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn gradients(&self, batch: &AnyBatch) -> Result<(Vec<Tensor>, Sums)> {
        let total = batch.counted();
        self.share(batch, |part| Work::Train(part, total))
    }

    /// Sums over a minibatch under `weights`, without gradients.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn evaluate(&self, batch: &AnyBatch, weights: &[Tensor]) -> Result<Sums> {
        let weights = || weights.iter().map(Tensor::shallow_clone).collect();
        Ok(self.share(batch, |part| Work::Evaluate(part, weights()))?.1)
    }

    fn share(
        &self,
        batch: &AnyBatch,
        work: impl Fn(AnyBatch) -> Work,
    ) -> Result<(Vec<Tensor>, Sums)> {
        let gone = || TchError::Torch("a gradient thread ended early".to_owned());
        let count = self.lanes.len();
        let mut asked = Vec::new();
        for (index, lane) in self.lanes.iter().enumerate() {
            let rows = batch.rows();
            let (from, to) = (rows * index / count, rows * (index + 1) / count);
            if to > from {
                lane.0
                    .send(work(batch.part(from, to)))
                    .map_err(|_| gone())?;
                asked.push(lane);
            }
        }
        // Everyone's answer is taken before any is looked at, so that none is left for the next time.
        let answers: Vec<_> = asked.iter().map(|lane| lane.1.recv()).collect();
        let mut total: Option<(Vec<Tensor>, Sums)> = None;
        for answer in answers {
            let (gradients, sums) = answer.map_err(|_| gone())??;
            total = Some(match total {
                None => (gradients, sums),
                Some((mut all, mut so_far)) => {
                    for (sum, part) in all.iter_mut().zip(&gradients) {
                        *sum = sum.f_add(part)?;
                    }
                    so_far.add(&sums);
                    (all, so_far)
                }
            });
        }
        total.ok_or_else(|| TchError::Torch("an empty minibatch".to_owned()))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.lanes.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has been reported by its missing answer.
            let _ = thread.join();
        }
    }
}

fn network(config: &ModelConfig, weights: &[Tensor], kind: Kind) -> Result<Network> {
    let mut tensors = HashMap::new();
    for (parameter, weight) in config.parameters().into_iter().zip(weights) {
        tensors.insert(parameter.name, weight.f_to_kind(kind)?);
    }
    Network::new(config, &tensors)
}

fn train(
    config: &ModelConfig,
    leaves: &[Tensor],
    kind: Kind,
    weights: LossWeights,
    batch: &AnyBatch,
    total: usize,
) -> Answer {
    let network = network(config, leaves, kind)?;
    let (loss, sums) = loss(&network, batch, kind, weights, total)?;
    let gradients = Tensor::f_run_backward(&[loss], leaves, false, false)?;
    Ok((gradients, sums))
}

fn evaluate(
    config: &ModelConfig,
    weights: &[Tensor],
    kind: Kind,
    loss_weights: LossWeights,
    batch: &AnyBatch,
) -> Answer {
    let _guard = tch::no_grad_guard();
    let network = network(config, weights, kind)?;
    let (_, sums) = loss(&network, batch, kind, loss_weights, batch.counted())?;
    Ok((Vec::new(), sums))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chess::Position;
    use crate::eval::{Backend, EvalParams};
    use crate::model::ModelOptions;
    use crate::model::transformer::{TransformerBackend, TransformerFile};
    use crate::options::Options;
    use crate::train::batch::Batch;
    use crate::train::config::TrainConfig;
    use crate::train::{
        GameRecord, Ply, PolicyLabel, Sample, Source, TrainingGame, WdlLabel, checkpoint, trainer,
    };

    fn config() -> TrainConfig {
        toml::from_str(crate::train::config::tests::TINY).unwrap()
    }

    /// The positions of a game with a promotion, castling and en passant, labelled.
    fn samples() -> Vec<Sample> {
        let moves = "e2e4 a7a6 e4e5 d7d5 e5d6 g8f6 d6c7 e7e6 g1f3 f8e7 f1e2 e8h8 c7b8q a6a5";
        let mut record = GameRecord::new(Position::startpos(), Source::Engine);
        let mut position = Position::startpos();
        for text in moves.split_whitespace() {
            let played = position.parse_uci(text).unwrap();
            record.plies.push(Ply {
                wdl: WdlLabel::new(300, 500, 200),
                policy: PolicyLabel::Scores(vec![(played, 30)]),
                ..Ply::played(played)
            });
            position.play(played);
        }
        Arc::new(TrainingGame::new(record)).samples().collect()
    }

    #[test]
    fn training_and_search_see_the_same_priors() {
        let config = config();
        let weights = trainer::initial(&config.model, 5).unwrap();
        let samples = samples();
        let batch = Batch::encode(&samples, &config.data, None);
        let Network::Transformer(network) = network(&config.model, &weights, Kind::Float).unwrap()
        else {
            panic!("not a transformer");
        };
        let ModelConfig::Transformer(model) = &config.model else {
            panic!("not a transformer");
        };
        let _guard = tch::no_grad_guard();
        let tokens = Tensor::from_slice(&batch.tokens).reshape([-1, 64, FEATURES as i64]);
        let outputs = network.forward(&tokens).unwrap();
        let trained = legal_logits(&outputs.policy, &batch)
            .unwrap()
            .softmax(1, None::<Kind>);

        let names = config.model.parameters().into_iter().map(|p| p.name);
        let numbers = weights.iter().map(|w| checkpoint::numbers(w).unwrap());
        let file = TransformerFile {
            name: "net".to_owned(),
            config: model.clone(),
            manifest: serde_json::Value::Null,
            tensors: names.zip(numbers).collect(),
        };
        let options = Options {
            device: "cpu".to_owned(),
            ..Options::default()
        };
        let options = ModelOptions::new(&options).unwrap();
        let backend = TransformerBackend::new(&file, &options).unwrap();
        let leaves: Vec<_> = samples.iter().map(Sample::leaf).collect();
        let mut evaluator = backend.evaluator().unwrap();
        let searched = evaluator.evaluate(&leaves, &EvalParams::default()).unwrap();
        for (row, evaluation) in searched.iter().enumerate() {
            for (index, &prior) in evaluation.policy.0.iter().enumerate() {
                let p = trained.double_value(&[row as i64, index as i64]);
                assert!(
                    (p - f64::from(prior)).abs() < 1e-6,
                    "{row} {index}: {p} {prior}"
                );
            }
            let rest = evaluation.policy.0.len() as i64..batch.most_moves as i64;
            assert!(
                rest.into_iter()
                    .all(|i| trained.double_value(&[row as i64, i]) == 0.0)
            );
        }
    }

    #[test]
    fn the_parts_of_a_minibatch_give_the_gradient_of_the_whole() {
        let config = config();
        let weights = trainer::initial(&config.model, 5).unwrap();
        let batch = AnyBatch::Positions(Batch::encode(&samples(), &config.data, Some(1)));
        let loss = LossWeights {
            value: 1.0,
            moves_left: 0.1,
        };
        let workers = |threads, arithmetic| {
            Workers::new(threads, &config.model, &weights, arithmetic, loss).unwrap()
        };
        let (one, sums) = workers(1, Arithmetic::Fp32).gradients(&batch).unwrap();
        let (three, again) = workers(3, Arithmetic::Fp32).gradients(&batch).unwrap();
        let distance = |a: &[Tensor], b: &[Tensor]| {
            let parts = a
                .iter()
                .zip(b)
                .map(|(a, b)| (a - b).abs().max().double_value(&[]));
            parts.fold(0.0, f64::max)
        };
        assert!(distance(&one, &three) < 1e-5, "{}", distance(&one, &three));
        assert_eq!((sums.positions, sums.best), (14, again.best));
        assert!((sums.loss(loss) - again.loss(loss)).abs() < 1e-5);
        let (half, _) = workers(2, Arithmetic::Bf16).gradients(&batch).unwrap();
        let off = distance(&one, &half);
        assert!(off > 0.0 && off < 0.1, "{off}");
        // A step against the gradient lowers the loss.
        let lower: Vec<Tensor> = weights
            .iter()
            .zip(&one)
            .map(|(w, g)| w - g * 0.01)
            .collect();
        let after = workers(1, Arithmetic::Fp32)
            .evaluate(&batch, &lower)
            .unwrap();
        assert!(after.loss(loss) < sums.loss(loss));
    }
}
