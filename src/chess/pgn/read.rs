//! Reads games in PGN, generously: anything found in the wild that has one meaning is taken. A game
//! that has none is named and left out, and the next one is read. Knows nothing of writing.

use std::io::{self, BufRead, BufReader, Read};

use super::{GameResult, PgnError, PgnGame};
use crate::chess::{Color, Position};

/// Most text of one game, and so the most that a hostile file makes us hold.
const MAX_MIB: usize = 16;
const MAX_BYTES: usize = MAX_MIB << 20;

/// The games of a PGN text, one by one. Latin-1 is read where a line is not UTF-8.
pub fn read<R: Read>(reader: R) -> Games<R> {
    Games {
        reader: BufReader::with_capacity(1 << 16, reader),
        line: 0,
        game: 0,
        pending: None,
        finished: false,
    }
}

/// Iterator over the games of a PGN text; see [`read`].
pub struct Games<R> {
    reader: BufReader<R>,
    /// Number of the last line read, from 1.
    line: usize,
    /// Number of the last game begun, from 1.
    game: usize,
    /// A line (or the rest of one) that belongs to the next game.
    pending: Option<String>,
    finished: bool,
}

enum Token {
    Comment(String),
    San(String),
}

/// One game as text, cut into tags and tokens of the main line.
#[derive(Default)]
struct Raw {
    line: usize,
    bytes: usize,
    tags: Vec<(String, String)>,
    bad_tag: Option<(usize, String)>,
    tokens: Vec<(usize, Token)>,
    result: Option<GameResult>,
    /// Line and text of a brace comment that has not ended.
    comment: Option<(usize, String)>,
    /// Lines on which the open variations begin.
    variations: Vec<usize>,
}

impl<R: Read> Iterator for Games<R> {
    type Item = Result<PgnGame, PgnError>;

    fn next(&mut self) -> Option<Result<PgnGame, PgnError>> {
        if self.finished {
            return None;
        }
        match self.collect() {
            Ok(raw) => raw.map(|raw| raw.parse(self.game)),
            Err(source) => {
                self.finished = true;
                let game = self.game;
                Some(Err(PgnError::Io { game, source }))
            }
        }
    }
}

impl<R: Read> Games<R> {
    /// The next game's text; `None` at the end.
    fn collect(&mut self) -> io::Result<Option<Raw>> {
        let mut raw = Raw::default();
        let mut blank = false;
        loop {
            let Some(line) = self.next_line()? else {
                self.finished = true;
                return Ok(raw.begun().then_some(raw));
            };
            let text = line.trim();
            if text.is_empty() {
                blank = true;
                continue;
            }
            if raw.comment.is_none() && line.starts_with('%') {
                continue;
            }
            if raw.starts_another(text, blank) {
                self.pending = Some(line);
                return Ok(Some(raw));
            }
            if !raw.begun() {
                self.game += 1;
                raw.line = self.line;
            }
            blank = false;
            raw.bytes += line.len();
            if raw.bytes > MAX_BYTES {
                raw.tokens.clear();
            } else if !raw.in_movetext() && text.starts_with('[') {
                raw.read_tags(text, self.line);
            } else if let Some(rest) = raw.read_movetext(text, self.line) {
                self.pending = Some(rest);
                return Ok(Some(raw));
            }
        }
    }

    fn next_line(&mut self) -> io::Result<Option<String>> {
        if let Some(line) = self.pending.take() {
            return Ok(Some(line));
        }
        let mut bytes = Vec::new();
        let limit = MAX_BYTES as u64 + 1;
        self.reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() > MAX_BYTES && !bytes.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
        }
        self.line += 1;
        let bytes = match self.line {
            1 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes),
            _ => &bytes,
        };
        Ok(Some(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
        }))
    }
}

impl Raw {
    fn begun(&self) -> bool {
        self.bytes > 0
    }

    fn in_movetext(&self) -> bool {
        !self.tokens.is_empty()
            || self.comment.is_some()
            || self.result.is_some()
            || !self.variations.is_empty()
    }

