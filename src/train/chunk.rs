//! Files of game records: compressed chunks, each with its size and checksum. Knows how files are
//! written, cut off and found damaged; what is in a chunk is [`super::codec`]'s.
//!
//! The file begins with `SIMURGH\x1a` and its version (u32); then come chunks: a header of 64 bytes
//! and the packed bytes (zstd). All numbers are little-endian.
//!
//! | header bytes | hold |
//! |---|---|
//! | 0–3 | `CHNK` |
//! | 4–7, 8–11, 12–15 | games, plies, labelled positions |
//! | 16–19, 20–23 | bytes unpacked, bytes packed |
//! | 24–31 | zero |
//! | 32–63 | SHA-256 of bytes 0–31 and the packed bytes |
//!
//! A file grows by whole chunks. What a cut run left behind them is cut off when it goes on.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{GameRecord, TrainError, TrainingGame, codec};

const MAGIC: [u8; 8] = *b"SIMURGH\x1a";
const VERSION: u32 = 1;
const FILE_HEADER: u64 = 12;
const CHUNK_MAGIC: [u8; 4] = *b"CHNK";
const CHUNK_HEADER: usize = 64;
/// Plies after which a chunk is closed.
const CHUNK_PLIES: usize = 8192;
/// Largest chunk, unpacked.
const MAX_BYTES: u32 = 1 << 26;
const LEVEL: i32 = 15;

/// One chunk of a file, as its header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Games in it.
    pub games: u32,
    /// Plies of those games.
    pub plies: u32,
    /// Plies that have labels.
    pub positions: u32,
    /// Where its header begins.
    offset: u64,
    bytes: u32,
    packed: u32,
    digest: [u8; 32],
}

impl ChunkInfo {
    fn header(&self) -> [u8; CHUNK_HEADER] {
        let mut header = [0; CHUNK_HEADER];
        header[..4].copy_from_slice(&CHUNK_MAGIC);
        let numbers = [
            self.games,
            self.plies,
            self.positions,
            self.bytes,
            self.packed,
        ];
        for (slot, number) in header[4..24].chunks_exact_mut(4).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        header[32..].copy_from_slice(&self.digest);
        header
    }

    fn parse(header: &[u8; CHUNK_HEADER], offset: u64) -> Option<ChunkInfo> {
        let number = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let mut digest = [0; 32];
        digest.copy_from_slice(&header[32..]);
        let info = ChunkInfo {
            games: number(4),
            plies: number(8),
            positions: number(12),
            offset,
            bytes: number(16),
            packed: number(20),
            digest,
        };
        (header[..4] == CHUNK_MAGIC && info.bytes <= MAX_BYTES).then_some(info)
    }

    fn end(&self) -> u64 {
        self.offset + CHUNK_HEADER as u64 + u64::from(self.packed)
    }

    fn digest_of(&self, packed: &[u8]) -> [u8; 32] {
        let mut sha = Sha256::new();
        sha.update(&self.header()[..32]);
        sha.update(packed);
        sha.finalize().into()
    }
}

/// A file of games, read chunk by chunk in any order and from any thread.
#[derive(Clone, Debug)]
pub struct ChunkFile {
    path: PathBuf,
    chunks: Vec<ChunkInfo>,
}

impl ChunkFile {
    /// Reads the headers of all chunks.
    ///
    /// # Errors
    /// A file that is none of ours, of another version, or cut off.
    pub fn open(path: impl AsRef<Path>) -> Result<ChunkFile, TrainError> {
        let (file, damage) = ChunkFile::scan(path.as_ref())?;
        match damage {
            Some(damage) => Err(damage),
            None => Ok(file),
        }
    }

