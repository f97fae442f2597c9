//! `position`: what is refused, what is repaired, and what stands afterwards.

use super::check;
use super::gui::{Gui, best};

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

fn ready() -> Gui {
    let mut gui = Gui::new();
    gui.sync();
    gui
}

#[test]
fn missing_fields_have_defaults() {
    let mut gui = ready();
    gui.quiet("position fen 4k3/8/8/8/8/8/4P3/4K3");
    assert_eq!(gui.fen(), "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1");
    gui.quiet("position fen 4k3/8/8/8/8/8/4P3/4K3 b");
    assert_eq!(gui.fen(), "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1");
    gui.quiet("position fen 4k3/8/8/8/8/8/4P3/R3K3 w Q - 7 moves e1c1");
    assert_eq!(gui.fen(), "4k3/8/8/8/8/8/4P3/2KR4 b - - 8 1");
    gui.quit();
}

#[test]
fn bad_positions_are_refused_by_name_and_the_old_one_stays() {
    let mut gui = ready();
    gui.quiet("position startpos moves e2e4");
    let before = gui.fen();
    let cases: [(&str, &[&str]); 22] = [
        ("position", &["startpos or fen"]),
        ("position middlegame", &["startpos or fen", "middlegame"]),
        ("position fen", &["board"]),
        ("position fen moves e2e4", &["board"]),
        ("position startpos e2e4", &["moves", "e2e4"]),
        ("position fen 8/8/8/8/8/8/8 w - - 0 1", &["7 ranks"]),
        ("position fen 4k3/8/8/8/8/8/8/8/4K3 w - - 0 1", &["9 ranks"]),
        ("position fen 4k3/9/8/8/8/8/8/4K3 w - - 0 1", &["'9'"]),
        ("position fen 4k3/7/8/8/8/8/8/4K3 w - - 0 1", &["7 files"]),
        (
            "position fen 4k3/pppppppppp/8/8/8/8/8/4K3 w - - 0 1",
            &["files"],
        ),
        (
            "position fen 4k3/8/8/8/8/8/8/8 w - - 0 1",
            &["white", "0 kings"],
        ),
        (
            "position fen 8/8/8/8/8/8/8/4K3 w - - 0 1",
            &["black", "0 kings"],
        ),
        (
            "position fen 4kk2/8/8/8/8/8/8/4K3 w - - 0 1",
            &["black", "2 kings"],
        ),
        (
            "position fen 4k3/8/8/8/8/8/8/P3K3 w - - 0 1",
            &["pawn", "a1"],
        ),
        (
            "position fen 4k2p/8/8/8/8/8/8/4K3 w - - 0 1",
            &["pawn", "h8"],
        ),
        (
            "position fen 4k3/8/8/8/8/8/4R3/4K3 w - - 0 1",
            &["black", "check"],
        ),
        (
            "position fen 4k3/8/8/QQQQ4/PPPPPPPP/PPPPPPPP/8/4K3 w - - 0 1",
            &["white", "men"],
        ),
        ("position fen 4k3/8/8/8/8/8/8/4K3 x - - 0 1", &["'x'"]),
        ("position fen 4k3/8/8/8/8/8/8/4K3 w KX - 0 1", &["castling"]),
        (
            "position fen 4k3/8/8/8/8/8/8/4K3 w - e9 0 1",
            &["en-passant"],
        ),
        ("position fen 4k3/8/8/8/8/8/8/4K3 w - - x 1", &["'x'"]),
        ("position fen 4k3/8/8/8/8/8/8/4K3 w - - 0 1 e2e4", &["e2e4"]),
    ];
    for (line, parts) in cases {
        gui.complaint(line, parts);
        assert_eq!(gui.fen(), before, "{line}");
    }
    let lines = gui.search("go nodes 5");
    check::search(&lines, &check::game(None, &["e2e4"]));
    gui.quit();
}

