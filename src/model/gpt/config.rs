//! What a GPT that reads moves is made of: sizes, presets, and the tensors that follow from them. Knows no
//! numbers.

use serde::{Deserialize, Serialize};

use crate::encode::game_tokens::VOCABULARY;
use crate::model::weight_file::{Init, NetworkConfig, Parameter};

/// Sizes and choices. Text in files uses these names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GptConfig {
    /// L: blocks.
    pub layers: i64,
    /// d: width of a token.
    pub width: i64,
    /// Attention heads; the width is divided among them.
    pub heads: i64,
    /// Tokens that can be read.
    #[serde(default = "default_context")]
    pub context: i64,
    /// How a token knows its place.
    #[serde(default)]
    pub positions: Positions,
}

/// How a token knows its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// A learned vector for each place.
    #[default]
    Learned,
    /// Queries and keys turned by angles that grow with the place: halves paired, base 10,000.
    Rope,
}

fn default_context() -> i64 {
    200
}

/// Parameters of one part of a GPT, counted in its tensors and by the closed formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: &'static str,
    pub counted: usize,
    pub formula: usize,
}

/// Names of the presets.
pub const PRESETS: [&str; 4] = ["nano", "tiny", "small", "medium"];

impl GptConfig {
    /// A preset of [`PRESETS`] by name.
    pub fn preset(name: &str) -> Option<GptConfig> {
        let (layers, width, heads) = match name {
            "nano" => (4, 128, 4),
            "tiny" => (6, 256, 4),
            "small" => (12, 512, 8),
            "medium" => (16, 768, 12),
            _ => return None,
        };
        Some(GptConfig {
            layers,
            width,
            heads,
            context: default_context(),
            positions: Positions::Learned,
        })
    }

    /// Width of a head.
    pub fn head_depth(&self) -> i64 {
        self.width / self.heads
    }

    /// Its parameters part by part; the last line is the whole.
    pub fn groups(&self) -> Vec<Group> {
        let (d, layers) = (self.width as usize, self.layers as usize);
        let places = match self.positions {
            Positions::Learned => self.context as usize * d,
            Positions::Rope => 0,
        };
        // Two norms; query, key, value and output; two matrices of the feed-forward part; with biases.
        let block =
            2 * 2 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d);
        let parameters = self.parameters();
        let counted = |prefix: &str| {
            let of = parameters.iter().filter(|p| p.name.starts_with(prefix));
            of.map(Parameter::size).sum()
        };
        let groups = [
            ("tokens", counted("tokens"), VOCABULARY * d),
            ("positions", counted("positions"), places),
            ("blocks", counted("blocks."), layers * block),
            ("last norm", counted("norm."), 2 * d),
            ("output (tied to tokens)", 0, 0),
            (
                "all",
                counted(""),
                VOCABULARY * d + places + layers * block + 2 * d,
            ),
        ];
        let group = |(name, counted, formula)| Group {
            name,
            counted,
            formula,
        };
        groups.map(group).to_vec()
    }
}

impl NetworkConfig for GptConfig {
    const FORMAT: &str = "simurgh-gpt-1";

    fn check(&self) -> Result<(), String> {
        for (name, value, least, most) in [
            ("layers", self.layers, 1, 1024),
            ("width", self.width, 2, 65_536),
            ("heads", self.heads, 1, 65_536),
            ("context", self.context, 4, 65_536),
        ] {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} is {value}, expected {least} to {most}"));
            }
        }
        if self.width % self.heads != 0 {
            return Err(format!(
                "width is {}, expected a multiple of heads, {}",
                self.width, self.heads
            ));
        }
        if self.positions == Positions::Rope && self.head_depth() % 2 != 0 {
            return Err(format!(
                "width / heads is {}, expected an even number for rope",
                self.head_depth()
            ));
        }
        Ok(())
    }

    fn parameters(&self) -> Vec<Parameter> {
        let d = self.width;
        let (usual, last) = (0.02, 0.02 / (2.0 * self.layers as f64).sqrt());
        let mut list = Vec::new();
        let mut add = |name: String, shape: &[i64], init: Init| {
            list.push(Parameter {
                name,
                shape: shape.to_vec(),
                init,
            });
        };
        add(
            "tokens".into(),
            &[VOCABULARY as i64, d],
            Init::Normal(usual),
        );
        if self.positions == Positions::Learned {
            add("positions".into(), &[self.context, d], Init::Normal(usual));
        }
        for block in 0..self.layers {
            let mut part = |name: &str, from: i64, to: i64, deviation: f64| {
                let at = format!("blocks.{block}.{name}");
                add(format!("{at}.weight"), &[from, to], Init::Normal(deviation));
                add(format!("{at}.bias"), &[to], Init::Zeros);
            };
            part("qkv", d, 3 * d, usual);
            part("out", d, d, last);
            part("ff.1", d, 4 * d, usual);
            part("ff.2", 4 * d, d, last);
            for norm in ["norm1", "norm2"] {
                let at = format!("blocks.{block}.{norm}");
                add(format!("{at}.weight"), &[d], Init::Ones);
                add(format!("{at}.bias"), &[d], Init::Zeros);
            }
        }
        add("norm.weight".into(), &[d], Init::Ones);
        add("norm.bias".into(), &[d], Init::Zeros);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_sizes() {
        for (name, size) in [
            ("tiny", 5_309_952),
            ("small", 38_971_392),
            ("medium", 115_120_128),
        ] {
            let config = GptConfig::preset(name).unwrap();
            assert_eq!(config.size(), size, "{name}");
        }
        let rope = GptConfig {
            positions: Positions::Rope,
            ..GptConfig::preset("small").unwrap()
        };
        assert_eq!(rope.size(), 38_868_992);
        for name in PRESETS {
            let config = GptConfig::preset(name).unwrap();
            config.check().unwrap();
            let groups = config.groups();
            let parts: usize = groups[..groups.len() - 1].iter().map(|g| g.counted).sum();
            assert_eq!(parts, config.size());
            for group in groups {
                assert_eq!(group.counted, group.formula, "{name} {}", group.name);
            }
        }
        assert_eq!(GptConfig::preset("huge"), None);
    }

    #[test]
    fn sizes_that_make_no_sense_are_named() {
        let tiny = || GptConfig::preset("tiny").unwrap();
        for (config, says) in [
            (
                GptConfig {
                    layers: 0,
                    ..tiny()
                },
                "layers is 0",
            ),
            (GptConfig { heads: 3, ..tiny() }, "multiple of heads"),
            (
                GptConfig {
                    context: 1,
                    ..tiny()
                },
                "context is 1",
            ),
            (
                GptConfig {
                    width: 12,
                    positions: Positions::Rope,
                    ..tiny()
                },
                "even number",
            ),
        ] {
            let error = config.check().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
