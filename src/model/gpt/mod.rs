//! The GPT that reads a game as move tokens and predicts the next: forward pass in libtorch, whole rows or on
//! from a cache of keys and values. Knows tokens by number; neither moves nor files.
//!
//! Shapes: B rows, T tokens, d width, h heads, k head depth, V vocabulary.

mod config;

use std::collections::HashMap;

use tch::{Device, Kind, TchError, Tensor};

pub use config::{GptConfig, Group, PRESETS, Positions};

use super::weight_file::WeightFile;

/// A GPT's file.
pub type GptFile = WeightFile<GptConfig>;

type Result<T> = std::result::Result<T, TchError>;

const NORM_EPS: f64 = 1e-5;
const ROPE_BASE: f64 = 10_000.0;

/// A network as tensors. Its tensors may be leaves of a gradient tape.
pub struct Gpt {
    config: GptConfig,
    /// `[V, d]`, read and written with.
    tokens: Tensor,
    /// `[context, d]`
    positions: Option<Tensor>,
    /// Cosines and sines of every place, `[context, k]` each.
    turns: Option<(Tensor, Tensor)>,
    blocks: Vec<Block>,
    norm: Pair,
}

struct Block {
    norm1: Pair,
    qkv: Pair,
    out: Pair,
    norm2: Pair,
    ff1: Pair,
    ff2: Pair,
}

/// Weight and bias.
struct Pair {
    weight: Tensor,
    bias: Tensor,
}

/// Keys and values of tokens that were read, one row: what later tokens look back at. Rows that go on from the
/// same tokens share one.
pub struct Cache {
    /// By block, `[h, P, k]`.
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
    /// P
    length: i64,
}

