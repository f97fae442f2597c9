//! The project's own transformer over the 64 squares: forward pass in libtorch, for the search and for
//! training alike. Knows neither positions nor files.
//!
//! Shapes: B positions, 64 squares as the mover sees them, F features, d width, h heads, k head depth.

mod backend;
mod config;
mod cpu;
mod kernels;

use std::collections::HashMap;

use tch::{Kind, TchError, Tensor};

pub use backend::TransformerBackend;
pub use config::{
    AttentionBias, Config, FfActivation, NormKind, NormPlace, SmolgenConfig, ValueRead,
    piece_reaches,
};
pub use cpu::CpuTransformer;

use super::weight_file::WeightFile;
use crate::encode::FEATURES;

/// A transformer's file.
pub type TransformerFile = WeightFile<Config>;

type Result<T> = std::result::Result<T, TchError>;

const NORM_EPS: f64 = 1e-5;

/// A network as tensors. Its tensors may be leaves of a gradient tape.
pub struct Transformer {
    config: Config,
    embed: Dense,
    /// `[64, d]`
    positions: Tensor,
    embed_norm: Option<Norm>,
    layers: Vec<Layer>,
    last_norm: Option<Norm>,
    query: Dense,
    key: Dense,
    /// `[policy width, 4]`
    promotion: Tensor,
    value_tokens: Option<Dense>,
    value_hidden: Dense,
    value_output: Dense,
    moves_left: Option<(Dense, Dense)>,
}

/// What a network says of B positions, from their sides to move.
pub struct Outputs {
    /// Logits `[B, SQUARE_POLICY]`, legal or not.
    pub policy: Tensor,
    /// Logits of win, draw and loss, `[B, 3]`.
    pub value: Tensor,
    /// Plies to the end of the game, `[B]`.
    pub moves_left: Option<Tensor>,
}

struct Layer {
    qkv: Dense,
    out: Dense,
    bias: Bias,
    ff1: Dense,
    ff2: Dense,
    norm1: Norm,
    norm2: Norm,
}

enum Bias {
    None,
    /// `[h, 64, 64]`
    Learned(Tensor),
    Smolgen(Box<Smolgen>),
}

struct Smolgen {
    /// `[d, per square]`
    compress: Tensor,
    dense1: Dense,
    norm1: Norm,
    dense2: Dense,
    norm2: Norm,
    /// `[per head, 64·64]`, the same in all layers.
    shared: Tensor,
}

/// y = x·W + b
struct Dense {
    weight: Tensor,
    bias: Tensor,
}

struct Norm {
    weight: Tensor,
    /// None: root mean square.
    bias: Option<Tensor>,
}

impl Dense {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let size = x.size();
        let (rows, inputs) = match size.split_last() {
            Some((last, rest)) => (rest.iter().product::<i64>(), *last),
            None => (1, 1),
        };
        let y = self
            .bias
            .f_addmm(&x.f_reshape([rows, inputs])?, &self.weight)?;
        let mut shape = size;
        if let (Some(last), Some(width)) = (shape.last_mut(), self.bias.size().first()) {
            *last = *width;
        }
        y.f_reshape(shape)
    }
}

impl Norm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let width = self.weight.size();
        match &self.bias {
            Some(bias) => x.f_layer_norm(width, Some(&self.weight), Some(bias), NORM_EPS, false),
            None => {
                let square = x.f_square()?.f_mean_dim([-1_i64].as_slice(), true, None)?;
                x.f_mul(&square.f_add_scalar(NORM_EPS)?.f_rsqrt()?)?
                    .f_mul(&self.weight)
            }
        }
    }
}

