//! Why a network could not be used. Names tensors and sizes; prints nothing.

use std::path::PathBuf;

use thiserror::Error;

/// Everything that can be wrong with a network file or the device it should run on.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read network file '{}': {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are something else.
    #[error("'{name}' is not an Lc0 network: {reason}")]
    NotANetwork {
        /// The file.
        name: String,
        /// What was found and what was expected.
        reason: String,
    },
    /// The file ends early or its compression is damaged.
    #[error("network file '{name}' is truncated or damaged: {reason}")]
    Damaged {
        /// The file.
        name: String,
        /// What the decoder said.
        reason: String,
    },
    /// The file unpacks to more than it can honestly hold.
    #[error("network file '{name}' unpacks to more than {limit} bytes from {found} bytes; refused")]
    TooLarge {
        /// The file.
        name: String,
        /// Size of the file.
        found: u64,
        /// The most it may unpack to.
        limit: u64,
    },
    /// A format field has a value this program does not know.
    #[error("network '{name}' has {field} {found}; expected {expected}")]
    UnknownFormat {
        /// The file.
        name: String,
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// The values that are known.
        expected: &'static str,
    },
    /// The file asks for something that cannot be computed.
    #[error("network '{name}' {what}, which is not supported")]
    Unsupported {
        /// The file.
        name: String,
        /// What it has.
        what: String,
    },
    /// A tensor the format needs is absent.
    #[error("network '{name}' lacks tensor {tensor}: found 0 values, expected {expected}")]
    MissingTensor {
        /// The file.
        name: String,
        /// The tensor.
        tensor: String,
        /// Its size.
        expected: String,
    },
    /// A tensor has the wrong number of values.
    #[error("network '{name}': tensor {tensor} has {found} values, expected {expected}")]
    WrongSize {
        /// The file.
        name: String,
        /// The tensor.
        tensor: String,
        /// Values that are there.
        found: usize,
        /// Values that should be there, and why.
        expected: String,
    },
    /// A tensor's bytes do not divide into values.
    #[error("network '{name}': tensor {tensor} has {found} bytes, expected a multiple of {width}")]
    OddBytes {
        /// The file.
        name: String,
        /// The tensor.
        tensor: String,
        /// Bytes that are there.
        found: usize,
        /// Bytes of one value.
        width: usize,
    },
    /// A tensor holds NaN or infinity.
    #[error("network '{name}': tensor {tensor} holds {value} at {index}; expected finite numbers")]
    NotFinite {
        /// The file.
        name: String,
        /// The tensor.
        tensor: String,
        /// Position of the first such value.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The chosen head is not in the file.
    #[error("network '{name}' has no {kind} head '{wanted}'; it has: {present}")]
    MissingHead {
        /// The file.
        name: String,
        /// `policy` or `value`.
        kind: &'static str,
        /// The head asked for.
        wanted: &'static str,
        /// Those that are there.
        present: String,
    },
    /// A setting names something that does not exist.
    #[error("unknown {setting} '{found}'; expected {expected}")]
    UnknownSetting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What is known.
        expected: &'static str,
    },
    /// The device is not there.
    #[error("device '{device}' is not available: {reason}")]
    NoDevice {
        /// The device asked for.
        device: String,
        /// What is there.
        reason: String,
    },
    /// The tower of one core refused.
    #[error("tower: {0}")]
    Tower(#[from] super::tower_config::TowerError),
    /// libtorch refused.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}
