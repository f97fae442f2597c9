//! What the heads of a network attend to in one position or game. Knows neither figures nor pages.

use std::sync::Arc;

use tch::{Device, Kind, Tensor};

use super::gpt::Gpt;
use super::settings::device;
use super::torch::{self, Network, Placement};
use super::transformer::Transformer;
use super::{AnyFile, Body, ModelError, ModelOptions};
use crate::chess::{Color, Game, Square};
use crate::encode::game_tokens::{FIRST_MOVE, row_of, token_name};
use crate::encode::{InputPlanes, PLANES, SQUARES, SquareTokens, TOKENS_ROW};
use crate::eval::Leaf;

/// Weights of every head, after the softmax.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMaps {
    /// What the N rows and columns are: squares of the real board a1 … h8, whoever moves, or tokens of a game.
    pub labels: Vec<String>,
    /// True when a row sees itself and those before only.
    pub causal: bool,
    /// Columns that are no move, of a game's tokens; none for squares.
    pub control: Option<Vec<usize>>,
    /// By layer and head, `[N query, N key]`.
    pub layers: Vec<Vec<Vec<f32>>>,
}

/// The attention maps of the last position of a game, or of its moves for a GPT, computed in fp32.
///
/// # Errors
/// Names a network that has no attention layers in its body, or a game that a GPT has no tokens for; or when
/// libtorch refuses.
pub fn attention_maps(
    file: &AnyFile,
    options: &ModelOptions,
    game: &Game,
) -> Result<AttentionMaps, ModelError> {
    let _guard = tch::no_grad_guard();
    let device = device(&options.device)?;
    let leaf = Leaf::of_game(Arc::new(game.clone()));
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
                    what: "has a body without attention layers (expected an attention body, a \
                           transformer or a GPT)"
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
            SquareTokens::encode(&leaf.position, |back| history.get(back)).write(&mut row);
            let tensors = file.on_device(device, Kind::Float, Kind::Float)?;
            let network = Transformer::new(&file.config, &tensors)?;
            let tokens = Tensor::f_from_slice(&row)?
                .f_reshape([1, 64, -1])?
                .f_to_device(device)?;
            let layers = network.attention_maps(&tokens)?.into_iter();
            let layers = layers.map(|layer| layer.f_get(0)).collect::<Result<_, _>>();
            (layers?, order(|square| square ^ flip))
        }
        AnyFile::Gpt(file) => return of_gpt(file, device, game),
    };
    let layers = layers.iter().map(|layer| heads(layer, &seen));
    Ok(AttentionMaps {
        labels: (0..64).map(|i| Square::new(i).to_string()).collect(),
        causal: false,
        control: None,
        layers: layers.collect::<Result<_, _>>()?,
    })
}

/// Ratings that a GPT is asked for where nobody says.
const RATING: u16 = 2000;

fn of_gpt(file: &super::GptFile, device: Device, game: &Game) -> Result<AttentionMaps, ModelError> {
    let refused = |what: &str| ModelError::Unsupported {
        name: file.name.clone(),
        what: what.to_owned(),
    };
    let tokens = row_of(game, RATING, RATING).ok_or_else(|| {
        refused("reads standard games from the start position, and this is another; that")
    })?;
    if tokens.len() as i64 > file.config.context {
        return Err(refused("has too short a context for so many moves; that"));
    }
    let gpt = Gpt::new(
        &file.config,
        &file.on_device(device, Kind::Float, Kind::Float)?,
    )?;
    let numbers: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
    let row = Tensor::f_from_slice(&numbers)?.f_to_device(device)?;
    let count = tokens.len();
    let layers = gpt.attention_maps(&row)?.into_iter().map(|layer| {
        let numbers = torch::numbers(&layer)?;
        let heads = numbers.chunks_exact(count * count).map(<[f32]>::to_vec);
        Ok::<_, ModelError>(heads.collect())
    });
    Ok(AttentionMaps {
        labels: tokens.iter().filter_map(|&t| token_name(t)).collect(),
        causal: true,
        control: Some((0..count).filter(|&i| tokens[i] < FIRST_MOVE).collect()),
        layers: layers.collect::<Result<_, _>>()?,
    })
}

/// The network's square for each real one.
fn order(seen: impl Fn(u8) -> u8) -> [usize; 64] {
    std::array::from_fn(|square| usize::from(seen(square as u8)))
}

/// The heads of a layer `[heads, 64, 64]`, in the real order.
fn heads(layer: &Tensor, seen: &[usize; 64]) -> Result<Vec<Vec<f32>>, ModelError> {
    let numbers = torch::numbers(&layer.f_to_device(Device::Cpu)?)?;
    let real = |head: &[f32]| {
        let row = |&query: &usize| seen.map(|key| head[64 * query + key]);
        seen.iter().flat_map(row).collect()
    };
    Ok(numbers.chunks_exact(64 * 64).map(real).collect())
}
