//! A network's weights as plain numbers, checked and named for what they do. Knows neither files nor
//! tensors.
//!
//! Where a head flattens squares and channels into one vector, that of a tower is channel-major
//! (`[channels, 64]`), that of an attention body square-major (`[64, channels]`), as the files have it.

use super::format::{Activation, NetFormat};

/// y = W·x + b.
#[derive(Clone, Debug)]
pub struct Dense {
    /// `[outputs, inputs]`
    pub weights: Vec<f32>,
    /// `[outputs]`
    pub bias: Vec<f32>,
    /// Width of x.
    pub inputs: usize,
    /// Width of y.
    pub outputs: usize,
}

/// A square convolution over the board, batch norm folded in.
#[derive(Clone, Debug)]
pub struct Conv {
    /// `[outputs, inputs, kernel, kernel]`, the last two rank and file.
    pub weights: Vec<f32>,
    /// `[outputs]`
    pub bias: Vec<f32>,
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub outputs: usize,
    /// 1 or 3.
    pub kernel: usize,
}

/// Scale and shift of a layer norm.
#[derive(Clone, Debug)]
pub struct Norm {
    /// Scale.
    pub gammas: Vec<f32>,
    /// Shift.
    pub betas: Vec<f32>,
}

/// Squeeze and excitation: pooled channels → act → (γ, β).
#[derive(Clone, Debug)]
pub struct SqueezeExcite {
    /// C → S
    pub squeeze: Dense,
    /// S → 2C: γ, then β.
    pub excite: Dense,
}

/// A residual block.
#[derive(Clone, Debug)]
pub struct Block {
    /// First convolution.
    pub conv1: Conv,
    /// Second convolution.
    pub conv2: Conv,
    /// Between it and the sum.
    pub se: Option<SqueezeExcite>,
}

/// A residual tower.
#[derive(Clone, Debug)]
pub struct Tower {
    /// 112 → C
    pub input: Conv,
    /// C → C
    pub blocks: Vec<Block>,
}

/// Two dense layers with an activation between.
#[derive(Clone, Debug)]
pub struct FeedForward {
    /// d → hidden
    pub dense1: Dense,
    /// hidden → d
    pub dense2: Dense,
}

/// Generates attention logits from the whole board.
#[derive(Clone, Debug)]
pub struct Smolgen {
    /// d → c per square; its bias is zero.
    pub compress: Dense,
    /// 64·c → hidden
    pub dense1: Dense,
    /// After it.
    pub norm1: Norm,
    /// hidden → heads·g
    pub dense2: Dense,
    /// After it.
    pub norm2: Norm,
    /// g: what the shared matrix takes per head.
    pub per_head: usize,
}

/// A transformer encoder layer.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// Query.
    pub q: Dense,
    /// Key.
    pub k: Dense,
    /// Value.
    pub v: Dense,
    /// After attention.
    pub out: Dense,
    /// Attention heads.
    pub heads: usize,
    /// Added to the attention logits.
    pub smolgen: Option<Smolgen>,
    /// After attention.
    pub norm1: Norm,
    /// The feed-forward part.
    pub ffn: FeedForward,
    /// After it.
    pub norm2: Norm,
}

/// Transformer over the 64 squares.
#[derive(Clone, Debug)]
pub struct AttentionBody {
    /// In front, its output instead of the planes.
    pub tower: Option<Tower>,
    /// 64·12 → 64·k, of the dense embedding.
    pub preprocess: Option<Dense>,
    /// per square → d
    pub embedding: Dense,
    /// After it, of the dense embedding.
    pub embedding_norm: Option<Norm>,
    /// `[64, d]`, multiplied.
    pub mult_gate: Option<Vec<f32>>,
    /// `[64, d]`, added.
    pub add_gate: Option<Vec<f32>>,
    /// With its norm, of the dense embedding.
    pub embedding_ffn: Option<(FeedForward, Norm)>,
    /// The layers.
    pub encoders: Vec<Encoder>,
}

/// What lies before the heads.
#[derive(Clone, Debug)]
pub enum Body {
    /// Convolutions.
    Tower(Tower),
    /// Attention.
    Attention(Box<AttentionBody>),
}

/// A policy head.
#[derive(Clone, Debug)]
pub enum Policy {
    /// conv1×1 (as a dense layer per square) + act → dense to 1858.
    Flat {
        /// C → P per square.
        embedding: Dense,
        /// 64·P → 1858
        dense: Dense,
    },
    /// conv3×3 + act → conv3×3 to 80 planes.
    Convolution {
        /// C → C'
        conv1: Conv,
        /// C' → 80
        conv2: Conv,
    },
    /// Query·key of from- and to-squares.
    Attention(AttentionPolicy),
}

