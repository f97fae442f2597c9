//! Our side of the UCI protocol: lines in, lines out. Refuses to search, load or know a rule of
//! chess: that is behind [`crate::engine`].

mod board;
mod command;
mod exit;
mod genfens;
mod go;
mod info;
mod input;
mod output;
mod session;

pub use command::{COMMAND_WORDS, Command, Start, SyntaxError, parse};
pub use session::{Bench, Session, Setup};

/// The lines that arguments after the program's name stand for.
///
/// Where an argument has blanks each one is a line (`simurgh "go nodes 10" quit`); else they are
/// the words of one line, and a `quit` at the end is one of its own (`simurgh go nodes 10 quit`).
pub fn lines_of_arguments(arguments: &[String]) -> Vec<String> {
    if arguments
        .iter()
        .any(|argument| argument.contains(char::is_whitespace))
    {
        return arguments
            .iter()
            .map(|argument| input::clean(argument))
            .collect();
    }
    let (words, quit) = match arguments.split_last() {
        Some((last, words)) if last == "quit" => (words, true),
        _ => (arguments, false),
    };
    let mut lines = vec![input::clean(&words.join(" "))];
    if quit {
        lines.push("quit".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        lines_of_arguments(&arguments)
    }

    #[test]
    fn arguments_are_lines_or_words() {
        assert_eq!(
            lines(&["genfens 10 seed 42 book None", "quit"]),
            ["genfens 10 seed 42 book None", "quit"]
        );
        assert_eq!(
            lines(&["go", "nodes", "10", "quit"]),
            ["go nodes 10", "quit"]
        );
        assert_eq!(lines(&["d"]), ["d"]);
    }
}