    /// The whole chunks at the beginning of a file, and what is wrong behind them.
    fn scan(path: &Path) -> Result<(ChunkFile, Option<TrainError>), TrainError> {
        let read = |source| TrainError::io("read", path, source);
        let file = File::open(path).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        // Headers are a few KiB apart.
        let mut file = BufReader::with_capacity(CHUNK_HEADER, file);
        let mut found = ChunkFile {
            path: path.to_owned(),
            chunks: Vec::new(),
        };
        let mut start = [0; FILE_HEADER as usize];
        let length = read_most(&mut file, &mut start).map_err(read)?;
        if length < start.len() || start[..8] != MAGIC {
            let why = "not a file of training games: expected it to begin with \"SIMURGH\\x1a\"";
            return Err(found.damaged(0, why.to_owned()));
        }
        let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        if version != VERSION {
            let why = format!("version {version} of the format, expected {VERSION}");
            return Err(found.damaged(8, why));
        }
        let mut offset = FILE_HEADER;
        while offset < size {
            let mut header = [0; CHUNK_HEADER];
            let whole = read_most(&mut file, &mut header).map_err(read)? == header.len();
            let left = size - offset;
            let Some(info) = ChunkInfo::parse(&header, offset).filter(|_| whole) else {
                let why = match whole {
                    true => "expected a chunk header".to_owned(),
                    false => format!("cut off: {left} bytes, a chunk header has {CHUNK_HEADER}"),
                };
                let damage = found.damaged(offset, why);
                return Ok((found, Some(damage)));
            };
            if info.end() > size {
                let why = format!(
                    "cut off: a chunk of {} bytes in the last {left} bytes, after {} whole chunks",
                    info.end() - offset,
                    found.chunks.len()
                );
                let damage = found.damaged(offset, why);
                return Ok((found, Some(damage)));
            }
            offset = info.end();
            file.seek(SeekFrom::Start(offset)).map_err(read)?;
            found.chunks.push(info);
        }
        Ok((found, None))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its chunks in file order.
    pub fn chunks(&self) -> &[ChunkInfo] {
        &self.chunks
    }

    /// Games in all chunks.
    pub fn games(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.games)).sum()
    }

    /// Labelled positions in all chunks.
    pub fn positions(&self) -> u64 {
        let positions = self.chunks.iter().map(|chunk| chunk.positions);
        positions.map(u64::from).sum()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.chunks.last().map_or(FILE_HEADER, ChunkInfo::end)
    }

    /// SHA-256 over the checksums of all chunks, in hex: names the data without reading it again.
    pub fn data_hash(&self) -> String {
        let mut sha = Sha256::new();
        for chunk in &self.chunks {
            sha.update(chunk.digest);
        }
        let digest = sha.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The games of chunk `index`.
    ///
    /// # Errors
    /// A chunk that is not there, cannot be read, or does not agree with its checksum.
    pub fn read(&self, index: usize) -> Result<Vec<GameRecord>, TrainError> {
        let Some(info) = self.chunks.get(index) else {
            let count = self.chunks.len();
            let why = format!("no chunk {index}, expected one below {count}");
            return Err(self.damaged(self.bytes(), why));
        };
        let packed = self.packed(info);
        let packed = packed.map_err(|source| TrainError::io("read", &self.path, source))?;
        let damaged = |why| self.damaged(info.offset, why);
        if info.digest_of(&packed) != info.digest {
            return Err(damaged("the chunk does not agree with its checksum".into()));
        }
        let bytes = zstd::bulk::decompress(&packed, info.bytes as usize)
            .map_err(|error| damaged(format!("the chunk cannot be unpacked: {error}")))?;
        codec::decode(&bytes, info.games).map_err(damaged)
    }

    /// The games of chunk `index` with their positions.
    ///
    /// # Errors
    /// As [`ChunkFile::read`].
    pub fn load(&self, index: usize) -> Result<Vec<Arc<TrainingGame>>, TrainError> {
        let games = self.read(index)?.into_iter();
        Ok(games
            .map(|game| Arc::new(TrainingGame::new(game)))
            .collect())
    }

    fn packed(&self, info: &ChunkInfo) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(info.offset + CHUNK_HEADER as u64))?;
        // The scan has seen that the file is long enough.
        let mut packed = vec![0; info.packed as usize];
        file.read_exact(&mut packed)?;
        Ok(packed)
    }

    fn damaged(&self, offset: u64, why: String) -> TrainError {
        TrainError::Chunk {
            path: self.path.clone(),
            offset,
            why,
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn read_most(file: &mut impl Read, mut out: &mut [u8]) -> io::Result<usize> {
    let wanted = out.len();
    while !out.is_empty() {
        match file.read(out)? {
            0 => break,
            length => out = &mut out[length..],
        }
    }
    Ok(wanted - out.len())
}

/// Writes a file of games. Games that are not yet in a chunk are lost unless [`ChunkWriter::finish`]
/// or [`ChunkWriter::flush`] is called.
#[derive(Debug)]
pub struct ChunkWriter {
    /// The name the file shall have.
    path: PathBuf,
    /// The name it has while it is written, if that is another.
    partial: Option<PathBuf>,
    file: File,
    pending: Vec<GameRecord>,
    pending_plies: usize,
    games: u64,
    positions: u64,
    bytes: u64,
}

impl ChunkWriter {
    /// A file that takes its name, from another file if need be, only when it is finished.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: impl Into<PathBuf>) -> Result<ChunkWriter, TrainError> {
        let path = path.into();
        let mut partial = OsString::from(&path);
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|e| TrainError::io("write", &partial, e))?;
        let mut writer = ChunkWriter::over(path, file, &[]);
        writer.partial = Some(partial);
        writer.begin()?;
        Ok(writer)
    }

    /// A file that grows, chunk by chunk; it is made if it is not there. An unfinished chunk at its end
    /// is cut off. Also returns what the file holds.
    ///
    /// # Errors
    /// A file that is none of ours, or cannot be written.
    pub fn append(path: impl Into<PathBuf>) -> Result<(ChunkWriter, ChunkFile), TrainError> {
        let path = path.into();
        let mut known = ChunkFile {
            path: path.clone(),
            chunks: Vec::new(),
        };
        let is_empty = fs::metadata(&path).map_or(true, |data| data.len() == 0);
        if !is_empty {
            let (found, damage) = ChunkFile::scan(&path)?;
            if let Some(damage) = damage {
                log::warn!("{damage}; what stands there is cut off");
            }
            known = found;
        }
        let open = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let write = |source| TrainError::io("write", &path, source);
        let mut file = open.map_err(write)?;
        if is_empty {
            let mut writer = ChunkWriter::over(path, file, &[]);
            writer.begin()?;
            return Ok((writer, known));
        }
        file.set_len(known.bytes()).map_err(write)?;
        file.seek(SeekFrom::End(0)).map_err(write)?;
        Ok((ChunkWriter::over(path, file, &known.chunks), known))
    }

    fn over(path: PathBuf, file: File, chunks: &[ChunkInfo]) -> ChunkWriter {
        ChunkWriter {
            path,
            partial: None,
            file,
            pending: Vec::new(),
            pending_plies: 0,
            games: chunks.iter().map(|chunk| u64::from(chunk.games)).sum(),
            positions: chunks.iter().map(|chunk| u64::from(chunk.positions)).sum(),
            bytes: chunks.last().map_or(FILE_HEADER, ChunkInfo::end),
        }
    }

    fn begin(&mut self) -> Result<(), TrainError> {
        let mut start = MAGIC.to_vec();
        start.extend(VERSION.to_le_bytes());
        let written = self.file.write_all(&start);
        written.map_err(|source| self.failed(source))
    }

    /// Games written or waiting, those of a file that grows included.
    pub fn games(&self) -> u64 {
        self.games
    }

    /// Labelled positions written or waiting, those of a file that grows included.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a game.
    ///
    /// # Errors
    /// A game whose moves do not fit its positions, or a file that cannot be written.
    pub fn push(&mut self, game: GameRecord) -> Result<(), TrainError> {
        game.check()?;
        self.games += 1;
        self.positions += game.labelled() as u64;
        self.pending_plies += game.plies.len();
        self.pending.push(game);
        // Games without plies do not gather without end either.
        if self.pending_plies >= CHUNK_PLIES || self.pending.len() >= CHUNK_PLIES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the games that wait as a chunk of its own and makes sure that they are on the disk.
    ///
    /// # Errors
    /// When they cannot be written, or one game is beyond all bounds.
    pub fn flush(&mut self) -> Result<(), TrainError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let block = codec::encode(&self.pending);
        let packed = zstd::bulk::compress(&block, LEVEL);
        let packed = packed.map_err(|source| self.failed(source))?;
        let sizes = [block.len(), packed.len()].map(u32::try_from);
        let (Ok(bytes @ 0..=MAX_BYTES), Ok(packed_bytes)) = (sizes[0], sizes[1]) else {
            return Err(TrainError::Chunk {
                path: self.path.clone(),
                offset: self.bytes,
                why: format!("a chunk of {} bytes, expected {MAX_BYTES}", block.len()),
            });
        };
        let labelled: usize = self.pending.iter().map(GameRecord::labelled).sum();
        let mut info = ChunkInfo {
            games: self.pending.len() as u32,
            plies: self.pending_plies as u32,
            positions: labelled as u32,
            offset: self.bytes,
            bytes,
            packed: packed_bytes,
            digest: [0; 32],
        };
        info.digest = info.digest_of(&packed);
        let mut chunk = info.header().to_vec();
        chunk.extend(packed);
        let written = self
            .file
            .write_all(&chunk)
            .and_then(|()| self.file.sync_data());
        written.map_err(|source| self.failed(source))?;
        self.bytes = info.end();
        self.pending.clear();
        self.pending_plies = 0;
        Ok(())
    }

    /// Writes what waits and gives the file its name. Returns its size in bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<u64, TrainError> {
        self.flush()?;
        if let Some(partial) = self.partial.take() {
            let renamed = self
                .file
                .sync_all()
                .and_then(|()| fs::rename(&partial, &self.path));
            renamed.map_err(|source| self.failed(source))?;
        }
        Ok(self.bytes)
    }

    fn failed(&self, source: io::Error) -> TrainError {
        TrainError::io("write", self.partial.as_ref().unwrap_or(&self.path), source)
    }
}

