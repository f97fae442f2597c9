//! Finds Stockfish on this machine. Starts nothing.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::client::EngineConfig;

/// How to start it: as named, else from PATH or /usr/games; `None` if it is neither named nor there.
///
/// # Errors
/// When one is named that is not there.
pub fn stockfish(named: Option<&Path>) -> Result<Option<EngineConfig>> {
    let config = |command: PathBuf| EngineConfig {
        command,
        ..EngineConfig::default()
    };
    let wanted = named.unwrap_or(Path::new("stockfish"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push(PathBuf::from("/usr/games"));
    // A name without a folder is looked for as a shell does.
    let bare = wanted.components().count() == 1;
    let found = match bare {
        true => folders
            .into_iter()
            .map(|folder| folder.join(wanted))
            .find(|path| path.is_file()),
        false => Some(wanted.to_owned()).filter(|path| path.is_file()),
    };
    match (found, named) {
        (Some(command), _) => Ok(Some(config(command))),
        (None, Some(named)) => bail!("--stockfish {}: no such program", named.display()),
        (None, None) => Ok(None),
    }
}
