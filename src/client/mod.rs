//! The other side of UCI: starts any engine and drives it. Knows nothing of our own search, and
//! judges no move: what an engine answers is handed on as it was printed.
//!
//! An [`Engine`] is one process with three threads around its pipes (lines in, lines out, standard
//! error), so that no write and no read can block the caller; every wait has a time limit, and a
//! dead, silent or babbling process is a [`ClientError`]. Dropping an [`Engine`] ends its process.

mod engine;
mod error;
mod info;
mod limits;
mod option;
mod process;

pub use engine::{Answer, Engine, EngineConfig, Exit, Timeouts};
pub use error::ClientError;
pub use info::{Bound, Info, Score};
pub use limits::Limits;
pub use option::{EngineOption, OptionError, OptionKind};