    /// True when a line cannot belong to this game any more.
    fn starts_another(&self, text: &str, after_blank: bool) -> bool {
        if let Some(name) = tag_name(text) {
            if self.comment.is_some() {
                // A comment that is never closed would swallow the rest of the file.
                return after_blank;
            }
            let seen = || self.tags.iter().any(|(known, _)| known == name);
            return self.in_movetext() || self.bytes > MAX_BYTES || (after_blank && seen());
        }
        self.result.is_some() && self.comment.is_none() && !text.starts_with(['{', ';', '[', ')'])
    }

    fn read_tags(&mut self, text: &str, line: usize) {
        let mut rest = text;
        while let Some(name) = tag_name(rest) {
            match tag_value(rest) {
                Some((value, after)) => {
                    self.tags.push((name.to_owned(), value));
                    rest = after.trim_start();
                }
                None => {
                    if ["FEN", "Variant"].contains(&name) {
                        self.bad_tag = Some((line, text.to_owned()));
                    }
                    return;
                }
            }
        }
    }

    /// Reads a line of moves. Returns what stands behind the result, if that begins another game.
    fn read_movetext(&mut self, text: &str, line: usize) -> Option<String> {
        let mut rest = text;
        if let Some((_, comment)) = &mut self.comment {
            comment.push(' ');
        }
        loop {
            if self.comment.is_some() {
                rest = self.read_comment(rest, line);
            }
            rest = rest.trim_start();
            let first = rest.chars().next()?;
            if self.result.is_some() && self.comment.is_none() && !"{;)$".contains(first) {
                return Some(rest.to_owned());
            }
            let after = &rest[first.len_utf8()..];
            rest = match first {
                '{' => {
                    self.comment = Some((line, String::new()));
                    after
                }
                ';' => {
                    self.push(line, Token::Comment(after.trim().to_owned()));
                    return None;
                }
                '(' => {
                    self.variations.push(line);
                    after
                }
                ')' => {
                    self.variations.pop();
                    after
                }
                '$' => after.trim_start_matches(|c: char| c.is_ascii_digit()),
                '<' => after.split_once('>').map_or("", |(_, after)| after),
                '}' | '>' => after,
                _ => self.read_word(rest, line),
            };
        }
    }

    /// Takes text up to the closing brace and returns what follows it.
    fn read_comment<'a>(&mut self, text: &'a str, line: usize) -> &'a str {
        let (inside, after) = match text.split_once('}') {
            Some((inside, after)) => (inside, Some(after)),
            None => (text, None),
        };
        if let Some((_, comment)) = &mut self.comment {
            comment.push_str(inside);
        }
        let Some(after) = after else { return "" };
        if let Some((_, comment)) = self.comment.take() {
            self.push(line, Token::Comment(comment.trim().to_owned()));
        }
        after
    }

    fn read_word<'a>(&mut self, text: &'a str, line: usize) -> &'a str {
        let (word, rest) = text.split_at(word_length(text));
        if let Some(result) = GameResult::parse(word) {
            if self.variations.is_empty() {
                self.result = Some(result);
            }
        } else {
            let san = without_number(word);
            let moves = san.contains(|c: char| c.is_alphanumeric()) || san == "--";
            if moves && !san.eq_ignore_ascii_case("e.p.") {
                self.push(line, Token::San(san.to_owned()));
            }
        }
        rest
    }

    fn push(&mut self, line: usize, token: Token) {
        if self.variations.is_empty() {
            self.tokens.push((line, token));
        }
    }

    fn parse(self, game: usize) -> Result<PgnGame, PgnError> {
        let line = self.line;
        if self.bytes > MAX_BYTES {
            let max_mib = MAX_MIB;
            return Err(PgnError::TooLong {
                game,
                line,
                max_mib,
            });
        }
        if let Some((line, text)) = self.bad_tag {
            return Err(PgnError::Tag { game, line, text });
        }
        let mut found = PgnGame {
            tags: self.tags,
            ..PgnGame::default()
        };
        let variant = found.tag("Variant").unwrap_or_default();
        let named960 = match variant
            .to_ascii_lowercase()
            .replace([' ', '-'], "")
            .as_str()
        {
            "chess960" | "fischerandom" | "fischerrandom" | "freestyle" => true,
            "" | "?" | "standard" | "chess" | "normal" | "fromposition" => false,
            _ => {
                let variant = variant.to_owned();
                return Err(PgnError::Variant {
                    game,
                    line,
                    variant,
                });
            }
        };
        let fen = found.tag("FEN").filter(|fen| !["", "?"].contains(fen));
        if let Some(fen) = fen {
            let (start, _) =
                Position::from_fen(fen).map_err(|source| PgnError::Fen { game, line, source })?;
            found.start = start;
        }
        found.chess960 = named960 || found.start.needs_chess960();
        let mut position = found.start.clone();
        for (line, token) in self.tokens {
            match token {
                Token::Comment(text) => add_comment(&mut found, text),
                Token::San(san) => {
                    let m = position.parse_san(&san).map_err(|source| PgnError::Move {
                        game,
                        line,
                        number: position.fullmoves(),
                        dots: match position.turn() {
                            Color::White => ".",
                            Color::Black => "...",
                        },
                        source,
                    })?;
                    found.push(m, None);
                    position.play(m);
                }
            }
        }
        let open = self.comment.map(|(line, _)| (line, "comment"));
        let open = open.or(self.variations.first().map(|&line| (line, "variation")));
        if let Some((line, what)) = open {
            return Err(PgnError::Unfinished { game, line, what });
        }
        found.result = match self.result.filter(|result| *result != GameResult::Unknown) {
            Some(result) => result,
            None => found
                .tag("Result")
                .and_then(GameResult::parse)
                .unwrap_or_default(),
        };
        Ok(found)
    }
}

