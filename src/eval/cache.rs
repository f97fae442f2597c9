//! Evaluations by position key: bounded, oldest out first. Knows neither tree nor network.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use half::f16;
use parking_lot::Mutex;

use super::{Evaluation, Policy, Wdl};

const SHARDS: usize = 64;

/// Bytes of an entry apart from its policy: map slot, queue slot, heap header.
const ENTRY_BYTES: usize = 88;

/// What an evaluation depends on, hashed. Two leaves with the same key share an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheKey(u64);

impl CacheKey {
    /// `key` is the position's; `earlier` are the keys of the positions before it that must agree,
    /// newest first. Rule 50 counts from 60 plies on, in steps of 8.
    pub fn new(
        key: u64,
        repetitions: u8,
        rule50: u32,
        earlier: impl Iterator<Item = u64>,
    ) -> CacheKey {
        let step = match rule50 {
            0..60 => 0,
            _ => u64::from(rule50 - 60) / 8 + 1,
        };
        let mut hash = key ^ (u64::from(repetitions.min(2)) | step << 2).wrapping_mul(MULTIPLIER);
        for past in earlier {
            hash = hash.rotate_left(17).wrapping_mul(MULTIPLIER) ^ past;
        }
        CacheKey(hash)
    }
}

/// An odd number without pattern (from the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keys are hashes: no second hashing.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(MULTIPLIER);
    }
}

/// Policy in half precision, values in single precision.
struct Entry {
    wdl: Wdl,
    moves_left: Option<f32>,
    policy: Box<[f16]>,
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + 2 * self.policy.len()
    }
}

#[derive(Default)]
struct Shard {
    entries: HashMap<u64, Entry, BuildHasherDefault<Identity>>,
    /// Keys, oldest first.
    order: VecDeque<u64>,
    bytes: usize,
}

/// Evaluations of positions seen before. All methods may be called from any thread.
pub struct EvalCache {
    shards: Vec<Mutex<Shard>>,
    max_entries: usize,
    max_bytes: usize,
    entries: AtomicUsize,
    bytes: AtomicUsize,
    hits: AtomicU64,
}

impl EvalCache {
    /// At most `max_bytes` bytes and, unless 0, at most `max_entries` evaluations.
    pub fn new(max_bytes: usize, max_entries: usize) -> EvalCache {
        EvalCache {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            max_entries: match max_entries {
                0 => usize::MAX,
                n => n,
            },
            max_bytes,
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
        }
    }

    /// The evaluation under `key`, if one with as many moves is there.
    pub fn get(&self, key: CacheKey, moves: usize) -> Option<Evaluation> {
        let shard = self.shard(key).lock();
        let entry = shard.entries.get(&key.0)?;
        if entry.policy.len() != moves {
            return None;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(Evaluation {
            wdl: entry.wdl,
            policy: Policy(entry.policy.iter().map(|p| p.to_f32()).collect()),
            moves_left: entry.moves_left,
        })
    }

    /// Keeps an evaluation; the oldest ones make room.
    pub fn insert(&self, key: CacheKey, evaluation: &Evaluation) {
        let entry = Entry {
            wdl: evaluation.wdl,
            moves_left: evaluation.moves_left,
            policy: evaluation
                .policy
                .0
                .iter()
                .map(|&p| f16::from_f32(p))
                .collect(),
        };
        let added = entry.bytes();
        let shard_bytes = self.max_bytes / SHARDS;
        let shard_entries = self.max_entries.div_ceil(SHARDS);
        if added > shard_bytes {
            return;
        }
        let mut shard = self.shard(key).lock();
        if shard.entries.contains_key(&key.0) {
            return;
        }
        while shard.bytes + added > shard_bytes || shard.entries.len() >= shard_entries {
            let Some(oldest) = shard.order.pop_front() else {
                break;
            };
            if let Some(gone) = shard.entries.remove(&oldest) {
                shard.bytes -= gone.bytes();
                self.bytes.fetch_sub(gone.bytes(), Ordering::Relaxed);
                self.entries.fetch_sub(1, Ordering::Relaxed);
            }
        }
        shard.entries.insert(key.0, entry);
        shard.order.push_back(key.0);
        shard.bytes += added;
        self.bytes.fetch_add(added, Ordering::Relaxed);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            self.entries
                .fetch_sub(shard.entries.len(), Ordering::Relaxed);
            self.bytes.fetch_sub(shard.bytes, Ordering::Relaxed);
            *shard = Shard::default();
        }
    }

    /// Evaluations kept.
    pub fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// True when nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in use, as accounted for.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often a lookup found something.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Fill in per mille: of the bytes or of the entries, whichever is fuller.
    pub fn hashfull(&self) -> u32 {
        let share = |used: usize, max: usize| match max {
            0 => 1000,
            _ => (used as u128 * 1000 / max as u128) as u32,
        };
        share(self.bytes(), self.max_bytes)
            .max(share(self.len(), self.max_entries))
            .min(1000)
    }

    fn shard(&self, key: CacheKey) -> &Mutex<Shard> {
        &self.shards[(key.0 >> 58) as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(moves: usize) -> Evaluation {
        Evaluation {
            wdl: Wdl::from_q_d(0.25, 0.5),
            policy: Policy::uniform(moves),
            moves_left: Some(40.0),
        }
    }

    fn key(n: u64) -> CacheKey {
        CacheKey::new(n.wrapping_mul(MULTIPLIER), 0, 0, std::iter::empty())
    }

    #[test]
    fn stays_within_bytes_and_entries_and_drops_the_oldest() {
        let cache = EvalCache::new(256 << 10, 0);
        for n in 0..100_000 {
            cache.insert(key(n), &evaluation(30));
            assert!(cache.bytes() <= 256 << 10);
        }
        assert!(cache.hashfull() > 900);
        assert!(cache.get(key(99_999), 30).is_some());
        assert!(cache.get(key(0), 30).is_none());
        let few = EvalCache::new(1 << 30, 640);
        for n in 0..10_000 {
            few.insert(key(n), &evaluation(5));
        }
        assert!(few.len() <= 640);
        few.clear();
        assert_eq!((few.len(), few.bytes(), few.hashfull()), (0, 0, 0));
    }

    #[test]
    fn answers_only_for_the_same_number_of_moves() {
        let cache = EvalCache::new(1 << 20, 0);
        cache.insert(key(1), &evaluation(20));
        assert!(cache.get(key(1), 21).is_none());
        let found = cache.get(key(1), 20).unwrap();
        assert_eq!((found.wdl.q(), found.moves_left), (0.25, Some(40.0)));
        assert!((found.policy.0[0] - 0.05).abs() < 1e-4);
    }

    #[test]
    fn repetitions_a_high_rule_50_and_asked_for_history_tell_positions_apart() {
        let plain = CacheKey::new(7, 0, 10, std::iter::empty());
        assert_eq!(plain, CacheKey::new(7, 0, 59, std::iter::empty()));
        assert_ne!(plain, CacheKey::new(7, 0, 60, std::iter::empty()));
        assert_ne!(plain, CacheKey::new(7, 1, 10, std::iter::empty()));
        assert_ne!(
            CacheKey::new(7, 0, 0, [1].into_iter()),
            CacheKey::new(7, 0, 0, [2].into_iter())
        );
    }
}
