//! Answers kept in SQLite, so that nothing is asked twice and a cut run goes on. Knows what keys are made of, not
//! what an answer means.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::chess::Game;

/// Layout of the tables; another one is refused.
const VERSION: i64 = 1;

/// A store of answers; see [`Store::get`] for its keys.
pub struct Store {
    connection: Connection,
}

/// What an answer belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// SHA-256 of the network or engine.
    pub network: &'a str,
    /// Everything else that the answer depends on.
    pub settings: &'a str,
    /// What was asked, for example `policy`.
    pub task: &'a str,
    /// The position with its game; see [`position_key`].
    pub position: &'a str,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused.
    #[error("the store of answers: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// An answer that is none.
    #[error("the store of answers holds {task:?} that cannot be read: {error}")]
    Answer {
        /// What was asked.
        task: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A store of another layout.
    #[error("the store of answers has layout {found}, expected {VERSION}; name another --output")]
    Version {
        /// What the file says.
        found: i64,
    },
}

impl Store {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// When it is no such store or cannot be written.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::prepare(Connection::open(path)?)
    }

    /// A store that is forgotten with the value.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn in_memory() -> Result<Store, StoreError> {
        Store::prepare(Connection::open_in_memory()?)
    }

    fn prepare(connection: Connection) -> Result<Store, StoreError> {
        connection.busy_timeout(std::time::Duration::from_secs(30))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found != 0 && found != VERSION {
            return Err(StoreError::Version { found });
        }
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS answers (
                network TEXT NOT NULL, settings TEXT NOT NULL, task TEXT NOT NULL, position TEXT NOT NULL,
                answer TEXT NOT NULL, PRIMARY KEY (network, settings, task, position)) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS spent (
                network TEXT NOT NULL, settings TEXT NOT NULL, measure TEXT NOT NULL, seconds REAL NOT NULL,
                PRIMARY KEY (network, settings, measure)) WITHOUT ROWID;",
        )?;
        connection.pragma_update(None, "user_version", VERSION)?;
        Ok(Store { connection })
    }

    /// The answer of that network with those settings to that task in that position, if it is known.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else.
    pub fn get<T: DeserializeOwned>(&self, key: Key<'_>) -> Result<Option<T>, StoreError> {
        let mut select = self.connection.prepare_cached(
            "SELECT answer FROM answers WHERE network = ?1 AND settings = ?2 AND task = ?3 AND position = ?4",
        )?;
        let keys = params![key.network, key.settings, key.task, key.position];
        let text: Option<String> = select.query_row(keys, |row| row.get(0)).optional()?;
        let answer = |text: String| {
            serde_json::from_str(&text).map_err(|error| StoreError::Answer {
                task: key.task.to_owned(),
                error,
            })
        };
        text.map(answer).transpose()
    }

    /// Keeps an answer.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put<T: Serialize>(&self, key: Key<'_>, answer: &T) -> Result<(), StoreError> {
        let text = serde_json::to_string(answer).map_err(|error| StoreError::Answer {
            task: key.task.to_owned(),
            error,
        })?;
        let mut insert = self
            .connection
            .prepare_cached("INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3, ?4, ?5)")?;
        insert.execute(params![
            key.network,
            key.settings,
            key.task,
            key.position,
            text
        ])?;
        Ok(())
    }

    /// Everything that `body` keeps is written at once, which is much faster than piece by piece.
    ///
    /// # Errors
    /// When the file cannot be written, and those of `body`.
    pub fn together<E: From<StoreError>>(
        &self,
        body: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let transaction = self
            .connection
            .unchecked_transaction()
            .map_err(StoreError::from)?;
        body()?;
        transaction.commit().map_err(StoreError::from)?;
        Ok(())
    }

    /// Adds to the seconds that a measure took over all runs, and returns their sum.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn spend(
        &self,
        network: &str,
        settings: &str,
        measure: &str,
        seconds: f64,
    ) -> Result<f64, StoreError> {
        self.connection.execute(
            "INSERT INTO spent VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (network, settings, measure) DO UPDATE SET seconds = seconds + ?4",
            params![network, settings, measure, seconds],
        )?;
        Ok(self.connection.query_row(
            "SELECT seconds FROM spent WHERE network = ?1 AND settings = ?2 AND measure = ?3",
            params![network, settings, measure],
            |row| row.get(0),
        )?)
    }
}

/// A position with all that came before it, as a key: 32 hexadecimal digits of a SHA-256.
pub fn position_key(game: &Game) -> String {
    let mut hash = Sha256::new();
    hash.update(game.start().to_fen(true));
    for m in game.moves() {
        hash.update(m.raw().to_le_bytes());
    }
    hex(&hash.finalize()[..16])
}

/// SHA-256 of bytes, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key<'a>(network: &'a str, settings: &'a str, position: &'a str) -> Key<'a> {
        Key {
            network,
            settings,
            task: "policy",
            position,
        }
    }

    #[test]
    fn answers_are_kept_apart_by_every_part_of_the_key() {
        let store = Store::in_memory().unwrap();
        store.put(key("a", "s", "p"), &7).unwrap();
        assert_eq!(store.get::<i32>(key("a", "s", "p")).unwrap(), Some(7));
        for other in [key("b", "s", "p"), key("a", "t", "p"), key("a", "s", "q")] {
            assert_eq!(store.get::<i32>(other).unwrap(), None, "{other:?}");
        }
        assert!(store.get::<String>(key("a", "s", "p")).is_err());
        assert_eq!(store.spend("a", "s", "puzzles", 1.5).unwrap(), 1.5);
        assert_eq!(store.spend("a", "s", "puzzles", 1.0).unwrap(), 2.5);
    }

    #[test]
    fn a_file_is_found_again_and_another_layout_refused() {
        let path = std::env::temp_dir().join(format!("simurgh-store-{}", std::process::id()));
        Store::open(&path)
            .unwrap()
            .put(key("a", "s", "p"), &"x")
            .unwrap();
        let store = Store::open(&path).unwrap();
        let found: Option<String> = store.get(key("a", "s", "p")).unwrap();
        assert_eq!(found.as_deref(), Some("x"));
        store
            .connection
            .pragma_update(None, "user_version", 99)
            .unwrap();
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Version { found: 99 })
        ));
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_position_is_its_game() {
        let game = |moves: &[&str]| {
            let mut game = Game::default();
            for text in moves {
                let m = game.current().parse_uci(text).unwrap();
                game.play(m);
            }
            position_key(&game)
        };
        let one = game(&["e2e4", "e7e5", "g1f3"]);
        assert_eq!(one.len(), 32);
        assert_eq!(one, game(&["e2e4", "e7e5", "g1f3"]));
        assert_ne!(one, game(&["g1f3", "e7e5", "e2e4"]));
    }
}
