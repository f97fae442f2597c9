//! Ctrl-C for long work: the first one asks it to save and end, the second one ends at once. Knows
//! nothing of the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// A flag that Ctrl-C (or SIGTERM) sets; `saying` is printed then. To be called once in a process.
///
/// # Errors
/// When the system takes no handler.
pub fn on_interrupt(saying: &'static str) -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("{saying}");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(cancel)
}
