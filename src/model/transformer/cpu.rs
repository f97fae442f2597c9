//! The transformer's forward pass on one CPU core in fp32, without libtorch: the fast path of small networks in
//! search. Knows tokens as bit masks and outputs by number; neither files nor positions.
//!
//! Each position goes through a layer in a few passes whose activations stay in the second level cache:
//! matrix products over its 64 tokens with packed weights, attention head by head, norms fused with the
//! residual sum.

use std::collections::HashMap;
use std::sync::Arc;

use super::MOVES_LEFT_SCALE;
use super::config::{AttentionBias, Config, FfActivation, NormKind, NormPlace, ValueRead};
use super::kernels::{Attention, Norm, Normalize};
use crate::encode::{FEATURES, SquareTokens};
use crate::model::lanes::Isa;
use crate::model::matmul::{Activation, BLOCK, Buffer, Matmul};

/// An evaluator of a network: shared weights and its own scratch memory.
pub struct CpuTransformer {
    network: Arc<Network>,
    isa: Isa,
    scratch: Scratch,
}

/// What the network says of one position, from its side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    /// Logits of win, draw and loss.
    pub value: [f32; 3],
    /// Plies to the end of the game.
    pub moves_left: Option<f32>,
}

struct Network {
    width: usize,
    heads: usize,
    head_depth: usize,
    alpha: f32,
    place: NormPlace,
    /// `[FEATURES, d]`
    embed: Buffer,
    /// The learned positions and the bias of the embedding, `[64, d]`.
    positions: Buffer,
    embed_norm: Option<Norm>,
    layers: Vec<Layer>,
    last_norm: Option<Norm>,
    policy_width: usize,
    query: Matmul,
    key: Matmul,
    /// `[4, p]`
    promotion: Vec<f32>,
    value_tokens: Option<Matmul>,
    value_hidden: Matmul,
    value_output: Matmul,
    moves_left: Option<(Matmul, Matmul)>,
}

struct Layer {
    /// Queries come out divided by √k.
    qkv: Matmul,
    out: Matmul,
    /// `[h, 64, 64]`
    bias: Option<Buffer>,
    ff1: Matmul,
    ff2: Matmul,
    activation: Activation,
    norm1: Norm,
    norm2: Norm,
}

#[derive(Default)]
struct Scratch {
    /// `[64, d]`: the residual stream, its norm or a branch's output.
    stream: Buffer,
    branch: Buffer,
    normed: Buffer,
    /// `[64, 3, h, k]`
    qkv: Buffer,
    /// `[64, h, k]`
    mixed: Buffer,
    /// `[64, ff]`
    hidden: Buffer,
    /// `[k, 64]` in blocks of keys, `[64, k]` in blocks of value numbers, `[64, 64]`, of one head.
    keys: Buffer,
    values: Buffer,
    logits: Buffer,
    /// `[64, p]`
    query: Buffer,
    key: Buffer,
    read: Buffer,
    wide: Buffer,
    out: Buffer,
}

impl CpuTransformer {
    /// The network if this path is for it: sizes in whole vectors, an activation and an attention bias that it
    /// has, on a processor with vector instructions.
    pub fn new(config: &Config, tensors: &HashMap<String, Vec<f32>>) -> Option<CpuTransformer> {
        let isa = Isa::detect();
        (isa != Isa::Portable)
            .then(|| CpuTransformer::with_isa(config, tensors, isa))
            .flatten()
    }

    /// As [`Self::new`] for a chosen instruction set.
    pub fn with_isa(
        config: &Config,
        tensors: &HashMap<String, Vec<f32>>,
        isa: Isa,
    ) -> Option<CpuTransformer> {
        Some(CpuTransformer {
            network: Arc::new(Network::new(config, tensors)?),
            isa,
            scratch: Scratch::default(),
        })
    }

    /// Another evaluator of the same weights.
    #[must_use]
    pub fn share(&self) -> CpuTransformer {
        CpuTransformer {
            network: Arc::clone(&self.network),
            isa: self.isa,
            scratch: Scratch::default(),
        }
    }

