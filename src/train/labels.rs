//! Label files in text, read game by game: `G <fen>` begins a game, then a line for each ply, `R <result>`
//! ends it. A ply is the move played, W D L in per mille for the mover, and moves with their scores
//! (`e2e4:35`), best first. Knows no other file.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{GameRecord, Ply, PolicyLabel, Source, TrainError, WdlLabel};
use crate::chess::{GameResult, Move, Position, open_maybe_packed};

const GAME_LINE: &str = "'G <fen>'";
const PLY_LINE: &str = "'<move> <W> <D> <L> [<move>:<cp> …]' or 'R <result>'";
const WDL: &str = "W, D and L in per mille that sum to 1000";
const SCORE: &str = "'<move>:<centipawns>'";
const RESULT: &str = "R 1-0, R 0-1, R 1/2-1/2 or R *";
/// Longer lines are not of this format.
const LONGEST_LINE: u64 = 4096;

/// The games of a label file, plain or gzipped, in order. After an error nothing more comes.
pub struct LabelReader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: u64,
    text: String,
    done: bool,
}

impl LabelReader {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<LabelReader, TrainError> {
        let path = path.as_ref();
        let input = open_maybe_packed(path).map_err(|e| TrainError::io("read", path, e))?;
        Ok(LabelReader::new(path, input))
    }

    /// Reads from `input`; `path` is for messages.
    pub fn new(path: impl Into<PathBuf>, input: impl Read + Send + 'static) -> LabelReader {
        LabelReader {
            path: path.into(),
            input: Box::new(BufReader::new(input)),
            line: 0,
            text: String::new(),
            done: false,
        }
    }

    /// The next line without its end, `None` at the end of the file.
    fn next_line(&mut self) -> Result<Option<String>, TrainError> {
        self.text.clear();
        let mut limited = (&mut self.input).take(LONGEST_LINE);
        let read = limited
            .read_line(&mut self.text)
            .map_err(|e| TrainError::io("read", &self.path, e))?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if read as u64 == LONGEST_LINE {
            return Err(self.found("a line of 4096 characters or more", PLY_LINE));
        }
        Ok(Some(self.text.trim_end().to_owned()))
    }

    fn found(&self, found: impl Into<String>, expected: &'static str) -> TrainError {
        TrainError::Label {
            path: self.path.clone(),
            line: self.line,
            found: found.into(),
            expected,
        }
    }

    fn against_rules(&self, why: impl ToString) -> TrainError {
        TrainError::Chess {
            path: self.path.clone(),
            line: self.line,
            why: why.to_string(),
        }
    }

    fn game(&mut self) -> Result<Option<GameRecord>, TrainError> {
        let first = loop {
            match self.next_line()? {
                None => return Ok(None),
                Some(line) if line.is_empty() => {}
                Some(line) => break line,
            }
        };
        let Some(fen) = first.strip_prefix("G ") else {
            return Err(self.found(quoted(&first), GAME_LINE));
        };
        let (start, _) = Position::from_fen(fen).map_err(|e| self.against_rules(e))?;
        let mut record = GameRecord::new(start.clone(), Source::Labels);
        let mut position = start;
        loop {
            let Some(line) = self.next_line()? else {
                return Err(self.found("the end of the file", PLY_LINE));
            };
            if let Some(result) = line.strip_prefix("R ") {
                record.result = match result {
                    "1-0" => GameResult::WhiteWins,
                    "0-1" => GameResult::BlackWins,
                    "1/2-1/2" => GameResult::Draw,
                    "*" => GameResult::Unknown,
                    _ => return Err(self.found(quoted(&line), RESULT)),
                };
                return Ok(Some(record));
            }
            let ply = self.ply(&line, &position)?;
            position.play(ply.played);
            record.plies.push(ply);
        }
    }

