//! Finds the folder of large test files that stays outside the project: `../shared`, or where
//! `SIMURGH_SHARED` says. Tests that want it are skipped, out loud, where it is missing.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder under the shared folder; `None`, with a line on stderr, if it is not there.
pub fn file(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let set = std::env::var_os("SIMURGH_SHARED").map(PathBuf::from);
    let found = std::iter::once(beside)
        .chain(set)
        .map(|folder| folder.join(name))
        .find(|path| path.exists());
    if found.is_none() {
        // Not eprintln!, which the test harness swallows when the test passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {name} is not in ../shared (nor in SIMURGH_SHARED)"
        );
    }
    found
}
