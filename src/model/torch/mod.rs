//! Lc0 networks as tensors: planes in, raw outputs out. Knows neither files nor positions.

mod encoder;
mod heads;
mod layers;
mod tower;

use tch::{Device, Kind, Tensor};

pub use layers::{Placement, Result};

use self::encoder::{EncoderStyle, Encoders, FeedForward, add_and_norm};
pub use self::heads::Policy;
use self::heads::{ScalarHead, board_of};
use self::layers::{Dense, Norm, Param};
use self::tower::Tower;
use super::format::{Activation, InputEmbedding};
use super::weights::{self, NetworkWeights};
use crate::encode::reachable;

/// Raw outputs of a minibatch, in fp32 on the CPU.
#[derive(Debug, Default)]
pub struct Outputs {
    /// `[batch, policy outputs]`
    pub policy: Vec<f32>,
    /// `[batch, 3]` logits of win, draw, loss, or `[batch, 1]` before tanh.
    pub value: Vec<f32>,
    /// `[batch, 1]` before ReLU; empty without the head.
    pub moves_left: Vec<f32>,
}

/// A network on a device. A clone shares the weights.
#[derive(Clone, Debug)]
pub struct Network {
    body: Body,
    policy: Policy,
    value: ScalarHead,
    moves_left: Option<ScalarHead>,
    device: Device,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Body {
    Tower(Tower),
    Attention(Box<Attention>),
}

#[derive(Clone, Debug)]
struct Attention {
    tower: Option<Tower>,
    /// `[1, 64, 64]`
    position_map: Option<Param>,
    preprocess: Option<Dense>,
    embedding: Dense,
    activation: Activation,
    embedding_norm: Option<Norm>,
    /// `[64, d]`
    mult_gate: Option<Param>,
    /// `[64, d]`
    add_gate: Option<Param>,
    embedding_ffn: Option<(FeedForward, Norm)>,
    encoders: Encoders,
    alpha: f64,
}

impl Network {
    pub fn new(place: Placement, network: &NetworkWeights) -> Result<Network> {
        let shared = match &network.smolgen_shared {
            Some(shared) => {
                let shape = [64 * 64, (shared.len() / (64 * 64)) as i64];
                Some(place.param(shared, &shape)?)
            }
            None => None,
        };
        let activation = network.format.default_activation;
        let body = match &network.body {
            weights::Body::Tower(tower) => Body::Tower(Tower::new(place, tower, activation)?),
            weights::Body::Attention(body) => Body::Attention(Box::new(Attention::new(
                place,
                network,
                body,
                shared.as_ref(),
            )?)),
        };
        let moves_left = match &network.moves_left {
            Some(head) => Some(ScalarHead::new(place, network, head)?),
            None => None,
        };
        Ok(Network {
            body,
            policy: Policy::new(place, network, shared.as_ref())?,
            value: ScalarHead::new(place, network, &network.value)?,
            moves_left,
            device: place.device,
            kind: place.kind,
        })
    }

    /// Evaluates planes `[batch, 112, 64]`. Gradients must be off on the calling thread.
    pub fn forward(&self, planes: &[f32], batch: usize) -> Result<Outputs> {
        let planes = self.planes(planes, batch)?;
        let tokens = match &self.body {
            Body::Tower(tower) => tokens_of(&tower.forward(&board_of(&planes)?)?)?,
            Body::Attention(body) => body.forward(&planes, None)?,
        };
        let policy = self.policy.forward(&tokens)?;
        let value = self.value.forward(&tokens)?;
        let moves_left = match &self.moves_left {
            Some(head) => Some(head.forward(&tokens)?),
            None => None,
        };
        Ok(Outputs {
            policy: numbers(&policy)?,
            value: numbers(&value)?,
            moves_left: match &moves_left {
                Some(moves_left) => numbers(moves_left)?,
                None => Vec::new(),
            },
        })
    }

    /// What each head of each body layer attends to, `[heads, 64 query, 64 key]` a layer, for one row of
    /// planes `[112, 64]`; none for a tower.
    pub fn attention(&self, planes: &[f32]) -> Result<Vec<Tensor>> {
        let mut maps = Vec::new();
        if let Body::Attention(body) = &self.body {
            let _ = body.forward(&self.planes(planes, 1)?, Some(&mut maps))?;
        }
        maps.iter().map(|map| map.f_get(0)).collect()
    }

