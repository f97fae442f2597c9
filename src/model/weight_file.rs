//! The project's own weight files: safetensors whose metadata hold a configuration and a manifest. Checks every
//! tensor; knows no libtorch and no kind of network.

use std::collections::HashMap;
use std::path::Path;

use half::f16;
use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ModelError;

/// How a tensor begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Normal with Xavier's variance 2 / (in + out), times this gain.
    Xavier(f64),
    /// Normal with this deviation.
    Normal(f64),
    /// `[heads, 64, 64]`: this number where a piece gets from a square to another on an empty board, else 0;
    /// head by head for a rook, bishop, knight, king, an own and a hostile pawn that captures, a queen, no
    /// piece, and again.
    PieceMoves(f64),
    /// All zero.
    Zeros,
    /// All one.
    Ones,
}

/// A tensor of a network: its name in files, shape and beginning. Matrices are `[in, out]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub shape: Vec<i64>,
    pub init: Init,
}

impl Parameter {
    /// How many numbers it has.
    pub fn size(&self) -> usize {
        self.shape.iter().product::<i64>().max(0) as usize
    }
}

/// Sizes and choices of a kind of network, from which its tensors follow.
pub trait NetworkConfig: Serialize + DeserializeOwned {
    /// `format` in the metadata.
    const FORMAT: &str;

    /// Checks that every size makes sense.
    ///
    /// # Errors
    /// Names the size, what it is and what was expected.
    fn check(&self) -> Result<(), String>;

    /// Every tensor of the network, in file order.
    fn parameters(&self) -> Vec<Parameter>;

    /// Numbers in all tensors.
    fn size(&self) -> usize {
        self.parameters().iter().map(Parameter::size).sum()
    }
}

/// A file that was read and checked.
#[derive(Clone, Debug)]
pub struct WeightFile<C> {
    /// For messages.
    pub name: String,
    /// What the network is made of.
    pub config: C,
    /// Where it comes from, a JSON object: data, steps, validation figures, licence.
    pub manifest: serde_json::Value,
    /// Every tensor of [`NetworkConfig::parameters`] by name.
    pub tensors: HashMap<String, Vec<f32>>,
}

/// True when the bytes begin as a safetensors file does: the length of a JSON header, then the header.
pub fn is_safetensors(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&b'{')
        && bytes
            .first_chunk::<8>()
            .is_some_and(|length| u64::from_le_bytes(*length) < bytes.len() as u64)
}

/// `format` in the metadata of a safetensors file, if it has one.
pub fn format_of(bytes: &[u8]) -> Option<String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    text(&metadata, "format").map(str::to_owned)
}

impl<C: NetworkConfig> WeightFile<C> {
    /// Reads a network from the bytes of its file.
    ///
    /// # Errors
    /// Names what is damaged, missing, left over, of the wrong size or not a number.
    pub fn parse(bytes: &[u8], name: &str) -> Result<WeightFile<C>, ModelError> {
        let damaged = |reason: String| ModelError::Damaged {
            name: name.to_owned(),
            reason,
        };
        let (_, metadata) =
            SafeTensors::read_metadata(bytes).map_err(|e| damaged(format!("safetensors: {e}")))?;
        let config: C = configuration(&metadata, name)?;
        let file =
            SafeTensors::deserialize(bytes).map_err(|e| damaged(format!("safetensors: {e}")))?;
        let manifest = text(&metadata, "manifest").map_or(Ok(serde_json::Value::Null), |text| {
            serde_json::from_str(text).map_err(|e| damaged(format!("manifest: {e}")))
        })?;
        let mut tensors = HashMap::new();
        for parameter in config.parameters() {
            let wanted = format!("{:?}", parameter.shape);
            let Ok(view) = file.tensor(&parameter.name) else {
                return Err(ModelError::MissingTensor {
                    name: name.to_owned(),
                    tensor: parameter.name,
                    expected: wanted,
                });
            };
            let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
            if shape != parameter.shape {
                return Err(ModelError::WrongSize {
                    name: name.to_owned(),
                    expected: format!("{} of shape {wanted}, not {shape:?}", parameter.size()),
                    tensor: parameter.name,
                    found: view.shape().iter().product(),
                });
            }
            let values = values(&view).ok_or_else(|| ModelError::Unsupported {
                name: name.to_owned(),
                what: format!("has tensor {} as {:?}", parameter.name, view.dtype()),
            })?;
            if let Some(index) = values.iter().position(|value| !value.is_finite()) {
                return Err(ModelError::NotFinite {
                    name: name.to_owned(),
                    tensor: parameter.name,
                    index,
                    value: values[index],
                });
            }
            tensors.insert(parameter.name, values);
        }
        if let Some(left) = file.names().into_iter().find(|n| !tensors.contains_key(*n)) {
            return Err(ModelError::Unsupported {
                name: name.to_owned(),
                what: format!("has a tensor {left} that its configuration does not name"),
            });
        }
        Ok(WeightFile {
            name: name.to_owned(),
            config,
            manifest,
            tensors,
        })
    }

