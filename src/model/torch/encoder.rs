//! Transformer encoder layers over the 64 squares, with smolgen. Knows neither embeddings nor heads.

use tch::{Kind, Tensor};

use super::layers::{Dense, Norm, Param, Placement, Result};
use crate::model::format::Activation;
use crate::model::weights;

const SMOLGEN_EPSILON: f64 = 1e-3;

/// What the encoders of one stack have in common.
#[derive(Clone, Copy, Debug)]
pub struct EncoderStyle {
    /// Scale of the branches.
    pub alpha: f64,
    /// Of the layer norms.
    pub epsilon: f64,
    /// In the feed-forward part.
    pub ffn: Activation,
    /// In smolgen.
    pub smolgen: Activation,
}

/// Two dense layers with an activation between.
#[derive(Clone, Debug)]
pub struct FeedForward {
    dense1: Dense,
    dense2: Dense,
    activation: Activation,
}

impl FeedForward {
    pub fn new(
        place: Placement,
        ffn: &weights::FeedForward,
        activation: Activation,
    ) -> Result<FeedForward> {
        Ok(FeedForward {
            dense1: Dense::new(place, &ffn.dense1)?,
            dense2: Dense::new(place, &ffn.dense2)?,
            activation,
        })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = self.activation.forward(self.dense1.forward(x)?)?;
        self.dense2.forward(&hidden)
    }
}

/// LN(α·branch + x).
pub fn add_and_norm(branch: &mut Tensor, x: &Tensor, alpha: f64, norm: &Norm) -> Result<Tensor> {
    let mut sum = branch.f_mul_scalar_(alpha)?;
    norm.forward(&sum.f_add_(x)?)
}

/// Attention logits from the whole board.
#[derive(Clone, Debug)]
struct Smolgen {
    compress: Dense,
    dense1: Dense,
    norm1: Norm,
    dense2: Dense,
    norm2: Norm,
    per_head: i64,
    activation: Activation,
    /// `[4096, per_head]`
    shared: Param,
}

impl Smolgen {
    fn new(
        place: Placement,
        smolgen: &weights::Smolgen,
        shared: &Param,
        activation: Activation,
    ) -> Result<Smolgen> {
        Ok(Smolgen {
            compress: Dense::new(place, &smolgen.compress)?,
            dense1: Dense::new(place, &smolgen.dense1)?,
            norm1: Norm::new(place, &smolgen.norm1, SMOLGEN_EPSILON)?,
            dense2: Dense::new(place, &smolgen.dense2)?,
            norm2: Norm::new(place, &smolgen.norm2, SMOLGEN_EPSILON)?,
            per_head: smolgen.per_head as i64,
            activation,
            shared: shared.clone(),
        })
    }

    /// `[batch, 64, d]` to `[batch, heads, 64 query, 64 key]`.
    fn forward(&self, x: &Tensor, heads: i64) -> Result<Tensor> {
        let act = self.activation;
        let compressed = self.compress.forward(x)?.f_flatten(1, -1)?; // [batch, 64·c]
        let hidden = self
            .norm1
            .forward(&act.forward(self.dense1.forward(&compressed)?)?)?;
        let hidden = self
            .norm2
            .forward(&act.forward(self.dense2.forward(&hidden)?)?)?;
        let hidden = hidden.f_reshape([-1, heads, self.per_head])?; // [batch, heads, g]
        let logits = hidden.f_linear(&self.shared, None::<&Tensor>)?; // [batch, heads, 4096]
        logits.f_reshape([-1, heads, 64, 64])
    }
}

#[derive(Clone, Debug)]
struct Layer {
    q: Dense,
    k: Dense,
    v: Dense,
    out: Dense,
    heads: i64,
    depth: i64,
    smolgen: Option<Smolgen>,
    norm1: Norm,
    ffn: FeedForward,
    norm2: Norm,
}

