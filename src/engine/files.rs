//! Where `engine.toml` is looked for: GUIs start engines in any folder. Refuses to know what an
//! option means.

use std::path::PathBuf;

use super::error::EngineError;
use crate::options::{Domain, Options, TABLE};

/// Name of the file with the user's own defaults.
pub const SETTINGS_FILE: &str = "engine.toml";

/// The folder of the running program.
fn binary_folder() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.to_path_buf())
}

/// Applies the `engine.toml` beside the program, else the one in the working directory, if any.
/// `options` stay as they are on an error.
///
/// # Errors
/// When the file is there and cannot be read or says something wrong.
pub fn apply_settings(options: &mut Options) -> Result<Option<PathBuf>, EngineError> {
    let beside = binary_folder().map(|folder| folder.join(SETTINGS_FILE));
    let found = beside
        .into_iter()
        .chain([PathBuf::from(SETTINGS_FILE)])
        .find(|path| path.is_file());
    let Some(path) = found else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(&path).map_err(|error| EngineError::SettingsUnreadable {
        path: path.clone(),
        error,
    })?;
    match options.apply_toml(&text) {
        Ok(()) => Ok(Some(path)),
        Err(error) => Err(EngineError::Settings { path, error }),
    }
}

/// An `engine.toml` that lists every option with its default, commented out.
pub fn settings_text() -> String {
    let mut text = String::from(
        "# Settings of Simurgh. It looks for this file beside the program, then in the working folder.\n\
         # Flags win over it (cpuct is --cpuct), and setoption wins over both. To change a default, take\n\
         # the # away; a key that is not listed here is an error. Written by: simurgh describe --toml\n",
    );
    for spec in TABLE {
        let default = match spec.domain {
            Domain::Button => continue,
            Domain::Text | Domain::Combo(_) => format!("{:?}", spec.default_text()),
            _ => spec.default_text(),
        };
        text.push_str(&format!(
            "\n# {}\n# UCI {}: {}.\n# {} = {default}\n",
            spec.help,
            spec.uci,
            spec.expected(),
            spec.key,
        ));
    }
    text
}
