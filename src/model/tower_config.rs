//! The numbers of a residual tower as plain vectors, and whether they fit together. Knows neither files nor
//! how the tower is computed.

pub use super::matmul::Activation;

/// A convolution's numbers: `weights` [outputs, inputs, size, size], `bias` [outputs].
#[derive(Clone, Debug, Default)]
pub struct ConvConfig {
    pub inputs: usize,
    pub outputs: usize,
    /// 1 or 3 squares a side.
    pub size: usize,
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

/// A dense layer's numbers: `weights` [outputs, inputs], `bias` [outputs].
#[derive(Clone, Debug, Default)]
pub struct DenseConfig {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

/// Squeeze-and-excitation: mean over squares → `squeeze` + activation → `excite` to 2·channels (γ, then
/// β) → sigmoid(γ)·y + β.
#[derive(Clone, Debug, Default)]
pub struct SeConfig {
    pub squeeze: DenseConfig,
    pub excite: DenseConfig,
}

/// act(x + se(conv2(act(conv1(x))))).
#[derive(Clone, Debug, Default)]
pub struct BlockConfig {
    pub conv1: ConvConfig,
    pub conv2: ConvConfig,
    pub se: Option<SeConfig>,
}

/// One layer of a head. Between the last convolution and the first dense layer the activations are
/// flattened channel-major.
#[derive(Clone, Debug)]
pub enum HeadLayer {
    Conv(ConvConfig, Activation),
    Dense(DenseConfig, Activation),
}

/// A whole network as numbers.
#[derive(Clone, Debug, Default)]
pub struct TowerConfig {
    /// Of the tower and the squeeze layers; heads say their own.
    pub activation: Activation,
    /// 3×3, from the input planes.
    pub input: ConvConfig,
    pub blocks: Vec<BlockConfig>,
    /// Layers from the tower's output on, one list a head.
    pub heads: Vec<Vec<HeadLayer>>,
    /// Whether [`TowerOutput::trunk`] is wanted.
    pub keep_trunk: bool,
}

/// A configuration whose numbers do not fit together, or an input of the wrong size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TowerError {
    #[error(
        "{layer}: {weights} weights and {bias} biases, expected {outputs}x{inputs}x{size}x{size} and {outputs}"
    )]
    Length {
        layer: String,
        weights: usize,
        bias: usize,
        inputs: usize,
        outputs: usize,
        size: usize,
    },
    #[error("{layer}: {found} inputs, expected {expected}")]
    Inputs {
        layer: String,
        found: usize,
        expected: usize,
    },
    #[error("{layer}: {found} outputs, expected {expected}")]
    Outputs {
        layer: String,
        found: usize,
        expected: usize,
    },
    #[error("{layer}: convolution of {size}x{size}, expected {expected}")]
    Size {
        layer: String,
        size: usize,
        expected: &'static str,
    },
    #[error("{layer}: a convolution cannot follow a dense layer")]
    ConvAfterDense { layer: String },
    #[error("{found} plane values, expected {batch} x {planes} x 64")]
    Planes {
        found: usize,
        batch: usize,
        planes: usize,
    },
}

pub(super) fn conv_length(layer: &str, conv: &ConvConfig) -> TowerError {
    TowerError::Length {
        layer: layer.to_owned(),
        weights: conv.weights.len(),
        bias: conv.bias.len(),
        inputs: conv.inputs,
        outputs: conv.outputs,
        size: conv.size,
    }
}

pub(super) fn check_conv(
    layer: &str,
    conv: &ConvConfig,
    inputs: usize,
    sizes: &[usize],
) -> Result<(), TowerError> {
    if !sizes.contains(&conv.size) {
        return Err(TowerError::Size {
            layer: layer.to_owned(),
            size: conv.size,
            expected: if sizes.len() > 1 { "1x1 or 3x3" } else { "3x3" },
        });
    }
    if conv.inputs != inputs {
        return Err(TowerError::Inputs {
            layer: layer.to_owned(),
            found: conv.inputs,
            expected: inputs,
        });
    }
    let area = conv.size * conv.size;
    let weights = inputs
        .checked_mul(conv.outputs)
        .and_then(|n| n.checked_mul(area));
    let fits = weights == Some(conv.weights.len()) && conv.bias.len() == conv.outputs;
    if !fits || conv.weights.is_empty() {
        return Err(conv_length(layer, conv));
    }
    Ok(())
}

pub(super) fn check_dense(
    layer: &str,
    dense: &DenseConfig,
    inputs: usize,
) -> Result<(), TowerError> {
    if dense.inputs != inputs {
        return Err(TowerError::Inputs {
            layer: layer.to_owned(),
            found: dense.inputs,
            expected: inputs,
        });
    }
    let weights = inputs.checked_mul(dense.outputs);
    let fits = weights == Some(dense.weights.len()) && dense.bias.len() == dense.outputs;
    if !fits || dense.weights.is_empty() {
        return Err(TowerError::Length {
            layer: layer.to_owned(),
            weights: dense.weights.len(),
            bias: dense.bias.len(),
            inputs: dense.inputs,
            outputs: dense.outputs,
            size: 1,
        });
    }
    Ok(())
}

pub(super) fn check_outputs(layer: &str, found: usize, expected: usize) -> Result<(), TowerError> {
    if found != expected {
        return Err(TowerError::Outputs {
            layer: layer.to_owned(),
            found,
            expected,
        });
    }
    Ok(())
}
