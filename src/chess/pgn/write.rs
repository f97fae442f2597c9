//! Writes games in PGN's export form. Knows nothing of reading.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::PgnGame;
use crate::chess::{Color, Position};

/// PGN's seven tags that come first, in their order, and what an unknown value is written as.
const ROSTER: [(&str, &str); 7] = [
    ("Event", "?"),
    ("Site", "?"),
    ("Date", "????.??.??"),
    ("Round", "?"),
    ("White", "?"),
    ("Black", "?"),
    ("Result", "*"),
];

/// Longest line of moves.
const WIDTH: usize = 80;

/// Writes one game with an empty line after it. The seven roster tags come first; Result follows
/// [`PgnGame::result`], and FEN, SetUp and Variant follow the start position.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, game: &PgnGame) -> io::Result<()> {
    out.write_all(game.to_string().as_bytes())
}

impl std::fmt::Display for PgnGame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (name, unknown) in ROSTER {
            let value = match name {
                "Result" => self.result.to_string(),
                _ => self.tag(name).unwrap_or(unknown).to_owned(),
            };
            tag_line(&mut text, name, &value);
        }
        let own = ["FEN", "SetUp", "Variant"];
        for (name, value) in &self.tags {
            let roster = ROSTER.iter().any(|(known, _)| known == name);
            if !roster && !own.contains(&name.as_str()) {
                tag_line(&mut text, name, value);
            }
        }
        if self.chess960 {
            tag_line(&mut text, "Variant", "Chess960");
        }
        if self.chess960 || !is_startpos(&self.start) {
            tag_line(&mut text, "SetUp", "1");
            tag_line(&mut text, "FEN", &self.start.to_fen(self.chess960));
        }
        text.push('\n');
        movetext(&mut text, self);
        text.push('\n');
        f.write_str(&text)
    }
}

fn is_startpos(position: &Position) -> bool {
    *position == Position::startpos() && position.rule50() == 0 && position.fullmoves() == 1
}

/// Writing to a `String` cannot fail, so its results are dropped here.
fn tag_line(text: &mut String, name: &str, value: &str) {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace(['\n', '\r', '\t'], " ");
    let _ = writeln!(text, "[{name} \"{value}\"]");
}

fn movetext(text: &mut String, game: &PgnGame) {
    let mut lines = Lines { text, column: 0 };
    if let Some(comment) = &game.preamble {
        lines.comment(comment);
    }
    let mut position = game.start.clone();
    let mut numbered = false;
    for (ply, &m) in game.moves.iter().enumerate() {
        match position.turn() {
            Color::White => lines.word(&format!("{}.", position.fullmoves())),
            Color::Black if !numbered => lines.word(&format!("{}...", position.fullmoves())),
            Color::Black => {}
        }
        lines.word(&position.to_san(m));
        let comment = game.comment(ply);
        if let Some(comment) = comment {
            lines.comment(comment);
        }
        // After a comment Black's move carries its number again.
        numbered = comment.is_none();
        position.play(m);
    }
    lines.word(&game.result.to_string());
    lines.text.push('\n');
}

/// Breaks lines between words.
struct Lines<'a> {
    text: &'a mut String,
    column: usize,
}

impl Lines<'_> {
    fn word(&mut self, word: &str) {
        let width = word.chars().count();
        if self.column > 0 && self.column + 1 + width > WIDTH {
            self.text.push('\n');
            self.column = 0;
        } else if self.column > 0 {
            self.text.push(' ');
            self.column += 1;
        }
        self.text.push_str(word);
        self.column += width;
    }

    /// PGN has no way to write a closing brace inside a comment: it becomes a round one. Nor may a
    /// line of it look like a tag or an escape, so a first `[` or `%` is never broken off.
    fn comment(&mut self, comment: &str) {
        let comment = comment.replace('{', "(").replace('}', ")");
        let mut words = comment.split_whitespace().peekable();
        let Some(first) = words.next() else { return };
        let mut word = format!("{{{first}");
        for next in words {
            if next.starts_with(['[', '%']) {
                word.push(' ');
                word.push_str(next);
                continue;
            }
            self.word(&std::mem::replace(&mut word, next.to_owned()));
        }
        self.word(&format!("{word}}}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{GameResult, pgn};

    fn sample(fen: &str, chess960: bool) -> PgnGame {
        let mut game = PgnGame::new(Position::from_fen(fen).unwrap().0);
        game.chess960 = chess960;
        let mut position = game.start.clone();
        for ply in 0..60usize {
            let legal = position.legal_moves();
            let Some(&m) = legal.get(ply * 7 % legal.len().max(1)) else {
                break;
            };
            let comment = (ply % 3 == 0).then(|| format!("+0.{ply}/12 1.5s [%clk 0:0:{ply}]"));
            game.push(m, comment);
            position.play(m);
        }
        game.set_tag("White", "A \"B\" \\ C");
        game.result = GameResult::Draw;
        game
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (fen, chess960) in [
            (
                "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
                false,
            ),
            (
                "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 3 17",
                false,
            ),
            (
                "nqbrkbrn/pppppppp/8/8/8/8/PPPPPPPP/NQBRKBRN w GDgd - 0 1",
                true,
            ),
            (
                "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
                true,
            ),
        ] {
            let game = sample(fen, chess960);
            let text = game.to_string();
            assert!(text.lines().all(|line| line.len() <= 80), "{text}");
            let read: Vec<_> = pgn::read(text.as_bytes()).collect();
            let read = read[0].as_ref().unwrap();
            assert_eq!(read.moves, game.moves);
            assert_eq!(read.start, game.start);
            assert_eq!(read.comments.len(), game.comments.len());
            assert_eq!(read.comment(3), game.comment(3));
            assert_eq!(read.chess960, chess960);
            assert_eq!(read.result, game.result);
            assert_eq!(read.tag("White"), game.tag("White"));
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn export_form() {
        let mut game = PgnGame::new(Position::startpos());
        for (uci, comment) in [("e2e4", None), ("e7e5", Some("a } b")), ("f1c4", Some("c"))] {
            let m = game.game().current().parse_uci(uci).unwrap();
            game.push(m, comment.map(str::to_owned));
        }
        let m = game.game().current().parse_uci("b8c6").unwrap();
        game.push(m, None);
        game.result = GameResult::WhiteWins;
        game.set_tag("Round", "1");
        assert_eq!(
            game.to_string(),
            "[Event \"?\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"1\"]\n[White \"?\"]\n\
             [Black \"?\"]\n[Result \"1-0\"]\n\n1. e4 e5 {a ) b} 2. Bc4 {c} 2... Nc6 1-0\n\n"
        );
    }
}