/// What is kept of a pass over the blocks.
enum Collect<'a> {
    Nothing,
    /// Keys and values of each block.
    Cache(&'a mut Vec<(Tensor, Tensor)>),
    /// Attention of each block, `[B, h, T, T]`, where there is no prefix.
    Maps(&'a mut Vec<Tensor>),
}

impl Cache {
    /// Tokens it holds.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// True before the first token.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Pair {
    fn dense(&self, x: &Tensor) -> Result<Tensor> {
        x.f_matmul(&self.weight)?.f_add(&self.bias)
    }

    fn norm(&self, x: &Tensor) -> Result<Tensor> {
        let width = self.weight.size();
        x.f_layer_norm(width, Some(&self.weight), Some(&self.bias), NORM_EPS, false)
    }
}

impl Gpt {
    /// The network over `tensors`, which must be those of the configuration, checked before.
    ///
    /// # Errors
    /// When one is missing.
    pub fn new(config: &GptConfig, tensors: &HashMap<String, Tensor>) -> Result<Gpt> {
        let take = |name: &str| {
            tensors
                .get(name)
                .map(Tensor::shallow_clone)
                .ok_or_else(|| TchError::Torch(format!("there is no tensor {name}")))
        };
        let pair = |name: &str| {
            Ok::<_, TchError>(Pair {
                weight: take(&format!("{name}.weight"))?,
                bias: take(&format!("{name}.bias"))?,
            })
        };
        let mut blocks = Vec::new();
        for block in 0..config.layers {
            let at = |part: &str| format!("blocks.{block}.{part}");
            blocks.push(Block {
                norm1: pair(&at("norm1"))?,
                qkv: pair(&at("qkv"))?,
                out: pair(&at("out"))?,
                norm2: pair(&at("norm2"))?,
                ff1: pair(&at("ff.1"))?,
                ff2: pair(&at("ff.2"))?,
            });
        }
        let tokens = take("tokens")?;
        let rope = config.positions == Positions::Rope;
        Ok(Gpt {
            positions: match rope {
                false => Some(take("positions")?),
                true => None,
            },
            turns: match rope {
                true => Some(turns(config, tokens.kind(), tokens.device())?),
                false => None,
            },
            blocks,
            norm: pair("norm")?,
            config: config.clone(),
            tokens,
        })
    }

    /// What it is made of.
    pub fn config(&self) -> &GptConfig {
        &self.config
    }

    /// A cache before the first token.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn cache(&self) -> Result<Cache> {
        let empty = || {
            let shape = [self.config.heads, 0, self.config.head_depth()];
            let options = (self.tokens.kind(), self.tokens.device());
            (0..self.config.layers)
                .map(|_| Tensor::f_zeros(shape, options))
                .collect::<Result<Vec<_>>>()
        };
        Ok(Cache {
            keys: empty()?,
            values: empty()?,
            length: 0,
        })
    }

    /// Logits `[B, T, V]` of the token after each of `tokens` `[B, T]` (int64), which must fit the context.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        self.logits(&self.read(tokens, None, Collect::Nothing)?)
    }

    /// As [`Self::forward`] for rows that all go on from the tokens in `cache`, which stays as it is.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn forward_from(&self, cache: &Cache, tokens: &Tensor) -> Result<Tensor> {
        self.logits(&self.read(tokens, Some(cache), Collect::Nothing)?)
    }

    /// Reads one row of tokens `[T]` into `cache` and gives the logits `[V]` after the last.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn extend(&self, cache: &mut Cache, tokens: &Tensor) -> Result<Tensor> {
        let tokens = tokens.f_unsqueeze(0)?;
        let mut read = Vec::with_capacity(self.blocks.len());
        let x = self.read(&tokens, Some(cache), Collect::Cache(&mut read))?;
        for (index, (keys, values)) in read.into_iter().enumerate() {
            cache.keys[index] = Tensor::f_cat(&[&cache.keys[index], &keys.f_squeeze_dim(0)?], 1)?;
            let all = Tensor::f_cat(&[&cache.values[index], &values.f_squeeze_dim(0)?], 1)?;
            cache.values[index] = all;
        }
        cache.length += tokens.size()[1];
        let last = x.f_select(1, x.size()[1] - 1)?;
        self.logits(&last)?.f_squeeze_dim(0)
    }

    /// What each head of each block attends to, `[h, T, T]` a block, in one row of tokens `[T]`.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn attention_maps(&self, tokens: &Tensor) -> Result<Vec<Tensor>> {
        let mut maps = Vec::new();
        let collect = Collect::Maps(&mut maps);
        let _ = self.read(&tokens.f_unsqueeze(0)?, None, collect)?;
        maps.iter().map(|map| map.f_get(0)).collect()
    }

    fn logits(&self, x: &Tensor) -> Result<Tensor> {
        self.norm.norm(x)?.f_matmul(&self.tokens.f_transpose(0, 1)?)
    }

    /// The residual stream `[B, T, d]` after the last block.
    fn read(&self, tokens: &Tensor, cache: Option<&Cache>, mut collect: Collect) -> Result<Tensor> {
        let length = tokens.size().get(1).copied().unwrap_or(0);
        let before = cache.map_or(0, |cache| cache.length);
        if before + length > self.config.context {
            return Err(TchError::Torch(format!(
                "{} tokens do not fit into a context of {}",
                before + length,
                self.config.context
            )));
        }
        let mut x = Tensor::f_embedding(&self.tokens, tokens, -1, false, false)?;
        if let Some(positions) = &self.positions {
            x = x.f_add(&positions.f_narrow(0, before, length)?)?;
        }
        // What a token must not see: those after it.
        let options = (Kind::Bool, x.device());
        let later = Tensor::f_ones([length, length], options)?.f_triu(1)?;
        for (index, block) in self.blocks.iter().enumerate() {
            let prefix = cache
                .filter(|cache| cache.length > 0)
                .and_then(|cache| Some((cache.keys.get(index)?, cache.values.get(index)?)));
            let mixed = self.attention(block, &x, prefix, before, &later, &mut collect)?;
            x = x.f_add(&mixed)?;
            let hidden = block.ff1.dense(&block.norm2.norm(&x)?)?.f_gelu("none")?;
            x = x.f_add(&block.ff2.dense(&hidden)?)?;
        }
        Ok(x)
    }

    /// softmax(q·kᵀ/√k)·v over the shared prefix and the row's own tokens.
    fn attention(
        &self,
        block: &Block,
        x: &Tensor,
        prefix: Option<(&Tensor, &Tensor)>,
        before: i64,
        later: &Tensor,
        collect: &mut Collect,
    ) -> Result<Tensor> {
        let (h, k) = (self.config.heads, self.config.head_depth());
        let size = x.size();
        let (rows, length) = (size[0], size[1]);
        let qkv = block
            .qkv
            .dense(&block.norm1.norm(x)?)?
            .f_reshape([rows, length, 3, h, k])?
            .f_permute([2, 0, 3, 1, 4])?; // [3, B, h, T, k]
        let (mut q, mut keys, values) = (qkv.f_get(0)?, qkv.f_get(1)?, qkv.f_get(2)?);
        if let Some(turns) = &self.turns {
            q = turned(&q, turns, before)?;
            keys = turned(&keys, turns, before)?;
        }
        let q = q.f_mul_scalar(1.0 / (k as f64).sqrt())?;
        let own = q
            .f_matmul(&keys.f_transpose(-2, -1)?)?
            .f_masked_fill(later, f64::NEG_INFINITY)?; // [B, h, T, T]
        let mixed = match prefix {
            None => {
                let weights = own.f_softmax(-1, None::<Kind>)?;
                let mixed = weights.f_matmul(&values)?;
                if let Collect::Maps(maps) = collect {
                    maps.push(weights);
                }
                mixed
            }
            Some((prefix_keys, prefix_values)) => {
                // The prefix is one for all rows: their queries meet it in one product a head.
                let places = prefix_keys.size()[1];
                let together = q
                    .f_permute([1, 0, 2, 3])?
                    .f_reshape([h, rows * length, k])?;
                let seen = together
                    .f_matmul(&prefix_keys.f_transpose(-2, -1)?)?
                    .f_reshape([h, rows, length, places])?
                    .f_permute([1, 0, 2, 3])?; // [B, h, T, P]
                let weights = Tensor::f_cat(&[&seen, &own], -1)?.f_softmax(-1, None::<Kind>)?;
                let far = weights
                    .f_narrow(-1, 0, places)?
                    .f_permute([1, 0, 2, 3])?
                    .f_reshape([h, rows * length, places])?
                    .f_matmul(prefix_values)?
                    .f_reshape([h, rows, length, k])?
                    .f_permute([1, 0, 2, 3])?;
                let near = weights.f_narrow(-1, places, length)?.f_matmul(&values)?;
                far.f_add(&near)?
            }
        };
        let mixed = mixed.f_transpose(1, 2)?.f_reshape([rows, length, h * k])?;
        if let Collect::Cache(read) = collect {
            read.push((keys, values));
        }
        block.out.dense(&mixed)
    }
}

