//! Games as rows of tokens for a GPT: read from PGN or lists of UCI moves, filtered, held out for validation,
//! shuffled and padded. Knows no tensor and no network.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use sha2::{Digest, Sha256};

use super::TrainError;
use super::config::DataConfig;
use super::reader::{FileState, ReaderState, choose, mix};
use crate::chess::{Game, GameResult, PgnError, PgnGame, Position, open_maybe_packed, pgn};
use crate::encode::game_tokens::{EOS, PAD, PROMPT, row_of};

/// One game: `<bos> <wR> <bR> move move … <eos>`.
pub type Row = Box<[u16]>;

/// Which games of a file are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Those that are trained on.
    Training,
    /// Those that never are.
    HeldOut,
    /// All.
    All,
}

/// The games of one file.
pub struct GameFile {
    /// In the file's order.
    pub rows: Vec<Row>,
    /// Games that could not be read, had moves without a token, or did not pass the filters.
    pub left_out: usize,
}

/// A minibatch of B games; T is the length of the longest, less one.
#[derive(Clone, Debug, Default)]
pub struct GameBatch {
    /// B
    pub size: usize,
    /// T
    pub length: usize,
    /// What is read, `[B, T]`.
    pub tokens: Vec<i64>,
    /// The token after each, `[B, T]`; [`PAD`] where none is to be predicted.
    pub targets: Vec<i64>,
}

impl GameBatch {
    /// Rows of at most `context` + 1 tokens, padded.
    pub fn encode<R: AsRef<[u16]>>(rows: &[R], context: usize) -> GameBatch {
        let cut = |row: &R| row.as_ref().len().min(context + 1);
        let length = rows
            .iter()
            .map(cut)
            .max()
            .unwrap_or(0)
            .saturating_sub(1)
            .max(1);
        let mut batch = GameBatch {
            size: rows.len(),
            length,
            ..GameBatch::default()
        };
        for row in rows {
            let kept = &row.as_ref()[..cut(row)];
            let token = |at: usize| i64::from(kept.get(at).copied().unwrap_or(PAD));
            for at in 0..length {
                let read = at + 1 < kept.len();
                batch
                    .tokens
                    .push(if read { token(at) } else { i64::from(PAD) });
                // The prompt is given, not guessed.
                let wanted = read && at + 1 >= PROMPT;
                batch.targets.push(if wanted {
                    token(at + 1)
                } else {
                    i64::from(PAD)
                });
            }
        }
        batch
    }

    /// Tokens to predict.
    pub fn counted(&self) -> usize {
        let pad = i64::from(PAD);
        self.targets.iter().filter(|&&target| target != pad).count()
    }

    /// Rows `from..to` as a minibatch of its own.
    pub fn rows(&self, from: usize, to: usize) -> GameBatch {
        let at = from * self.length..to * self.length;
        GameBatch {
            size: to - from,
            length: self.length,
            tokens: self.tokens[at.clone()].to_vec(),
            targets: self.targets[at].to_vec(),
        }
    }
}

/// Reads a file of games, PGN or one game a line in UCI moves from the start position.
///
/// # Errors
/// When it cannot be read, or nothing of it passes.
pub fn read(path: &Path, data: &DataConfig, share: Share) -> Result<GameFile, TrainError> {
    let failed = |e| TrainError::io("read", path, e);
    let mut text = open_maybe_packed(path).map_err(failed)?;
    let begin: Vec<u8> = text
        .fill_buf()
        .map_err(failed)?
        .iter()
        .copied()
        .take(256)
        .collect();
    let mut found = GameFile {
        rows: Vec::new(),
        left_out: 0,
    };
    let mut take = |row: Option<Row>| match row {
        Some(row) if passes(&row, data, share) => found.rows.push(row),
        Some(row)
            if held_out(&row, data) == (share == Share::Training) && long_enough(&row, data) => {}
        _ => found.left_out += 1,
    };
    if is_uci(&begin) {
        for line in text.lines() {
            let line = line.map_err(failed)?;
            if !line.trim().is_empty() {
                take(uci_row(&line, data));
            }
        }
    } else {
        for game in pgn::read(text) {
            match game {
                Ok(game) => take(pgn_row(&game, data)),
                Err(PgnError::Io { source, .. }) => return Err(failed(source)),
                Err(_) => take(None),
            }
        }
    }
    if found.rows.is_empty() {
        return Err(TrainError::Config {
            path: path.to_owned(),
            why: format!("no game of it passes ({} left out)", found.left_out),
        });
    }
    Ok(found)
}

fn long_enough(row: &Row, data: &DataConfig) -> bool {
    row.len() >= PROMPT + 1 + data.min_plies
}

fn passes(row: &Row, data: &DataConfig, share: Share) -> bool {
    let wanted = match share {
        Share::All => true,
        Share::Training => !held_out(row, data),
        Share::HeldOut => held_out(row, data),
    };
    wanted && long_enough(row, data)
}

