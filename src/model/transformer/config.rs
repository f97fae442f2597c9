//! What a transformer of the project's own is made of: sizes, choices, and the tensors that follow from them.
//! Knows no numbers.

use serde::{Deserialize, Serialize};

use crate::encode::FEATURES;
use crate::model::weight_file::{Init, NetworkConfig, Parameter};

/// Sizes and choices. Text in files uses these names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// d: width of a token.
    pub width: i64,
    /// L: encoder layers.
    pub layers: i64,
    /// Attention heads.
    pub heads: i64,
    /// Width of query, key and value of a head.
    pub head_depth: i64,
    /// Hidden width of the feed-forward part before gating.
    pub ff: i64,
    /// Where layer norms stand.
    #[serde(default)]
    pub norm: NormPlace,
    /// Which norm.
    #[serde(default)]
    pub norm_kind: NormKind,
    /// What is added to attention logits.
    #[serde(default)]
    pub attention_bias: AttentionBias,
    /// Of the feed-forward part.
    #[serde(default)]
    pub activation: FfActivation,
    /// Sizes of smolgen, where that is the attention bias.
    #[serde(default)]
    pub smolgen: SmolgenConfig,
    /// Width of query and key of the policy.
    pub policy_width: i64,
    /// How the value head reads the tokens.
    #[serde(default)]
    pub value: ValueRead,
    /// Numbers a token hands to the value head, where it reads all of them.
    #[serde(default = "value_per_token")]
    pub value_per_token: i64,
    /// Hidden width of the value head.
    pub value_hidden: i64,
    /// Whether there is a moves-left head.
    #[serde(default)]
    pub moves_left: bool,
}

fn value_per_token() -> i64 {
    16
}

/// Layer norms after each residual sum (with DeepNet's α), or before each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormPlace {
    /// x ← norm(α·x + f(x)), α = (2L)^¼
    #[default]
    Post,
    /// x ← x + f(norm(x)), and a norm at the end
    Pre,
}

/// Layer norm, or root mean square without a mean and a shift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormKind {
    #[default]
    Layer,
    Rms,
}

/// What is added to the attention logits `[heads, 64, 64]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionBias {
    /// Nothing.
    None,
    /// A parameter of each layer.
    #[default]
    Learned,
    /// Made from the position by a small network.
    Smolgen,
}

/// Sizes of smolgen: per square → hidden → heads · per_head → shared matrix → 64·64 logits a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmolgenConfig {
    pub per_square: i64,
    pub hidden: i64,
    pub per_head: i64,
}

impl Default for SmolgenConfig {
    fn default() -> SmolgenConfig {
        SmolgenConfig {
            per_square: 8,
            hidden: 64,
            per_head: 32,
        }
    }
}

/// How the value head reads the tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueRead {
    /// Their mean.
    Pooled,
    /// A few numbers of each.
    #[default]
    Tokens,
}

/// Activations of the feed-forward part. The gated ones, from `glu` on, have two input matrices of two
/// thirds of the width each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FfActivation {
    /// max(x, 0)
    #[default]
    Relu,
    /// clamp(x, 0, 1)
    Crelu,
    /// clamp(x, 0, 1)²
    Screlu,
    /// x·Φ(x)
    Gelu,
    /// Its approximation by tanh.
    GeluTanh,
    /// x·tanh(ln(1 + eˣ))
    Mish,
    /// x·σ(x)
    Swish,
    /// max(x, 0)²
    Relu2,
    /// σ(a) ⊗ b
    Glu,
    /// a ⊗ b
    Bilinear,
    /// relu(a) ⊗ b
    Reglu,
    /// gelu(a) ⊗ b
    Geglu,
    /// swish(a) ⊗ b
    Swiglu,
    /// crelu(a) ⊗ crelu(b)
    Pairwise,
}

impl FfActivation {
    /// All of them.
    pub const ALL: [FfActivation; 14] = [
        FfActivation::Relu,
        FfActivation::Crelu,
        FfActivation::Screlu,
        FfActivation::Gelu,
        FfActivation::GeluTanh,
        FfActivation::Mish,
        FfActivation::Swish,
        FfActivation::Relu2,
        FfActivation::Glu,
        FfActivation::Bilinear,
        FfActivation::Reglu,
        FfActivation::Geglu,
        FfActivation::Swiglu,
        FfActivation::Pairwise,
    ];

