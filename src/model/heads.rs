//! The heads of a network file: which are there, and the chosen ones as checked weights. Every head of
//! the file is checked, chosen or not. Knows no libtorch.

use crate::encode::{POLICY_SIZE, PolicyMap};

use super::assemble::{SMOLGEN_LOGITS, ratio, vote};
use super::error::ModelError;
use super::format::{BodyKind, InputEmbedding, NetFormat};
use super::layer::Decoder;
use super::proto::{self, ConvBlock, OptLayer};
use super::weights::{AttentionPolicy, Dense, NetworkWeights, Policy, ScalarHead};

const CONVOLUTION_PLANES: usize = 80;

/// A policy head of a network with several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyHead {
    /// The plain one.
    #[default]
    Vanilla,
    /// Trained on what turned out better than expected.
    Optimistic,
    /// Softened targets.
    Soft,
    /// The opponent's reply.
    Opponent,
}

/// A value head of a network with several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueHead {
    /// Who won.
    #[default]
    Winner,
    /// The search's Q.
    Q,
    /// A short-term average.
    ShortTerm,
}

impl PolicyHead {
    const ALL: [PolicyHead; 4] = [
        PolicyHead::Vanilla,
        PolicyHead::Optimistic,
        PolicyHead::Soft,
        PolicyHead::Opponent,
    ];

    /// The head with that name in the options.
    pub fn from_name(name: &str) -> Option<PolicyHead> {
        PolicyHead::ALL.into_iter().find(|head| head.name() == name)
    }

    /// Its name in the options.
    pub fn name(self) -> &'static str {
        match self {
            PolicyHead::Vanilla => "vanilla",
            PolicyHead::Optimistic => "optimistic",
            PolicyHead::Soft => "soft",
            PolicyHead::Opponent => "opponent",
        }
    }

    fn of(self, heads: &proto::PolicyHeads) -> Option<&proto::PolicyHead> {
        let head = match self {
            PolicyHead::Vanilla => &heads.vanilla,
            PolicyHead::Optimistic => &heads.optimistic,
            PolicyHead::Soft => &heads.soft,
            PolicyHead::Opponent => &heads.opponent,
        };
        head.as_deref()
            .filter(|head| **head != proto::PolicyHead::default())
    }
}

impl ValueHead {
    const ALL: [ValueHead; 3] = [ValueHead::Winner, ValueHead::Q, ValueHead::ShortTerm];

    /// The head with that name in the options.
    pub fn from_name(name: &str) -> Option<ValueHead> {
        ValueHead::ALL.into_iter().find(|head| head.name() == name)
    }

    /// Its name in the options.
    pub fn name(self) -> &'static str {
        match self {
            ValueHead::Winner => "winner",
            ValueHead::Q => "q",
            ValueHead::ShortTerm => "st",
        }
    }

    fn of(self, heads: &proto::ValueHeads) -> Option<&proto::ValueHead> {
        let head = match self {
            ValueHead::Winner => &heads.winner,
            ValueHead::Q => &heads.q,
            ValueHead::ShortTerm => &heads.st,
        };
        head.as_deref()
            .filter(|head| **head != proto::ValueHead::default())
    }
}

/// The policy heads a file has.
pub fn policy_heads(weights: &proto::Weights) -> Vec<PolicyHead> {
    match weights.policy_heads.as_deref() {
        None => vec![PolicyHead::Vanilla],
        Some(heads) => PolicyHead::ALL
            .into_iter()
            .filter(|head| head.of(heads).is_some())
            .collect(),
    }
}

/// The value heads a file has.
pub fn value_heads(weights: &proto::Weights) -> Vec<ValueHead> {
    match weights.value_heads.as_deref() {
        None => vec![ValueHead::Winner],
        Some(heads) => ValueHead::ALL
            .into_iter()
            .filter(|head| head.of(heads).is_some())
            .collect(),
    }
}

/// What the tensors of a policy head are, wherever the file keeps them.
struct PolicyParts<'a> {
    path: String,
    embedding_path: String,
    ip_pol: (&'a OptLayer, &'a OptLayer),
    ip2_pol: (&'a OptLayer, &'a OptLayer),
    ip3_pol: (&'a OptLayer, &'a OptLayer),
    ip4_pol_w: &'a OptLayer,
    encoders: &'a [proto::EncoderLayer],
    headcount: Option<u32>,
    policy1: &'a Option<Box<ConvBlock>>,
    policy: &'a Option<Box<ConvBlock>>,
}