/// Whether a game is one of those that are never trained on: by its moves, so that it is wherever it stands.
fn held_out(row: &Row, data: &DataConfig) -> bool {
    let moves = row.get(PROMPT..).unwrap_or_default();
    let hash = moves
        .iter()
        .fold(17, |hash, &token| mix(hash, u64::from(token)));
    data.held_out > 0 && hash.is_multiple_of(data.held_out)
}

/// True when a text begins with a move in UCI.
fn is_uci(begin: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begin);
    let word = text.split_whitespace().next().unwrap_or_default();
    Position::startpos().parse_uci(word).is_ok()
}

fn uci_row(line: &str, data: &DataConfig) -> Option<Row> {
    let mut game = Game::default();
    for text in line.split_whitespace() {
        if GameResult::parse(text).is_some() {
            break;
        }
        let m = game.current().parse_uci(text).ok()?;
        game.play(m);
    }
    row(&game, data.unrated?, data.unrated?)
}

fn pgn_row(game: &PgnGame, data: &DataConfig) -> Option<Row> {
    let rating = |tag| {
        let named = game.tag(tag).and_then(|text| text.parse::<u16>().ok());
        named.filter(|&r| r > 0).or(data.unrated)
    };
    let (white, black) = (rating("WhiteElo")?, rating("BlackElo")?);
    let range = data.min_rating..=data.max_rating;
    if !range.contains(&white) || !range.contains(&black) {
        return None;
    }
    row(&game.game(), white, black)
}

fn row(game: &Game, white: u16, black: u16) -> Option<Row> {
    let mut row = row_of(game, white, black)?;
    row.push(EOS);
    Some(row.into_boxed_slice())
}

/// Games of several files in random order, for ever, mixed by weight. Where it stands is a few numbers.
pub struct GameReader {
    files: Vec<Vec<Row>>,
    weights: Vec<f64>,
    orders: Vec<Option<Vec<u32>>>,
    states: Vec<FileState>,
    seed: u64,
    /// Tokens handed out.
    positions: u64,
    hash: String,
}