    /// True when two branches are multiplied.
    pub fn is_gated(self) -> bool {
        matches!(
            self,
            FfActivation::Glu
                | FfActivation::Bilinear
                | FfActivation::Reglu
                | FfActivation::Geglu
                | FfActivation::Swiglu
                | FfActivation::Pairwise
        )
    }
}

/// Whether the piece of a head, in the order of [`Init::PieceMoves`], gets from a square to another on an empty
/// board. Squares are the mover's, a1 = 0.
pub fn piece_reaches(head: usize, from: usize, to: usize) -> bool {
    let files = (to % 8) as i64 - (from % 8) as i64;
    let ranks = (to / 8) as i64 - (from / 8) as i64;
    let straight = from != to && (files == 0 || ranks == 0);
    let diagonal = from != to && files.abs() == ranks.abs();
    match head % 8 {
        0 => straight,
        1 => diagonal,
        2 => files.abs() * ranks.abs() == 2,
        3 => from != to && files.abs() <= 1 && ranks.abs() <= 1,
        4 => files.abs() == 1 && ranks == 1,
        5 => files.abs() == 1 && ranks == -1,
        6 => straight || diagonal,
        _ => false,
    }
}

/// Largest value of any size; larger ones are refused before anything is allocated.
const LARGEST: i64 = 65_536;

impl Config {
    /// Hidden width of the feed-forward part after gating: two thirds of `ff`, a multiple of 8 where
    /// that is possible, or all of it.
    pub fn ff_hidden(&self) -> i64 {
        if !self.activation.is_gated() {
            return self.ff;
        }
        match self.ff * 2 / 3 {
            width @ 0..8 => width.max(1),
            width => (width + 4) / 8 * 8,
        }
    }

    /// α of DeepNet, by which the residual stream is multiplied before a post-norm.
    pub fn alpha(&self) -> f64 {
        match self.norm {
            NormPlace::Post => (2.0 * self.layers.max(1) as f64).powf(0.25),
            NormPlace::Pre => 1.0,
        }
    }

    /// Gain of what feeds the residual stream: DeepNet's β = (8L)^-¼, or 1/√(2L) under a pre-norm.
    fn branch_gain(&self) -> f64 {
        let layers = self.layers.max(1) as f64;
        match self.norm {
            NormPlace::Post => (8.0 * layers).powf(-0.25),
            NormPlace::Pre => (2.0 * layers).sqrt().recip(),
        }
    }
}

impl NetworkConfig for Config {
    const FORMAT: &str = "simurgh-transformer-1";

