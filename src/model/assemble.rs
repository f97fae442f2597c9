//! From a protobuf message to checked [`NetworkWeights`]: the body and its encoders. Every tensor must be
//! there, have its size and hold finite numbers. Knows no libtorch.

use super::error::ModelError;
use super::format::{BodyKind, InputEmbedding, NetFormat};
use super::layer::Decoder;
use super::proto::{self, OptLayer};
use super::weights::{
    AttentionBody, Block, Body, Conv, Dense, Encoder, FeedForward, Norm, Smolgen, SqueezeExcite,
    Tower,
};

/// Values of the matrix that all smolgens of a network share, per output of a head.
pub const SMOLGEN_LOGITS: usize = 64 * 64;
const PLANES: usize = 112;
const PIECE_PLANES: usize = 12;

/// The width that most of the tensors around it agree on, so that the one that is wrong gets named.
pub fn vote(votes: &[Option<usize>]) -> Option<usize> {
    let mut known = votes.iter().flatten().copied().filter(|&width| width > 0);
    let agreed = known
        .clone()
        .find(|width| votes.iter().flatten().filter(|v| *v == width).count() > 1);
    agreed.or_else(|| known.next())
}

/// `total / part` if it comes out even.
pub fn ratio(total: Option<usize>, part: Option<usize>) -> Option<usize> {
    match (total?, part?) {
        (total, part) if part > 0 && total % part == 0 => Some(total / part),
        _ => None,
    }
}

