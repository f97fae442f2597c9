//! Layers as tensors: dense, convolution, layer norm, activations. Knows no network.

use std::ops::Deref;

use tch::{Device, Kind, TchError, Tensor};

use crate::model::format::Activation;
use crate::model::weights;

/// Results of tensor operations.
pub type Result<T> = std::result::Result<T, TchError>;

/// A constant tensor; a clone shares its memory.
#[derive(Debug)]
pub struct Param(Tensor);

impl Clone for Param {
    fn clone(&self) -> Param {
        Param(self.0.shallow_clone())
    }
}

impl Deref for Param {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

/// Where tensors live and what numbers they hold.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// Where they live.
    pub device: Device,
    /// What is computed with.
    pub kind: Kind,
    /// What the weights are rounded to first.
    pub storage: Kind,
}

impl Placement {
    /// On the CPU in full precision.
    pub const CPU_FP32: Placement = Placement {
        device: Device::Cpu,
        kind: Kind::Float,
        storage: Kind::Float,
    };

    /// A constant with that shape.
    pub fn param(self, values: &[f32], shape: &[i64]) -> Result<Param> {
        let tensor = Tensor::f_from_slice(values)?
            .f_reshape(shape)?
            .f_to_kind(self.storage)?
            .f_to_kind(self.kind)?
            .f_to_device(self.device)?;
        Ok(Param(tensor))
    }
}

/// y = W·x + b over the last axis.
#[derive(Clone, Debug)]
pub struct Dense {
    weights: Param,
    bias: Param,
}

impl Dense {
    pub fn new(place: Placement, dense: &weights::Dense) -> Result<Dense> {
        let shape = [dense.outputs as i64, dense.inputs as i64];
        Ok(Dense {
            weights: place.param(&dense.weights, &shape)?,
            bias: place.param(&dense.bias, &shape[..1])?,
        })
    }

    /// A dense layer whose input the file keeps as `[channels, 64]`, for an input `[64, channels]`.
    pub fn of_channel_major(place: Placement, dense: &weights::Dense) -> Result<Dense> {
        let channels = dense.inputs / 64;
        let mut rearranged = dense.clone();
        for (row, from) in rearranged
            .weights
            .chunks_exact_mut(dense.inputs)
            .zip(dense.weights.chunks_exact(dense.inputs))
        {
            for (i, value) in row.iter_mut().enumerate() {
                *value = from[(i % channels) * 64 + i / channels];
            }
        }
        Dense::new(place, &rearranged)
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.f_linear(&self.weights, Some(&*self.bias))
    }
}

/// A convolution on channels-last boards `[batch, channels, 8, 8]`.
#[derive(Clone, Debug)]
pub struct Conv {
    weights: Param,
    bias: Param,
    padding: i64,
}

impl Conv {
    pub fn new(place: Placement, conv: &weights::Conv) -> Result<Conv> {
        let (outputs, inputs, kernel) =
            (conv.outputs as i64, conv.inputs as i64, conv.kernel as i64);
        let weights = place.param(&conv.weights, &[outputs, inputs, kernel, kernel])?;
        // Channels last: stored [out, ky, kx, in], seen as [out, in, ky, kx].
        let weights = weights
            .f_permute([0, 2, 3, 1])?
            .f_contiguous()?
            .f_permute([0, 3, 1, 2])?;
        Ok(Conv {
            weights: Param(weights),
            bias: place.param(&conv.bias, &[outputs])?,
            padding: kernel / 2,
        })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let padding = [self.padding, self.padding];
        x.f_conv2d(&self.weights, Some(&*self.bias), [1, 1], padding, [1, 1], 1)
    }
}

/// Layer norm over the last axis.
#[derive(Clone, Debug)]
pub struct Norm {
    gammas: Param,
    betas: Param,
    width: i64,
    epsilon: f64,
}

impl Norm {
    pub fn new(place: Placement, norm: &weights::Norm, epsilon: f64) -> Result<Norm> {
        let width = norm.gammas.len() as i64;
        Ok(Norm {
            gammas: place.param(&norm.gammas, &[width])?,
            betas: place.param(&norm.betas, &[width])?,
            width,
            epsilon,
        })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.f_layer_norm(
            [self.width],
            Some(&*self.gammas),
            Some(&*self.betas),
            self.epsilon,
            true,
        )
    }
}

impl Activation {
    /// Applies the function, in place where it can.
    pub fn forward(self, mut x: Tensor) -> Result<Tensor> {
        match self {
            Activation::Relu => x.f_relu_(),
            Activation::Mish => x.f_mish_(),
            Activation::None => Ok(x),
            Activation::Tanh => x.f_tanh_(),
            Activation::Sigmoid => x.f_sigmoid_(),
            Activation::Selu => x.f_selu_(),
            Activation::Swish => x.f_silu_(),
            Activation::Relu2 => x.f_relu_()?.f_square_(),
            Activation::Softmax => x.f_softmax(-1, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_have_their_values() {
        let expected = [
            (Activation::Relu, [0.0, 2.0]),
            (Activation::Mish, [-0.303_401_5, 1.943_958_9]),
            (Activation::None, [-1.0, 2.0]),
            (Activation::Tanh, [-0.761_594_2, 0.964_027_6]),
            (Activation::Sigmoid, [0.268_941_4, 0.880_797]),
            (Activation::Selu, [-1.111_330_7, 2.101_402]),
            (Activation::Swish, [-0.268_941_4, 1.761_594_2]),
            (Activation::Relu2, [0.0, 4.0]),
            (Activation::Softmax, [0.047_425_9, 0.952_574_1]),
        ];
        for (activation, values) in expected {
            let out = activation
                .forward(Tensor::from_slice(&[-1.0f32, 2.0]))
                .unwrap();
            let out = Vec::<f32>::try_from(out).unwrap();
            for (got, wanted) in out.iter().zip(values) {
                assert!((got - wanted).abs() < 1e-6, "{activation:?}: {out:?}");
            }
        }
    }
}
