//! One file per subcommand; turns flags into calls of the other rooms.

use std::process::ExitCode;

/// Entry point of the binary.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