    /// Numbers in all tensors.
    pub fn parameters(&self) -> usize {
        self.tensors.values().map(Vec::len).sum()
    }
}

fn text<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    let map = metadata.metadata().as_ref()?;
    map.get(key).map(String::as_str)
}

fn configuration<C: NetworkConfig>(metadata: &Metadata, name: &str) -> Result<C, ModelError> {
    let unknown = |field: &str, found: String, expected| ModelError::UnknownFormat {
        name: name.to_owned(),
        field: field.to_owned(),
        found,
        expected,
    };
    match text(metadata, "format") {
        Some(format) if format == C::FORMAT => {}
        found => {
            let found = found.unwrap_or("nothing").to_owned();
            return Err(unknown("format in its metadata", found, C::FORMAT));
        }
    }
    let config: C = serde_json::from_str(text(metadata, "config").unwrap_or_default())
        .map_err(|e| unknown("config", e.to_string(), "a configuration in JSON"))?;
    config
        .check()
        .map_err(|why| unknown("config", why, "sizes in range"))?;
    Ok(config)
}

fn values(view: &TensorView) -> Option<Vec<f32>> {
    let data = view.data();
    Some(match view.dtype() {
        Dtype::F32 => {
            let values = data.as_chunks::<4>().0.iter();
            values.map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
        Dtype::F16 => {
            let values = data.as_chunks::<2>().0.iter();
            values
                .map(|bytes| f16::from_le_bytes(*bytes).to_f32())
                .collect()
        }
        _ => return None,
    })
}

/// Writes a network, in half precision if `half`; the file takes its name once it is whole.
///
/// # Errors
/// When the file cannot be written.
pub fn write<C: NetworkConfig>(
    path: &Path,
    config: &C,
    manifest: &serde_json::Value,
    tensors: &HashMap<String, Vec<f32>>,
    half: bool,
) -> Result<(), ModelError> {
    let failed = |source| ModelError::Io {
        path: path.to_owned(),
        source,
    };
    let other = |text: String| failed(std::io::Error::other(text));
    let mut packed: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    for parameter in config.parameters() {
        let values = tensors.get(&parameter.name).map_or(&[][..], Vec::as_slice);
        let bytes = match half {
            true => values
                .iter()
                .flat_map(|v| f16::from_f32(*v).to_le_bytes())
                .collect(),
            false => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let shape = parameter.shape.iter().map(|&n| n as usize).collect();
        packed.push((parameter.name, shape, bytes));
    }
    let dtype = if half { Dtype::F16 } else { Dtype::F32 };
    let mut views = Vec::new();
    for (name, shape, bytes) in &packed {
        let view = TensorView::new(dtype, shape.clone(), bytes)
            .map_err(|e| other(format!("tensor {name}: {e}")))?;
        views.push((name.clone(), view));
    }
    let config = serde_json::to_string(config).map_err(|e| other(e.to_string()))?;
    let metadata = HashMap::from([
        ("format".to_owned(), C::FORMAT.to_owned()),
        ("config".to_owned(), config),
        ("manifest".to_owned(), manifest.to_string()),
    ]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(|e| other(e.to_string()))?;
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, bytes).map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)
}
