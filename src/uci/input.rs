//! Turns a byte stream into lines a parser can read, whatever the bytes are. Refuses to know what
//! a command is.
//!
//! A GUI may send carriage returns, byte order marks, NULs, bytes that are no UTF-8 or a line
//! without end; each becomes an ordinary line, or one report that the line was too long.

use std::io::{BufRead, ErrorKind};

/// The longest line read, in bytes. A game of the greatest possible length (about 6,000 moves a
/// side) takes a tenth of it.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// One thing the other side sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A line without its end, trimmed, control characters made blanks.
    Line(String),
    /// A line of more than [`MAX_LINE_BYTES`]; its content is dropped.
    TooLong { bytes: usize },
    /// Nothing will follow.
    End,
}

/// Reads the next line. An unreadable stream counts as ended.
pub fn next_line(reader: &mut impl BufRead) -> Input {
    let mut line = Vec::new();
    let mut bytes = 0usize;
    loop {
        let chunk = match reader.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => &[],
        };
        if chunk.is_empty() {
            return if bytes == 0 {
                Input::End
            } else {
                finish(line, bytes)
            };
        }
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(chunk.len());
        bytes = bytes.saturating_add(taken);
        if bytes <= MAX_LINE_BYTES {
            line.extend_from_slice(&chunk[..taken]);
        } else {
            line = Vec::new();
        }
        reader.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return finish(line, bytes);
        }
    }
}

fn finish(line: Vec<u8>, bytes: usize) -> Input {
    if bytes > MAX_LINE_BYTES {
        return Input::TooLong { bytes };
    }
    Input::Line(clean(&String::from_utf8_lossy(&line)))
}

/// Control characters (NUL, tab, carriage return, escape) become blanks; a byte order mark and
/// outer blanks go.
pub fn clean(line: &str) -> String {
    let line: String = line
        .chars()
        .map(|c| {
            if c.is_control() || c == '\u{feff}' {
                ' '
            } else {
                c
            }
        })
        .collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<Input> {
        let mut reader = std::io::BufReader::with_capacity(7, bytes);
        let mut all = Vec::new();
        loop {
            let input = next_line(&mut reader);
            let end = input == Input::End;
            all.push(input);
            if end {
                return all;
            }
        }
    }

    fn line(text: &str) -> Input {
        Input::Line(text.to_owned())
    }

    #[test]
    fn line_ends_blanks_and_marks_are_removed() {
        assert_eq!(
            lines(b"\xef\xbb\xbfuci\r\n\n  isready\t\r\nquit"),
            [
                line("uci"),
                line(""),
                line("isready"),
                line("quit"),
                Input::End
            ]
        );
    }

    #[test]
    fn strange_bytes_stay_one_line() {
        assert_eq!(lines(b"\0isready\0\n"), [line("isready"), Input::End]);
        assert_eq!(
            lines(b"d\xff\xfe\n"),
            [line("d\u{fffd}\u{fffd}"), Input::End]
        );
    }

    #[test]
    fn a_line_without_end_is_dropped_and_the_next_is_read() {
        let mut bytes = vec![b'x'; MAX_LINE_BYTES + 5];
        bytes.extend_from_slice(b"\nuci\n");
        assert_eq!(
            lines(&bytes),
            [
                Input::TooLong {
                    bytes: MAX_LINE_BYTES + 5
                },
                line("uci"),
                Input::End
            ]
        );
    }
}