fn add_comment(game: &mut PgnGame, text: String) {
    if text.is_empty() {
        return;
    }
    let place = match game.comments.last_mut() {
        Some(place) => place,
        None => &mut game.preamble,
    };
    match place {
        Some(earlier) => {
            earlier.push(' ');
            earlier.push_str(&text);
        }
        None => *place = Some(text),
    }
}

/// The name in `[Name "value"]`.
fn tag_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('[')?.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_+#=:-".contains(c)))?;
    let (name, value) = rest.split_at(end);
    (end > 0 && value.trim_start().starts_with('"')).then_some(name)
}

/// The value of the first tag in `text` and what follows its bracket. A quote inside the value needs
/// its backslash only if a bracket follows it.
fn tag_value(text: &str) -> Option<(String, &str)> {
    let (_, rest) = text.split_once('"')?;
    let mut value = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next_if(|(_, next)| ['"', '\\'].contains(next)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push(c),
            },
            '"' => match rest[at + 1..].trim_start().strip_prefix(']') {
                Some(after) => return Some((value, after)),
                None => value.push(c),
            },
            c => value.push(c),
        }
    }
    None
}

/// Bytes up to white space or a character that begins something else; `e8(Q)` is one word.
fn word_length(text: &str) -> usize {
    for (at, c) in text.char_indices() {
        let promotion = || {
            let rest = &text.as_bytes()[at..];
            at > 0
                && matches!(rest, [b'(', b'Q' | b'R' | b'B' | b'N', b')', ..])
                && text[..at].ends_with(['1', '8'])
        };
        match c {
            '(' if promotion() => return at + 3,
            c if c.is_whitespace() || "{}();$<>".contains(c) => return at,
            _ => {}
        }
    }
    text.len()
}

