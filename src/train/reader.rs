//! Training positions in random order, from one or several files, for ever. Where it stands is a few
//! numbers, from which it goes on exactly. Knows neither tensors nor targets.

use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::chunk::ChunkFile;
use super::{Sample, TrainError, TrainingGame};

/// Where a reader stands, per file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderState {
    /// One for each file.
    pub files: Vec<FileState>,
    /// Positions handed out.
    pub positions: u64,
}

/// Where a reader stands in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Passes over the file that are done.
    pub epoch: u64,
    /// Groups of chunks of this pass that are done.
    pub group: u64,
    /// Positions of the current group that are done.
    pub offset: u64,
}

/// Reads several files, each in its own order, mixed by weight.
pub struct Reader {
    files: Vec<FileReader>,
    weights: Vec<f64>,
    seed: u64,
    positions: u64,
}

/// The positions of one file: chunks in random order, a group of them at a time, and the positions of a
/// group shuffled together. Memory is bounded by a group.
struct FileReader {
    file: ChunkFile,
    group_chunks: usize,
    seed: u64,
    state: FileState,
    /// The current group, shuffled; read from `state.offset` on.
    group: Option<Vec<Sample>>,
}

impl Reader {
    /// Opens the files and goes to `state` (the default is the beginning).
    ///
    /// # Errors
    /// A file that cannot be read or has no positions; a state that is of other files.
    pub fn open<P: AsRef<Path>>(
        files: &[(P, f64)],
        group_chunks: usize,
        seed: u64,
        state: &ReaderState,
    ) -> Result<Reader, TrainError> {
        let mut readers = Vec::new();
        for (index, (path, _)) in files.iter().enumerate() {
            let file = ChunkFile::open(path)?;
            if file.positions() == 0 {
                return Err(no_positions(path.as_ref()));
            }
            readers.push(FileReader {
                file,
                group_chunks: group_chunks.max(1),
                seed: mix(seed, index as u64),
                state: state.files.get(index).copied().unwrap_or_default(),
                group: None,
            });
        }
        Ok(Reader {
            files: readers,
            weights: files.iter().map(|(_, weight)| *weight).collect(),
            seed,
            positions: state.positions,
        })
    }

    /// Where it stands.
    pub fn state(&self) -> ReaderState {
        ReaderState {
            files: self.files.iter().map(|file| file.state).collect(),
            positions: self.positions,
        }
    }

    /// The next positions.
    ///
    /// # Errors
    /// A chunk that cannot be read.
    pub fn next(&mut self, count: usize) -> Result<Vec<Sample>, TrainError> {
        let mut random = StdRng::seed_from_u64(mix(self.seed, self.positions));
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let chosen = choose(&self.weights, &mut random);
            if let Some(file) = self.files.get_mut(chosen) {
                samples.push(file.next()?);
            }
        }
        self.positions += count as u64;
        Ok(samples)
    }

    /// Names the data: the files' own hashes together.
    pub fn data_hash(&self) -> String {
        let hashes: Vec<String> = self.files.iter().map(|f| f.file.data_hash()).collect();
        hashes.join("+")
    }
}

impl FileReader {
    fn next(&mut self) -> Result<Sample, TrainError> {
        loop {
            let group = match self.group.take() {
                Some(group) => group,
                None => self.load()?,
            };
            if let Some(sample) = group.get(self.state.offset as usize) {
                let sample = sample.clone();
                self.state.offset += 1;
                self.group = Some(group);
                return Ok(sample);
            }
            self.state.offset = 0;
            self.state.group += 1;
            if self.state.group >= self.groups() {
                self.state.group = 0;
                self.state.epoch += 1;
            }
        }
    }

    fn groups(&self) -> u64 {
        self.file.chunks().len().div_ceil(self.group_chunks) as u64
    }

    fn load(&self) -> Result<Vec<Sample>, TrainError> {
        let FileState { epoch, group, .. } = self.state;
        let mut order: Vec<usize> = (0..self.file.chunks().len()).collect();
        order.shuffle(&mut StdRng::seed_from_u64(mix(self.seed, epoch)));
        let first = group as usize * self.group_chunks;
        let mut samples = Vec::new();
        for &chunk in order.iter().skip(first).take(self.group_chunks) {
            for game in self.file.load(chunk)? {
                samples.extend(game.samples());
            }
        }
        let seed = mix(mix(self.seed, epoch), group + 1);
        samples.shuffle(&mut StdRng::seed_from_u64(seed));
        Ok(samples)
    }
}

/// Which of several sources comes next, by weight.
pub fn choose(weights: &[f64], random: &mut StdRng) -> usize {
    let mut at = random.random::<f64>() * weights.iter().sum::<f64>();
    let before = weights.iter().position(|weight| {
        at -= weight;
        at < 0.0
    });
    before.unwrap_or(weights.len().saturating_sub(1))
}

