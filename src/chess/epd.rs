//! EPD records: a position without counters and operations such as `bm Nf3; id "x";`. Also reads
//! bare FEN lines and perft suites (`;D1 20 ;D2 400`). Knows nothing of what a suite is for.

use std::fmt;
use std::io::{self, BufRead};

use thiserror::Error;

use super::fen::FenError;
use super::moves::Move;
use super::position::Position;
use super::san::SanError;

/// One record of an EPD file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Epd {
    /// The position; counters are those of a FEN line, or of `hmvc` and `fmvn`, else 0 and 1.
    pub position: Position,
    /// Operation codes with their operands, in file order. Quotes around an operand are taken off.
    pub operations: Vec<(String, Vec<String>)>,
}

/// Why a record was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EpdError {
    /// The four fields in front hold no usable position.
    #[error(transparent)]
    Fen(#[from] FenError),
    /// A quoted operand without its closing quote.
    #[error("operand \"{0} has no closing quote")]
    Quote(String),
    /// A move operand that does not fit the position.
    #[error("operation {code}: {source}")]
    Move {
        /// `bm`, `am`, …
        code: String,
        /// What is wrong with the move.
        source: SanError,
    },
}

/// A record of a file that was refused, or a file that cannot be read on.
#[derive(Debug, Error)]
pub enum EpdFileError {
    /// The file itself cannot be read on.
    #[error("line {line}: reading failed: {source}")]
    Io {
        /// From 1.
        line: usize,
        /// What the system said.
        source: io::Error,
    },
    /// This line is no usable record; the lines after it are still read.
    #[error("line {line}: {source}")]
    Record {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        source: EpdError,
    },
}

impl Epd {
    /// A record without operations.
    pub fn new(position: Position) -> Epd {
        Epd {
            position,
            operations: Vec::new(),
        }
    }

    /// Reads one record. Operations may follow four fields (EPD) or six (a FEN with operations).
    ///
    /// # Errors
    /// When the position is unusable or an operand has no end. Moves are looked at by
    /// [`Epd::moves`] only.
    pub fn parse(line: &str) -> Result<Epd, EpdError> {
        let mut rest = line.trim();
        let mut fields: Vec<&str> = Vec::new();
        while fields.len() < 6 && !rest.is_empty() && !rest.starts_with(';') {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            // The fifth and sixth field are counters, or else the first operation.
            let counter = field == "-" || field.bytes().all(|c| c.is_ascii_digit());
            if fields.len() >= 4 && !counter {
                break;
            }
            fields.push(field);
            rest = after.trim_start();
        }
        let operations = read_operations(rest)?;
        let found = |code: &str| -> Option<&str> {
            let (_, operands) = operations.iter().find(|(known, _)| known == code)?;
            operands.first().map(String::as_str)
        };
        if fields.len() == 4 {
            if let Some(count) = found("hmvc").or(found("fmvn").map(|_| "0")) {
                fields.push(count);
            }
            fields.extend(found("fmvn"));
        }
        let (position, _) = Position::from_fen(&fields.join(" "))?;
        Ok(Epd {
            position,
            operations,
        })
    }

    /// The operands of an operation.
    pub fn operation(&self, code: &str) -> Option<&[String]> {
        self.operations
            .iter()
            .find(|(known, _)| known == code)
            .map(|(_, operands)| operands.as_slice())
    }

    /// The operands of an operation, as one text.
    pub fn text(&self, code: &str) -> Option<String> {
        self.operation(code).map(|operands| operands.join(" "))
    }

    /// The record's name: its `id`.
    pub fn id(&self) -> Option<String> {
        self.text("id")
    }

    /// The operands of `bm`, `am` or the like as moves; none if the operation is not there.
    ///
    /// # Errors
    /// Names the first operand that is not a legal move.
    pub fn moves(&self, code: &str) -> Result<Vec<Move>, EpdError> {
        self.operation(code)
            .unwrap_or_default()
            .iter()
            .map(|text| {
                self.position
                    .parse_san(text)
                    .map_err(|source| EpdError::Move {
                        code: code.to_owned(),
                        source,
                    })
            })
            .collect()
    }

    /// Sets an operation, in its place if it is there, else as the last one.
    pub fn set(&mut self, code: &str, operands: Vec<String>) {
        match self.operations.iter_mut().find(|(known, _)| known == code) {
            Some((_, old)) => *old = operands,
            None => self.operations.push((code.to_owned(), operands)),
        }
    }

    /// Sets `bm`, `am` or the like from moves.
    pub fn set_moves(&mut self, code: &str, moves: &[Move]) {
        let operands = moves.iter().map(|&m| self.position.to_san(m)).collect();
        self.set(code, operands);
    }
}

/// Four fields and the operations. Counters other than 0 and 1 become `hmvc` and `fmvn`.
impl fmt::Display for Epd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fen = self.position.to_fen(self.position.needs_chess960());
        let fields: Vec<&str> = fen.split(' ').collect();
        f.write_str(&fields[..fields.len().min(4)].join(" "))?;
        let counters = [
            ("hmvc", self.position.rule50(), 0),
            ("fmvn", self.position.fullmoves(), 1),
        ];
        for (code, count, default) in counters {
            if count != default && self.operation(code).is_none() {
                write!(f, " {code} {count};")?;
            }
        }
        for (code, operands) in &self.operations {
            write!(f, " {code}")?;
            for operand in operands {
                match wants_quotes(code, operand) {
                    true => write!(f, " \"{}\"", operand.replace('"', "'"))?,
                    false => write!(f, " {operand}")?,
                }
            }
            f.write_str(";")?;
        }
        Ok(())
    }
}

