//! From a network file to its protobuf message: compression, size limits, truncation. Knows nothing of
//! what the message means.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use prost::Message;
use prost::bytes::Bytes;

use super::error::ModelError;
use super::proto::Net;

const MAGIC: u32 = 0x1c0;
/// No network is larger than this, unpacked.
const MAX_BYTES: u64 = 4 << 30;
/// What any file may unpack to, whatever its size.
const FREE_BYTES: u64 = 64 << 20;
/// Weights hardly compress; beyond this ratio a file is a bomb.
const MAX_RATIO: u64 = 64;
/// No network has more layers of one kind.
const MAX_REPEATED: usize = 4096;

/// The bytes of a network file, as they are; `name` is for messages.
pub fn bytes(path: &Path, name: &str) -> Result<Vec<u8>, ModelError> {
    let io = |source| ModelError::Io {
        path: path.to_owned(),
        source,
    };
    // Before it is opened: that alone waits for ever on a named pipe nobody writes to.
    if !path.metadata().map_err(io)?.is_file() {
        return Err(io(std::io::Error::other("not a regular file")));
    }
    let file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ModelError::TooLarge {
            name: name.to_owned(),
            found: bytes.len() as u64,
            limit: MAX_BYTES,
        });
    }
    Ok(bytes)
}

/// Unpacks the bytes of a network file, gzipped or not; `name` is for messages.
pub fn parse(bytes: Vec<u8>, name: &str) -> Result<Net, ModelError> {
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpack(&bytes, name)?
    } else {
        bytes
    };
    check_beginning(&bytes, name)?;
    check_structure(&bytes, name)?;
    let net = Net::decode(Bytes::from(bytes)).map_err(|e| ModelError::Damaged {
        name: name.to_owned(),
        reason: e.to_string(),
    })?;
    if net.magic != Some(MAGIC) {
        return Err(ModelError::NotANetwork {
            name: name.to_owned(),
            reason: match net.magic {
                Some(magic) => format!("its magic number is {magic:#x}, expected {MAGIC:#x}"),
                None => format!("it has no magic number, expected {MAGIC:#x}"),
            },
        });
    }
    Ok(net)
}

fn unpack(packed: &[u8], name: &str) -> Result<Vec<u8>, ModelError> {
    let limit = MAX_BYTES.min(FREE_BYTES + MAX_RATIO * packed.len() as u64);
    let damaged = |e: std::io::Error| ModelError::Damaged {
        name: name.to_owned(),
        reason: format!("gzip: {e}"),
    };
    let mut decoder = GzDecoder::new(packed);
    let mut bytes = Vec::new();
    decoder
        .by_ref()
        .take(64)
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    check_beginning(&bytes, name)?;
    decoder
        .take(limit - 63)
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    if bytes.len() as u64 > limit {
        return Err(ModelError::TooLarge {
            name: name.to_owned(),
            found: packed.len() as u64,
            limit,
        });
    }
    Ok(bytes)
}

/// Refuses what cannot be a network by its first bytes: the key of a known field with its wire type.
fn check_beginning(bytes: &[u8], name: &str) -> Result<(), ModelError> {
    // magic; license, min_version, format, training_params, weights, onnx_model.
    const KEYS: [u8; 7] = [0x0d, 0x12, 0x1a, 0x22, 0x2a, 0x52, 0x5a];
    match bytes.first() {
        Some(key) if KEYS.contains(key) => Ok(()),
        Some(key) => Err(ModelError::NotANetwork {
            name: name.to_owned(),
            reason: format!(
                "it begins with byte {key:#04x}, expected 0x0d (the magic number's field)"
            ),
        }),
        None => Err(ModelError::NotANetwork {
            name: name.to_owned(),
            reason: "it is empty, expected a protobuf message".to_owned(),
        }),
    }
}