impl Transformer {
    /// The network over `tensors`, which must be those of [`Config::parameters`], checked before.
    ///
    /// # Errors
    /// When one is missing.
    pub fn new(config: &Config, tensors: &HashMap<String, Tensor>) -> Result<Transformer> {
        let take = |name: &str| {
            tensors
                .get(name)
                .map(Tensor::shallow_clone)
                .ok_or_else(|| TchError::Torch(format!("there is no tensor {name}")))
        };
        let dense = |name: &str| {
            Ok::<_, TchError>(Dense {
                weight: take(&format!("{name}.weight"))?,
                bias: take(&format!("{name}.bias"))?,
            })
        };
        let shifted = config.norm_kind == NormKind::Layer;
        let norm = |name: &str, shifted: bool| {
            let bias = match shifted {
                true => Some(take(&format!("{name}.bias"))?),
                false => None,
            };
            Ok::<_, TchError>(Norm {
                weight: take(&format!("{name}.weight"))?,
                bias,
            })
        };
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            let at = |part: &str| format!("layers.{layer}.{part}");
            layers.push(Layer {
                qkv: dense(&at("qkv"))?,
                out: dense(&at("out"))?,
                bias: match config.attention_bias {
                    AttentionBias::None => Bias::None,
                    AttentionBias::Learned => Bias::Learned(take(&at("bias"))?),
                    AttentionBias::Smolgen => Bias::Smolgen(Box::new(Smolgen {
                        compress: take(&at("smolgen.compress"))?,
                        dense1: dense(&at("smolgen.1"))?,
                        norm1: norm(&at("smolgen.1.norm"), true)?,
                        dense2: dense(&at("smolgen.2"))?,
                        norm2: norm(&at("smolgen.2.norm"), true)?,
                        shared: take("smolgen.shared")?,
                    })),
                },
                ff1: dense(&at("ff.1"))?,
                ff2: dense(&at("ff.2"))?,
                norm1: norm(&at("norm1"), shifted)?,
                norm2: norm(&at("norm2"), shifted)?,
            });
        }
        let post = config.norm == NormPlace::Post;
        Ok(Transformer {
            embed: dense("embed")?,
            positions: take("positions")?,
            embed_norm: post.then(|| norm("embed.norm", shifted)).transpose()?,
            layers,
            last_norm: (!post).then(|| norm("norm", shifted)).transpose()?,
            query: dense("policy.query")?,
            key: dense("policy.key")?,
            promotion: take("policy.promotion")?,
            value_tokens: match config.value {
                ValueRead::Pooled => None,
                ValueRead::Tokens => Some(dense("value.tokens")?),
            },
            value_hidden: dense("value.hidden")?,
            value_output: dense("value.output")?,
            moves_left: match config.moves_left {
                true => Some((dense("moves_left.hidden")?, dense("moves_left.output")?)),
                false => None,
            },
            config: config.clone(),
        })
    }

    /// What it is made of.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Evaluates tokens `[B, 64, F]`.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn forward(&self, tokens: &Tensor) -> Result<Outputs> {
        self.forward_with(tokens, None)
    }

    /// What each head of each layer attends to, `[B, h, 64 query, 64 key]` a layer.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn attention_maps(&self, tokens: &Tensor) -> Result<Vec<Tensor>> {
        let mut maps = Vec::new();
        self.forward_with(tokens, Some(&mut maps))?;
        Ok(maps)
    }

    fn forward_with(&self, tokens: &Tensor, mut maps: Option<&mut Vec<Tensor>>) -> Result<Outputs> {
        let batch = tokens.size().first().copied().unwrap_or(0);
        let tokens = tokens.f_reshape([batch, 64, FEATURES as i64])?;
        let mut x = self.embed.forward(&tokens)?.f_add(&self.positions)?; // [B, 64, d]
        if let Some(norm) = &self.embed_norm {
            x = norm.forward(&x)?;
        }
        for layer in &self.layers {
            x = self.layer(layer, &x, maps.as_deref_mut())?;
        }
        if let Some(norm) = &self.last_norm {
            x = norm.forward(&x)?;
        }
        Ok(Outputs {
            policy: self.policy(&x)?,
            value: self.value(&x)?,
            moves_left: self.moves_left(&x)?,
        })
    }

    fn layer(&self, layer: &Layer, x: &Tensor, maps: Option<&mut Vec<Tensor>>) -> Result<Tensor> {
        let alpha = self.config.alpha();
        Ok(match self.config.norm {
            NormPlace::Post => {
                let mixed = self.attention(layer, x, maps)?;
                let x = layer
                    .norm1
                    .forward(&mixed.f_add(&x.f_mul_scalar(alpha)?)?)?;
                let fed = self.feed_forward(layer, &x)?;
                layer.norm2.forward(&fed.f_add(&x.f_mul_scalar(alpha)?)?)?
            }
            NormPlace::Pre => {
                let x = x.f_add(&self.attention(layer, &layer.norm1.forward(x)?, maps)?)?;
                x.f_add(&self.feed_forward(layer, &layer.norm2.forward(&x)?)?)?
            }
        })
    }

    /// softmax(q·kᵀ/√k + bias)·v over the squares.
    fn attention(
        &self,
        layer: &Layer,
        x: &Tensor,
        maps: Option<&mut Vec<Tensor>>,
    ) -> Result<Tensor> {
        let Config {
            heads, head_depth, ..
        } = self.config;
        let batch = x.size()[0];
        let qkv = layer
            .qkv
            .forward(x)?
            .f_reshape([batch, 64, 3, heads, head_depth])?
            .f_permute([2, 0, 3, 1, 4])?; // [3, B, h, 64, k]
        let (q, k, v) = (qkv.f_get(0)?, qkv.f_get(1)?, qkv.f_get(2)?);
        let scale = 1.0 / (head_depth as f64).sqrt();
        let mut logits = q.f_mul_scalar(scale)?.f_matmul(&k.f_transpose(-2, -1)?)?; // [B, h, 64, 64]
        match &layer.bias {
            Bias::None => {}
            Bias::Learned(bias) => logits = logits.f_add(bias)?,
            Bias::Smolgen(smolgen) => logits = logits.f_add(&smolgen.forward(x, heads)?)?,
        }
        let weights = logits.f_softmax(-1, None::<Kind>)?;
        let mixed = weights
            .f_matmul(&v)? // [B, h, 64, k]
            .f_transpose(1, 2)?
            .f_reshape([batch, 64, heads * head_depth])?;
        if let Some(maps) = maps {
            maps.push(weights);
        }
        layer.out.forward(&mixed)
    }

    fn feed_forward(&self, layer: &Layer, x: &Tensor) -> Result<Tensor> {
        let hidden = activate(self.config.activation, &layer.ff1.forward(x)?)?;
        layer.ff2.forward(&hidden)
    }

    fn policy(&self, x: &Tensor) -> Result<Tensor> {
        let batch = x.size()[0];
        let q = self.query.forward(x)?;
        let k = self.key.forward(x)?; // [B, 64, p]
        let scale = 1.0 / (self.config.policy_width as f64).sqrt();
        let pairs = q.f_mul_scalar(scale)?.f_matmul(&k.f_transpose(1, 2)?)?; // [B, from, to]
        // Promotions: from the seventh to the eighth rank, with an offset by file and piece.
        let offsets = k.f_narrow(1, 56, 8)?.f_matmul(&self.promotion)?; // [B, to-file, 4]
        let promotions = pairs
            .f_narrow(1, 48, 8)?
            .f_narrow(2, 56, 8)?
            .f_unsqueeze(3)?
            .f_add(&offsets.f_unsqueeze(1)?)?; // [B, from-file, to-file, 4]
        Tensor::f_cat(
            &[
                pairs.f_reshape([batch, 64 * 64])?,
                promotions.f_reshape([batch, 8 * 8 * 4])?,
            ],
            1,
        )
    }

    fn value(&self, x: &Tensor) -> Result<Tensor> {
        let batch = x.size()[0];
        let read = match &self.value_tokens {
            None => x.f_mean_dim([1_i64].as_slice(), false, None)?,
            Some(dense) => dense.forward(x)?.f_relu()?.f_reshape([batch, -1])?,
        };
        let hidden = self.value_hidden.forward(&read)?.f_relu()?;
        self.value_output.forward(&hidden)
    }

    fn moves_left(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let Some((hidden, output)) = &self.moves_left else {
            return Ok(None);
        };
        let pooled = x.f_mean_dim([1_i64].as_slice(), false, None)?;
        let plies = output
            .forward(&hidden.forward(&pooled)?.f_relu()?)?
            .f_softplus()?
            .f_mul_scalar(MOVES_LEFT_SCALE)?;
        Ok(Some(plies.f_reshape([-1])?))
    }
}