impl Decoder<'_> {
    /// A dense layer named `path_w`, `path_b`. Without known outputs, the bias and the weights say.
    pub fn dense(
        self,
        path: &str,
        (weights, bias): (&OptLayer, &OptLayer),
        inputs: usize,
        outputs: Option<usize>,
    ) -> Result<Dense, ModelError> {
        let outputs =
            outputs.or_else(|| vote(&[self.count(bias), ratio(self.count(weights), Some(inputs))]));
        let outputs = outputs.unwrap_or(1);
        Ok(Dense {
            weights: self.exact(
                &format!("{path}_w"),
                weights,
                inputs.saturating_mul(outputs),
                &format!("{outputs} × {inputs}"),
            )?,
            bias: self.exact(&format!("{path}_b"), bias, outputs, "one per output")?,
            inputs,
            outputs,
        })
    }

    /// A layer norm named `path_gammas`, `path_betas`.
    pub fn norm(
        self,
        path: &str,
        (gammas, betas): (&OptLayer, &OptLayer),
        width: usize,
    ) -> Result<Norm, ModelError> {
        let shape = "one per channel";
        Ok(Norm {
            gammas: self.exact(&format!("{path}_gammas"), gammas, width, shape)?,
            betas: self.exact(&format!("{path}_betas"), betas, width, shape)?,
        })
    }

    /// Channels a convolution gives, as its tensors tell.
    pub fn conv_outputs(
        self,
        block: &proto::ConvBlock,
        inputs: usize,
        kernel: usize,
    ) -> Option<usize> {
        vote(&[
            ratio(self.count(&block.weights), Some(inputs * kernel * kernel)),
            self.count(&block.biases),
            self.count(&block.bn_means),
            self.count(&block.bn_stddivs),
            self.count(&block.bn_gammas),
            self.count(&block.bn_betas),
        ])
    }

    /// A convolution with its batch norm folded in: s = γ/√(var + 1e-5), W·s, (bias − mean)·s + β.
    pub fn conv(
        self,
        path: &str,
        block: &Option<Box<proto::ConvBlock>>,
        (inputs, outputs): (usize, Option<usize>),
        kernel: usize,
    ) -> Result<Conv, ModelError> {
        let absent = proto::ConvBlock::default();
        let block = block.as_deref().unwrap_or(&absent);
        let outputs = outputs
            .or_else(|| self.conv_outputs(block, inputs, kernel))
            .unwrap_or(1);
        let fan_in = inputs * kernel * kernel;
        let mut weights = self.exact(
            &format!("{path}.weights"),
            &block.weights,
            fan_in.saturating_mul(outputs),
            &format!("{outputs} × {inputs} × {kernel} × {kernel}"),
        )?;
        let shape = "one per channel";
        let per_channel = |tensor: &str, layer: &OptLayer| {
            self.optional(&format!("{path}.{tensor}"), layer, outputs, shape)
        };
        let mut bias = per_channel("biases", &block.biases)?.unwrap_or_else(|| vec![0.0; outputs]);
        let means = per_channel("bn_means", &block.bn_means)?;
        let variances = per_channel("bn_stddivs", &block.bn_stddivs)?;
        let gammas = per_channel("bn_gammas", &block.bn_gammas)?;
        let betas = per_channel("bn_betas", &block.bn_betas)?;
        if means.is_some() || variances.is_some() {
            let needed = |tensor: &str, values: Option<Vec<f32>>| {
                values.ok_or_else(|| ModelError::MissingTensor {
                    name: self.name.to_owned(),
                    tensor: format!("{path}.{tensor}"),
                    expected: format!("{outputs} ({shape})"),
                })
            };
            let means = needed("bn_means", means)?;
            let variances = needed("bn_stddivs", variances)?;
            for channel in 0..outputs {
                let at = |values: &Option<Vec<f32>>, default: f64| {
                    values.as_ref().map_or(default, |v| f64::from(v[channel]))
                };
                let scale = at(&gammas, 1.0) / (f64::from(variances[channel]) + 1e-5).sqrt();
                for weight in &mut weights[channel * fan_in..][..fan_in] {
                    *weight = (f64::from(*weight) * scale) as f32;
                }
                let centred = f64::from(bias[channel]) - f64::from(means[channel]);
                bias[channel] = (centred * scale + at(&betas, 0.0)) as f32;
            }
            let folded = format!("{path}.weights with batch norm");
            self.finite(&folded, &weights)?;
            self.finite(&folded, &bias)?;
        }
        Ok(Conv {
            weights,
            bias,
            inputs,
            outputs,
            kernel,
        })
    }

    /// The residual tower.
    pub fn tower(self, weights: &proto::Weights) -> Result<Tower, ModelError> {
        let absent = proto::ConvBlock::default();
        let input = weights.input.as_deref().unwrap_or(&absent);
        let first = weights
            .residual
            .first()
            .and_then(|block| block.conv1.as_deref());
        let square = first
            .and_then(|conv| self.count(&conv.weights))
            .and_then(|count| ratio(Some(count), Some(9)))
            .map(usize::isqrt);
        let channels = vote(&[
            self.conv_outputs(input, PLANES, 3),
            first.and_then(|conv| self.count(&conv.biases).or(self.count(&conv.bn_means))),
            square,
        ]);
        let input = self.conv("input", &weights.input, (PLANES, channels), 3)?;
        let width = input.outputs;
        let blocks = weights.residual.iter().enumerate().map(|(i, block)| {
            let path = |part: &str| format!("residual[{i}].{part}");
            let se = match block.se.as_deref() {
                Some(se) => Some(self.squeeze_excite(&path("se"), se, width)?),
                None => None,
            };
            Ok(Block {
                conv1: self.conv(&path("conv1"), &block.conv1, (width, Some(width)), 3)?,
                conv2: self.conv(&path("conv2"), &block.conv2, (width, Some(width)), 3)?,
                se,
            })
        });
        let blocks = blocks.collect::<Result<_, ModelError>>()?;
        Ok(Tower { input, blocks })
    }

    fn squeeze_excite(
        self,
        path: &str,
        se: &proto::SeUnit,
        channels: usize,
    ) -> Result<SqueezeExcite, ModelError> {
        let width = vote(&[
            self.count(&se.b1),
            ratio(self.count(&se.w1), Some(channels)),
            ratio(self.count(&se.w2), Some(2 * channels)),
        ])
        .unwrap_or(1);
        let dense =
            |number: usize, layers: (&OptLayer, &OptLayer), inputs: usize, outputs: usize| {
                Ok::<_, ModelError>(Dense {
                    weights: self.exact(
                        &format!("{path}.w{number}"),
                        layers.0,
                        inputs.saturating_mul(outputs),
                        &format!("{outputs} × {inputs}"),
                    )?,
                    bias: self.exact(
                        &format!("{path}.b{number}"),
                        layers.1,
                        outputs,
                        "one per output",
                    )?,
                    inputs,
                    outputs,
                })
            };
        Ok(SqueezeExcite {
            squeeze: dense(1, (&se.w1, &se.b1), channels, width)?,
            excite: dense(2, (&se.w2, &se.b2), width, 2 * channels)?,
        })
    }

    /// Whether the embedding takes the planes and the positional map, whatever the format says: Lc0 gives
    /// it both even when the format names no embedding.
    pub fn fits_position_map(self, weights: &proto::Weights) -> bool {
        let width = ratio(self.count(&weights.ip_emb_w), self.count(&weights.ip_emb_b));
        weights.residual.is_empty() && width == Some(PLANES + 64)
    }

    /// What lies before the heads, and the width of its output.
    pub fn body(
        self,
        format: &NetFormat,
        weights: &proto::Weights,
        smolgen_shared: Option<usize>,
    ) -> Result<(Body, usize), ModelError> {
        if format.body == BodyKind::Tower {
            let tower = self.tower(weights)?;
            let width = tower.input.outputs;
            return Ok((Body::Tower(tower), width));
        }
        let tower = match weights.residual.is_empty() {
            true => None,
            false => Some(self.tower(weights)?),
        };
        let dense_embedding = format.embedding == InputEmbedding::Dense;
        let mut preprocess = None;
        let inputs = if let Some(tower) = &tower {
            tower.input.outputs
        } else {
            PLANES
                + match format.embedding {
                    InputEmbedding::None => 0,
                    InputEmbedding::PositionMap => 64,
                    InputEmbedding::Dense => {
                        let dense = self.preprocess(weights)?;
                        let per_square = dense.outputs / 64;
                        preprocess = Some(dense);
                        per_square
                    }
                }
        };
        let width = vote(&[
            self.count(&weights.ip_emb_b),
            ratio(self.count(&weights.ip_emb_w), Some(inputs)),
            weights
                .encoder
                .first()
                .and_then(|e| self.count(&e.ln1_gammas)),
        ]);
        let embedding = self.dense(
            "ip_emb",
            (&weights.ip_emb_w, &weights.ip_emb_b),
            inputs,
            width,
        )?;
        let width = embedding.outputs;
        let gate = |tensor: &str, layer: &OptLayer| {
            let values = self.optional(tensor, layer, width * 64, &format!("{width} × 64"))?;
            Ok::<_, ModelError>(values.map(|values| transpose(&values, width)))
        };
        let mult_gate = gate("ip_mult_gate", &weights.ip_mult_gate)?;
        let add_gate = gate("ip_add_gate", &weights.ip_add_gate)?;
        let mut embedding_norm = None;
        let mut embedding_ffn = None;
        if dense_embedding {
            let layers = (&weights.ip_emb_ln_gammas, &weights.ip_emb_ln_betas);
            embedding_norm = Some(self.norm("ip_emb_ln", layers, width)?);
            let ffn = self.feed_forward("ip_emb_ffn", weights.ip_emb_ffn.as_deref(), width)?;
            let layers = (&weights.ip_emb_ffn_ln_gammas, &weights.ip_emb_ffn_ln_betas);
            embedding_ffn = Some((ffn, self.norm("ip_emb_ffn_ln", layers, width)?));
        }
        let encoders = self.encoders(
            "encoder",
            &weights.encoder,
            width,
            weights.headcount,
            smolgen_shared,
        )?;
        let body = AttentionBody {
            tower,
            preprocess,
            embedding,
            embedding_norm,
            mult_gate,
            add_gate,
            embedding_ffn,
            encoders,
        };
        Ok((Body::Attention(Box::new(body)), width))
    }

    fn preprocess(self, weights: &proto::Weights) -> Result<Dense, ModelError> {
        let layers = (&weights.ip_emb_preproc_w, &weights.ip_emb_preproc_b);
        let dense = self.dense("ip_emb_preproc", layers, 64 * PIECE_PLANES, None)?;
        if dense.outputs % 64 != 0 {
            return Err(ModelError::WrongSize {
                name: self.name.to_owned(),
                tensor: "ip_emb_preproc_b".to_owned(),
                found: dense.outputs,
                expected: "a multiple of 64 (one part per square)".to_owned(),
            });
        }
        Ok(dense)
    }

    fn feed_forward(
        self,
        path: &str,
        ffn: Option<&proto::Ffn>,
        width: usize,
    ) -> Result<FeedForward, ModelError> {
        let absent = proto::Ffn::default();
        let ffn = ffn.unwrap_or(&absent);
        let hidden = vote(&[
            self.count(&ffn.dense1_b),
            ratio(self.count(&ffn.dense1_w), Some(width)),
            ratio(self.count(&ffn.dense2_w), Some(width)),
        ])
        .unwrap_or(1);
        let path = |part: &str| format!("{path}.{part}");
        Ok(FeedForward {
            dense1: self.dense(
                &path("dense1"),
                (&ffn.dense1_w, &ffn.dense1_b),
                width,
                Some(hidden),
            )?,
            dense2: self.dense(
                &path("dense2"),
                (&ffn.dense2_w, &ffn.dense2_b),
                hidden,
                Some(width),
            )?,
        })
    }

    /// Encoder layers over channels of `width`.
    pub fn encoders(
        self,
        path: &str,
        layers: &[proto::EncoderLayer],
        width: usize,
        heads: Option<u32>,
        smolgen_shared: Option<usize>,
    ) -> Result<Vec<Encoder>, ModelError> {
        let heads = heads.unwrap_or(0) as usize;
        let build =
            |(i, layer)| self.encoder(&format!("{path}[{i}]"), layer, width, heads, smolgen_shared);
        layers.iter().enumerate().map(build).collect()
    }

    fn encoder(
        self,
        path: &str,
        layer: &proto::EncoderLayer,
        width: usize,
        heads: usize,
        smolgen_shared: Option<usize>,
    ) -> Result<Encoder, ModelError> {
        let absent = proto::Mha::default();
        let mha = layer.mha.as_deref().unwrap_or(&absent);
        let has_rpe = [&mha.rpe_q, &mha.rpe_k, &mha.rpe_v]
            .iter()
            .any(|layer| self.count(layer).is_some());
        if has_rpe {
            return Err(ModelError::Unsupported {
                name: self.name.to_owned(),
                what: format!("has relative position encodings (tensor {path}.mha.rpe)"),
            });
        }
        let depth = vote(&[
            self.count(&mha.q_b),
            self.count(&mha.k_b),
            self.count(&mha.v_b),
            ratio(self.count(&mha.q_w), Some(width)),
        ])
        .unwrap_or(1);
        if heads == 0 || !depth.is_multiple_of(heads) {
            return Err(ModelError::UnknownFormat {
                name: self.name.to_owned(),
                field: format!("head count of {path}"),
                found: heads.to_string(),
                expected: "a divisor of the width of q",
            });
        }
        let part = |part: &str| format!("{path}.mha.{part}");
        let smolgen = match mha.smolgen.as_deref() {
            Some(smolgen) => {
                Some(self.smolgen(&part("smolgen"), smolgen, width, heads, smolgen_shared)?)
            }
            None => None,
        };
        Ok(Encoder {
            q: self.dense(&part("q"), (&mha.q_w, &mha.q_b), width, Some(depth))?,
            k: self.dense(&part("k"), (&mha.k_w, &mha.k_b), width, Some(depth))?,
            v: self.dense(&part("v"), (&mha.v_w, &mha.v_b), width, Some(depth))?,
            out: self.dense(
                &part("dense"),
                (&mha.dense_w, &mha.dense_b),
                depth,
                Some(width),
            )?,
            heads,
            smolgen,
            norm1: self.norm(
                &format!("{path}.ln1"),
                (&layer.ln1_gammas, &layer.ln1_betas),
                width,
            )?,
            ffn: self.feed_forward(&format!("{path}.ffn"), layer.ffn.as_deref(), width)?,
            norm2: self.norm(
                &format!("{path}.ln2"),
                (&layer.ln2_gammas, &layer.ln2_betas),
                width,
            )?,
        })
    }

    fn smolgen(
        self,
        path: &str,
        smolgen: &proto::Smolgen,
        width: usize,
        heads: usize,
        shared: Option<usize>,
    ) -> Result<Smolgen, ModelError> {
        let Some(per_head) = shared else {
            return Err(ModelError::MissingTensor {
                name: self.name.to_owned(),
                tensor: "smolgen_w".to_owned(),
                expected: format!("{SMOLGEN_LOGITS} × the outputs per head of {path}"),
            });
        };
        let hidden = vote(&[
            self.count(&smolgen.dense1_b),
            self.count(&smolgen.ln1_gammas),
            self.count(&smolgen.ln1_betas),
        ])
        .unwrap_or(1);
        let compressed = vote(&[
            ratio(self.count(&smolgen.compress), Some(width)),
            ratio(self.count(&smolgen.dense1_w), Some(64 * hidden)),
        ])
        .unwrap_or(1);
        let part = |part: &str| format!("{path}.{part}");
        let compress = self.exact(
            &part("compress"),
            &smolgen.compress,
            compressed * width,
            &format!("{compressed} × {width}"),
        )?;
        let dense1 = (&smolgen.dense1_w, &smolgen.dense1_b);
        let dense2 = (&smolgen.dense2_w, &smolgen.dense2_b);
        let outputs = heads * per_head;
        Ok(Smolgen {
            compress: Dense {
                weights: compress,
                bias: vec![0.0; compressed],
                inputs: width,
                outputs: compressed,
            },
            dense1: self.dense(&part("dense1"), dense1, 64 * compressed, Some(hidden))?,
            norm1: self.norm(
                &part("ln1"),
                (&smolgen.ln1_gammas, &smolgen.ln1_betas),
                hidden,
            )?,
            dense2: self.dense(&part("dense2"), dense2, hidden, Some(outputs))?,
            norm2: self.norm(
                &part("ln2"),
                (&smolgen.ln2_gammas, &smolgen.ln2_betas),
                outputs,
            )?,
            per_head,
        })
    }
}

/// `[rows, 64]` to `[64, rows]`.
fn transpose(values: &[f32], rows: usize) -> Vec<f32> {
    (0..64 * rows)
        .map(|i| values[(i % rows) * 64 + i / rows])
        .collect()
}