/// Walks the message before anything is built from it: lengths must fit in the bytes that are there, and
/// repeated layers stay within reason.
fn check_structure(bytes: &[u8], name: &str) -> Result<(), ModelError> {
    const WEIGHTS: u64 = 10;
    const REPEATED_LAYERS: [u64; 3] = [2, 21, 27];
    const POLICY_HEADS: u64 = 45;
    const POLICY_ENCODER: u64 = 8;
    let too_many = |what: &str| ModelError::Damaged {
        name: name.to_owned(),
        reason: format!("more than {MAX_REPEATED} {what}"),
    };
    let damaged = |reason: String| ModelError::Damaged {
        name: name.to_owned(),
        reason,
    };
    let mut layers = 0;
    let mut encoders = 0;
    for weights in (Fields { rest: bytes }).nested(WEIGHTS) {
        for field in (Fields {
            rest: weights.map_err(damaged)?,
        }) {
            let (number, body) = field.map_err(damaged)?;
            layers += usize::from(REPEATED_LAYERS.contains(&number));
            if layers > MAX_REPEATED {
                return Err(too_many("layers"));
            }
            if number != POLICY_HEADS {
                continue;
            }
            for head in (Fields { rest: body }) {
                let (_, head) = head.map_err(damaged)?;
                for encoder in (Fields { rest: head }).nested(POLICY_ENCODER) {
                    encoder.map_err(damaged)?;
                    encoders += 1;
                    if encoders > MAX_REPEATED {
                        return Err(too_many("policy encoders"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The fields of a protobuf message: number, and the bytes of a length-delimited one (else nothing).
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn nested(self, number: u64) -> impl Iterator<Item = Result<&'a [u8], String>> {
        self.filter_map(move |field| match field {
            Ok((found, body)) => (found == number).then_some(Ok(body)),
            Err(e) => Some(Err(e)),
        })
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn field(&mut self) -> Result<(u64, &'a [u8]), String> {
        let key = self.varint().ok_or("a field's key is cut off")?;
        let number = key >> 3;
        let length = match key & 7 {
            0 => {
                self.varint().ok_or("a number is cut off")?;
                return Ok((number, &[]));
            }
            1 => 8,
            2 => self.varint().ok_or("a length is cut off")?,
            5 => 4,
            kind => {
                return Err(format!(
                    "field {number} has wire type {kind}, expected 0, 1, 2 or 5"
                ));
            }
        };
        let body = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let (body, rest) = body.ok_or_else(|| {
            format!(
                "field {number} claims {length} bytes, {} are there",
                self.rest.len()
            )
        })?;
        self.rest = rest;
        Ok((number, if key & 7 == 2 { body } else { &[] }))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, &'a [u8]), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_not_a_network_is_refused_by_its_first_bytes() {
        for bytes in [
            &b""[..],
            b"hello",
            b"\x08\x07",
            b"\x00",
            &gz(b"1\n0.5 0.25"),
        ] {
            let error = parse(bytes.to_vec(), "f").unwrap_err();
            assert!(matches!(error, ModelError::NotANetwork { .. }), "{error}");
        }
    }

    #[test]
    fn a_gzip_bomb_is_refused() {
        let mut bytes = vec![0x0d, 0xc0, 1, 0, 0, 0x12, 0x80, 0x80, 0x80, 0x80, 0x01];
        bytes.resize(100 << 20, 0);
        let error = parse(gz(&bytes), "f").unwrap_err();
        assert!(matches!(error, ModelError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_claim_beyond_the_bytes_is_named() {
        let bytes = vec![
            0x0d, 0xc0, 1, 0, 0, 0x52, 0x80, 0x80, 0x80, 0x80, 0x08, 1, 2, 3,
        ];
        let error = parse(bytes, "f").unwrap_err().to_string();
        assert!(error.contains("claims 2147483648 bytes"), "{error}");
    }

    #[test]
    fn a_flood_of_empty_layers_is_refused() {
        let mut weights = Vec::new();
        for _ in 0..10_000 {
            weights.extend([0x12, 0]);
        }
        let mut bytes = vec![0x0d, 0xc0, 1, 0, 0, 0x52];
        prost::encoding::encode_varint(weights.len() as u64, &mut bytes);
        bytes.extend(weights);
        assert!(matches!(parse(bytes, "f"), Err(ModelError::Damaged { .. })));
    }
}