/// At most `count` positions of a file, at even distances.
///
/// # Errors
/// A chunk that cannot be read, or no position at all.
pub fn spread(path: &Path, count: usize) -> Result<Vec<Sample>, TrainError> {
    let file = ChunkFile::open(path)?;
    let step = (file.positions() as usize / count.max(1)).max(1);
    let (mut samples, mut seen) = (Vec::new(), 0_usize);
    for chunk in 0..file.chunks().len() {
        for sample in file.load(chunk)?.iter().flat_map(TrainingGame::samples) {
            if seen.is_multiple_of(step) && samples.len() < count {
                samples.push(sample);
            }
            seen += 1;
        }
    }
    match samples.is_empty() {
        true => Err(no_positions(path)),
        false => Ok(samples),
    }
}

fn no_positions(path: &Path) -> TrainError {
    TrainError::Config {
        path: path.to_owned(),
        why: "it has no labelled positions".to_owned(),
    }
}

/// A seed from two numbers.
pub fn mix(seed: u64, number: u64) -> u64 {
    let mut x = seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::chess::Position;
    use crate::train::chunk::ChunkWriter;
    use crate::train::{GameRecord, Ply, PolicyLabel, Source, WdlLabel};

    /// A file of `games` games of `plies` labelled positions each, told apart by their values.
    fn file(name: &str, games: u16, plies: u16) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("simurgh-reader-{name}-{}", std::process::id()));
        let mut writer = ChunkWriter::create(&path).unwrap();
        for game in 0..games {
            let mut position = Position::startpos();
            let mut record = GameRecord::new(position.clone(), Source::Engine);
            for ply in 0..plies {
                let moves = position.legal_moves();
                let played = moves[usize::from(game) % moves.len()];
                let win = game * plies + ply;
                record.plies.push(Ply {
                    wdl: WdlLabel::new(win, 1000 - win, 0),
                    policy: PolicyLabel::Scores(vec![(played, 0)]),
                    ..Ply::played(played)
                });
                position.play(played);
            }
            writer.push(record).unwrap();
            writer.flush().unwrap();
        }
        writer.finish().unwrap();
        path
    }

    /// The number of a position.
    fn number(sample: &Sample) -> u32 {
        (sample.wdl().unwrap().win * 1000.0).round() as u32
    }

    #[test]
    fn every_position_comes_once_a_pass_in_an_order_of_its_own() {
        let path = file("once", 7, 5);
        let mut reader = Reader::open(&[(&path, 1.0)], 2, 9, &ReaderState::default()).unwrap();
        let mut pass = || -> Vec<u32> {
            let samples = reader.next(35).unwrap();
            samples.iter().map(number).collect()
        };
        let (first, second) = (pass(), pass());
        let sorted = |pass: &[u32]| {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            sorted
        };
        let all: Vec<u32> = (0..35).collect();
        assert_eq!(
            (sorted(&first), sorted(&second)),
            (all.clone(), all.clone())
        );
        assert!(first != all && first != second);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn it_goes_on_from_any_state() {
        let path = file("state", 6, 4);
        let files = [(&path, 1.0)];
        let mut whole = Reader::open(&files, 2, 3, &ReaderState::default()).unwrap();
        whole.next(17).unwrap();
        let state = whole.state();
        let rest: Vec<u32> = whole.next(30).unwrap().iter().map(number).collect();
        let mut again = Reader::open(&files, 2, 3, &state).unwrap();
        let same: Vec<u32> = again.next(30).unwrap().iter().map(number).collect();
        assert_eq!((rest, whole.state()), (same, again.state()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn sources_are_mixed_by_weight() {
        let (few, many) = (file("few", 2, 3), file("many", 9, 9));
        let files = [(&few, 3.0), (&many, 1.0)];
        let mut reader = Reader::open(&files, 4, 1, &ReaderState::default()).unwrap();
        let samples = reader.next(4000).unwrap();
        // Three quarters come from the six positions of `few`.
        let state = reader.state();
        let passes = (
            state.files[0].epoch as f64 * 6.0,
            state.files[1].epoch as f64 * 81.0,
        );
        assert!((2850.0..3100.0).contains(&passes.0), "{passes:?}");
        assert!((900.0..1150.0).contains(&passes.1), "{passes:?}");
        assert_eq!(samples.len(), 4000);
        std::fs::remove_file(few).unwrap();
        std::fs::remove_file(many).unwrap();
    }

    #[test]
    fn a_file_without_positions_is_named() {
        let path = file("empty", 0, 0);
        let error = Reader::open(&[(&path, 1.0)], 2, 3, &ReaderState::default());
        let error = error.err().unwrap().to_string();
        assert!(error.contains("no labelled positions"), "{error}");
        std::fs::remove_file(path).unwrap();
    }
}
