//! Nodes and edges as they lie in memory: atomics only, so that workers share them without locks.
//! Knows no formulas and no allocation.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::chess::Move;

use super::values::{Sums, Value};

/// Number of a node in its pool; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// No node.
    pub const NONE: NodeId = NodeId(0);

    /// True for [`NodeId::NONE`].
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// Number of a block of edges in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId(pub u32);

/// How far a node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never evaluated, claimed by nobody.
    Unexpanded,
    /// A worker is evaluating it.
    Expanding,
    /// Evaluated; its edges are there.
    Expanded,
    /// The game ends here, or with the next move.
    Terminal,
    /// A second occurrence inside the tree, `plies` after the first: counts as a draw as long as
    /// the first lies in the tree.
    TwoFold,
}

/// Who says how the game ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The rules: the moves to the end are known.
    Rules,
    /// A tablebase: the result is known, not the way.
    Tablebase,
}

/// What is known about the result for the side to move, and the node's state, in one word.
///
/// Bits 0–7 number of edges, 8–10 state, 11–12 lower bound + 1, 13–14 1 − upper bound,
/// 15 tablebase, 16–31 plies. All zero is an unexpanded node of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta(u32);

impl Meta {
    /// Nothing known.
    pub fn unexpanded() -> Meta {
        Meta(0)
    }

    /// Evaluated, with so many edges.
    pub fn expanded(edges: usize) -> Meta {
        Meta(edges.min(255) as u32 | 2 << 8)
    }

    /// The end of the game: `result` is −1, 0 or 1 for the side to move.
    pub fn terminal(result: i32, source: Source) -> Meta {
        Meta(3 << 8).with_bounds(result, result, source, 0)
    }

    /// The side to move mates at once; the node needs no edges.
    pub fn mate_in_one() -> Meta {
        Meta(3 << 8).with_bounds(1, 1, Source::Rules, 1)
    }

    /// A repetition inside the tree with a cycle of so many plies.
    pub fn two_fold(cycle: u32) -> Meta {
        Meta(4 << 8 | cycle.min(0xffff) << 16)
    }

    /// The same with other bounds; `plies` is the distance to the end once they meet.
    pub fn with_bounds(self, lower: i32, upper: i32, source: Source, plies: u32) -> Meta {
        let tablebase = u32::from(source == Source::Tablebase);
        Meta(
            self.0 & 0x7ff
                | ((lower + 1) as u32 & 3) << 11
                | ((1 - upper) as u32 & 3) << 13
                | tablebase << 15
                | plies.min(0xffff) << 16,
        )
    }

    /// Number of edges.
    pub fn edges(self) -> usize {
        (self.0 & 0xff) as usize
    }

    /// The state.
    pub fn state(self) -> State {
        match self.0 >> 8 & 7 {
            0 => State::Unexpanded,
            1 => State::Expanding,
            2 => State::Expanded,
            3 => State::Terminal,
            _ => State::TwoFold,
        }
    }

    /// The worst result still possible: −1, 0 or 1.
    pub fn lower(self) -> i32 {
        (self.0 >> 11 & 3) as i32 - 1
    }

    /// The best result still possible: −1, 0 or 1.
    pub fn upper(self) -> i32 {
        1 - (self.0 >> 13 & 3) as i32
    }

    /// The result for the side to move, once it is certain.
    pub fn proven(self) -> Option<i32> {
        (self.lower() == self.upper()).then(|| self.lower())
    }

    /// Who says so.
    pub fn source(self) -> Source {
        match self.0 >> 15 & 1 {
            0 => Source::Rules,
            _ => Source::Tablebase,
        }
    }

    /// Plies to the proven end, or the cycle of a repetition.
    pub fn plies(self) -> u32 {
        self.0 >> 16
    }

    /// What a visit counts when the node needs no evaluation.
    pub fn certain_value(self) -> Option<Value> {
        match (self.state(), self.proven()) {
            (State::TwoFold, _) => Some(Value::certain(0, 0)),
            (_, Some(result)) => Some(Value::certain(result, self.plies())),
            _ => None,
        }
    }
}