/// Plies that one unit of the moves-left output stands for.
const MOVES_LEFT_SCALE: f64 = 20.0;

impl Smolgen {
    fn forward(&self, x: &Tensor, heads: i64) -> Result<Tensor> {
        let batch = x.size()[0];
        let flat = x.f_matmul(&self.compress)?.f_reshape([batch, -1])?;
        let hidden = self.norm1.forward(&self.dense1.forward(&flat)?.f_silu()?)?;
        let each = self
            .norm2
            .forward(&self.dense2.forward(&hidden)?.f_silu()?)?;
        each.f_reshape([batch, heads, -1])?
            .f_matmul(&self.shared)?
            .f_reshape([batch, heads, 64, 64])
    }
}

/// The activation over the last axis; of a gated one's two branches the first half is the gate.
fn activate(activation: FfActivation, x: &Tensor) -> Result<Tensor> {
    if activation.is_gated() {
        let half = x.size().last().copied().unwrap_or(0) / 2;
        let (a, b) = (x.f_narrow(-1, 0, half)?, x.f_narrow(-1, half, half)?);
        return match activation {
            FfActivation::Glu => a.f_sigmoid()?.f_mul(&b),
            FfActivation::Reglu => a.f_relu()?.f_mul(&b),
            FfActivation::Geglu => a.f_gelu("none")?.f_mul(&b),
            FfActivation::Swiglu => a.f_silu()?.f_mul(&b),
            FfActivation::Pairwise => a.f_clamp(0.0, 1.0)?.f_mul(&b.f_clamp(0.0, 1.0)?),
            _ => a.f_mul(&b),
        };
    }
    match activation {
        FfActivation::Crelu => x.f_clamp(0.0, 1.0),
        FfActivation::Screlu => x.f_clamp(0.0, 1.0)?.f_square(),
        FfActivation::Gelu => x.f_gelu("none"),
        FfActivation::GeluTanh => x.f_gelu("tanh"),
        FfActivation::Mish => x.f_mish(),
        FfActivation::Swish => x.f_silu(),
        FfActivation::Relu2 => x.f_relu()?.f_square(),
        _ => x.f_relu(),
    }
}
