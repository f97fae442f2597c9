//! What every search must print, whatever was asked. Knows no particular position.

use simurgh::chess::{Game, Position};

use super::gui::{best, field, number, pv, scored};

/// The game a `position` command sets up.
pub fn game(fen: Option<&str>, moves: &[&str]) -> Game {
    let start = fen.map_or_else(Position::startpos, |fen| Position::from_fen(fen).unwrap().0);
    let mut game = Game::new(start);
    for text in moves {
        let m = game.current().parse_uci(text).unwrap();
        game.play(m);
    }
    game
}

/// Checks the lines of one search, the last of them `bestmove`, and returns the move.
#[track_caller]
pub fn search(lines: &[String], game: &Game) -> String {
    let m = best(lines);
    let bestmoves = lines
        .iter()
        .filter(|line| line.starts_with("bestmove"))
        .count();
    assert_eq!(bestmoves, 1, "{lines:#?}");
    if m == "(none)" {
        assert!(game.current().legal_moves().is_empty(), "{lines:#?}");
        return m;
    }
    let played = game.current().parse_uci(&m);
    assert!(played.is_ok(), "illegal {m}: {lines:#?}");
    if let Some(ponder) = field(lines.last().unwrap(), "ponder") {
        let mut next = game.current().clone();
        next.play(played.unwrap());
        assert!(
            next.parse_uci(ponder).is_ok(),
            "illegal ponder move {ponder}: {lines:#?}"
        );
    }
    let infos = scored(lines);
    assert!(!infos.is_empty(), "no info before bestmove: {lines:#?}");
    for line in &infos {
        info(line, game);
    }
    let last_set = last_set(&infos);
    assert_eq!(
        pv(last_set[0])[0],
        m,
        "the best line does not begin with bestmove: {lines:#?}"
    );
    m
}

/// The lines of the last full set, best first.
pub fn last_set<'a>(infos: &[&'a String]) -> Vec<&'a String> {
    let start = infos
        .iter()
        .rposition(|line| matches!(field(line, "multipv"), None | Some("1")))
        .expect("no first line");
    infos[start..].to_vec()
}

/// Checks one line with a score.
#[track_caller]
pub fn info(line: &str, game: &Game) {
    let depth = number(line, "depth");
    assert!(depth >= 1, "{line}");
    assert!(number(line, "seldepth") >= depth, "{line}");
    for key in ["time", "nodes", "nps", "hashfull", "tbhits"] {
        assert!(number(line, key) >= 0, "{line}");
    }
    assert!(number(line, "hashfull") <= 1000, "{line}");
    let words: Vec<&str> = line.split(' ').collect();
    let score = words.iter().position(|&word| word == "score").unwrap();
    assert!(matches!(words[score + 1], "cp" | "mate"), "{line}");
    assert!(words[score + 2].parse::<i64>().is_ok(), "{line}");
    if let Some(at) = words.iter().position(|&word| word == "wdl") {
        assert_eq!(at, score + 3, "wdl does not follow the score: {line}");
        let sum: i64 = words[at + 1..at + 4]
            .iter()
            .map(|word| word.parse::<i64>().unwrap())
            .sum();
        assert_eq!(sum, 1000, "{line}");
    }
    let moves = pv(line);
    assert!(!moves.is_empty(), "{line}");
    let mut after = game.clone();
    for (index, text) in moves.iter().enumerate() {
        let m = after
            .current()
            .parse_uci(text)
            .unwrap_or_else(|error| panic!("{error}: {line}"));
        if index > 0 {
            let over = after.current().rule50() >= 100 || after.repetitions() >= 2;
            assert!(!over, "the line goes on after a draw: {line}");
        }
        after.play(m);
    }
    if words[score + 1] == "mate" {
        let n: i64 = words[score + 2].parse().unwrap();
        let plies = if n > 0 { 2 * n - 1 } else { -2 * n };
        assert_eq!(moves.len() as i64, plies, "{line}");
        let end = after.current();
        assert!(
            end.is_check() && end.legal_moves().is_empty(),
            "no mate at the end: {line}"
        );
    }
}