impl Drop for ChunkWriter {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Half a file helps nobody; where it cannot be removed it is overwritten the next time.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::codec::tests::random_games;

    /// A path of its own for each test; removed with what is in it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = format!("simurgh-chunk-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("games.chunks")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn all(file: &ChunkFile) -> Vec<GameRecord> {
        let chunks = 0..file.chunks().len();
        chunks.flat_map(|index| file.read(index).unwrap()).collect()
    }

    /// A file of three chunks.
    fn write(path: &Path, games: &[GameRecord]) -> u64 {
        let mut writer = ChunkWriter::create(path).unwrap();
        for part in games.chunks(games.len().div_ceil(3)) {
            for game in part {
                writer.push(game.clone()).unwrap();
            }
            writer.flush().unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn files_come_back_and_take_their_name_at_the_end() {
        let scratch = Scratch::new("whole");
        let games = random_games();
        let writer = ChunkWriter::create(scratch.file()).unwrap();
        assert!(!scratch.file().exists());
        drop(writer);
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);

        let bytes = write(&scratch.file(), &games);
        assert_eq!(fs::metadata(scratch.file()).unwrap().len(), bytes);
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
        let file = ChunkFile::open(scratch.file()).unwrap();
        assert_eq!((file.chunks().len(), file.bytes()), (3, bytes));
        assert_eq!(file.games(), games.len() as u64);
        let labelled: usize = games.iter().map(GameRecord::labelled).sum();
        assert_eq!(file.positions(), labelled as u64);
        assert_eq!(all(&file), games);
        let last = file.load(2).unwrap();
        assert_eq!(last.last().map(|game| game.record()), games.last());
        assert!(file.read(3).unwrap_err().to_string().contains("no chunk 3"));
    }

    #[test]
    fn cut_files_are_refused_and_go_on_after_their_last_whole_chunk() {
        let scratch = Scratch::new("cut");
        let games = random_games();
        let bytes = write(&scratch.file(), &games);
        let whole = ChunkFile::open(scratch.file()).unwrap();
        let first_two = whole.chunks()[1].end();
        for cut in [first_two + 1, first_two + 64, bytes - 1] {
            let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
            file.set_len(cut).unwrap();
            let error = ChunkFile::open(scratch.file()).unwrap_err().to_string();
            assert!(error.contains("cut off"), "{error}");
            let (mut writer, known) = ChunkWriter::append(scratch.file()).unwrap();
            assert_eq!((known.chunks().len(), writer.bytes()), (2, first_two));
            let missing = &games[known.games() as usize..];
            for game in missing {
                writer.push(game.clone()).unwrap();
            }
            assert_eq!(writer.finish().unwrap(), bytes);
            let again = ChunkFile::open(scratch.file()).unwrap();
            assert_eq!(again.data_hash(), whole.data_hash());
            assert_eq!(all(&again), games);
        }
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let scratch = Scratch::new("flipped");
        write(&scratch.file(), &random_games()[..6]);
        let good = fs::read(scratch.file()).unwrap();
        for at in (0..100).chain((100..good.len()).step_by(37)) {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            fs::write(scratch.file(), &bad).unwrap();
            let read = ChunkFile::open(scratch.file()).and_then(|file| {
                (0..file.chunks().len()).try_for_each(|index| file.read(index).map(drop))
            });
            // Bytes 24 to 31 of a header are never read.
            let unused = (FILE_HEADER as usize + 24..FILE_HEADER as usize + 32).contains(&at);
            assert_eq!(read.is_ok(), unused, "byte {at}");
        }
    }

    #[test]
    fn other_files_are_refused_by_name_and_kept() {
        let scratch = Scratch::new("other");
        for (text, expected) in [
            (
                &b"PK\x03\x04 something else"[..],
                "not a file of training games",
            ),
            (b"SIM", "not a file of training games"),
            (
                b"SIMURGH\x1a\x02\0\0\0",
                "version 2 of the format, expected 1",
            ),
        ] {
            fs::write(scratch.file(), text).unwrap();
            let error = ChunkFile::open(scratch.file()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(ChunkWriter::append(scratch.file()).is_err());
            assert_eq!(fs::read(scratch.file()).unwrap(), text);
        }
        let missing = ChunkFile::open("/no/such/file").unwrap_err().to_string();
        assert!(
            missing.starts_with("cannot read /no/such/file: "),
            "{missing}"
        );
    }
}