    /// Evaluates one position on the calling thread. `logits` receives the policy logits of `outputs`, numbers
    /// of policy outputs as [`crate::encode::square_policy_output`] gives them.
    pub fn forward(
        &mut self,
        tokens: &SquareTokens,
        outputs: impl Iterator<Item = usize>,
        logits: &mut Vec<f32>,
    ) -> Answer {
        let network = Arc::clone(&self.network);
        let (isa, scratch) = (self.isa, &mut self.scratch);
        network.reserve(scratch);
        network.embed(isa, tokens, scratch);
        for layer in &network.layers {
            network.layer(isa, layer, scratch);
        }
        let d = network.width;
        if let Some(norm) = &network.last_norm {
            let stream = &mut scratch.stream.as_mut_slice()[..64 * d];
            isa.run(Normalize::alone(stream, norm, d));
        }
        logits.clear();
        network.policy(isa, scratch, outputs, logits);
        Answer {
            value: network.value(isa, scratch),
            moves_left: network.moves_left(isa, scratch),
        }
    }
}

/// True if `n` is a whole number of vectors.
fn whole(n: i64) -> bool {
    n > 0 && n % BLOCK as i64 == 0
}

fn activation(activation: FfActivation) -> Option<Activation> {
    match activation {
        FfActivation::Relu => Some(Activation::Relu),
        FfActivation::Mish => Some(Activation::Mish),
        _ => None,
    }
}

fn buffer(values: &[f32]) -> Buffer {
    let mut buffer = Buffer::zeroed(values.len());
    buffer.as_mut_slice()[..values.len()].copy_from_slice(values);
    buffer
}

