//! Move generation against the counts of the shared suites, to depth 4 (`bench/perft.rs`: 5).

use simurgh::chess::{epd, open_maybe_packed, perft::perft};

use crate::shared;

/// Checks `;D1 20 ;D2 400 …` of every `step`-th record up to `depth`.
fn suite(name: &str, depth: u32, step: usize) {
    let Some(path) = shared::file(name) else {
        return;
    };
    let mut checked = 0;
    for record in epd::read(open_maybe_packed(path).unwrap()).step_by(step) {
        let record = record.unwrap();
        for ply in 1..=depth {
            let Some(leaves) = record.text(&format!("D{ply}")) else {
                continue;
            };
            let found = perft(&record.position, ply);
            assert_eq!(found.to_string(), leaves, "depth {ply} of {record}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{name}: {checked} counts");
}

#[test]
fn standard_suite() {
    suite("suites/perft-standard.epd", 4, 1);
}

#[test]
fn chess960_suite() {
    suite("suites/perft-chess960.epd", 3, 1);
    suite("suites/perft-chess960.epd", 4, 8);
}
