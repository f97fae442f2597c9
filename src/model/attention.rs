//! What the heads of a network attend to in one position, on the squares of the real board. Knows neither
//! figures nor pages.

use tch::{Device, Kind, Tensor};

use super::settings::device;
use super::torch::{self, Network, Placement};
use super::transformer::Transformer;
use super::{AnyFile, Body, ModelError, ModelOptions};
use crate::chess::Color;
use crate::encode::{InputPlanes, PLANES, SQUARES, SquareTokens, TOKENS_ROW};
use crate::eval::Leaf;

/// A head's weights, rows of queries one after the other: square a1 = 0 to h8 = 63 of the real board, whoever
/// moves.
pub type HeadMap = Vec<f32>;

/// The attention maps of a leaf's position, a list of heads a layer, computed in fp32.
///
/// # Errors
/// Names a network that has no attention layers in its body; or when libtorch refuses.
pub fn attention_maps(
    file: &AnyFile,
    options: &ModelOptions,
    leaf: &Leaf,
) -> Result<Vec<Vec<HeadMap>>, ModelError> {
    let _guard = tch::no_grad_guard();
    let device = device(&options.device)?;
    let history = leaf.history();
    let flip = match leaf.position.turn() {
        Color::White => 0,
        Color::Black => 56,
    };
    let (layers, seen) = match file {
        AnyFile::Lc0(file) => {
            let weights = file.weights(options.policy_head, options.value_head)?;
            let encoders = match &weights.body {
                Body::Tower(_) => 0,
                Body::Attention(body) => body.encoders.len(),
            };
            if encoders == 0 {
                return Err(ModelError::Unsupported {
                    name: weights.name,
                    what: "has no attention layers in its body, so there are no maps; \
                           expected an attention-body Lc0 network or a transformer"
                        .to_owned(),
                });
            }
            let encoded = InputPlanes::encode(
                weights.format.input,
                options.history_fill,
                &leaf.position,
                |back| history.get(back),
            );
            let mut row = [0.0; PLANES * SQUARES];
            encoded.write(&mut row);
            let place = Placement {
                device,
                kind: Kind::Float,
                storage: Kind::Float,
            };
            let layers = Network::new(place, &weights)?.attention(&row)?;
            let turn = encoded.turn;
            (layers, order(|square| turn.square(square ^ flip)))
        }
        AnyFile::Transformer(file) => {
            let mut row = [0.0; TOKENS_ROW];
            SquareTokens::encode(options.history_fill, &leaf.position, |back| {
                history.get(back)
            })
            .write(&mut row);
            let tensors = file.on_device(device, Kind::Float, Kind::Float)?;
            let network = Transformer::new(&file.config, &tensors)?;
            let tokens = Tensor::f_from_slice(&row)?
                .f_reshape([1, 64, -1])?
                .f_to_device(device)?;
            let layers = network.attention_maps(&tokens)?.into_iter();
            let layers = layers.map(|layer| layer.f_get(0)).collect::<Result<_, _>>();
            (layers?, order(|square| square ^ flip))
        }
    };
    layers.iter().map(|layer| heads(layer, &seen)).collect()
}

/// The network's square for each real one.
fn order(seen: impl Fn(u8) -> u8) -> [usize; 64] {
    std::array::from_fn(|square| usize::from(seen(square as u8)))
}

/// The heads of a layer `[heads, 64, 64]`, in the real order.
fn heads(layer: &Tensor, seen: &[usize; 64]) -> Result<Vec<HeadMap>, ModelError> {
    let numbers = torch::numbers(&layer.f_to_device(Device::Cpu)?)?;
    let real = |head: &[f32]| {
        let row = |&query: &usize| seen.map(|key| head[64 * query + key]);
        seen.iter().flat_map(row).collect()
    };
    Ok(numbers.chunks_exact(64 * 64).map(real).collect())
}