impl Network {
    fn new(config: &Config, tensors: &HashMap<String, Vec<f32>>) -> Option<Network> {
        let activation = activation(config.activation)?;
        let sizes = [
            config.width,
            config.head_depth,
            config.ff,
            config.policy_width,
            config.value_hidden,
        ];
        let read = match config.value {
            ValueRead::Pooled => true,
            ValueRead::Tokens => whole(config.value_per_token),
        };
        if !sizes.into_iter().all(whole) || !read || config.attention_bias == AttentionBias::Smolgen
        {
            return None;
        }
        let (d, k) = (config.width as usize, config.head_depth as usize);
        let (heads, p) = (config.heads as usize, config.policy_width as usize);
        let take = |name: &str| tensors.get(name).map(Vec::as_slice);
        let matmul = |name: &str, inputs: usize, outputs: i64, scaled: usize, scale: f32| {
            let outputs = outputs as usize;
            let weight = take(&format!("{name}.weight"))?;
            let bias = take(&format!("{name}.bias"))?;
            let factor = |output: usize| if output < scaled { scale } else { 1.0 };
            let inside = |output: usize, input: usize| input < inputs && output < outputs;
            Some(Matmul::new(
                inputs,
                outputs,
                |output, input| match inside(output, input) {
                    true => weight[input * outputs + output] * factor(output),
                    false => 0.0,
                },
                |output| match inside(output, 0) {
                    true => bias[output] * factor(output),
                    false => 0.0,
                },
            ))
        };
        let plain = |name: &str, inputs: usize, outputs: i64| matmul(name, inputs, outputs, 0, 1.0);
        let norm = |name: &str| {
            Some(Norm {
                weight: buffer(take(&format!("{name}.weight"))?),
                bias: match config.norm_kind {
                    NormKind::Layer => Some(buffer(take(&format!("{name}.bias"))?)),
                    NormKind::Rms => None,
                },
            })
        };
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            let at = |part: &str| format!("layers.{layer}.{part}");
            let scale = (k as f32).sqrt().recip();
            layers.push(Layer {
                qkv: matmul(&at("qkv"), d, 3 * (heads * k) as i64, heads * k, scale)?,
                out: plain(&at("out"), heads * k, config.width)?,
                bias: match config.attention_bias {
                    AttentionBias::Learned => Some(buffer(take(&at("bias"))?)),
                    _ => None,
                },
                ff1: plain(&at("ff.1"), d, config.ff)?,
                ff2: plain(&at("ff.2"), config.ff as usize, config.width)?,
                activation,
                norm1: norm(&at("norm1"))?,
                norm2: norm(&at("norm2"))?,
            });
        }
        let mut positions = buffer(take("positions")?);
        let bias = take("embed.bias")?;
        for token in positions.as_mut_slice()[..64 * d].chunks_exact_mut(d) {
            for (x, b) in token.iter_mut().zip(bias) {
                *x += b;
            }
        }
        let promotion = take("policy.promotion")?;
        let post = config.norm == NormPlace::Post;
        let scale = (p as f32).sqrt().recip();
        let read = match config.value {
            ValueRead::Pooled => d,
            ValueRead::Tokens => 64 * config.value_per_token as usize,
        };
        Some(Network {
            width: d,
            heads,
            head_depth: k,
            alpha: config.alpha() as f32,
            place: config.norm,
            embed: buffer(take("embed.weight")?),
            positions,
            embed_norm: match post {
                true => Some(norm("embed.norm")?),
                false => None,
            },
            layers,
            last_norm: match post {
                true => None,
                false => Some(norm("norm")?),
            },
            policy_width: p,
            query: matmul("policy.query", d, config.policy_width, p, scale)?,
            key: plain("policy.key", d, config.policy_width)?,
            promotion: (0..4)
                .flat_map(|piece| (0..p).map(move |i| promotion[i * 4 + piece]))
                .collect(),
            value_tokens: match config.value {
                ValueRead::Pooled => None,
                ValueRead::Tokens => Some(plain("value.tokens", d, config.value_per_token)?),
            },
            value_hidden: plain("value.hidden", read, config.value_hidden)?,
            value_output: plain("value.output", config.value_hidden as usize, 3)?,
            moves_left: match config.moves_left {
                true => Some((
                    plain("moves_left.hidden", d, 32)?,
                    plain("moves_left.output", 32, 1)?,
                )),
                false => None,
            },
        })
    }

    fn reserve(&self, s: &mut Scratch) {
        let (d, inner) = (self.width, self.heads * self.head_depth);
        let ff = self.layers.iter().map(|l| l.ff1.outputs).max().unwrap_or(0);
        let read = self.value_tokens.as_ref().map_or(d, |t| 64 * t.outputs);
        for (buffer, size) in [
            (&mut s.stream, 64 * d),
            (&mut s.branch, 64 * d),
            (&mut s.normed, 64 * d),
            (&mut s.qkv, 64 * 3 * inner),
            (&mut s.mixed, 64 * inner),
            (&mut s.hidden, 64 * ff),
            (&mut s.keys, 64 * self.head_depth),
            (&mut s.values, 64 * self.head_depth),
            (&mut s.logits, 64 * 64),
            (&mut s.query, 64 * self.policy_width),
            (&mut s.key, 64 * self.policy_width),
            (&mut s.read, read.max(d)),
            (&mut s.wide, self.value_hidden.outputs.max(32)),
            (&mut s.out, BLOCK),
        ] {
            buffer.reserve(size);
        }
    }

    /// Sums the rows of the features that are set, instead of multiplying by them.
    fn embed(&self, isa: Isa, tokens: &SquareTokens, s: &mut Scratch) {
        let d = self.width;
        let stream = &mut s.stream.as_mut_slice()[..64 * d];
        stream.copy_from_slice(&self.positions.as_slice()[..64 * d]);
        let rows = self.embed.as_slice();
        let mut add = |square: usize, feature: usize, times: f32| {
            let row = &rows[feature * d..(feature + 1) * d];
            let token = &mut stream[square * d..(square + 1) * d];
            for (x, w) in token.iter_mut().zip(row) {
                *x += times * w;
            }
        };
        for (feature, &mask) in tokens.masks().iter().enumerate() {
            let mut rest = mask;
            while rest != 0 {
                add(rest.trailing_zeros() as usize, feature, 1.0);
                rest &= rest - 1;
            }
        }
        if tokens.rule50() != 0.0 {
            for square in 0..64 {
                add(square, FEATURES - 1, tokens.rule50());
            }
        }
        if let Some(norm) = &self.embed_norm {
            isa.run(Normalize::alone(stream, norm, d));
        }
    }

    fn layer(&self, isa: Isa, layer: &Layer, s: &mut Scratch) {
        let (d, size) = (self.width, 64 * self.width);
        let pre = self.place == NormPlace::Pre;
        let Scratch {
            stream,
            branch,
            normed,
            qkv,
            mixed,
            hidden,
            keys,
            values,
            logits,
            ..
        } = s;
        let stream = &mut stream.as_mut_slice()[..size];
        let branch = &mut branch.as_mut_slice()[..size];
        let normed = &mut normed.as_mut_slice()[..size];
        let none = Activation::None;
        for part in 0..2 {
            let norm = if part == 0 {
                &layer.norm1
            } else {
                &layer.norm2
            };
            if pre {
                isa.run(Normalize {
                    to: Some(&mut *normed),
                    ..Normalize::alone(stream, norm, d)
                });
            }
            let input: &[f32] = if pre { normed } else { stream };
            if part == 0 {
                layer.qkv.forward(isa, input, 64, qkv.as_mut_slice(), none);
                isa.run(Attention {
                    heads: self.heads,
                    depth: self.head_depth,
                    qkv: qkv.as_slice(),
                    bias: layer.bias.as_ref().map(Buffer::as_slice),
                    keys: keys.as_mut_slice(),
                    values: values.as_mut_slice(),
                    logits: logits.as_mut_slice(),
                    out: mixed.as_mut_slice(),
                });
                layer.out.forward(isa, mixed.as_slice(), 64, branch, none);
            } else {
                let hidden = hidden.as_mut_slice();
                layer.ff1.forward(isa, input, 64, hidden, layer.activation);
                layer.ff2.forward(isa, hidden, 64, branch, none);
            }
            if pre {
                for (x, y) in stream.iter_mut().zip(branch.iter()) {
                    *x += y;
                }
            } else {
                isa.run(Normalize {
                    branch: Some(&*branch),
                    alpha: self.alpha,
                    ..Normalize::alone(stream, norm, d)
                });
            }
        }
    }

    fn policy(
        &self,
        isa: Isa,
        s: &mut Scratch,
        outputs: impl Iterator<Item = usize>,
        logits: &mut Vec<f32>,
    ) {
        let (p, none) = (self.policy_width, Activation::None);
        let stream = s.stream.as_slice();
        self.query
            .forward(isa, stream, 64, s.query.as_mut_slice(), none);
        self.key
            .forward(isa, stream, 64, s.key.as_mut_slice(), none);
        let (query, key) = (s.query.as_slice(), s.key.as_slice());
        let row = |square: usize| square * p..(square + 1) * p;
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        logits.extend(outputs.map(|output| {
            let (from, to, piece) = match output.checked_sub(64 * 64) {
                None => (output / 64, output % 64, None),
                Some(rest) => (48 + rest / 32, 56 + rest / 4 % 8, Some(rest % 4)),
            };
            let key = &key[row(to)];
            let plain = dot(&query[row(from)], key);
            plain + piece.map_or(0.0, |i| dot(key, &self.promotion[i * p..(i + 1) * p]))
        }));
    }

    fn mean(&self, s: &mut Scratch) {
        let d = self.width;
        let read = &mut s.read.as_mut_slice()[..d];
        read.fill(0.0);
        for token in s.stream.as_slice()[..64 * d].chunks_exact(d) {
            for (sum, x) in read.iter_mut().zip(token) {
                *sum += x / 64.0;
            }
        }
    }

    fn value(&self, isa: Isa, s: &mut Scratch) -> [f32; 3] {
        let relu = Activation::Relu;
        match &self.value_tokens {
            None => self.mean(s),
            Some(tokens) => {
                tokens.forward(isa, s.stream.as_slice(), 64, s.read.as_mut_slice(), relu);
            }
        }
        let hidden = s.wide.as_mut_slice();
        self.value_hidden
            .forward(isa, s.read.as_slice(), 1, hidden, relu);
        let out = s.out.as_mut_slice();
        self.value_output
            .forward(isa, hidden, 1, out, Activation::None);
        [out[0], out[1], out[2]]
    }

    fn moves_left(&self, isa: Isa, s: &mut Scratch) -> Option<f32> {
        let (first, last) = self.moves_left.as_ref()?;
        self.mean(s);
        let hidden = s.wide.as_mut_slice();
        first.forward(isa, s.read.as_slice(), 1, hidden, Activation::Relu);
        let out = s.out.as_mut_slice();
        last.forward(isa, hidden, 1, out, Activation::None);
        // ln(1 + eˣ), which is x where eˣ would overflow.
        let softplus = if out[0] > 20.0 {
            out[0]
        } else {
            out[0].exp().ln_1p()
        };
        Some(softplus * MOVES_LEFT_SCALE as f32)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use tch::Tensor;

    use super::*;
    use crate::chess::Position;
    use crate::encode::{SQUARE_POLICY, TOKENS_ROW};
    use crate::model::transformer::{SmolgenConfig, Transformer};
    use crate::model::weight_file::NetworkConfig;

    fn config() -> Config {
        Config {
            width: 48,
            layers: 2,
            heads: 3,
            head_depth: 16,
            ff: 32,
            norm: NormPlace::Post,
            norm_kind: NormKind::Layer,
            attention_bias: AttentionBias::Learned,
            activation: FfActivation::Relu,
            smolgen: SmolgenConfig::default(),
            policy_width: 32,
            value: ValueRead::Tokens,
            value_per_token: 16,
            value_hidden: 16,
            moves_left: true,
        }
    }

    fn weights(config: &Config) -> HashMap<String, Vec<f32>> {
        let mut random = StdRng::seed_from_u64(5);
        let parameters = config.parameters().into_iter();
        let numbers = parameters.map(|p| {
            let scale = (p.shape[0] as f32).sqrt().recip();
            let values = (0..p.size()).map(|_| random.random_range(-2.0..2.0) * scale);
            (p.name.clone(), values.collect())
        });
        numbers.collect()
    }

    fn agrees(config: &Config) {
        let weights = weights(config);
        let tensors = config.parameters().into_iter().map(|p| {
            let tensor = Tensor::from_slice(&weights[&p.name]).reshape(&p.shape);
            (p.name, tensor)
        });
        let torch = Transformer::new(config, &tensors.collect()).unwrap();
        for fen in [
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 7 9",
            "8/P1k5/8/3pP3/8/8/5K2/8 w - d6 0 40",
            "7r/2k5/8/3n4/8/1P6/5K2/8 b - - 3 40",
        ] {
            let (position, _) = Position::from_fen(fen).unwrap();
            let tokens = SquareTokens::encode(&position, |_| None);
            let mut row = [0.0; TOKENS_ROW];
            tokens.write(&mut row);
            let wanted = torch
                .forward(&Tensor::from_slice(&row).reshape([1, 64, -1]))
                .unwrap();
            for isa in Isa::available() {
                let mut cpu = CpuTransformer::with_isa(config, &weights, isa).unwrap();
                let mut logits = Vec::new();
                let answer = cpu.forward(&tokens, 0..SQUARE_POLICY, &mut logits);
                let close = |found: f32, wanted: f64, what: &str| {
                    assert!(
                        (f64::from(found) - wanted).abs() < 2e-4 * wanted.abs().max(1.0),
                        "{isa} {fen} {what}: {found} {wanted}"
                    );
                };
                assert_eq!(logits.len(), SQUARE_POLICY);
                for (i, &logit) in logits.iter().enumerate() {
                    close(logit, wanted.policy.double_value(&[0, i as i64]), "policy");
                }
                for (i, &logit) in answer.value.iter().enumerate() {
                    close(logit, wanted.value.double_value(&[0, i as i64]), "value");
                }
                let plies = wanted.moves_left.as_ref().map(|t| t.double_value(&[0]));
                assert_eq!(plies.is_some(), answer.moves_left.is_some());
                close(
                    answer.moves_left.unwrap_or(0.0),
                    plies.unwrap_or(0.0),
                    "plies",
                );
            }
        }
    }

    #[test]
    fn it_answers_as_libtorch_does() {
        let _guard = tch::no_grad_guard();
        agrees(&config());
        agrees(&Config {
            norm: NormPlace::Pre,
            norm_kind: NormKind::Rms,
            attention_bias: AttentionBias::None,
            activation: FfActivation::Mish,
            head_depth: 32,
            value: ValueRead::Pooled,
            moves_left: false,
            ..config()
        });
    }

    #[test]
    fn what_it_does_not_have_is_left_to_libtorch() {
        for other in [
            Config {
                width: 40,
                ..config()
            },
            Config {
                head_depth: 8,
                ..config()
            },
            Config {
                attention_bias: AttentionBias::Smolgen,
                ..config()
            },
            Config {
                activation: FfActivation::Swiglu,
                ..config()
            },
        ] {
            assert!(CpuTransformer::with_isa(&other, &weights(&other), Isa::Portable).is_none());
        }
    }
}
