//! Decoding one tensor of a network file into numbers, with its size and its values checked. Knows
//! encodings; nothing of what a tensor is for.

use half::{bf16, f16};

use super::error::ModelError;
use super::proto::{Layer, OptLayer};

#[derive(Clone, Copy)]
enum Encoding {
    Linear16,
    Float16,
    Bfloat16,
    Float32,
}

impl Encoding {
    fn width(self) -> usize {
        match self {
            Encoding::Float32 => 4,
            _ => 2,
        }
    }
}

/// Decodes the tensors of one file; the name is for messages.
#[derive(Clone, Copy)]
pub struct Decoder<'a> {
    /// The file.
    pub name: &'a str,
}

impl Decoder<'_> {
    /// Number of values of a tensor as far as its bytes tell, `None` when it is absent or empty.
    pub fn count(self, layer: &OptLayer) -> Option<usize> {
        let layer = layer.as_deref()?;
        let bytes = layer.params.as_ref()?.len();
        let width = self.encoding("", layer).ok()?.width();
        (bytes > 0).then_some(bytes / width)
    }

    /// The values of a tensor that must be there with exactly `expected` of them; `shape` explains the
    /// number.
    pub fn exact(
        self,
        tensor: &str,
        layer: &OptLayer,
        expected: usize,
        shape: &str,
    ) -> Result<Vec<f32>, ModelError> {
        let describe = || format!("{expected} ({shape})");
        let Some(layer) = layer.as_deref().filter(|layer| !is_empty(layer)) else {
            return Err(ModelError::MissingTensor {
                name: self.name.to_owned(),
                tensor: tensor.to_owned(),
                expected: describe(),
            });
        };
        let encoding = self.encoding(tensor, layer)?;
        let bytes = layer.params.as_deref().unwrap_or_default();
        if bytes.len() % encoding.width() != 0 {
            return Err(ModelError::OddBytes {
                name: self.name.to_owned(),
                tensor: tensor.to_owned(),
                found: bytes.len(),
                width: encoding.width(),
            });
        }
        let found = bytes.len() / encoding.width();
        if found != expected {
            return Err(ModelError::WrongSize {
                name: self.name.to_owned(),
                tensor: tensor.to_owned(),
                found,
                expected: describe(),
            });
        }
        let values = decode(encoding, layer, bytes);
        self.finite(tensor, &values)?;
        Ok(values)
    }

    /// As [`Decoder::exact`], `None` for a tensor that is absent or empty.
    pub fn optional(
        self,
        tensor: &str,
        layer: &OptLayer,
        expected: usize,
        shape: &str,
    ) -> Result<Option<Vec<f32>>, ModelError> {
        match layer.as_deref() {
            Some(present) if !is_empty(present) => {
                self.exact(tensor, layer, expected, shape).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Refuses NaN and infinity.
    pub fn finite(self, tensor: &str, values: &[f32]) -> Result<(), ModelError> {
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(index) => Err(ModelError::NotFinite {
                name: self.name.to_owned(),
                tensor: tensor.to_owned(),
                index,
                value: values[index],
            }),
        }
    }

    fn encoding(self, tensor: &str, layer: &Layer) -> Result<Encoding, ModelError> {
        match layer.encoding {
            None | Some(0 | 1) => Ok(Encoding::Linear16),
            Some(2) => Ok(Encoding::Float16),
            Some(3) => Ok(Encoding::Bfloat16),
            Some(4) => Ok(Encoding::Float32),
            Some(other) => Err(ModelError::UnknownFormat {
                name: self.name.to_owned(),
                field: format!("encoding of tensor {tensor}"),
                found: other.to_string(),
                expected: "1 (linear16), 2 (float16), 3 (bfloat16) or 4 (float32)",
            }),
        }
    }
}

fn is_empty(layer: &Layer) -> bool {
    layer.params.as_ref().is_none_or(|params| params.is_empty())
}

fn decode(encoding: Encoding, layer: &Layer, bytes: &[u8]) -> Vec<f32> {
    let pairs = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    match encoding {
        Encoding::Linear16 => {
            let min = f64::from(layer.min_val.unwrap_or(0.0));
            let max = f64::from(layer.max_val.unwrap_or(0.0));
            pairs
                .map(|value| {
                    let theta = f64::from(value) / 65535.0;
                    (min * (1.0 - theta) + max * theta) as f32
                })
                .collect()
        }
        Encoding::Float16 => pairs.map(|bits| f16::from_bits(bits).to_f32()).collect(),
        Encoding::Bfloat16 => pairs.map(|bits| bf16::from_bits(bits).to_f32()).collect(),
        Encoding::Float32 => bytes
            .chunks_exact(4)
            .map(|quad| f32::from_le_bytes([quad[0], quad[1], quad[2], quad[3]]))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(encoding: Option<i32>, params: Vec<u8>, min: f32, max: f32) -> OptLayer {
        Some(Box::new(Layer {
            min_val: Some(min),
            max_val: Some(max),
            params: Some(params.into()),
            encoding,
        }))
    }

    #[test]
    fn every_encoding_gives_its_numbers() {
        let decoder = Decoder { name: "f" };
        let values = |layer| decoder.exact("t", &layer, 2, "two").unwrap();
        assert_eq!(
            values(layer(None, vec![0, 0, 255, 255], -1.5, 2.5)),
            [-1.5, 2.5]
        );
        assert_eq!(
            values(layer(Some(2), vec![0, 0x3c, 0, 0xc0], 0.0, 0.0)),
            [1.0, -2.0]
        );
        assert_eq!(
            values(layer(Some(3), vec![0x80, 0x3f, 0, 0xc0], 0.0, 0.0)),
            [1.0, -2.0]
        );
        let bytes = [1.0f32, -2.0]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(values(layer(Some(4), bytes, 0.0, 0.0)), [1.0, -2.0]);
    }

    #[test]
    fn bad_tensors_are_named() {
        let decoder = Decoder { name: "f" };
        let error = |layer, expected| {
            decoder
                .exact("t", &layer, expected, "x")
                .unwrap_err()
                .to_string()
        };
        assert!(error(None, 3).contains("lacks tensor t"));
        assert!(error(layer(None, vec![], 0.0, 1.0), 3).contains("lacks tensor t"));
        assert!(error(layer(None, vec![0; 4], 0.0, 1.0), 3).contains("has 2 values, expected 3"));
        assert!(error(layer(None, vec![0; 5], 0.0, 1.0), 3).contains("multiple of 2"));
        assert!(error(layer(Some(9), vec![0; 4], 0.0, 1.0), 2).contains("encoding"));
        assert!(error(layer(None, vec![0; 4], f32::NAN, 1.0), 2).contains("NaN"));
        let inf = f32::INFINITY.to_le_bytes().to_vec();
        assert!(error(layer(Some(4), inf, 0.0, 0.0), 1).contains("inf at 0"));
    }
}
