//! What kind of network a file holds: its format numbers with the defaults of old files filled in.
//! Knows no tensors.

use crate::encode::{InputFormat, PolicyMap};

use super::error::ModelError;
use super::proto::{Net, NetworkFormat, Weights};

/// Element-wise functions of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0)
    Relu,
    /// x·tanh(ln(1 + eˣ))
    Mish,
    /// x
    None,
    /// tanh x
    Tanh,
    /// 1 / (1 + e⁻ˣ)
    Sigmoid,
    /// Scaled exponential linear unit.
    Selu,
    /// x·sigmoid(x)
    Swish,
    /// max(x, 0)²
    Relu2,
    /// Softmax over the last axis.
    Softmax,
}

/// The network before its heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Residual convolution tower.
    Tower,
    /// Transformer encoders over the 64 squares.
    Attention,
}

/// What an attention body sees beside the planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputEmbedding {
    /// Nothing.
    None,
    /// A fixed map of the squares a queen or knight reaches.
    PositionMap,
    /// A dense layer over the whole board.
    Dense,
}

/// A network's format, complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetFormat {
    /// How positions become planes.
    pub input: InputFormat,
    /// What lies before the heads.
    pub body: BodyKind,
    /// Form of the policy's outputs.
    pub policy: PolicyMap,
    /// Three value outputs rather than one.
    pub wdl: bool,
    /// A moves-left head.
    pub moves_left: bool,
    /// Where nothing else is said.
    pub default_activation: Activation,
    /// In smolgen.
    pub smolgen_activation: Activation,
    /// In the encoders' feed-forward part.
    pub ffn_activation: Activation,
    /// Of attention bodies.
    pub embedding: InputEmbedding,
}

impl NetFormat {
    /// Reads the format of a network and fills in what old files leave out.
    pub fn of(net: &Net, weights: &Weights, name: &str) -> Result<NetFormat, ModelError> {
        let unknown = |field: &str, found: i32, expected| ModelError::UnknownFormat {
            name: name.to_owned(),
            field: field.to_owned(),
            found: if found == 0 {
                "unset (0)".to_owned()
            } else {
                found.to_string()
            },
            expected,
        };
        let file = net.format.as_deref();
        if let Some(encoding @ (i32::MIN..0 | 5..)) = file.and_then(|f| f.weights_encoding) {
            return Err(unknown("weights_encoding", encoding, "1 (linear16)"));
        }
        let given = file.and_then(|f| f.network_format.as_deref());
        let mut format = given.cloned().unwrap_or(NetworkFormat {
            input: Some(1),
            network: Some(3),
            policy: Some(1),
            value: Some(1),
            ..NetworkFormat::default()
        });
        modernise(&mut format, weights);

        const ACTIVATIONS: &str = "0 to 9";
        let default_activation = match format.default_activation.unwrap_or(0) {
            0 => Activation::Relu,
            1 => Activation::Mish,
            other => return Err(unknown("default_activation", other, "0 (ReLU) or 1 (mish)")),
        };
        let activation = |field, number: Option<i32>| {
            let number = number.unwrap_or(0);
            activation(number, default_activation)
                .ok_or_else(|| unknown(field, number, ACTIVATIONS))
        };
        let input = format.input.unwrap_or(0);
        let body = match format.network.unwrap_or(0) {
            3 | 4 => BodyKind::Tower,
            6 | 7 => BodyKind::Attention,
            5 => {
                return Err(ModelError::Unsupported {
                    name: name.to_owned(),
                    what: "is an ONNX graph (network format 5)".to_owned(),
                });
            }
            other => return Err(unknown("network format", other, "1 to 4, 6, 7 or 134")),
        };
        let policy = match format.policy.unwrap_or(0) {
            1 => PolicyMap::Flat,
            2 => PolicyMap::Convolution,
            3 => PolicyMap::Attention,
            other => {
                return Err(unknown(
                    "policy format",
                    other,
                    "1 (flat), 2 (convolution) or 3 (attention)",
                ));
            }
        };
        Ok(NetFormat {
            input: InputFormat::from_number(input)
                .ok_or_else(|| unknown("input format", input, "1, 2, 3, 4, 5, 132 or 133"))?,
            body,
            policy,
            wdl: match format.value.unwrap_or(0) {
                1 => false,
                2 => true,
                other => return Err(unknown("value format", other, "1 (tanh) or 2 (WDL)")),
            },
            moves_left: match format.moves_left.unwrap_or(0) {
                0 => false,
                1 => true,
                other => return Err(unknown("moves_left format", other, "0 (none) or 1")),
            },
            default_activation,
            smolgen_activation: activation("smolgen_activation", format.smolgen_activation)?,
            ffn_activation: activation("ffn_activation", format.ffn_activation)?,
            embedding: match format.input_embedding {
                None | Some(1) => InputEmbedding::PositionMap,
                Some(0) => InputEmbedding::None,
                Some(2) => InputEmbedding::Dense,
                Some(other) => {
                    return Err(unknown(
                        "input_embedding",
                        other,
                        "0 (none), 1 (positional map) or 2 (dense)",
                    ));
                }
            },
        })
    }
}

