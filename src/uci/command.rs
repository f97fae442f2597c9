//! The commands of the protocol as types, and their syntax. Refuses to know whether a move, a
//! position or an option exists: that is for the engine to say.

use thiserror::Error;

use super::genfens::{self, GenFens};
use super::go;
use crate::engine::GoRequest;

/// A line that is not a command as the protocol writes it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SyntaxError {
    #[error("unknown command \"{}\" (\"help\" lists the commands)", echo(.0))]
    UnknownCommand(String),
    #[error("debug: expected on or off, found \"{}\"", echo(.0))]
    Debug(String),
    #[error("setoption: expected \"setoption name NAME [value VALUE]\", found \"{}\"", echo(.0))]
    SetOption(String),
    #[error("position: expected startpos or fen, found \"{}\"", echo(.0))]
    PositionStart(String),
    #[error("position: expected a board after fen")]
    PositionBoard,
    #[error("position: expected moves, found \"{}\"", echo(.0))]
    PositionMoves(String),
    #[error("perft: expected a depth, found \"{}\"", echo(.0))]
    PerftDepth(String),
    #[error("go: unknown key \"{}\", skipped", echo(.0))]
    GoUnknownKey(String),
    #[error("go: {key} has no value, skipped")]
    GoUnfinished { key: &'static str },
    #[error("go: {key} needs a whole number, found \"{}\", skipped", echo(.found))]
    GoNotANumber { key: &'static str, found: String },
    #[error("go: {key} {found} is negative, taken as 0")]
    GoNegative { key: &'static str, found: String },
    #[error("genfens: expected \"genfens N seed S book FILE|None\", found \"{}\"", echo(.0))]
    GenFens(String),
}

/// Where a `position` command starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    Startpos,
    /// The fields of a FEN, single blanks between them.
    Fen(String),
}

/// One line of the GUI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Uci,
    Debug(bool),
    IsReady,
    SetOption {
        /// Inner blanks collapsed; letter case as sent.
        name: String,
        /// Inner blanks kept. `None` where the line has no `value`.
        value: Option<String>,
    },
    Register,
    NewGame,
    Position {
        start: Start,
        moves: Vec<String>,
    },
    Go {
        request: GoRequest,
        /// What was wrong with the line; the rest of it counts.
        complaints: Vec<SyntaxError>,
    },
    Stop,
    PonderHit,
    Quit,
    Display,
    Eval,
    Bench(Vec<String>),
    Perft(u32),
    Flip,
    Help,
    GenFens(GenFens),
}

/// What `help` prints.
pub const HELP: &str = "\
uci, isready, ucinewgame, setoption name N [value V], debug on|off, quit
position startpos|fen F [moves M...]
go [searchmoves M...] [ponder] [infinite] [wtime ms] [btime ms] [winc ms] [binc ms] [movestogo n]
   [movetime ms] [nodes n] [depth n] [mate n] [perft n];  stop;  ponderhit
d: the position;  eval: the network's answer for it;  flip: swap the colours
perft n: count leaf positions;  bench: the signature;  genfens n seed s book FILE|None";

/// Every first word [`parse`] knows.
pub const COMMAND_WORDS: [&str; 18] = [
    "uci",
    "debug",
    "isready",
    "setoption",
    "register",
    "ucinewgame",
    "position",
    "go",
    "stop",
    "ponderhit",
    "quit",
    "d",
    "eval",
    "bench",
    "perft",
    "flip",
    "help",
    "genfens",
];

/// Reads one cleaned line; `None` for an empty one.
pub fn parse(line: &str) -> Result<Option<Command>, SyntaxError> {
    let line = line.trim();
    let (word, rest) = split_word(line);
    let command = match word {
        "" => return Ok(None),
        "uci" => Command::Uci,
        "debug" => Command::Debug(match rest {
            "on" => true,
            "off" => false,
            _ => return Err(SyntaxError::Debug(rest.to_owned())),
        }),
        "isready" => Command::IsReady,
        "setoption" => set_option(rest)?,
        "register" => Command::Register,
        "ucinewgame" => Command::NewGame,
        "position" => position(rest)?,
        "go" => {
            let (request, complaints) = go::parse(rest);
            Command::Go {
                request,
                complaints,
            }
        }
        "stop" => Command::Stop,
        "ponderhit" => Command::PonderHit,
        "quit" | "exit" => Command::Quit,
        "d" => Command::Display,
        "eval" => Command::Eval,
        "bench" => Command::Bench(rest.split_whitespace().map(str::to_owned).collect()),
        "perft" => Command::Perft(
            rest.parse()
                .map_err(|_| SyntaxError::PerftDepth(rest.to_owned()))?,
        ),
        "flip" => Command::Flip,
        "help" => Command::Help,
        "genfens" => Command::GenFens(
            genfens::parse(rest).ok_or_else(|| SyntaxError::GenFens(rest.to_owned()))?,
        ),
        _ => return Err(SyntaxError::UnknownCommand(line.to_owned())),
    };
    Ok(Some(command))
}

