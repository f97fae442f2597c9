//! Tower networks in fp32 on one CPU core, without libtorch where [`super::cpu_tower`] can. Knows which
//! networks those are; neither files nor positions.

use super::cpu_tower::{CpuTower, TowerOutput};
use super::error::ModelError;
use super::format::Activation;
use super::lanes::Isa;
use super::torch::{self, Outputs, Placement};
use super::tower_config::{
    Activation as TowerActivation, BlockConfig, ConvConfig, DenseConfig, HeadLayer, SeConfig,
    TowerConfig,
};
use super::weights::{Body, Conv, Dense, NetworkWeights, Policy, ScalarHead};

/// A tower network on one core. A clone shares the weights.
pub struct CpuNetwork {
    tower: CpuTower,
    /// An attention policy runs in libtorch, on the tower's output.
    policy: Option<torch::Policy>,
    moves_left: bool,
    output: TowerOutput,
}

impl Clone for CpuNetwork {
    fn clone(&self) -> CpuNetwork {
        CpuNetwork {
            tower: self.tower.share(),
            policy: self.policy.clone(),
            moves_left: self.moves_left,
            output: TowerOutput::default(),
        }
    }
}

impl CpuNetwork {
    /// The network if this path is for it: a tower, on a processor with vector instructions.
    ///
    /// # Errors
    /// When libtorch refuses the policy head.
    pub fn new(weights: &NetworkWeights) -> Result<Option<CpuNetwork>, ModelError> {
        if Isa::detect() == Isa::Portable {
            return Ok(None);
        }
        let Some(config) = tower_config(weights) else {
            return Ok(None);
        };
        let Ok(tower) = CpuTower::new(&config) else {
            return Ok(None);
        };
        let policy = match config.keep_trunk {
            true => Some(torch::Policy::new(Placement::CPU_FP32, weights, None)?),
            false => None,
        };
        Ok(Some(CpuNetwork {
            tower,
            policy,
            moves_left: weights.moves_left.is_some(),
            output: TowerOutput::default(),
        }))
    }

    /// Evaluates planes `[batch, 112, 64]`.
    pub fn forward(&mut self, planes: &[f32], batch: usize) -> Result<Outputs, ModelError> {
        self.tower.forward(planes, batch, &mut self.output)?;
        let mut heads = self.output.heads.iter_mut().map(std::mem::take);
        let value = heads.next().unwrap_or_default();
        let moves_left = match self.moves_left {
            true => heads.next().unwrap_or_default(),
            false => Vec::new(),
        };
        let policy = match &self.policy {
            Some(policy) => policy.forward_numbers(&self.output.trunk, batch)?,
            None => heads.next().unwrap_or_default(),
        };
        Ok(Outputs {
            policy,
            value,
            moves_left,
        })
    }
}

/// The network as the tower takes it: value, moves left, policy in that order.
fn tower_config(weights: &NetworkWeights) -> Option<TowerConfig> {
    let Body::Tower(tower) = &weights.body else {
        return None;
    };
    let activation = match weights.format.default_activation {
        Activation::Relu => TowerActivation::Relu,
        Activation::Mish => TowerActivation::Mish,
        _ => return None,
    };
    let scalar = |head: &ScalarHead| {
        vec![
            HeadLayer::Conv(per_square(&head.embedding), activation),
            HeadLayer::Dense(dense(&head.hidden), activation),
            HeadLayer::Dense(dense(&head.output), TowerActivation::None),
        ]
    };
    let mut heads = vec![scalar(&weights.value)];
    heads.extend(weights.moves_left.as_ref().map(scalar));
    let keep_trunk = match &weights.policy {
        Policy::Flat {
            embedding,
            dense: flat,
        } => {
            heads.push(vec![
                HeadLayer::Conv(per_square(embedding), activation),
                HeadLayer::Dense(dense(flat), TowerActivation::None),
            ]);
            false
        }
        Policy::Convolution { conv1, conv2 } => {
            heads.push(vec![
                HeadLayer::Conv(conv(conv1), activation),
                HeadLayer::Conv(conv(conv2), TowerActivation::None),
            ]);
            false
        }
        // Smolgen's shared matrix belongs to the whole network.
        Policy::Attention(policy) if policy.encoders.iter().any(|e| e.smolgen.is_some()) => {
            return None;
        }
        Policy::Attention(_) => true,
    };
    Some(TowerConfig {
        activation,
        input: conv(&tower.input),
        blocks: tower
            .blocks
            .iter()
            .map(|block| BlockConfig {
                conv1: conv(&block.conv1),
                conv2: conv(&block.conv2),
                se: block.se.as_ref().map(|se| SeConfig {
                    squeeze: dense(&se.squeeze),
                    excite: dense(&se.excite),
                }),
            })
            .collect(),
        heads,
        keep_trunk,
    })
}

fn conv(conv: &Conv) -> ConvConfig {
    ConvConfig {
        inputs: conv.inputs,
        outputs: conv.outputs,
        size: conv.kernel,
        weights: conv.weights.clone(),
        bias: conv.bias.clone(),
    }
}

fn per_square(dense: &Dense) -> ConvConfig {
    ConvConfig {
        inputs: dense.inputs,
        outputs: dense.outputs,
        size: 1,
        weights: dense.weights.clone(),
        bias: dense.bias.clone(),
    }
}

fn dense(dense: &Dense) -> DenseConfig {
    DenseConfig {
        inputs: dense.inputs,
        outputs: dense.outputs,
        weights: dense.weights.clone(),
        bias: dense.bias.clone(),
    }
}