    fn check(&self) -> Result<(), String> {
        let smolgen = &self.smolgen;
        for (name, value, least) in [
            ("width", self.width, 2),
            ("layers", self.layers, 0),
            ("heads", self.heads, 1),
            ("head_depth", self.head_depth, 1),
            ("ff", self.ff, 1),
            ("policy_width", self.policy_width, 1),
            ("value_per_token", self.value_per_token, 1),
            ("value_hidden", self.value_hidden, 1),
            ("smolgen.per_square", smolgen.per_square, 1),
            ("smolgen.hidden", smolgen.hidden, 2),
            ("smolgen.per_head", smolgen.per_head, 2),
        ] {
            if !(least..=LARGEST).contains(&value) {
                return Err(format!("{name} is {value}, expected {least} to {LARGEST}"));
            }
        }
        Ok(())
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut list = Vec::new();
        let mut add = |name: String, shape: &[i64], init: Init| {
            list.push(Parameter {
                name,
                shape: shape.to_vec(),
                init,
            });
        };
        let d = self.width;
        let inner = self.heads * self.head_depth;
        let gain = self.branch_gain();
        let shifted = self.norm_kind == NormKind::Layer;
        add(
            "embed.weight".into(),
            &[FEATURES as i64, d],
            Init::Normal(0.25),
        );
        add("embed.bias".into(), &[d], Init::Zeros);
        add("positions".into(), &[64, d], Init::Normal(0.25));
        if self.norm == NormPlace::Post {
            add("embed.norm.weight".into(), &[d], Init::Ones);
            if shifted {
                add("embed.norm.bias".into(), &[d], Init::Zeros);
            }
        }
        if self.attention_bias == AttentionBias::Smolgen {
            let per_head = self.smolgen.per_head;
            add(
                "smolgen.shared".into(),
                &[per_head, 64 * 64],
                Init::Normal(0.02),
            );
        }
        for layer in 0..self.layers {
            let mut add = |name: &str, shape: &[i64], init: Init| {
                add(format!("layers.{layer}.{name}"), shape, init);
            };
            add("qkv.weight", &[d, 3 * inner], Init::Xavier(1.0));
            add("qkv.bias", &[3 * inner], Init::Zeros);
            add("out.weight", &[inner, d], Init::Xavier(gain));
            add("out.bias", &[d], Init::Zeros);
            match self.attention_bias {
                AttentionBias::None => {}
                AttentionBias::Learned => {
                    add("bias", &[self.heads, 64, 64], Init::PieceMoves(3.0));
                }
                AttentionBias::Smolgen => {
                    let s = &self.smolgen;
                    let wide = self.heads * s.per_head;
                    add("smolgen.compress", &[d, s.per_square], Init::Xavier(1.0));
                    add(
                        "smolgen.1.weight",
                        &[64 * s.per_square, s.hidden],
                        Init::Xavier(1.0),
                    );
                    add("smolgen.1.bias", &[s.hidden], Init::Zeros);
                    add("smolgen.1.norm.weight", &[s.hidden], Init::Ones);
                    add("smolgen.1.norm.bias", &[s.hidden], Init::Zeros);
                    add("smolgen.2.weight", &[s.hidden, wide], Init::Xavier(1.0));
                    add("smolgen.2.bias", &[wide], Init::Zeros);
                    add("smolgen.2.norm.weight", &[wide], Init::Ones);
                    add("smolgen.2.norm.bias", &[wide], Init::Zeros);
                }
            }
            let hidden = self.ff_hidden();
            let branches = if self.activation.is_gated() { 2 } else { 1 };
            add("ff.1.weight", &[d, branches * hidden], Init::Xavier(1.0));
            add("ff.1.bias", &[branches * hidden], Init::Zeros);
            add("ff.2.weight", &[hidden, d], Init::Xavier(gain));
            add("ff.2.bias", &[d], Init::Zeros);
            for norm in ["norm1", "norm2"] {
                add(&format!("{norm}.weight"), &[d], Init::Ones);
                if shifted {
                    add(&format!("{norm}.bias"), &[d], Init::Zeros);
                }
            }
        }
        if self.norm == NormPlace::Pre {
            add("norm.weight".into(), &[d], Init::Ones);
            if shifted {
                add("norm.bias".into(), &[d], Init::Zeros);
            }
        }
        let p = self.policy_width;
        add("policy.query.weight".into(), &[d, p], Init::Xavier(1.0));
        add("policy.query.bias".into(), &[p], Init::Zeros);
        add("policy.key.weight".into(), &[d, p], Init::Xavier(1.0));
        add("policy.key.bias".into(), &[p], Init::Zeros);
        add("policy.promotion".into(), &[p, 4], Init::Xavier(1.0));
        let read = match self.value {
            ValueRead::Pooled => d,
            ValueRead::Tokens => {
                let each = self.value_per_token;
                add("value.tokens.weight".into(), &[d, each], Init::Xavier(1.0));
                add("value.tokens.bias".into(), &[each], Init::Zeros);
                64 * each
            }
        };
        let h = self.value_hidden;
        add("value.hidden.weight".into(), &[read, h], Init::Xavier(1.0));
        add("value.hidden.bias".into(), &[h], Init::Zeros);
        add("value.output.weight".into(), &[h, 3], Init::Normal(0.02));
        add("value.output.bias".into(), &[3], Init::Zeros);
        if self.moves_left {
            add(
                "moves_left.hidden.weight".into(),
                &[d, 32],
                Init::Xavier(1.0),
            );
            add("moves_left.hidden.bias".into(), &[32], Init::Zeros);
            add(
                "moves_left.output.weight".into(),
                &[32, 1],
                Init::Xavier(1.0),
            );
            add("moves_left.output.bias".into(), &[1], Init::Zeros);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_begin_with_the_moves_of_pieces() {
        let count = |head, from| (0..64).filter(|&to| piece_reaches(head, from, to)).count();
        // From a1 and from e4.
        let corner: Vec<usize> = (0..8).map(|head| count(head, 0)).collect();
        let middle: Vec<usize> = (8..16).map(|head| count(head, 28)).collect();
        assert_eq!(corner, [14, 7, 2, 3, 1, 0, 21, 0]);
        assert_eq!(middle, [14, 13, 8, 8, 2, 2, 27, 0]);
        // e4 takes on d5 and f5.
        assert!(piece_reaches(4, 28, 35) && piece_reaches(4, 28, 37));
    }
}
