//! Networks in libtorch: weight files, towers and attention bodies, backends. Never a search tree,
//! never stdout.

mod assemble;
mod attention;
mod backend;
mod cpu;
pub mod cpu_tower;
mod embedded;
mod error;
mod file;
mod format;
pub mod gpt;
mod heads;
pub mod lanes;
mod layer;
mod matmul;
mod plane_conv;
mod proto;
mod runner;
mod settings;
mod torch;
pub mod tower_config;
pub mod transformer;
pub mod weight_file;
mod weights;
mod winograd;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use attention::{AttentionMaps, attention_maps};
pub use backend::TorchBackend;
pub use embedded::embedded;
pub use error::ModelError;
pub use format::{Activation, BodyKind, InputEmbedding, NetFormat};
pub use gpt::{GptConfig, GptFile};
pub use heads::{PolicyHead, ValueHead};
pub use settings::{ModelOptions, Precision};
pub use transformer::{TransformerBackend, TransformerFile};
pub use weights::{Body, NetworkWeights, Policy};

use crate::eval::Backend;
use crate::options::Options;
use weight_file::NetworkConfig;

/// Where a network comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The network inside the binary; see [`embedded()`].
    Embedded,
}

impl Source {
    /// The file the options name, else the embedded network, if there is one. A relative path is tried from
    /// the working directory, then from the binary's.
    pub fn of_options(options: &Options) -> Option<Source> {
        let name = options.weights.trim();
        if name.is_empty() {
            return embedded().map(|_| Source::Embedded);
        }
        let binary = std::env::current_exe().ok();
        let folder = binary.as_deref().and_then(Path::parent);
        Some(Source::File(find(PathBuf::from(name), folder)))
    }
}

/// The path from the working folder if anything is there, else from `folder` if it is there.
fn find(path: PathBuf, folder: Option<&Path>) -> PathBuf {
    match folder.map(|folder| folder.join(&path)) {
        Some(beside) if !path.exists() && beside.exists() => beside,
        _ => path,
    }
}

/// A network file of either kind.
#[derive(Debug)]
pub enum AnyFile {
    /// An Lc0 network.
    Lc0(NetworkFile),
    /// A transformer of the project's own.
    Transformer(Box<TransformerFile>),
    /// A GPT that reads moves.
    Gpt(Box<GptFile>),
}

impl AnyFile {
    /// Reads a network; what it begins with tells its kind.
    ///
    /// # Errors
    /// When the file cannot be read or is no network.
    pub fn read(source: &Source) -> Result<AnyFile, ModelError> {
        match source {
            Source::File(path) => {
                let name = path.file_name().map_or_else(
                    || path.display().to_string(),
                    |name| name.to_string_lossy().into_owned(),
                );
                AnyFile::parse(file::bytes(path, &name)?, &name)
            }
            Source::Embedded => {
                let (name, bytes) = embedded().ok_or_else(|| ModelError::NotANetwork {
                    name: "embedded".to_owned(),
                    reason: "this binary was built without one".to_owned(),
                })?;
                AnyFile::parse(bytes.to_vec(), name)
            }
        }
    }

    /// For messages.
    pub fn name(&self) -> &str {
        match self {
            AnyFile::Lc0(file) => &file.name,
            AnyFile::Transformer(file) => &file.name,
            AnyFile::Gpt(file) => &file.name,
        }
    }

    /// Reads a network from the bytes of its file.
    ///
    /// # Errors
    /// When the bytes are no network.
    pub fn parse(bytes: Vec<u8>, name: &str) -> Result<AnyFile, ModelError> {
        if weight_file::is_safetensors(&bytes) {
            if weight_file::format_of(&bytes).as_deref() == Some(GptConfig::FORMAT) {
                return Ok(AnyFile::Gpt(Box::new(GptFile::parse(&bytes, name)?)));
            }
            let file = TransformerFile::parse(&bytes, name)?;
            return Ok(AnyFile::Transformer(Box::new(file)));
        }
        Ok(AnyFile::Lc0(NetworkFile::parse(bytes, name)?))
    }
}

/// An Lc0 network file that was read, with what it says of itself.
#[derive(Debug)]
pub struct NetworkFile {
    name: String,
    net: proto::Net,
}

impl NetworkFile {
    /// Reads a network from the bytes of its file.
    ///
    /// # Errors
    /// When the bytes are no network.
    pub fn parse(bytes: Vec<u8>, name: &str) -> Result<NetworkFile, ModelError> {
        Ok(NetworkFile {
            name: name.to_owned(),
            net: file::parse(bytes, name)?,
        })
    }

    /// All weights with the chosen heads, every tensor checked.
    ///
    /// # Errors
    /// Names what is unknown, missing, of the wrong size or not a number.
    pub fn weights(
        &self,
        policy_head: PolicyHead,
        value_head: ValueHead,
    ) -> Result<NetworkWeights, ModelError> {
        heads::assemble(&self.net, &self.name, policy_head, value_head)
    }

    /// The policy heads in the file.
    pub fn policy_heads(&self) -> Vec<PolicyHead> {
        self.net
            .weights
            .as_deref()
            .map_or_else(Vec::new, heads::policy_heads)
    }

    /// The value heads in the file.
    pub fn value_heads(&self) -> Vec<ValueHead> {
        self.net
            .weights
            .as_deref()
            .map_or_else(Vec::new, heads::value_heads)
    }

    /// The oldest Lc0 that reads the file.
    pub fn min_version(&self) -> Option<(u32, u32, u32)> {
        let version = self.net.min_version.as_deref()?;
        let part = |part: Option<u32>| part.unwrap_or(0);
        Some((
            part(version.major),
            part(version.minor),
            part(version.patch),
        ))
    }

    /// The licence the file states.
    pub fn license(&self) -> Option<String> {
        let bytes = self.net.license.as_deref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Loads a network onto its device, checked and warmed up.
///
/// # Errors
/// One line that says what is wrong with the file, the options or the device.
pub fn load_backend(
    source: &Source,
    options: &ModelOptions,
) -> Result<Arc<dyn Backend>, ModelError> {
    Ok(match AnyFile::read(source)? {
        AnyFile::Lc0(file) => {
            let weights = file.weights(options.policy_head, options.value_head)?;
            Arc::new(TorchBackend::new(&weights, options)?)
        }
        AnyFile::Transformer(file) => Arc::new(TransformerBackend::new(&file, options)?),
        AnyFile::Gpt(file) => {
            return Err(ModelError::Unsupported {
                name: file.name,
                what: "is a GPT (expected a network with a value)".to_owned(),
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_tried_from_the_working_folder_first() {
        // Tests run in the folder of Cargo.toml.
        let folder = Path::new("src/model");
        let found = |path: &str| find(PathBuf::from(path), Some(folder));
        assert_eq!(found("weights.rs"), Path::new("src/model/weights.rs"));
        assert_eq!(found("neither"), Path::new("neither"));
        let both = std::env::temp_dir().join(format!("simurgh-both-{}", std::process::id()));
        std::fs::create_dir_all(&both).unwrap();
        std::fs::write(both.join("Cargo.toml"), "").unwrap();
        let path = find(PathBuf::from("Cargo.toml"), Some(&both));
        std::fs::remove_dir_all(&both).unwrap();
        assert_eq!(path, Path::new("Cargo.toml"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        for path in ["/dev/zero", "src"] {
            let error = AnyFile::read(&Source::File(path.into())).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
    }
}
