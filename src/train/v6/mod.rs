//! Lc0's training records, version 6: 8,356 bytes a position, gzipped, a file for each game. This file
//! knows their layout; what stands in them is [`export`]'s and [`import`]'s business.
//!
//! Layout after Lc0's `trainingdata.h`; all numbers little-endian, planes as the mover sees the board with
//! the bits of every byte reversed (a1 = 7), policy indices and planes on the turned board of the
//! canonical input formats.

mod export;
mod import;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

pub use import::V6Reader;

use super::TrainError;
use crate::encode::{InputFormat, POLICY_SIZE};

/// Bytes of a record.
pub const V6_BYTES: usize = 8356;
/// Planes of piece positions and repetitions, eight positions.
const V6_PLANES: usize = 104;
const VERSION: u32 = 6;

/// Bits of [`V6Record::invariance`]: the turn of a canonical board, and Black to move.
const MIRROR_FILES: u8 = 1;
const MIRROR_RANKS: u8 = 1 << 1;
const REFLECT: u8 = 1 << 2;
const BLACK: u8 = 1 << 7;

/// A value as a record gives it, from the side to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct V6Value {
    /// W − L in [−1, 1].
    pub q: f32,
    /// P(draw).
    pub d: f32,
    /// Plies until the game ends, as expected.
    pub m: f32,
}

impl V6Value {
    /// Not known.
    pub const NONE: V6Value = V6Value {
        q: f32::NAN,
        d: f32::NAN,
        m: f32::NAN,
    };
}

/// One position of a game.
#[derive(Clone, Debug, PartialEq)]
pub struct V6Record {
    /// How the planes are drawn.
    pub format: InputFormat,
    /// `[1858]`: probability of each move, −1 where it is not legal.
    pub probabilities: Vec<f32>,
    /// Piece and repetition planes, a1 = bit 0 (reversed on disk only).
    pub planes: [u64; V6_PLANES],
    /// Castling rights us O-O-O, us O-O, them O-O-O, them O-O: 1, or a bit for the rook's file.
    pub castling: [u8; 4],
    /// 1 for Black to move; in canonical formats a bit for the file of an en-passant capture.
    pub side_or_ep: u8,
    /// Plies since a capture or pawn move.
    pub rule50: u8,
    /// Turn of the board, remarks on the game, Black to move in canonical formats.
    pub invariance: u8,
    /// Value of the root.
    pub root: V6Value,
    /// Value of the best move.
    pub best: V6Value,
    /// Plies until the game ended.
    pub plies_left: f32,
    /// The result: W − L.
    pub result_q: f32,
    /// The result: 1 for a draw.
    pub result_d: f32,
    /// Value of the move played.
    pub played: V6Value,
    /// What the network said without a search.
    pub original: V6Value,
    /// Visits of the root, 0 where they are not known.
    pub visits: u32,
    /// Policy index of the move played.
    pub played_index: u16,
    /// Policy index of the best move.
    pub best_index: u16,
    /// Divergence of visits from the network's policy, in nats.
    pub policy_kld: f32,
}

impl V6Record {
    /// The record as it stands on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(V6_BYTES);
        out.extend(VERSION.to_le_bytes());
        out.extend((self.format.number() as u32).to_le_bytes());
        for p in &self.probabilities {
            out.extend(p.to_le_bytes());
        }
        for plane in self.planes {
            out.extend(reverse_bytes_bits(plane).to_le_bytes());
        }
        out.extend(self.castling);
        out.extend([self.side_or_ep, self.rule50, self.invariance, 0]);
        let (root, best) = (self.root, self.best);
        let (played, original) = (self.played, self.original);
        for number in [
            root.q,
            best.q,
            root.d,
            best.d,
            root.m,
            best.m,
            self.plies_left,
            self.result_q,
            self.result_d,
            played.q,
            played.d,
            played.m,
            original.q,
            original.d,
            original.m,
        ] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.visits.to_le_bytes());
        out.extend(self.played_index.to_le_bytes());
        out.extend(self.best_index.to_le_bytes());
        out.extend(self.policy_kld.to_le_bytes());
        out.extend([0; 4]);
        out
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Another version or an input format that does not exist; says what was found and expected.
    pub fn from_bytes(bytes: &[u8; V6_BYTES]) -> Result<V6Record, String> {
        let mut fields = Fields(bytes);
        let version = fields.u32();
        if version != VERSION {
            return Err(format!("version {version}, expected {VERSION}"));
        }
        let number = fields.u32();
        let format = i32::try_from(number)
            .ok()
            .and_then(InputFormat::from_number);
        let format = format.ok_or_else(|| {
            format!("input format {number}, expected one of 1, 2, 3, 4, 5, 132, 133")
        })?;
        let probabilities = (0..POLICY_SIZE).map(|_| fields.f32()).collect();
        let planes = std::array::from_fn(|_| reverse_bytes_bits(u64::from_le_bytes(fields.take())));
        let castling = fields.take();
        let [side_or_ep, rule50, invariance, _] = fields.take();
        let [root_q, best_q, root_d, best_d, root_m, best_m] =
            std::array::from_fn(|_| fields.f32());
        let [plies_left, result_q, result_d] = std::array::from_fn(|_| fields.f32());
        let mut value = || V6Value {
            q: fields.f32(),
            d: fields.f32(),
            m: fields.f32(),
        };
        let (played, original) = (value(), value());
        Ok(V6Record {
            format,
            probabilities,
            planes,
            castling,
            side_or_ep,
            rule50,
            invariance,
            root: V6Value {
                q: root_q,
                d: root_d,
                m: root_m,
            },
            best: V6Value {
                q: best_q,
                d: best_d,
                m: best_m,
            },
            plies_left,
            result_q,
            result_d,
            played,
            original,
            visits: fields.u32(),
            played_index: u16::from_le_bytes(fields.take()),
            best_index: u16::from_le_bytes(fields.take()),
            policy_kld: fields.f32(),
        })
    }
}