/// Query·key of from- and to-squares, and offsets for promotions.
#[derive(Clone, Debug)]
pub struct AttentionPolicy {
    /// C → e per square.
    pub embedding: Dense,
    /// Between embedding and query.
    pub encoders: Vec<Encoder>,
    /// e → dim
    pub q: Dense,
    /// e → dim
    pub k: Dense,
    /// `[4, dim]`: queen, rook, bishop, and all of them.
    pub promotion: Vec<f32>,
}

/// A value or moves-left head: per square → act → 64·V → act → outputs.
#[derive(Clone, Debug)]
pub struct ScalarHead {
    /// C → V per square.
    pub embedding: Dense,
    /// 64·V → H
    pub hidden: Dense,
    /// H → 1 or 3
    pub output: Dense,
}

/// A whole network with the heads that were chosen.
#[derive(Clone, Debug)]
pub struct NetworkWeights {
    /// For people: the file's name.
    pub name: String,
    /// What it is.
    pub format: NetFormat,
    /// Before the heads.
    pub body: Body,
    /// `[4096, g]`, shared by all smolgens.
    pub smolgen_shared: Option<Vec<f32>>,
    /// The chosen policy head.
    pub policy: Policy,
    /// The chosen value head.
    pub value: ScalarHead,
    /// Plies to the end.
    pub moves_left: Option<ScalarHead>,
}

impl NetworkWeights {
    /// Of an attention policy: the embedding's activation, its encoders' in the feed-forward part, and in
    /// smolgen. On a tower they are fixed.
    pub fn policy_activations(&self) -> [Activation; 3] {
        let format = &self.format;
        match self.body {
            Body::Tower(_) => [Activation::Selu, Activation::Selu, Activation::None],
            Body::Attention(_) => [
                format.default_activation,
                format.ffn_activation,
                format.smolgen_activation,
            ],
        }
    }

    /// Number of weights.
    pub fn parameters(&self) -> usize {
        let scalar =
            |head: &ScalarHead| head.embedding.size() + head.hidden.size() + head.output.size();
        let body = match &self.body {
            Body::Tower(tower) => tower.size(),
            Body::Attention(body) => {
                let dense = |d: &Option<Dense>| d.as_ref().map_or(0, Dense::size);
                let gates = [&body.mult_gate, &body.add_gate];
                body.tower.as_ref().map_or(0, Tower::size)
                    + dense(&body.preprocess)
                    + body.embedding.size()
                    + body.embedding_norm.as_ref().map_or(0, Norm::size)
                    + gates
                        .iter()
                        .map(|gate| gate.as_ref().map_or(0, Vec::len))
                        .sum::<usize>()
                    + body
                        .embedding_ffn
                        .as_ref()
                        .map_or(0, |(ffn, norm)| ffn.size() + norm.size())
                    + body.encoders.iter().map(Encoder::size).sum::<usize>()
            }
        };
        let policy = match &self.policy {
            Policy::Flat { embedding, dense } => embedding.size() + dense.size(),
            Policy::Convolution { conv1, conv2 } => conv1.size() + conv2.size(),
            Policy::Attention(p) => {
                p.embedding.size()
                    + p.encoders.iter().map(Encoder::size).sum::<usize>()
                    + p.q.size()
                    + p.k.size()
                    + p.promotion.len()
            }
        };
        body + policy
            + self.smolgen_shared.as_ref().map_or(0, Vec::len)
            + scalar(&self.value)
            + self.moves_left.as_ref().map_or(0, scalar)
    }
}

impl Dense {
    fn size(&self) -> usize {
        self.weights.len() + self.bias.len()
    }
}

impl Conv {
    fn size(&self) -> usize {
        self.weights.len() + self.bias.len()
    }
}

impl Norm {
    fn size(&self) -> usize {
        self.gammas.len() + self.betas.len()
    }
}

impl FeedForward {
    fn size(&self) -> usize {
        self.dense1.size() + self.dense2.size()
    }
}

impl Tower {
    fn size(&self) -> usize {
        let se = |se: &SqueezeExcite| se.squeeze.size() + se.excite.size();
        let block = |b: &Block| b.conv1.size() + b.conv2.size() + b.se.as_ref().map_or(0, se);
        self.input.size() + self.blocks.iter().map(block).sum::<usize>()
    }
}

impl Encoder {
    fn size(&self) -> usize {
        let smolgen = |s: &Smolgen| {
            s.compress.size() + s.dense1.size() + s.norm1.size() + s.dense2.size() + s.norm2.size()
        };
        [&self.q, &self.k, &self.v, &self.out]
            .iter()
            .map(|dense| dense.size())
            .sum::<usize>()
            + self.smolgen.as_ref().map_or(0, smolgen)
            + self.norm1.size()
            + self.ffn.size()
            + self.norm2.size()
    }
}
