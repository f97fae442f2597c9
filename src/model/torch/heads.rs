//! Policy, value and moves-left heads as tensors, over `[batch, 64, channels]`. Knows no files.

use tch::Tensor;

use super::encoder::{EncoderStyle, Encoders};
use super::layers::{Conv, Dense, Param, Placement, Result};
use crate::model::format::Activation;
use crate::model::weights::{self, Body, NetworkWeights};

/// A policy head; see [`weights::Policy`].
#[derive(Clone, Debug)]
pub enum Policy {
    Flat {
        embedding: Dense,
        dense: Dense,
        activation: Activation,
    },
    Convolution {
        conv1: Conv,
        conv2: Conv,
        activation: Activation,
    },
    Attention(AttentionPolicy),
}

/// See [`weights::AttentionPolicy`].
#[derive(Clone, Debug)]
pub struct AttentionPolicy {
    embedding: Dense,
    activation: Activation,
    encoders: Encoders,
    q: Dense,
    k: Dense,
    /// `[4, dim]`
    promotion: Param,
    scale: f64,
}

impl Policy {
    pub fn new(
        place: Placement,
        network: &NetworkWeights,
        shared: Option<&Param>,
    ) -> Result<Policy> {
        let activation = network.format.default_activation;
        Ok(match &network.policy {
            weights::Policy::Flat { embedding, dense } => Policy::Flat {
                embedding: Dense::new(place, embedding)?,
                dense: Dense::of_channel_major(place, dense)?,
                activation,
            },
            weights::Policy::Convolution { conv1, conv2 } => Policy::Convolution {
                conv1: Conv::new(place, conv1)?,
                conv2: Conv::new(place, conv2)?,
                activation,
            },
            weights::Policy::Attention(policy) => {
                let [embedding, ffn, smolgen] = network.policy_activations();
                let style = EncoderStyle {
                    alpha: 1.0,
                    epsilon: 1e-6,
                    ffn,
                    smolgen,
                };
                let dim = policy.q.outputs;
                Policy::Attention(AttentionPolicy {
                    embedding: Dense::new(place, &policy.embedding)?,
                    activation: embedding,
                    encoders: Encoders::new(place, &policy.encoders, shared, style)?,
                    q: Dense::new(place, &policy.q)?,
                    k: Dense::new(place, &policy.k)?,
                    promotion: place.param(&policy.promotion, &[4, dim as i64])?,
                    scale: 1.0 / (dim as f64).sqrt(),
                })
            }
        })
    }

    /// Policy outputs `[batch, outputs]`, in the order of the head's `PolicyMap`.
    pub fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        match self {
            Policy::Flat {
                embedding,
                dense,
                activation,
            } => {
                let x = activation.forward(embedding.forward(tokens)?)?;
                dense.forward(&x.f_flatten(1, 2)?)
            }
            Policy::Convolution {
                conv1,
                conv2,
                activation,
            } => {
                let board = board_of(tokens)?; // [batch, C, 8, 8]
                let x = activation.forward(conv1.forward(&board)?)?;
                conv2.forward(&x)?.f_reshape([-1, 80 * 64])
            }
            Policy::Attention(policy) => policy.forward(tokens),
        }
    }
}

impl Policy {
    /// The same for numbers `[batch, 64, channels]` on the CPU.
    pub fn forward_numbers(&self, tokens: &[f32], batch: usize) -> Result<Vec<f32>> {
        let tokens = Tensor::f_from_slice(tokens)?.f_reshape([batch as i64, 64, -1])?;
        super::numbers(&self.forward(&tokens)?)
    }
}

impl AttentionPolicy {
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let x = self.activation.forward(self.embedding.forward(tokens)?)?;
        let x = self.encoders.forward(x, None)?;
        let q = self.q.forward(&x)?; // [batch, 64 from, dim]
        let k = self.k.forward(&x)?; // [batch, 64 to, dim]
        let logits = q
            .f_matmul(&k.f_transpose(1, 2)?)?
            .f_mul_scalar_(self.scale)?; // [batch, 64, 64]
        let last_rank = k.f_narrow(1, 56, 8)?; // [batch, 8 to-file, dim]
        let offsets = last_rank.f_linear(&self.promotion, None::<&Tensor>)?; // [batch, 8, 4]
        let pieces = offsets
            .f_narrow(2, 0, 3)?
            .f_add(&offsets.f_narrow(2, 3, 1)?)?; // [batch, 8, 3]
        let pawns = logits.f_narrow(1, 48, 8)?.f_narrow(2, 56, 8)?; // [batch, 8 from-file, 8 to-file]
        let promotions = pawns.f_unsqueeze(3)?.f_add(&pieces.f_unsqueeze(1)?)?; // [batch, 8, 8, 3]
        Tensor::f_cat(&[logits.f_flatten(1, -1)?, promotions.f_flatten(1, -1)?], 1)
    }
}

/// Channels-last boards `[batch, C, 8, 8]` of tokens `[batch, 64, C]`; no copy.
pub fn board_of(tokens: &Tensor) -> Result<Tensor> {
    let channels = tokens.size().get(2).copied().unwrap_or(0);
    tokens
        .f_reshape([-1, 8, 8, channels])?
        .f_permute([0, 3, 1, 2])
}

/// A value or moves-left head.
#[derive(Clone, Debug)]
pub struct ScalarHead {
    embedding: Dense,
    hidden: Dense,
    output: Dense,
    activation: Activation,
}

impl ScalarHead {
    pub fn new(
        place: Placement,
        network: &NetworkWeights,
        head: &weights::ScalarHead,
    ) -> Result<ScalarHead> {
        Ok(ScalarHead {
            embedding: Dense::new(place, &head.embedding)?,
            hidden: match network.body {
                Body::Tower(_) => Dense::of_channel_major(place, &head.hidden)?,
                Body::Attention(_) => Dense::new(place, &head.hidden)?,
            },
            output: Dense::new(place, &head.output)?,
            activation: network.format.default_activation,
        })
    }

    /// `[batch, outputs]`, before softmax, tanh or ReLU.
    pub fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let x = self.activation.forward(self.embedding.forward(tokens)?)?;
        let x = self
            .activation
            .forward(self.hidden.forward(&x.f_flatten(1, 2)?)?)?;
        self.output.forward(&x)
    }
}
