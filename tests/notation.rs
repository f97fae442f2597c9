//! PGN and EPD on whole files: the suites, books and games of the shared folder.

use std::path::PathBuf;

use simurgh::chess::{Epd, epd, open_maybe_packed, pgn};

use crate::shared;

fn epd_files() -> Vec<PathBuf> {
    ["suites", "books"]
        .into_iter()
        .filter_map(shared::file)
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "epd" || e == "fen"))
        .collect()
}

#[test]
fn every_epd_record_round_trips_and_its_moves_are_legal() {
    for path in epd_files() {
        let name = path.display();
        for record in epd::read(open_maybe_packed(&path).unwrap()) {
            let record = record.unwrap_or_else(|error| panic!("{name}: {error}"));
            for code in ["bm", "am"] {
                record
                    .moves(code)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            let again = Epd::parse(&record.to_string()).unwrap();
            assert_eq!(again.position, record.position, "{name}: {record}");
            assert_eq!(again.position.rule50(), record.position.rule50());
            assert_eq!(again.to_string(), record.to_string());
        }
    }
}

#[test]
fn every_book_game_is_read_and_written() {
    let Some(path) = shared::file("books/8moves_v3.pgn.gz") else {
        return;
    };
    let mut count = 0;
    for game in pgn::read(open_maybe_packed(path).unwrap()) {
        let game = game.unwrap();
        let text = game.to_string();
        let again = pgn::read(text.as_bytes()).next().unwrap().unwrap();
        assert_eq!(again.moves, game.moves);
        assert_eq!(game.moves.len(), 16);
        count += 1;
    }
    assert!(count >= 1000, "{count}");
}

#[test]
fn human_games_are_read_to_their_end() {
    for name in ["games/lichess-a.pgn.gz", "games/otb.pgn.gz"] {
        let Some(path) = shared::file(name) else {
            return;
        };
        for game in pgn::read(open_maybe_packed(path).unwrap()).take(1500) {
            let game = game.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(game.tag("Result").is_some() && !game.moves.is_empty());
        }
    }
}