/// The first word and what follows it, both without outer blanks.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

/// `name NAME [value VALUE]`; the first `value` after the first word of the name divides them.
fn set_option(rest: &str) -> Result<Command, SyntaxError> {
    let wrong = || SyntaxError::SetOption(format!("setoption {rest}").trim_end().to_owned());
    let (keyword, mut rest_of_line) = split_word(rest);
    if keyword != "name" {
        return Err(wrong());
    }
    let mut name = Vec::new();
    let mut value = None;
    while !rest_of_line.is_empty() {
        let (word, after) = split_word(rest_of_line);
        if word == "value" && !name.is_empty() {
            value = Some(after.to_owned());
            break;
        }
        name.push(word);
        rest_of_line = after;
    }
    if name.is_empty() || name == ["value"] {
        return Err(wrong());
    }
    Ok(Command::SetOption {
        name: name.join(" "),
        value,
    })
}

fn position(rest: &str) -> Result<Command, SyntaxError> {
    let (start, rest) = split_word(rest);
    let mut words = rest.split_whitespace().peekable();
    let start = match start {
        "startpos" => Start::Startpos,
        "fen" => {
            let mut fields = Vec::new();
            while let Some(word) = words.next_if(|&word| word != "moves") {
                fields.push(word);
            }
            if fields.is_empty() {
                return Err(SyntaxError::PositionBoard);
            }
            Start::Fen(fields.join(" "))
        }
        other => return Err(SyntaxError::PositionStart(other.to_owned())),
    };
    match words.next() {
        None | Some("moves") => {}
        Some(other) => return Err(SyntaxError::PositionMoves(other.to_owned())),
    }
    Ok(Command::Position {
        start,
        moves: words.map(str::to_owned).collect(),
    })
}

/// Text from the other side, short and printable enough to be quoted in one line.
pub fn echo(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut short: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(line: &str) -> Command {
        parse(line).unwrap().unwrap()
    }

    fn option(name: &str, value: Option<&str>) -> Command {
        Command::SetOption {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn bare_words() {
        assert_eq!(ok("uci"), Command::Uci);
        assert_eq!(ok("  isready  "), Command::IsReady);
        assert_eq!(ok("stop now"), Command::Stop);
        assert_eq!(parse(""), Ok(None));
        assert_eq!(parse("   "), Ok(None));
        assert_eq!(ok("debug on"), Command::Debug(true));
        assert_eq!(
            parse("debug maybe"),
            Err(SyntaxError::Debug("maybe".into()))
        );
        assert_eq!(
            parse("xyzzy 1"),
            Err(SyntaxError::UnknownCommand("xyzzy 1".into()))
        );
        assert_eq!(parse("UCI"), Err(SyntaxError::UnknownCommand("UCI".into())));
        for word in COMMAND_WORDS {
            assert!(
                !matches!(parse(word), Err(SyntaxError::UnknownCommand(_))),
                "{word}"
            );
        }
    }

    #[test]
    fn setoption_names_and_values() {
        assert_eq!(
            ok("setoption name Hash value 64"),
            option("Hash", Some("64"))
        );
        assert_eq!(
            ok("setoption name  Clear   Hash "),
            option("Clear Hash", None)
        );
        assert_eq!(ok("setoption name X value"), option("X", Some("")));
        assert_eq!(
            ok("setoption name WeightsFile value  /a  b/value c.pb "),
            option("WeightsFile", Some("/a  b/value c.pb"))
        );
        for wrong in [
            "setoption",
            "setoption name",
            "setoption Hash 3",
            "setoption name value 3",
        ] {
            match parse(wrong) {
                Err(SyntaxError::SetOption(found)) => assert_eq!(found, wrong),
                // "value" as a name: an unknown option, for the engine to name.
                Ok(Some(Command::SetOption { .. })) if wrong.ends_with('3') => {}
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }

    #[test]
    fn positions() {
        assert_eq!(
            ok("position startpos moves e2e4  e7e5"),
            Command::Position {
                start: Start::Startpos,
                moves: vec!["e2e4".into(), "e7e5".into()]
            }
        );
        assert_eq!(
            ok("position fen 8/8/8/8/8/8/8/K1k5  w - - 0 1 moves"),
            Command::Position {
                start: Start::Fen("8/8/8/8/8/8/8/K1k5 w - - 0 1".into()),
                moves: vec![]
            }
        );
        assert_eq!(
            parse("position"),
            Err(SyntaxError::PositionStart("".into()))
        );
        assert_eq!(parse("position fen"), Err(SyntaxError::PositionBoard));
        assert_eq!(
            parse("position fen moves e2e4"),
            Err(SyntaxError::PositionBoard)
        );
        assert_eq!(
            parse("position startpos e2e4"),
            Err(SyntaxError::PositionMoves("e2e4".into()))
        );
    }

    #[test]
    fn quoted_text_is_short_and_printable() {
        assert_eq!(echo("a\u{7}b"), "a b");
        assert_eq!(echo(&"x".repeat(500)).len(), 83);
    }
}