/// Visits and sums of a position reached by one path. 40 bytes; what selection reads comes first.
#[derive(Default)]
#[repr(C)]
pub struct Node {
    visits: AtomicU32,
    inflight: AtomicU32,
    wl: AtomicI64,
    meta: AtomicU32,
    block: AtomicU32,
    d: AtomicI64,
    m: AtomicI64,
}

impl Node {
    /// Completed visits.
    pub fn visits(&self) -> u32 {
        self.visits.load(Ordering::Relaxed)
    }

    /// Visits on their way.
    pub fn inflight(&self) -> u32 {
        self.inflight.load(Ordering::Relaxed)
    }

    /// Marks visits as on their way.
    pub fn begin(&self, visits: u32) {
        self.inflight.fetch_add(visits, Ordering::Relaxed);
    }

    /// Visits are no longer on their way.
    pub fn end(&self, visits: u32) {
        self.inflight.fetch_sub(visits, Ordering::Relaxed);
    }

    /// Adds completed visits with their values.
    pub fn add(&self, sums: Sums) {
        self.wl.fetch_add(sums.wl, Ordering::Relaxed);
        if sums.d != 0 {
            self.d.fetch_add(sums.d, Ordering::Relaxed);
        }
        if sums.m != 0 {
            self.m.fetch_add(sums.m, Ordering::Relaxed);
        }
        self.visits.fetch_add(sums.visits, Ordering::Relaxed);
    }

    /// Takes back what was added.
    pub fn subtract(&self, sums: Sums) {
        self.visits.fetch_sub(sums.visits, Ordering::Relaxed);
        self.wl.fetch_sub(sums.wl, Ordering::Relaxed);
        self.d.fetch_sub(sums.d, Ordering::Relaxed);
        self.m.fetch_sub(sums.m, Ordering::Relaxed);
    }

    /// Visits and sums, from the side to move.
    pub fn sums(&self) -> Sums {
        Sums {
            visits: self.visits(),
            wl: self.wl.load(Ordering::Relaxed),
            d: self.d.load(Ordering::Relaxed),
            m: self.m.load(Ordering::Relaxed),
        }
    }

    /// Visits and the sum of W − L only.
    pub fn wl_sums(&self) -> Sums {
        Sums {
            visits: self.visits(),
            wl: self.wl.load(Ordering::Relaxed),
            ..Sums::default()
        }
    }

    /// State and bounds. Seeing [`State::Expanded`] makes the edges visible.
    pub fn meta(&self) -> Meta {
        Meta(self.meta.load(Ordering::Acquire))
    }

    /// Where the edges are, once expanded.
    pub fn block(&self) -> BlockId {
        BlockId(self.block.load(Ordering::Relaxed))
    }