/// A stack of encoder layers.
#[derive(Clone, Debug)]
pub struct Encoders {
    layers: Vec<Layer>,
    style: EncoderStyle,
}

impl Encoders {
    pub fn new(
        place: Placement,
        encoders: &[weights::Encoder],
        shared: Option<&Param>,
        style: EncoderStyle,
    ) -> Result<Encoders> {
        let layer = |encoder: &weights::Encoder| {
            let smolgen = match (&encoder.smolgen, shared) {
                (Some(smolgen), Some(shared)) => {
                    Some(Smolgen::new(place, smolgen, shared, style.smolgen)?)
                }
                _ => None,
            };
            Ok(Layer {
                q: Dense::new(place, &encoder.q)?,
                k: Dense::new(place, &encoder.k)?,
                v: Dense::new(place, &encoder.v)?,
                out: Dense::new(place, &encoder.out)?,
                heads: encoder.heads as i64,
                depth: (encoder.q.outputs / encoder.heads.max(1)) as i64,
                smolgen,
                norm1: Norm::new(place, &encoder.norm1, style.epsilon)?,
                ffn: FeedForward::new(place, &encoder.ffn, style.ffn)?,
                norm2: Norm::new(place, &encoder.norm2, style.epsilon)?,
            })
        };
        Ok(Encoders {
            layers: encoders.iter().map(layer).collect::<Result<_>>()?,
            style,
        })
    }

    /// `[batch, 64, d]` to the same shape. Where `maps` is given, each layer adds its attention to it,
    /// `[batch, heads, 64 query, 64 key]` after the softmax.
    pub fn forward(&self, mut x: Tensor, mut maps: Option<&mut Vec<Tensor>>) -> Result<Tensor> {
        for layer in &self.layers {
            x = layer.forward(&x, self.style.alpha, maps.as_deref_mut())?;
        }
        Ok(x)
    }
}

impl Layer {
    fn forward(&self, x: &Tensor, alpha: f64, maps: Option<&mut Vec<Tensor>>) -> Result<Tensor> {
        let mut attended = self.attention(x, maps)?;
        let h = add_and_norm(&mut attended, x, alpha, &self.norm1)?;
        let mut fed = self.ffn.forward(&h)?;
        add_and_norm(&mut fed, &h, alpha, &self.norm2)
    }

    fn attention(&self, x: &Tensor, maps: Option<&mut Vec<Tensor>>) -> Result<Tensor> {
        let split = |dense: &Dense| {
            let y = dense.forward(x)?; // [batch, 64, heads·depth]
            y.f_reshape([-1, 64, self.heads, self.depth])?
                .f_transpose(1, 2) // [batch, heads, 64, depth]
        };
        let (q, k, v) = (split(&self.q)?, split(&self.k)?, split(&self.v)?);
        let added = match &self.smolgen {
            Some(smolgen) => Some(smolgen.forward(x, self.heads)?),
            None => None,
        };
        // softmax(q·kᵀ/√depth + smolgen)·v
        let scale = 1.0 / (self.depth as f64).sqrt();
        let y = match x.device() {
            // The fused operation keeps no weights.
            device if device == tch::Device::Cpu || maps.is_some() => {
                let mut logits = q.f_matmul(&k.f_transpose(-2, -1)?)?.f_mul_scalar_(scale)?;
                if let Some(added) = &added {
                    logits = logits.f_add_(added)?;
                }
                let weights = logits.f_softmax(-1, None::<Kind>)?; // [batch, heads, 64, 64]
                let y = weights.f_matmul(&v)?;
                if let Some(maps) = maps {
                    maps.push(weights);
                }
                y
            }
            _ => Tensor::f_scaled_dot_product_attention(
                &q,
                &k,
                &v,
                added.as_ref(),
                0.0,
                false,
                scale,
                false,
            )?,
        };
        let merged = y.f_transpose(1, 2)?.f_flatten(2, 3)?; // [batch, 64, heads·depth]
        self.out.forward(&merged)
    }
}