#[test]
fn rights_and_squares_that_cannot_be_are_repaired() {
    let mut gui = ready();
    gui.complaint(
        "position fen 4k3/8/8/8/8/8/8/4K2R w KQkq - 0 1",
        &["repaired", "'Q'", "'k'"],
    );
    assert_eq!(gui.fen(), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
    gui.complaint(
        "position fen 4k3/8/8/8/8/8/8/4K2R w K e6 0 1",
        &["repaired", "e6"],
    );
    assert_eq!(gui.fen(), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
    gui.quit();
}

#[test]
fn x_fen_and_shredder_fen_rights_both_work() {
    let mut gui = ready();
    let board = "1r2k1r1/6p1/8/8/8/8/6P1/1R2K1R1";
    for rights in ["KQkq", "GBgb"] {
        gui.quiet(&format!("position fen {board} w {rights} - 0 1"));
        gui.quiet(&format!(
            "position fen {board} w {rights} - 0 1 moves e1g1 e8b8"
        ));
        assert_eq!(gui.fen(), "2kr2r1/6p1/8/8/8/8/6P1/1R3RK1 w - - 2 2");
    }
    gui.quit();
}

#[test]
fn a_bad_move_is_named_and_the_moves_before_it_stand() {
    let mut gui = ready();
    for bad in [
        "e2e5", "e7e9", "E7E5", "e7e5q", "0000", "castle", "e7", "e7e8Q",
    ] {
        let line = format!("position startpos moves e2e4 {bad} g8f6");
        gui.complaint(&line, &[bad, "move 2", "the moves before it stand"]);
        assert_eq!(
            gui.fen(),
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
        );
    }
    let lines = gui.search("go nodes 5");
    check::search(&lines, &check::game(None, &["e2e4"]));
    gui.complaint(
        "position fen 8/P3k3/8/8/8/8/8/4K3 w - - 0 1 moves a7a8",
        &["a7a8", "malformed"],
    );
    gui.complaint(
        "position fen 8/P3k3/8/8/8/8/8/4K3 w - - 0 1 moves a7a8Q",
        &["malformed"],
    );
    gui.complaint(
        "position fen 8/P3k3/8/8/8/8/8/4K3 w - - 0 1 moves a7a8k",
        &["a7a8k"],
    );
    gui.quiet("position fen 8/P3k3/8/8/8/8/8/4K3 w - - 0 1 moves a7a8q");
    gui.quit();
}

#[test]
fn castling_is_read_both_ways_and_printed_as_the_option_says() {
    let mut gui = ready();
    let fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    for (two_squares, takes_rook) in [("e1g1", "e1h1"), ("e1c1", "e1a1")] {
        gui.quiet(&format!("position fen {fen} moves {two_squares}"));
        let after = gui.fen();
        gui.quiet(&format!("position fen {fen} moves {takes_rook}"));
        assert_eq!(gui.fen(), after);
    }
    gui.quiet(&format!("position fen {fen}"));
    for (chess960, castling) in [("false", "e1g1"), ("true", "e1h1")] {
        gui.ask(&format!("setoption name UCI_Chess960 value {chess960}"));
        for asked in ["e1g1", "e1h1"] {
            let lines = gui.search(&format!("go nodes 5 searchmoves {asked}"));
            assert_eq!(best(&lines), castling);
        }
        let perft = gui.search_perft("go perft 1");
        assert!(
            perft.iter().any(|line| line == &format!("{castling}: 1")),
            "{perft:#?}"
        );
    }
    // Where the king moves one square only, the form with the rook is the only clear one.
    gui.ask("setoption name UCI_Chess960 value false");
    gui.quiet("position fen 5k2/8/8/8/8/8/8/1R3KR1 w KQ - 0 1");
    let lines = gui.search("go nodes 5 searchmoves f1g1");
    assert_eq!(best(&lines), "f1g1");
    gui.quiet("position fen 5k2/8/8/8/8/8/8/1R3KR1 w KQ - 0 1 moves f1g1");
    assert_eq!(gui.fen(), "5k2/8/8/8/8/8/8/1R3RK1 b - - 1 1");
    gui.quit();
}

#[test]
fn d_flip_perft_and_help_answer() {
    let mut gui = ready();
    assert_eq!(gui.fen(), START);
    let read = gui.ask("d");
    assert!(
        read.iter().any(|line| line.starts_with("Key: ")),
        "{read:#?}"
    );
    assert!(
        read.iter()
            .any(|line| line.starts_with("Legal moves (20): ")),
        "{read:#?}"
    );
    gui.quiet("position startpos moves e2e4");
    gui.quiet("flip");
    assert_eq!(
        gui.fen(),
        "rnbqkbnr/pppp1ppp/8/4p3/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    );
    let read = gui.search_perft("perft 3");
    assert_eq!(read.len(), 22, "{read:#?}");
    assert_eq!(read.last().unwrap(), "Nodes searched: 13160");
    gui.quiet("position startpos");
    let read = gui.search_perft("go perft 4");
    assert_eq!(read.last().unwrap(), "Nodes searched: 197281");
    let read = gui.ask("eval");
    assert!(
        read.iter().any(|line| line.starts_with("WDL: ")),
        "{read:#?}"
    );
    assert!(
        read.iter().any(|line| line.starts_with("Top moves: ")),
        "{read:#?}"
    );
    assert!(
        gui.ask("help")
            .iter()
            .any(|line| line.contains("position startpos|fen"))
    );
    gui.quit();
}

#[test]
fn a_position_during_a_search_first_brings_the_best_move_of_that_search() {
    let mut gui = ready();
    gui.quiet("position startpos moves e2e4");
    for line in [
        "position startpos",
        "position startpos moves e2e5",
        "position fen nonsense",
        "ucinewgame",
        "setoption name MultiPV value 1",
        "setoption name Nothing value 1",
        "go nodes 1",
    ] {
        gui.ask("position startpos moves e2e4");
        gui.send("go infinite");
        gui.send(line);
        let lines = gui.until("bestmove");
        check::search(&lines, &check::game(None, &["e2e4"]));
        if line.starts_with("go") {
            gui.until("bestmove");
        }
        let rest = gui.sync();
        assert!(
            !rest.iter().any(|line| line.starts_with("bestmove")),
            "{line}: {rest:#?}"
        );
    }
    gui.quit();
}

impl Gui {
    fn search_perft(&mut self, line: &str) -> Vec<String> {
        self.send(line);
        self.until("Nodes searched: ")
    }
}