    fn ply(&self, line: &str, position: &Position) -> Result<Ply, TrainError> {
        let legal = |text: &str| {
            let m = position.parse_uci(text);
            m.map_err(|e| self.against_rules(e))
        };
        let mut words = line.split_ascii_whitespace();
        let played = match words.next() {
            Some(word) if (4..=5).contains(&word.len()) => legal(word)?,
            _ => return Err(self.found(quoted(line), PLY_LINE)),
        };
        let mut wdl = [0_u16; 3];
        for part in &mut wdl {
            let word = words.next().unwrap_or_default();
            *part = word.parse().map_err(|_| self.found(quoted(word), WDL))?;
        }
        let wdl = WdlLabel::new(wdl[0], wdl[1], wdl[2])
            .ok_or_else(|| self.found(format!("{} {} {}", wdl[0], wdl[1], wdl[2]), WDL))?;
        let mut scores: Vec<(Move, i16)> = Vec::new();
        let mut seen = HashSet::new();
        for word in words {
            let (text, cp) = word
                .split_once(':')
                .ok_or_else(|| self.found(quoted(word), SCORE))?;
            let cp = cp.parse().map_err(|_| self.found(quoted(word), SCORE))?;
            let m = legal(text)?;
            if seen.insert(m) {
                scores.push((m, cp));
            }
        }
        Ok(Ply {
            played,
            wdl: Some(wdl),
            policy: match scores.is_empty() {
                true => PolicyLabel::None,
                false => PolicyLabel::Scores(scores),
            },
        })
    }
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    format!("'{short}'")
}

impl Iterator for LabelReader {
    type Item = Result<GameRecord, TrainError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let game = self.game().transpose();
        self.done = !matches!(game, Some(Ok(_)));
        game
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "G rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    fn read(text: &str) -> Vec<Result<GameRecord, TrainError>> {
        LabelReader::new("f.txt", std::io::Cursor::new(text.to_owned())).collect()
    }

    #[test]
    fn games_are_read_in_order_and_the_first_of_two_scores_counts() {
        let text = format!(
            "{START}\ne2e4 300 600 100 e2e4:35 d2d4:30 e2e4:10\ne7e5 100 600 300\nR 1-0\n\n{START}\nR 1/2-1/2\n"
        );
        let games: Vec<GameRecord> = read(&text).into_iter().map(Result::unwrap).collect();
        assert_eq!(games.len(), 2);
        assert_eq!(games[0].result, GameResult::WhiteWins);
        assert_eq!(games[0].plies.len(), 2);
        let PolicyLabel::Scores(scores) = &games[0].plies[0].policy else {
            panic!("no scores");
        };
        let cp: Vec<i16> = scores.iter().map(|s| s.1).collect();
        assert_eq!(cp, [35, 30]);
        assert_eq!(games[0].plies[1].policy, PolicyLabel::None);
        assert_eq!(games[0].plies[1].wdl, WdlLabel::new(100, 600, 300));
        games.iter().for_each(|game| game.check().unwrap());
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_line() {
        for (lines, line, says) in [
            ("e2e4 300 600 100", 1, "'G <fen>'"),
            ("G nonsense", 1, ""),
            (&format!("{START}\ne2e5 300 600 100\nR 1-0"), 2, "e2e5"),
            (
                &format!("{START}\ne2e4 300 600 101\nR 1-0"),
                2,
                "300 600 101",
            ),
            (&format!("{START}\ne2e4 300 x 100\nR 1-0"), 2, "'x'"),
            (
                &format!("{START}\ne2e4 300 600 100 d2d4\nR 1-0"),
                2,
                "'d2d4'",
            ),
            (
                &format!("{START}\ne2e4 300 600 100 d2d4:99999\nR 1-0"),
                2,
                "99999",
            ),
            (
                &format!("{START}\ne2e4 300 600 100 d7d5:1\nR 1-0"),
                2,
                "d7d5",
            ),
            (&format!("{START}\ne2e4 300 600 100\nR 2-0"), 3, "R 2-0"),
            (
                &format!("{START}\ne2e4 300 600 100"),
                2,
                "the end of the file",
            ),
        ] {
            let games = read(lines);
            assert_eq!(games.len(), 1, "{lines}");
            let error = games[0].as_ref().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("f.txt line {line}: ")),
                "{error}"
            );
            assert!(error.contains(says), "{error}");
        }
    }
}