impl GameReader {
    /// Reads the files and goes to `state` (the default is the beginning).
    ///
    /// # Errors
    /// A file that cannot be read or of which nothing passes.
    pub fn open(
        files: &[(PathBuf, f64)],
        data: &DataConfig,
        seed: u64,
        state: &ReaderState,
    ) -> Result<GameReader, TrainError> {
        let mut sets = Vec::new();
        let mut hash = Sha256::new();
        for (path, _) in files {
            let found = read(path, data, Share::Training)?;
            for row in &found.rows {
                for token in row {
                    hash.update(token.to_le_bytes());
                }
            }
            sets.push(found.rows);
        }
        let hash = hash.finalize();
        Ok(GameReader {
            orders: vec![None; sets.len()],
            states: (0..sets.len())
                .map(|i| state.files.get(i).copied().unwrap_or_default())
                .collect(),
            files: sets,
            weights: files.iter().map(|(_, weight)| *weight).collect(),
            seed,
            positions: state.positions,
            hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// Where it stands.
    pub fn state(&self) -> ReaderState {
        ReaderState {
            files: self.states.clone(),
            positions: self.positions,
        }
    }

    /// Names the data.
    pub fn data_hash(&self) -> String {
        self.hash.clone()
    }

    /// The next games as a minibatch.
    pub fn next(&mut self, count: usize, context: usize) -> GameBatch {
        let mut random = StdRng::seed_from_u64(mix(self.seed, self.positions));
        let mut chosen: Vec<(usize, u32)> = Vec::with_capacity(count);
        for _ in 0..count {
            let file = choose(&self.weights, &mut random);
            chosen.push((file, self.step(file)));
        }
        let rows: Vec<&[u16]> = chosen
            .iter()
            .filter_map(|&(file, row)| Some(&**self.files.get(file)?.get(row as usize)?))
            .collect();
        let batch = GameBatch::encode(&rows, context);
        self.positions += batch.counted() as u64;
        batch
    }

    /// The next game of a file, in this pass's order.
    fn step(&mut self, file: usize) -> u32 {
        let state = &mut self.states[file];
        let count = self.files[file].len() as u64;
        if state.offset >= count {
            *state = FileState {
                epoch: state.epoch + 1,
                ..FileState::default()
            };
            self.orders[file] = None;
        }
        let seed = mix(mix(self.seed, file as u64), state.epoch);
        let order = self.orders[file].get_or_insert_with(|| {
            let mut order: Vec<u32> = (0..count as u32).collect();
            order.shuffle(&mut StdRng::seed_from_u64(seed));
            order
        });
        let row = order[state.offset as usize];
        state.offset += 1;
        row
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::encode::game_tokens::token_name;
    use crate::train::config::TrainConfig;

    fn data() -> DataConfig {
        let config: TrainConfig = toml::from_str(crate::train::config::tests::TINY).unwrap();
        DataConfig {
            held_out: 0,
            ..config.data
        }
    }

    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("simurgh-games-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    const PGN: &str = "[WhiteElo \"1510\"]\n[BlackElo \"2240\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n\
        [WhiteElo \"900\"]\n[BlackElo \"?\"]\n\n1. d4 *\n\n\
        [FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n[WhiteElo \"900\"]\n[BlackElo \"900\"]\n\n1. O-O *\n";

    fn names(row: &[u16]) -> Vec<String> {
        row.iter()
            .map(|&token| token_name(token).unwrap())
            .collect()
    }

    #[test]
    fn pgn_becomes_tokens_and_filters_hold() {
        let path = file("pgn", PGN.as_bytes());
        let found = read(&path, &data(), Share::All).unwrap();
        assert_eq!((found.rows.len(), found.left_out), (1, 2));
        assert_eq!(
            names(&found.rows[0]),
            [
                "<bos>", "<w1500>", "<b2200>", "e2e4", "e7e5", "g1f3", "<eos>"
            ]
        );
        let unrated = DataConfig {
            unrated: Some(2000),
            ..data()
        };
        assert_eq!(read(&path, &unrated, Share::All).unwrap().rows.len(), 2);
        for strict in [
            DataConfig {
                min_plies: 4,
                ..data()
            },
            DataConfig {
                min_rating: 1600,
                ..data()
            },
            DataConfig {
                max_rating: 2000,
                ..data()
            },
        ] {
            let error = read(&path, &strict, Share::All).err().unwrap().to_string();
            assert!(error.contains("no game of it passes"), "{error}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn packed_files_and_uci_lists_are_read() {
        let list = "e2e4 e7e5 g1f3\nd2d4 d7d5 1/2-1/2\ne2e4 e7e4\n";
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(list.as_bytes()).unwrap();
        let unrated = DataConfig {
            unrated: Some(1500),
            ..data()
        };
        for (name, bytes) in [
            ("plain", list.as_bytes().to_vec()),
            ("gz", gz.finish().unwrap()),
            ("zst", zstd::encode_all(list.as_bytes(), 1).unwrap()),
        ] {
            let path = file(name, &bytes);
            let found = read(&path, &unrated, Share::All).unwrap();
            assert_eq!((found.rows.len(), found.left_out), (2, 1), "{name}");
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_game_is_trained_on_or_held_out_and_each_comes_once_a_pass() {
        let mut text = String::new();
        for first in Position::startpos().legal_moves() {
            for second in ["e7e5", "d7d5", "c7c5", "g8f6"] {
                text += &format!("{first} {second}\n");
            }
        }
        let path = file("share", text.as_bytes());
        let data = DataConfig {
            unrated: Some(1500),
            held_out: 4,
            ..data()
        };
        let count = |share| read(&path, &data, share).unwrap().rows.len();
        assert_eq!(count(Share::All), 80);
        assert_eq!(count(Share::Training) + count(Share::HeldOut), 80);
        assert!((8..32).contains(&count(Share::HeldOut)));
        let files = [(path.clone(), 1.0)];
        let training = count(Share::Training);
        let open = |state: &ReaderState| GameReader::open(&files, &data, 7, state).unwrap();
        let mut reader = open(&ReaderState::default());
        let pass = |reader: &mut GameReader| {
            let batch = reader.next(training, 200);
            assert_eq!((batch.length, batch.counted()), (5, 3 * training));
            let rows = batch.tokens.chunks(5).map(<[i64]>::to_vec);
            rows.collect::<Vec<_>>()
        };
        let (mut first, mut second) = (pass(&mut reader), pass(&mut reader));
        let mut again = open(&reader.state());
        assert_eq!(pass(&mut again), pass(&mut reader));
        assert_ne!(first, second);
        first.sort();
        second.sort();
        assert_eq!(first, second);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn rows_are_padded_cut_and_never_asked_for_the_prompt() {
        let rows: [&[u16]; 2] = [&[1, 8, 35, 70, 71, 72, 2], &[1, 8, 35, 90, 2]];
        let batch = GameBatch::encode(&rows, 5);
        assert_eq!((batch.size, batch.length), (2, 5));
        assert_eq!(batch.tokens, [1, 8, 35, 70, 71, 1, 8, 35, 90, 0]);
        assert_eq!(batch.targets, [0, 0, 70, 71, 72, 0, 0, 90, 2, 0]);
        assert_eq!((batch.counted(), batch.rows(1, 2).counted()), (5, 2));
        assert_eq!(batch.rows(1, 2).tokens, [1, 8, 35, 90, 0]);
    }
}