/// The bytes of a record from the front. Their number is that of the record, so none can be missing.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.take())
    }
}

/// Reverses the bits of each byte.
fn reverse_bytes_bits(plane: u64) -> u64 {
    plane.reverse_bits().swap_bytes()
}

/// Writes the records of a game as a gzipped file.
///
/// # Errors
/// When it cannot be written.
pub fn write_game(path: &Path, records: &[V6Record]) -> Result<(), TrainError> {
    let write = || -> io::Result<()> {
        let mut out = GzEncoder::new(File::create(path)?, Compression::default());
        for record in records {
            out.write_all(&record.to_bytes())?;
        }
        out.finish()?.sync_data()
    };
    write().map_err(|source| TrainError::io("write", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_where_the_format_says() {
        let mut probabilities = vec![-1.0; POLICY_SIZE];
        probabilities[1857] = 0.5;
        let value = |q| V6Value {
            q,
            d: q + 0.01,
            m: q + 0.02,
        };
        let mut planes = [0; V6_PLANES];
        planes[0] = 1 | 1 << 15;
        planes[103] = !0;
        let record = V6Record {
            format: InputFormat::CanonicalV2Armageddon,
            probabilities,
            planes,
            castling: [1, 2, 3, 4],
            side_or_ep: 5,
            rule50: 6,
            invariance: 7,
            root: value(0.1),
            best: value(0.2),
            plies_left: 33.0,
            result_q: -1.0,
            result_d: 0.25,
            played: value(0.3),
            original: value(0.4),
            visits: 800,
            played_index: 1000,
            best_index: 1857,
            policy_kld: 0.75,
        };
        let bytes = record.to_bytes();
        assert_eq!(bytes.len(), V6_BYTES);
        let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes[..8], [6, 0, 0, 0, 133, 0, 0, 0]);
        assert_eq!((float(8), float(8 + 4 * 1857)), (-1.0, 0.5));
        assert_eq!(bytes[7440..7442], [0x80, 0x01]);
        assert_eq!(
            bytes[8264..8280],
            [
                255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 0
            ]
        );
        let floats: Vec<f32> = (0..15).map(|i| float(8280 + 4 * i)).collect();
        let expected = [
            0.1, 0.2, 0.11, 0.21, 0.12, 0.22, 33.0, -1.0, 0.25, 0.3, 0.31, 0.32, 0.4, 0.41, 0.42,
        ];
        for (found, expected) in floats.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert_eq!(bytes[8340..8348], [0x20, 3, 0, 0, 0xe8, 3, 0x41, 7]);
        assert_eq!((float(8348), &bytes[8352..]), (0.75, &[0; 4][..]));
        let bytes: [u8; V6_BYTES] = bytes.try_into().unwrap();
        assert_eq!(V6Record::from_bytes(&bytes), Ok(record));
    }

    #[test]
    fn other_versions_and_formats_are_named() {
        let mut bytes = [0; V6_BYTES];
        bytes[0] = 5;
        let error = V6Record::from_bytes(&bytes).unwrap_err();
        assert_eq!(error, "version 5, expected 6");
        bytes[0] = 6;
        bytes[4] = 7;
        let error = V6Record::from_bytes(&bytes).unwrap_err();
        assert!(error.starts_with("input format 7, expected"), "{error}");
    }
}