/// Strings (`id`, `c0` … `c9` and whatever is no plain word) are quoted; moves and numbers are not.
fn wants_quotes(code: &str, operand: &str) -> bool {
    let comment = matches!(code.as_bytes(), [b'c' | b'v', b'0'..=b'9']);
    let plain = |c: char| c.is_ascii_graphic() && !"\";".contains(c);
    code == "id" || comment || operand.is_empty() || !operand.chars().all(plain)
}

/// Records of a file, line by line; empty lines and lines that begin with `#` are read over.
pub fn read(reader: impl BufRead) -> impl Iterator<Item = Result<Epd, EpdFileError>> {
    let mut failed = false;
    reader
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line))
        .take_while(move |(_, line)| !std::mem::replace(&mut failed, line.is_err()))
        .filter_map(|(number, line)| match line {
            Err(source) => Some(Err(EpdFileError::Io {
                line: number,
                source,
            })),
            Ok(text) => {
                let text = text.trim_start_matches('\u{feff}').trim();
                if text.is_empty() || text.starts_with('#') {
                    return None;
                }
                Some(Epd::parse(text).map_err(|source| EpdFileError::Record {
                    line: number,
                    source,
                }))
            }
        })
}

fn read_operations(text: &str) -> Result<Vec<(String, Vec<String>)>, EpdError> {
    let mut operations: Vec<(String, Vec<String>)> = Vec::new();
    // The code of the operation being read is its first word; `None` between operations.
    let mut open = false;
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == ';' {
            open = false;
            rest = rest[1..].trim_start();
            continue;
        }
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted
                .split_once('"')
                .ok_or_else(|| EpdError::Quote(quoted.to_owned()))?,
            None => {
                let end = rest.find(|c: char| c.is_whitespace() || c == ';');
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        match operations.last_mut() {
            Some((_, operands)) if open => operands.push(word.to_owned()),
            _ => operations.push((word.to_owned(), Vec::new())),
        }
        open = true;
        rest = after.trim_start();
    }
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip() {
        let line = "2q1rr1k/3bbnnp/p2p1pp1/2pPp3/PpP1P1P1/1P2BNNP/2BQ1PRK/7R b - - \
                    bm f5; am Nh6 a5; id \"BK; 03\"; c0 \"f5=100, a5=3\"; ce -12;";
        let epd = Epd::parse(line).unwrap();
        assert_eq!(epd.to_string(), line);
        assert_eq!(epd.id().unwrap(), "BK; 03");
        assert_eq!(epd.moves("bm").unwrap().len(), 1);
        assert_eq!(epd.moves("am").unwrap().len(), 2);
        assert_eq!(epd.text("ce").unwrap(), "-12");
        assert!(epd.moves("pv").unwrap().is_empty());
    }

    #[test]
    fn counters_are_read_from_fields_and_operations() {
        let board = "4k3/8/8/8/8/8/8/4K2R w K -";
        for (tail, rule50, number, operations) in [
            ("", 0, 1, 0),
            (" 7 30", 7, 30, 0),
            (" 7 30 bm Rh8+;", 7, 30, 1),
            (" hmvc 7; fmvn 30;", 7, 30, 2),
            (" fmvn 30;", 0, 30, 1),
            (" 0 1 ;D1 15 ;D2 66", 0, 1, 2),
            (" ;D1 15 ;D2 66", 0, 1, 2),
        ] {
            let epd = Epd::parse(&format!("{board}{tail}")).unwrap();
            let found = (epd.position.rule50(), epd.position.fullmoves());
            assert_eq!(found, (rule50, number), "{tail}");
            assert_eq!(epd.operations.len(), operations, "{tail}");
        }
        let epd = Epd::parse(&format!("{board} 7 30")).unwrap();
        assert_eq!(epd.to_string(), format!("{board} hmvc 7; fmvn 30;"));
        assert_eq!(Epd::parse(&epd.to_string()).unwrap().position, epd.position);
    }

    #[test]
    fn bad_records_are_named_and_the_rest_is_read() {
        let text = "4k3/8/8/8/8/8/8/4K3 w - - id \"a\";\n\n# remark\nnonsense\n\
                    4k3/8/8/8/8/8/8/4K3 w - - bm Ke9;\n4k3/8/8/8/8/8/8/4K3 w - - id \"open;\n";
        let records: Vec<_> = read(text.as_bytes()).collect();
        assert_eq!(records.len(), 4);
        assert!(records[0].is_ok());
        assert!(
            records[1]
                .as_ref()
                .unwrap_err()
                .to_string()
                .starts_with("line 4: board")
        );
        let illegal = records[2].as_ref().unwrap().moves("bm").unwrap_err();
        assert!(
            illegal
                .to_string()
                .starts_with("operation bm: 'Ke9' is not")
        );
        assert!(
            records[3]
                .as_ref()
                .unwrap_err()
                .to_string()
                .contains("closing quote")
        );
    }
}
