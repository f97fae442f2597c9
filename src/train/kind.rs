//! The two kinds of network that are trained, behind one face: their configuration, their minibatches, what they
//! are made of as tensors. Each kind's loss is [`super::gradient`]'s.

use std::collections::HashMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tch::{TchError, Tensor};

use super::batch::Batch;
use super::games::GameBatch;
use crate::model::ModelError;
use crate::model::gpt::{Gpt, GptConfig};
use crate::model::transformer::{self, Transformer};
use crate::model::weight_file::{NetworkConfig, Parameter, write};

/// A network's configuration. In a run's file `kind` tells which; without it, it is a transformer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelConfig {
    /// Policy and value from a position.
    Transformer(transformer::Config),
    /// The next move from the moves before.
    Gpt(GptConfig),
}

impl<'de> Deserialize<'de> for ModelConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ModelConfig, D::Error> {
        let mut keys = serde_json::Map::deserialize(deserializer)?;
        let kind = keys.remove("kind").unwrap_or("transformer".into());
        let keys = serde_json::Value::Object(keys);
        match kind.as_str() {
            Some("transformer") => serde_json::from_value(keys).map(ModelConfig::Transformer),
            Some("gpt") => serde_json::from_value(keys).map(ModelConfig::Gpt),
            _ => {
                let why = format!("model.kind is {kind}, expected \"transformer\" or \"gpt\"");
                return Err(D::Error::custom(why));
            }
        }
        .map_err(D::Error::custom)
    }
}

impl ModelConfig {
    /// Checks that every size makes sense.
    ///
    /// # Errors
    /// Names the size, what it is and what was expected.
    pub fn check(&self) -> Result<(), String> {
        match self {
            ModelConfig::Transformer(config) => config.check(),
            ModelConfig::Gpt(config) => config.check(),
        }
    }

    /// Every tensor of the network, in file order.
    pub fn parameters(&self) -> Vec<Parameter> {
        match self {
            ModelConfig::Transformer(config) => config.parameters(),
            ModelConfig::Gpt(config) => config.parameters(),
        }
    }

    /// Numbers in all tensors.
    pub fn size(&self) -> usize {
        self.parameters().iter().map(Parameter::size).sum()
    }

    /// Writes a network's file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(
        &self,
        path: &std::path::Path,
        manifest: &serde_json::Value,
        tensors: &HashMap<String, Vec<f32>>,
        half: bool,
    ) -> Result<(), ModelError> {
        match self {
            ModelConfig::Transformer(config) => write(path, config, manifest, tensors, half),
            ModelConfig::Gpt(config) => write(path, config, manifest, tensors, half),
        }
    }
}

/// A network over tensors.
pub enum Network {
    /// Policy and value from a position.
    Transformer(Transformer),
    /// The next move from the moves before.
    Gpt(Gpt),
}

impl Network {
    /// The network of `config` over its tensors.
    ///
    /// # Errors
    /// When one is missing.
    pub fn new(
        config: &ModelConfig,
        tensors: &HashMap<String, Tensor>,
    ) -> Result<Network, TchError> {
        Ok(match config {
            ModelConfig::Transformer(config) => {
                Network::Transformer(Transformer::new(config, tensors)?)
            }
            ModelConfig::Gpt(config) => Network::Gpt(Gpt::new(config, tensors)?),
        })
    }
}

/// A minibatch of either kind.
#[derive(Clone, Debug)]
pub enum AnyBatch {
    /// Positions.
    Positions(Batch),
    /// Games as tokens.
    Games(GameBatch),
}

impl AnyBatch {
    /// Rows, which can be divided among threads.
    pub fn rows(&self) -> usize {
        match self {
            AnyBatch::Positions(batch) => batch.size,
            AnyBatch::Games(batch) => batch.size,
        }
    }

    /// What the mean of the loss is taken over: positions, or tokens to predict.
    pub fn counted(&self) -> usize {
        match self {
            AnyBatch::Positions(batch) => batch.size,
            AnyBatch::Games(batch) => batch.counted(),
        }
    }

    /// Rows `from..to` as a minibatch of its own.
    pub fn part(&self, from: usize, to: usize) -> AnyBatch {
        match self {
            AnyBatch::Positions(batch) => AnyBatch::Positions(batch.rows(from, to)),
            AnyBatch::Games(batch) => AnyBatch::Games(batch.rows(from, to)),
        }
    }
}