/// The same for a value or moves-left head; the names are those of messages.
struct ScalarParts<'a> {
    conv_path: String,
    conv: &'a Option<Box<ConvBlock>>,
    paths: [String; 3],
    dense: [(&'a OptLayer, &'a OptLayer); 3],
}

/// Reads all tensors of a network and keeps those of the chosen heads.
pub fn assemble(
    net: &proto::Net,
    name: &str,
    policy_head: PolicyHead,
    value_head: ValueHead,
) -> Result<NetworkWeights, ModelError> {
    let Some(weights) = net.weights.as_deref() else {
        let what = if net.onnx_model.is_some() {
            "is an ONNX graph"
        } else {
            "holds no weights"
        };
        return Err(ModelError::Unsupported {
            name: name.to_owned(),
            what: what.to_owned(),
        });
    };
    let decoder = Decoder { name };
    let mut format = NetFormat::of(net, weights, name)?;
    if format.embedding == InputEmbedding::None && decoder.fits_position_map(weights) {
        format.embedding = InputEmbedding::PositionMap;
    }
    let shared = decoder.count(&weights.smolgen_w);
    let per_head = shared.map(|count| (count / SMOLGEN_LOGITS).max(1));
    let smolgen_shared = match per_head {
        None => None,
        Some(g) => decoder.optional(
            "smolgen_w",
            &weights.smolgen_w,
            SMOLGEN_LOGITS * g,
            &format!("{SMOLGEN_LOGITS} × {g}"),
        )?,
    };
    let (body, width) = decoder.body(&format, weights, per_head)?;
    let reader = HeadReader {
        decoder,
        format: &format,
        width,
        per_head,
    };
    Ok(NetworkWeights {
        name: name.to_owned(),
        policy: reader.chosen_policy(weights, policy_head)?,
        value: reader.chosen_value(weights, value_head)?,
        moves_left: match format.moves_left {
            true => Some(reader.scalar(&moves_left_parts(weights), 1)?),
            false => None,
        },
        body,
        smolgen_shared,
        format,
    })
}

struct HeadReader<'a> {
    decoder: Decoder<'a>,
    format: &'a NetFormat,
    width: usize,
    per_head: Option<usize>,
}