/// Cosines and sines of the angles of every place, each half twice.
fn turns(config: &GptConfig, kind: Kind, device: Device) -> Result<(Tensor, Tensor)> {
    let depth = config.head_depth();
    let frequencies: Vec<f64> = (0..depth / 2)
        .map(|i| ROPE_BASE.powf(-2.0 * i as f64 / depth as f64))
        .collect();
    let mut angles = Vec::new();
    for place in 0..config.context {
        for _ in 0..2 {
            angles.extend(frequencies.iter().map(|f| f * place as f64));
        }
    }
    let angles = Tensor::f_from_slice(&angles)?.f_reshape([config.context, depth])?;
    let place = |t: Tensor| t.f_to_kind(kind)?.f_to_device(device);
    Ok((place(angles.f_cos()?)?, place(angles.f_sin()?)?))
}

/// x·cos + (−second half, first half)·sin.
fn turned(x: &Tensor, turns: &(Tensor, Tensor), before: i64) -> Result<Tensor> {
    let size = x.size();
    let (length, depth) = (size[2], size[3]);
    let half = depth / 2;
    let (cos, sin) = (
        turns.0.f_narrow(0, before, length)?,
        turns.1.f_narrow(0, before, length)?,
    );
    let swapped = Tensor::f_cat(
        &[
            x.f_narrow(-1, half, half)?.f_neg()?,
            x.f_narrow(-1, 0, half)?,
        ],
        -1,
    )?;
    x.f_mul(&cos)?.f_add(&swapped.f_mul(&sin)?)
}
