//! The residual tower, with and without squeeze-and-excitation. Knows no heads.

use tch::{Kind, Tensor};

use super::layers::{Conv, Dense, Placement, Result};
use crate::model::format::Activation;
use crate::model::weights;

#[derive(Clone, Debug)]
struct SqueezeExcite {
    squeeze: Dense,
    excite: Dense,
}

#[derive(Clone, Debug)]
struct Block {
    conv1: Conv,
    conv2: Conv,
    se: Option<SqueezeExcite>,
}

/// A residual tower on channels-last boards.
#[derive(Clone, Debug)]
pub struct Tower {
    input: Conv,
    blocks: Vec<Block>,
    activation: Activation,
}

impl Tower {
    pub fn new(place: Placement, tower: &weights::Tower, activation: Activation) -> Result<Tower> {
        let block = |block: &weights::Block| {
            let se = match &block.se {
                Some(se) => Some(SqueezeExcite {
                    squeeze: Dense::new(place, &se.squeeze)?,
                    excite: Dense::new(place, &se.excite)?,
                }),
                None => None,
            };
            Ok(Block {
                conv1: Conv::new(place, &block.conv1)?,
                conv2: Conv::new(place, &block.conv2)?,
                se,
            })
        };
        Ok(Tower {
            input: Conv::new(place, &tower.input)?,
            blocks: tower.blocks.iter().map(block).collect::<Result<_>>()?,
            activation,
        })
    }

    /// `[batch, 112, 8, 8]` to `[batch, C, 8, 8]`.
    pub fn forward(&self, planes: &Tensor) -> Result<Tensor> {
        let act = self.activation;
        let mut x = act.forward(self.input.forward(planes)?)?;
        for block in &self.blocks {
            let y = act.forward(block.conv1.forward(&x)?)?;
            let mut y = block.conv2.forward(&y)?;
            if let Some(se) = &block.se {
                y = se.forward(&y, act)?;
            }
            x = act.forward(y.f_add_(&x)?)?;
        }
        Ok(x)
    }
}

impl SqueezeExcite {
    /// sigmoid(γ)·y + β per channel.
    fn forward(&self, y: &Tensor, activation: Activation) -> Result<Tensor> {
        let pooled = y.f_mean_dim([2i64, 3].as_slice(), false, None::<Kind>)?; // [batch, C]
        let pooled = activation.forward(self.squeeze.forward(&pooled)?)?; // [batch, S]
        let both = self
            .excite
            .forward(&pooled)?
            .f_unsqueeze(-1)?
            .f_unsqueeze(-1)?; // [batch, 2C, 1, 1]
        let channels = y.f_size_at(1)?;
        let gamma = both.f_narrow(1, 0, channels)?.f_sigmoid()?;
        let beta = both.f_narrow(1, channels, channels)?;
        y.f_mul(&gamma)?.f_add_(&beta)
    }
}

trait SizeAt {
    fn f_size_at(&self, axis: usize) -> Result<i64>;
}

impl SizeAt for Tensor {
    fn f_size_at(&self, axis: usize) -> Result<i64> {
        let size = self.size();
        size.get(axis)
            .copied()
            .ok_or_else(|| tch::TchError::Shape(format!("no axis {axis} in {size:?}")))
    }
}