impl HeadReader<'_> {
    fn missing_head(
        &self,
        kind: &'static str,
        wanted: &'static str,
        present: Vec<&str>,
    ) -> ModelError {
        ModelError::MissingHead {
            name: self.decoder.name.to_owned(),
            kind,
            wanted,
            present: present.join(", "),
        }
    }

    fn chosen_policy(
        &self,
        weights: &proto::Weights,
        wanted: PolicyHead,
    ) -> Result<Policy, ModelError> {
        let mut chosen = None;
        let present = policy_heads(weights);
        for &head in &present {
            let policy = match weights.policy_heads.as_deref() {
                None => self.policy(&top_level_policy(weights))?,
                Some(heads) => match head.of(heads) {
                    Some(parts) => self.policy(&policy_parts(weights, heads, parts, head))?,
                    None => continue,
                },
            };
            if head == wanted {
                chosen = Some(policy);
            }
        }
        chosen.ok_or_else(|| {
            self.missing_head(
                "policy",
                wanted.name(),
                present.iter().map(|head| head.name()).collect(),
            )
        })
    }

    fn chosen_value(
        &self,
        weights: &proto::Weights,
        wanted: ValueHead,
    ) -> Result<ScalarHead, ModelError> {
        let outputs = if self.format.wdl { 3 } else { 1 };
        let mut chosen = None;
        let present = value_heads(weights);
        for &head in &present {
            let value = match weights.value_heads.as_deref() {
                None => self.scalar(&top_level_value(weights), outputs)?,
                Some(heads) => match head.of(heads) {
                    Some(parts) => self.scalar(&value_parts(parts, head), outputs)?,
                    None => continue,
                },
            };
            if head == wanted {
                chosen = Some(value);
            }
        }
        chosen.ok_or_else(|| {
            self.missing_head(
                "value",
                wanted.name(),
                present.iter().map(|head| head.name()).collect(),
            )
        })
    }

    fn policy(&self, parts: &PolicyParts) -> Result<Policy, ModelError> {
        let decoder = self.decoder;
        if self.format.body == BodyKind::Attention && self.format.policy != PolicyMap::Attention {
            return Err(ModelError::Unsupported {
                name: decoder.name.to_owned(),
                what: format!(
                    "has an attention body with policy format {:?}",
                    self.format.policy
                ),
            });
        }
        let path = |part: &str| format!("{}{part}", parts.path);
        match self.format.policy {
            PolicyMap::Flat => {
                let per_square = ratio(decoder.count(parts.ip_pol.0), Some(64 * POLICY_SIZE));
                let conv = parts
                    .policy
                    .as_deref()
                    .and_then(|conv| decoder.conv_outputs(conv, self.width, 1));
                let planes = vote(&[conv, per_square]);
                let embedding = self.per_square(&path("policy"), parts.policy, planes)?;
                let inputs = 64 * embedding.outputs;
                Ok(Policy::Flat {
                    dense: decoder.dense(
                        &parts.embedding_path,
                        parts.ip_pol,
                        inputs,
                        Some(POLICY_SIZE),
                    )?,
                    embedding,
                })
            }
            PolicyMap::Convolution => {
                let width = (self.width, None);
                let conv1 = decoder.conv(&path("policy1"), parts.policy1, width, 3)?;
                let planes = (conv1.outputs, Some(CONVOLUTION_PLANES));
                Ok(Policy::Convolution {
                    conv2: decoder.conv(&path("policy"), parts.policy, planes, 3)?,
                    conv1,
                })
            }
            PolicyMap::Attention => {
                let outputs = vote(&[
                    decoder.count(parts.ip_pol.1),
                    ratio(decoder.count(parts.ip_pol.0), Some(self.width)),
                    ratio(
                        decoder.count(parts.ip2_pol.0),
                        decoder.count(parts.ip2_pol.1),
                    ),
                ]);
                let embedding =
                    decoder.dense(&parts.embedding_path, parts.ip_pol, self.width, outputs)?;
                let width = embedding.outputs;
                let depth = vote(&[
                    decoder.count(parts.ip2_pol.1),
                    decoder.count(parts.ip3_pol.1),
                    ratio(decoder.count(parts.ip4_pol_w), Some(4)),
                    ratio(decoder.count(parts.ip2_pol.0), Some(width)),
                ]);
                let q = decoder.dense(&path("ip2_pol"), parts.ip2_pol, width, depth)?;
                Ok(Policy::Attention(AttentionPolicy {
                    encoders: decoder.encoders(
                        &path("pol_encoder"),
                        parts.encoders,
                        width,
                        parts.headcount,
                        self.per_head,
                    )?,
                    k: decoder.dense(&path("ip3_pol"), parts.ip3_pol, width, Some(q.outputs))?,
                    promotion: decoder.exact(
                        &path("ip4_pol_w"),
                        parts.ip4_pol_w,
                        4 * q.outputs,
                        &format!("4 × {}", q.outputs),
                    )?,
                    embedding,
                    q,
                }))
            }
        }
    }

    /// A 1×1 convolution as a dense layer per square.
    fn per_square(
        &self,
        path: &str,
        conv: &Option<Box<ConvBlock>>,
        outputs: Option<usize>,
    ) -> Result<Dense, ModelError> {
        let conv = self.decoder.conv(path, conv, (self.width, outputs), 1)?;
        Ok(Dense {
            weights: conv.weights,
            bias: conv.bias,
            inputs: conv.inputs,
            outputs: conv.outputs,
        })
    }

    fn scalar(&self, parts: &ScalarParts, outputs: usize) -> Result<ScalarHead, ModelError> {
        let decoder = self.decoder;
        let [embedding, hidden, output] = &parts.dense;
        let width = vote(&[
            decoder.count(hidden.1),
            ratio(decoder.count(output.0), Some(outputs)),
        ]);
        let per_square = ratio(decoder.count(hidden.0), width.map(|width| 64 * width));
        let tower = self.format.body == BodyKind::Tower;
        let embedding = if tower {
            let conv = parts.conv.as_deref();
            let planes = conv.and_then(|conv| decoder.conv_outputs(conv, self.width, 1));
            self.per_square(&parts.conv_path, parts.conv, vote(&[planes, per_square]))?
        } else {
            let votes = [
                decoder.count(embedding.1),
                ratio(decoder.count(embedding.0), Some(self.width)),
                per_square,
            ];
            decoder.dense(&parts.paths[0], *embedding, self.width, vote(&votes))?
        };
        let hidden = decoder.dense(&parts.paths[1], *hidden, 64 * embedding.outputs, width)?;
        let output = decoder.dense(&parts.paths[2], *output, hidden.outputs, Some(outputs))?;
        Ok(ScalarHead {
            embedding,
            hidden,
            output,
        })
    }
}

