//! Speed of move generation on the perft suites to depth 5, with every count checked. Knows only
//! `chess`; says so and stops where the shared folder is missing.

use std::path::Path;
use std::time::Instant;

use simurgh::chess::{epd, open_maybe_packed, perft::perft};

/// Every n-th record of the suite: all of them would take minutes for Chess960.
const SUITES: &[(&str, usize)] = &[
    ("suites/perft-standard.epd", 1),
    ("suites/perft-chess960.epd", 24),
];

fn main() {
    let shared = std::env::var_os("SIMURGH_SHARED").unwrap_or_else(|| "../shared".into());
    for (name, step) in SUITES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(&shared)
            .join(name);
        let Ok(file) = open_maybe_packed(&path) else {
            println!("SKIPPED: {} is not there", path.display());
            continue;
        };
        let began = Instant::now();
        let mut total = 0u64;
        let mut records = 0;
        for record in epd::read(file).step_by(*step) {
            let record = record.expect("a perft record");
            let Some(leaves) = record.text("D5") else {
                continue;
            };
            let found = perft(&record.position, 5);
            assert_eq!(found.to_string(), leaves, "{record}");
            total += found;
            records += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{name}: {records} positions, {total} leaves, {seconds:.1} s, {:.1} million/s",
            total as f64 / seconds / 1e6
        );
    }
}