    /// Claims an unexpanded node; true for exactly one caller.
    pub fn claim(&self) -> bool {
        self.meta
            .compare_exchange(0, 1 << 8, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives a claimed node back unexpanded.
    pub fn unclaim(&self) {
        self.meta.store(0, Ordering::Release);
    }

    /// The claimer's verdict: expanded (edges already written to `block`), terminal, repetition.
    pub fn settle(&self, meta: Meta, block: BlockId) {
        self.block.store(block.0, Ordering::Relaxed);
        self.meta.store(meta.0, Ordering::Release);
    }

    /// Replaces state and bounds if they are still as seen.
    pub fn exchange_meta(&self, seen: Meta, next: Meta) -> bool {
        self.meta
            .compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// As if it had never been used. Only while nobody else looks at the node.
    pub fn reset(&self) {
        self.visits.store(0, Ordering::Relaxed);
        self.inflight.store(0, Ordering::Relaxed);
        self.wl.store(0, Ordering::Relaxed);
        self.d.store(0, Ordering::Relaxed);
        self.m.store(0, Ordering::Relaxed);
        self.block.store(0, Ordering::Relaxed);
        self.meta.store(0, Ordering::Release);
    }
}

/// A probability in 16 bits: 5 of exponent, 11 of fraction, from 2⁻³¹ to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prior(u16);

/// Bits of 2⁻³¹ as an f32.
const PRIOR_BASE: u32 = 0x3000_0000;

impl Prior {
    /// The nearest representable prior; what is below 2⁻³¹ becomes that.
    pub fn new(p: f32) -> Prior {
        let bits = p.clamp(f32::from_bits(PRIOR_BASE), 1.0).to_bits();
        Prior(((bits - PRIOR_BASE + (1 << 11)) >> 12) as u16)
    }

    /// The probability.
    pub fn get(self) -> f32 {
        f32::from_bits((u32::from(self.0) << 12) + PRIOR_BASE)
    }

    /// The packed form; larger priors have larger bits.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The prior whose [`Prior::bits`] these are.
    pub fn from_bits(bits: u16) -> Prior {
        Prior(bits)
    }
}

/// A move with its prior and, once visited, its child. 8 bytes: child, prior, move.
#[derive(Default)]
pub struct Edge(AtomicU64);

/// An [`Edge`] as it was when it was read.
#[derive(Clone, Copy, Debug)]
pub struct EdgeView(u64);

impl Edge {
    /// Reads move, prior and child together.
    pub fn load(&self) -> EdgeView {
        EdgeView(self.0.load(Ordering::Acquire))
    }

    /// Writes a fresh edge. Only before its node is expanded.
    pub fn write(&self, m: Move, prior: Prior) {
        let packed = u64::from(prior.bits()) << 16 | u64::from(m.raw());
        self.0.store(packed, Ordering::Relaxed);
    }

    /// Hangs `child` below the edge, unless another one came first; the one that is there.
    pub fn set_child(&self, seen: EdgeView, child: NodeId) -> NodeId {
        let wanted = seen.0 & 0xffff_ffff | u64::from(child.0) << 32;
        match self
            .0
            .compare_exchange(seen.0, wanted, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => child,
            Err(now) => EdgeView(now).child(),
        }
    }
}

impl EdgeView {
    /// The move.
    pub fn mv(self) -> Move {
        Move::from_raw(self.0 as u16)
    }

    /// Its prior.
    pub fn prior(self) -> f32 {
        Prior::from_bits((self.0 >> 16) as u16).get()
    }

    /// The child, or none.
    pub fn child(self) -> NodeId {
        NodeId((self.0 >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_the_memory_figures_assume() {
        assert_eq!(std::mem::size_of::<Node>(), 40);
        assert_eq!(std::mem::size_of::<Edge>(), 8);
    }

    #[test]
    fn priors_keep_eleven_bits_and_their_order() {
        assert_eq!(Prior::new(1.0).get(), 1.0);
        assert!(Prior::new(0.0).get() < 1e-9);
        let mut last = Prior::new(0.0);
        for i in 1..=1000 {
            let p = i as f32 / 1000.0;
            let prior = Prior::new(p);
            assert!((prior.get() / p - 1.0).abs() < 1.0 / 2048.0);
            assert!(prior > last);
            last = prior;
        }
    }

    #[test]
    fn meta_keeps_its_parts_apart() {
        let meta = Meta::expanded(218);
        assert_eq!((meta.edges(), meta.lower(), meta.upper()), (218, -1, 1));
        let proven = meta.with_bounds(-1, -1, Source::Tablebase, 77);
        assert_eq!(proven.proven(), Some(-1));
        assert_eq!((proven.plies(), proven.edges()), (77, 218));
        assert_eq!(proven.source(), Source::Tablebase);
        assert_eq!(Meta::terminal(0, Source::Rules).proven(), Some(0));
        assert_eq!(Meta::two_fold(4).state(), State::TwoFold);
        assert_eq!(Meta::two_fold(4).proven(), None);
    }
}