/// Rewrites what old files say into what later ones would say.
fn modernise(format: &mut NetworkFormat, weights: &Weights) {
    if let Some(old @ (1 | 2)) = format.network {
        format.network = Some(old + 2);
        format.policy = Some(1);
        format.value = Some(1);
    }
    if format.network == Some(4) && !weights.encoder.is_empty() {
        format.network = Some(6);
        if weights.smolgen_w.is_some() {
            format.ffn_activation = Some(8);
            format.smolgen_activation = Some(7);
        }
    }
    if format.network == Some(6) && weights.policy_heads.is_some() && weights.value_heads.is_some()
    {
        format.network = Some(7);
        format.input_embedding = Some(2);
    }
    if format.network == Some(134) {
        format.network = Some(7);
    }
}

fn activation(number: i32, default: Activation) -> Option<Activation> {
    Some(match number {
        0 => default,
        1 => Activation::Mish,
        2 => Activation::Relu,
        3 => Activation::None,
        4 => Activation::Tanh,
        5 => Activation::Sigmoid,
        6 => Activation::Selu,
        7 => Activation::Swish,
        8 => Activation::Relu2,
        9 => Activation::Softmax,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::proto::{EncoderLayer, Format, PolicyHeads, ValueHeads};

    fn format(given: NetworkFormat, weights: &Weights) -> Result<NetFormat, ModelError> {
        let net = Net {
            format: Some(Box::new(Format {
                weights_encoding: Some(1),
                network_format: Some(Box::new(given)),
            })),
            ..Net::default()
        };
        NetFormat::of(&net, weights, "f")
    }

    fn tower(network: i32) -> NetworkFormat {
        NetworkFormat {
            input: Some(1),
            network: Some(network),
            policy: Some(2),
            value: Some(2),
            ..NetworkFormat::default()
        }
    }

    #[test]
    fn old_files_get_the_defaults_of_their_time() {
        let bare = NetFormat::of(&Net::default(), &Weights::default(), "f").unwrap();
        assert_eq!(
            (bare.body, bare.policy, bare.wdl),
            (BodyKind::Tower, PolicyMap::Flat, false)
        );
        for network in [1, 2] {
            let old = format(tower(network), &Weights::default()).unwrap();
            assert_eq!(old, bare);
        }
        let kept = format(tower(4), &Weights::default()).unwrap();
        assert_eq!((kept.policy, kept.wdl), (PolicyMap::Convolution, true));
    }

    #[test]
    fn attention_bodies_are_recognised_under_their_old_names() {
        let mut weights = Weights {
            encoder: vec![EncoderLayer::default()],
            ..Weights::default()
        };
        let plain = format(tower(4), &weights).unwrap();
        assert_eq!(plain.body, BodyKind::Attention);
        assert_eq!(plain.ffn_activation, Activation::Relu);
        assert_eq!(plain.embedding, InputEmbedding::PositionMap);
        weights.smolgen_w = Some(Box::default());
        let smolgen = format(tower(4), &weights).unwrap();
        assert_eq!(smolgen.ffn_activation, Activation::Relu2);
        assert_eq!(smolgen.smolgen_activation, Activation::Swish);
        weights.policy_heads = Some(Box::new(PolicyHeads::default()));
        weights.value_heads = Some(Box::new(ValueHeads::default()));
        let heads = format(tower(6), &weights).unwrap();
        assert_eq!(heads.embedding, InputEmbedding::Dense);
    }

    #[test]
    fn unknown_numbers_are_refused_by_field() {
        let weights = Weights::default();
        let refused = |change: fn(&mut NetworkFormat)| {
            let mut given = tower(4);
            change(&mut given);
            format(given, &weights).unwrap_err().to_string()
        };
        assert!(refused(|f| f.input = Some(6)).contains("input format 6"));
        assert!(refused(|f| f.input = None).contains("input format unset"));
        assert!(refused(|f| f.network = Some(9)).contains("network format 9"));
        assert!(refused(|f| f.network = Some(5)).contains("ONNX"));
        assert!(refused(|f| f.policy = Some(4)).contains("policy format 4"));
        assert!(refused(|f| f.value = Some(3)).contains("value format 3"));
        assert!(refused(|f| f.moves_left = Some(2)).contains("moves_left format 2"));
        assert!(refused(|f| f.default_activation = Some(2)).contains("default_activation 2"));
        assert!(refused(|f| f.ffn_activation = Some(10)).contains("ffn_activation 10"));
        assert!(refused(|f| f.input_embedding = Some(3)).contains("input_embedding 3"));
    }
}