    /// Planes `[batch, 112, 64]` as a tensor `[batch, 64, 112]` on the device.
    fn planes(&self, planes: &[f32], batch: usize) -> Result<Tensor> {
        Tensor::f_from_slice(planes)?
            .f_reshape([batch as i64, 112, 64])?
            .f_to_device(self.device)?
            .f_to_kind(self.kind)?
            .f_transpose(1, 2)?
            .f_contiguous()
    }
}

/// Tokens `[batch, 64, C]` of channels-last boards `[batch, C, 8, 8]`.
fn tokens_of(board: &Tensor) -> Result<Tensor> {
    board.f_permute([0, 2, 3, 1])?.f_flatten(1, 2)
}

pub fn numbers(tensor: &Tensor) -> Result<Vec<f32>> {
    let tensor = tensor
        .f_to_kind(Kind::Float)?
        .f_to_device(Device::Cpu)?
        .f_contiguous()?;
    let mut values = vec![0.0; tensor.numel()];
    let count = values.len();
    tensor.f_copy_data(&mut values, count)?;
    Ok(values)
}

/// −1 on the square itself, 1 where a queen or knight could go.
fn position_map() -> Vec<f32> {
    let entry = |from: u8, to: u8| match (from == to, reachable(from, to)) {
        (true, _) => -1.0,
        (_, true) => 1.0,
        _ => 0.0,
    };
    (0..64)
        .flat_map(|from| (0..64).map(move |to| entry(from, to)))
        .collect()
}

impl Attention {
    fn new(
        place: Placement,
        network: &NetworkWeights,
        body: &weights::AttentionBody,
        shared: Option<&Param>,
    ) -> Result<Attention> {
        let format = &network.format;
        let dense_embedding = format.embedding == InputEmbedding::Dense;
        let activation = format.default_activation;
        let alpha = (2.0 * body.encoders.len().max(1) as f64).powf(-0.25);
        let style = EncoderStyle {
            alpha,
            epsilon: if dense_embedding { 1e-3 } else { 1e-6 },
            ffn: format.ffn_activation,
            smolgen: format.smolgen_activation,
        };
        let width = body.embedding.outputs as i64;
        let gate = |values: &Option<Vec<f32>>| {
            values
                .as_ref()
                .map(|values| place.param(values, &[64, width]))
                .transpose()
        };
        let positional = body.tower.is_none() && format.embedding == InputEmbedding::PositionMap;
        let norm = |norm: &weights::Norm| Norm::new(place, norm, 1e-3);
        Ok(Attention {
            tower: match &body.tower {
                Some(tower) => Some(Tower::new(place, tower, activation)?),
                None => None,
            },
            position_map: match positional {
                true => Some(place.param(&position_map(), &[1, 64, 64])?),
                false => None,
            },
            preprocess: match &body.preprocess {
                Some(dense) => Some(Dense::new(place, dense)?),
                None => None,
            },
            embedding: Dense::new(place, &body.embedding)?,
            activation,
            embedding_norm: body.embedding_norm.as_ref().map(norm).transpose()?,
            mult_gate: gate(&body.mult_gate)?,
            add_gate: gate(&body.add_gate)?,
            embedding_ffn: match &body.embedding_ffn {
                Some((ffn, after)) => Some((
                    FeedForward::new(place, ffn, format.ffn_activation)?,
                    norm(after)?,
                )),
                None => None,
            },
            encoders: Encoders::new(place, &body.encoders, shared, style)?,
            alpha,
        })
    }

    /// Planes `[batch, 64, 112]` to `[batch, 64, d]`; `maps` as in [`Encoders::forward`].
    fn forward(&self, planes: &Tensor, maps: Option<&mut Vec<Tensor>>) -> Result<Tensor> {
        let tokens = if let Some(tower) = &self.tower {
            tokens_of(&tower.forward(&board_of(planes)?)?)?
        } else if let Some(map) = &self.position_map {
            let batch = planes.size().first().copied().unwrap_or(0);
            Tensor::f_cat(&[planes, &map.f_expand([batch, 64, 64], false)?], 2)? // [batch, 64, 176]
        } else if let Some(preprocess) = &self.preprocess {
            let pieces = planes.f_narrow(2, 0, 12)?.f_flatten(1, 2)?; // [batch, 64·12]
            let batch = planes.size().first().copied().unwrap_or(0);
            let seen = preprocess.forward(&pieces)?.f_reshape([batch, 64, -1])?; // [batch, 64, k]
            Tensor::f_cat(&[planes, &seen], 2)?
        } else {
            planes.shallow_clone()
        };
        let mut x = self.activation.forward(self.embedding.forward(&tokens)?)?;
        if let Some(norm) = &self.embedding_norm {
            x = norm.forward(&x)?;
        }
        if let Some(gate) = &self.mult_gate {
            x = x.f_mul_(gate)?;
        }
        if let Some(gate) = &self.add_gate {
            x = x.f_add_(gate)?;
        }
        if let Some((ffn, norm)) = &self.embedding_ffn {
            let mut fed = ffn.forward(&x)?;
            x = add_and_norm(&mut fed, &x, self.alpha, norm)?;
        }
        self.encoders.forward(x, maps)
    }
}