fn top_level_policy(weights: &proto::Weights) -> PolicyParts<'_> {
    PolicyParts {
        path: String::new(),
        embedding_path: "ip_pol".to_owned(),
        ip_pol: (&weights.ip_pol_w, &weights.ip_pol_b),
        ip2_pol: (&weights.ip2_pol_w, &weights.ip2_pol_b),
        ip3_pol: (&weights.ip3_pol_w, &weights.ip3_pol_b),
        ip4_pol_w: &weights.ip4_pol_w,
        encoders: &weights.pol_encoder,
        headcount: weights.pol_headcount,
        policy1: &weights.policy1,
        policy: &weights.policy,
    }
}

/// The embedding is the head's own, else the one its group shares, else the network's.
fn policy_parts<'a>(
    weights: &'a proto::Weights,
    heads: &'a proto::PolicyHeads,
    head: &'a proto::PolicyHead,
    which: PolicyHead,
) -> PolicyParts<'a> {
    let name = match which {
        PolicyHead::Optimistic => "optimistic_st",
        other => other.name(),
    };
    let path = format!("policy_heads.{name}.");
    let (embedding_path, ip_pol) = if head.ip_pol_w.is_some() {
        (format!("{path}ip_pol"), (&head.ip_pol_w, &head.ip_pol_b))
    } else if heads.ip_pol_w.is_some() {
        (
            "policy_heads.ip_pol".to_owned(),
            (&heads.ip_pol_w, &heads.ip_pol_b),
        )
    } else {
        ("ip_pol".to_owned(), (&weights.ip_pol_w, &weights.ip_pol_b))
    };
    PolicyParts {
        path,
        embedding_path,
        ip_pol,
        ip2_pol: (&head.ip2_pol_w, &head.ip2_pol_b),
        ip3_pol: (&head.ip3_pol_w, &head.ip3_pol_b),
        ip4_pol_w: &head.ip4_pol_w,
        encoders: &head.pol_encoder,
        headcount: head.pol_headcount.or(weights.pol_headcount),
        policy1: &head.policy1,
        policy: &head.policy,
    }
}

fn top_level_value(weights: &proto::Weights) -> ScalarParts<'_> {
    ScalarParts {
        conv_path: "value".to_owned(),
        conv: &weights.value,
        paths: ["ip_val", "ip1_val", "ip2_val"].map(str::to_owned),
        dense: [
            (&weights.ip_val_w, &weights.ip_val_b),
            (&weights.ip1_val_w, &weights.ip1_val_b),
            (&weights.ip2_val_w, &weights.ip2_val_b),
        ],
    }
}

fn value_parts(head: &proto::ValueHead, which: ValueHead) -> ScalarParts<'_> {
    let path = |part: &str| format!("value_heads.{}.{part}", which.name());
    ScalarParts {
        conv_path: path("value"),
        conv: &head.value,
        paths: ["ip_val", "ip1_val", "ip2_val"].map(path),
        dense: [
            (&head.ip_val_w, &head.ip_val_b),
            (&head.ip1_val_w, &head.ip1_val_b),
            (&head.ip2_val_w, &head.ip2_val_b),
        ],
    }
}

fn moves_left_parts(weights: &proto::Weights) -> ScalarParts<'_> {
    ScalarParts {
        conv_path: "moves_left".to_owned(),
        conv: &weights.moves_left,
        paths: ["ip_mov", "ip1_mov", "ip2_mov"].map(str::to_owned),
        dense: [
            (&weights.ip_mov_w, &weights.ip_mov_b),
            (&weights.ip1_mov_w, &weights.ip1_mov_b),
            (&weights.ip2_mov_w, &weights.ip2_mov_b),
        ],
    }
}