/// A word without the move number before it (`12.e4`, `12...`, `..e5`).
fn without_number(word: &str) -> &str {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let dots = digits.trim_start_matches(['.', '…']);
    if digits.is_empty() || dots.len() < digits.len() {
        dots
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Result<PgnGame, PgnError>> {
        read(text.as_bytes()).collect()
    }

    fn moves(game: &PgnGame) -> String {
        let moves: Vec<String> = game.moves.iter().map(|m| m.to_string()).collect();
        moves.join(" ")
    }

    #[test]
    fn what_is_found_in_the_wild() {
        let text = "\u{feff}[Event \"A \\\"quoted\\\" name\"]\r\n[Site \"x\"] [White \"O\"Neill\"]\r\n\
            [Result \"1-0\"]\r\n% escaped\r\n\r\n\
            {before} 1.e4!? {[%clk 0:03:00.5] good\r\nmove} (1. d4 d5 (1... Nf6 {x) y}) 2. c4) e5 $1 $14\r\n\
            2. Nf3 2... Nc6 ; to the end ( of line\r\n3.Bb5 a6?! +- 4 O-O Nf6 1-0 {resigns}\r\n\r\n\
            1. d4 *\n1. c4 c5 1/2-1/2 1. Nf3 0-1\n\n[Event \"e\"]\n\n[Event \"f\"]\n\n1-0\n";
        let games: Vec<PgnGame> = all(text).into_iter().map(Result::unwrap).collect();
        assert_eq!(games.len(), 6);
        let first = &games[0];
        assert_eq!(first.tag("Event"), Some("A \"quoted\" name"));
        assert_eq!(first.tag("White"), Some("O\"Neill"));
        assert_eq!(moves(first), "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 e1h1 g8f6");
        assert_eq!(first.preamble.as_deref(), Some("before"));
        assert_eq!(first.comment(0), Some("[%clk 0:03:00.5] good move"));
        assert_eq!(first.clock(0).map(|clock| clock.as_millis()), Some(180_500));
        assert_eq!(first.comment(3), Some("to the end ( of line"));
        assert_eq!(first.comment(7), Some("resigns"));
        let results: Vec<String> = games.iter().map(|game| game.result.to_string()).collect();
        assert_eq!(results, ["1-0", "*", "1/2-1/2", "0-1", "*", "1-0"]);
        assert_eq!(games[5].tag("Event"), Some("f"));
    }

    #[test]
    fn bad_games_are_named_and_the_rest_is_read() {
        let text = "[White \"a\"]\n\n1. e4 e5 2. Ke3 d5 *\n\n\
            [FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n\n*\n\n\
            [Variant \"Atomic\"]\n\n1. e4 *\n\n\
            [FEN \"no end]\n\n1. e4 *\n\n\
            [White \"b\"]\n\n1. e4 {open\n\n\
            [White \"c\"]\n\n1. e4 (1. d4 e5 *\n\n\
            [White \"d\"]\n\n1. e4 e5 2. Zf3 *\n\n\
            [White \"e\"]\n\n1. e4 e5 *\n";
        let messages: Vec<String> = all(text)
            .into_iter()
            .map(|game| match game {
                Ok(game) => moves(&game),
                Err(error) => error.to_string(),
            })
            .collect();
        let parts = [
            "game 1: line 3: move 2. illegal move 'Ke3' in rnbqkbnr/",
            "game 2 (line 5): FEN tag: white has 0 kings",
            "game 3 (line 9): variant 'Atomic'",
            "game 4: line 13: cannot read the tag [FEN",
            "game 5: line 19: comment without an end",
            "game 6: line 23: variation without an end",
            "game 7: line 27: move 2. 'Zf3' is not a move",
            "e2e4 e7e5",
        ];
        assert_eq!(messages.len(), parts.len(), "{messages:#?}");
        for (message, part) in messages.iter().zip(parts) {
            assert!(message.starts_with(part), "{message}");
        }
    }

    #[test]
    fn chess960_and_odd_bytes() {
        let text = b"[Variant \"Fischerandom\"]\n[FEN \"nqbrkbrn/pppppppp/8/8/8/8/PPPPPPPP/NQBRKBRN w GDgd - 0 1\"]\n\
            [White \"J\xf6rg\"]\n\n1. g3 g6 2. Bg2 Bg7 3. O-O O-O *\n";
        let games: Vec<_> = read(&text[..]).collect();
        let game = games[0].as_ref().unwrap();
        assert!(game.chess960);
        assert_eq!(game.tag("White"), Some("Jörg"));
        assert!(moves(game).ends_with("e1g1 e8g8"));
        for junk in [
            "", "\n\n", "}", "{", "(", ")", "[", "[[[", "<", "$", ";", "1.", "\0\0", "*", "[a \"",
            "%",
        ] {
            for game in all(junk).into_iter().flatten() {
                assert!(game.moves.is_empty());
            }
        }
    }

    #[test]
    fn an_endless_game_is_refused_in_bounded_memory() {
        let text = format!(
            "1. e4 {{{}}} *\n\n[White \"a\"]\n\n1. d4 *\n",
            "x".repeat(MAX_BYTES + 5)
        );
        let games = all(&text);
        assert_eq!(games.len(), 2);
        assert!(matches!(games[0], Err(PgnError::TooLong { .. })));
        assert!(games[1].is_ok());
    }
}
