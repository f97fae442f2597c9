//! Memory of the tree: nodes and blocks of edges in large chunks, addressed by numbers. Knows how
//! to hand out and take back, not what is stored.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use parking_lot::Mutex;

use super::node::{BlockId, Edge, Node, NodeId};

/// Nodes in a chunk (2.5 MiB).
const NODES: usize = 1 << 16;
/// Edges in a chunk (1 MiB).
const EDGES: usize = 1 << 17;
/// Edges are handed out in multiples of this.
const GRANULE: usize = 2;
const GRANULES: usize = EDGES / GRANULE;
/// Blocks have 1 to 128 granules: up to 256 edges.
const CLASSES: usize = 129;
/// Granules a worker takes for itself at a time (64 KiB).
const RUN: u32 = 4096;
/// Nodes a worker takes for itself at a time.
const NODE_RUN: u32 = 256;
/// Numbers moved at a time from the shared free lists to a worker.
const REFILL: usize = 256;

type NodeChunk = OnceLock<Box<[Node]>>;
type EdgeChunk = OnceLock<Box<[Edge]>>;

/// Nodes and edges of one tree, shared by all workers.
pub struct Pool {
    nodes: Box<[NodeChunk]>,
    edges: Box<[EdgeChunk]>,
    next_node: AtomicU32,
    next_run: AtomicU32,
    free: Mutex<FreeLists>,
    /// Grows whenever the free lists do: spares looking again where nothing was found.
    generation: AtomicU32,
    live_nodes: AtomicI64,
    live_granules: AtomicI64,
    /// Threads that still have something to take back.
    freeing: AtomicU32,
}

/// Whether a tree may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It may.
    Left,
    /// Not yet: something is still being taken back.
    Later,
    /// Never in this search.
    None,
}

struct FreeLists {
    nodes: Vec<u32>,
    blocks: Vec<Vec<u32>>,
}

impl Default for FreeLists {
    fn default() -> FreeLists {
        FreeLists {
            nodes: Vec::new(),
            blocks: vec![Vec::new(); CLASSES],
        }
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            nodes: (0..(1_usize << 32) / NODES)
                .map(|_| OnceLock::new())
                .collect(),
            edges: (0..(1_usize << 32) / GRANULES)
                .map(|_| OnceLock::new())
                .collect(),
            // Node 0 means none.
            next_node: AtomicU32::new(NODE_RUN),
            next_run: AtomicU32::new(0),
            free: Mutex::default(),
            generation: AtomicU32::new(0),
            live_nodes: AtomicI64::new(0),
            live_granules: AtomicI64::new(0),
            freeing: AtomicU32::new(0),
        }
    }
}

fn classes_of(edges: usize) -> usize {
    edges.div_ceil(GRANULE).max(1)
}

impl Pool {
    /// Bytes a tree can fill before its numbers run out, with a reserve for what workers hold.
    pub const MOST_BYTES: u64 = 60 << 30;

    /// A node that was handed out.
    pub fn node(&self, id: NodeId) -> &Node {
        let index = id.0 as usize;
        let chunk = self.nodes[index / NODES].get_or_init(|| fresh_chunk(NODES));
        &chunk[index % NODES]
    }

    /// A block of edges that was handed out.
    pub fn edges(&self, block: BlockId, count: usize) -> &[Edge] {
        let granule = block.0 as usize;
        let chunk = self.edges[granule / GRANULES].get_or_init(|| fresh_chunk(EDGES));
        let start = granule % GRANULES * GRANULE;
        &chunk[start..start + count]
    }

    /// Edges of an expanded node.
    pub fn edges_of(&self, node: &Node) -> &[Edge] {
        self.edges(node.block(), node.meta().edges())
    }

    /// Nodes in use.
    pub fn live_nodes(&self) -> u64 {
        self.live_nodes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes in use by nodes and edges. What workers hold in reserve is not counted.
    pub fn live_bytes(&self) -> u64 {
        let granules = self.live_granules.load(Ordering::Relaxed).max(0) as u64;
        self.live_nodes() * size_of::<Node>() as u64
            + granules * (GRANULE * size_of::<Edge>()) as u64
    }

    /// Someone is about to take back what has fallen away.
    pub fn begin_freeing(&self) {
        self.freeing.fetch_add(1, Ordering::Relaxed);
    }

    /// All of it was taken back.
    pub fn end_freeing(&self) {
        self.freeing.fetch_sub(1, Ordering::Release);
    }

    /// How the tree stands to a limit of so many bytes.
    pub fn room(&self, max_bytes: u64) -> Room {
        // In this order: what was freed before the last one ended is no longer counted as live.
        let freeing = self.freeing.load(Ordering::Acquire) > 0;
        match (self.live_bytes() >= max_bytes, freeing) {
            (false, _) => Room::Left,
            (true, true) => Room::Later,
            (true, false) => Room::None,
        }
    }

    /// Takes back nodes and blocks (with their number of edges). Nobody may look at them any more.
    pub fn take_back(&self, nodes: &mut Vec<NodeId>, blocks: &mut Vec<(BlockId, usize)>) {
        let mut granules = 0;
        let mut free = self.free.lock();
        for (block, edges) in blocks.iter() {
            let class = classes_of(*edges);
            granules += class as i64;
            free.blocks[class].push(block.0);
        }
        for id in nodes.iter() {
            self.node(*id).reset();
            free.nodes.push(id.0);
        }
        drop(free);
        self.live_nodes
            .fetch_sub(nodes.len() as i64, Ordering::Relaxed);
        self.live_granules.fetch_sub(granules, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
        nodes.clear();
        blocks.clear();
    }
}

fn fresh_chunk<T: Default>(length: usize) -> Box<[T]> {
    (0..length).map(|_| T::default()).collect()
}

/// One worker's reserve of numbers: handing out touches nothing shared most of the time.
pub struct Allocator<'a> {
    pool: &'a Pool,
    /// Unused numbers: `nodes.0..nodes.1`.
    nodes: (u32, u32),
    /// Unused granules: `granules.0..granules.1`.
    granules: (u32, u32),
    spare: FreeLists,
    /// Generation of the pool when its free list of a class (0: of nodes) was last found empty.
    found_empty: [u32; CLASSES],
    live_nodes: i64,
    live_granules: i64,
}

impl<'a> Allocator<'a> {
    /// An allocator without a reserve.
    pub fn new(pool: &'a Pool) -> Allocator<'a> {
        Allocator {
            pool,
            nodes: (0, 0),
            granules: (0, 0),
            spare: FreeLists::default(),
            found_empty: [0; CLASSES],
            live_nodes: 0,
            live_granules: 0,
        }
    }

    /// A fresh node.
    pub fn node(&mut self) -> NodeId {
        self.live_nodes += 1;
        if let Some(id) = self.spare.nodes.pop() {
            return NodeId(id);
        }
        if self.nodes.0 == self.nodes.1 {
            if let Some(id) = self.refill(0, |lists| &mut lists.nodes) {
                return NodeId(id);
            }
            let first = self.pool.next_node.fetch_add(NODE_RUN, Ordering::Relaxed);
            self.nodes = (first, first + NODE_RUN);
        }
        let id = self.nodes.0;
        self.nodes.0 += 1;
        NodeId(id)
    }

    /// Gives back a node that was handed out and never shown to anyone.
    pub fn unused(&mut self, id: NodeId) {
        self.live_nodes -= 1;
        self.spare.nodes.push(id.0);
    }

    /// A block for so many edges, at most 256.
    pub fn block(&mut self, edges: usize) -> BlockId {
        let class = classes_of(edges).min(CLASSES - 1);
        self.live_granules += class as i64;
        if let Some(id) = self.spare.blocks[class].pop() {
            return BlockId(id);
        }
        if let Some(id) = self.refill(class, |lists| &mut lists.blocks[class]) {
            return BlockId(id);
        }
        if self.granules.1 - self.granules.0 < class as u32 {
            let rest = (self.granules.1 - self.granules.0) as usize;
            if rest > 0 {
                self.spare.blocks[rest].push(self.granules.0);
            }
            let run = self.pool.next_run.fetch_add(1, Ordering::Relaxed);
            self.granules = (run * RUN, (run + 1) * RUN);
        }
        let id = self.granules.0;
        self.granules.0 += class as u32;
        BlockId(id)
    }

    fn refill(
        &mut self,
        class: usize,
        list: impl Fn(&mut FreeLists) -> &mut Vec<u32>,
    ) -> Option<u32> {
        let generation = self.pool.generation.load(Ordering::Acquire);
        if generation == self.found_empty[class] {
            return None;
        }
        let mut free = self.pool.free.lock();
        let shared = list(&mut free);
        let taken = shared.split_off(shared.len() - shared.len().min(REFILL));
        drop(free);
        if taken.is_empty() {
            self.found_empty[class] = generation;
        }
        let own = list(&mut self.spare);
        own.extend(taken);
        own.pop()
    }

    /// Makes the pool's counts exact as far as this worker is concerned.
    pub fn flush(&mut self) {
        let nodes = std::mem::take(&mut self.live_nodes);
        let granules = std::mem::take(&mut self.live_granules);
        self.pool.live_nodes.fetch_add(nodes, Ordering::Relaxed);
        self.pool
            .live_granules
            .fetch_add(granules, Ordering::Relaxed);
    }
}

/// The reserve goes back to the pool.
impl Drop for Allocator<'_> {
    fn drop(&mut self) {
        self.flush();
        let mut free = self.pool.free.lock();
        free.nodes.extend(self.nodes.0..self.nodes.1);
        free.nodes.append(&mut self.spare.nodes);
        let mut at = self.granules.0;
        while at < self.granules.1 {
            // Twenty granules (40 edges) suit most positions.
            let size = (self.granules.1 - at).min(20);
            free.blocks[size as usize].push(at);
            at += size;
        }
        for (class, blocks) in self.spare.blocks.iter_mut().enumerate() {
            free.blocks[class].append(blocks);
        }
        drop(free);
        self.pool.generation.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_come_back() {
        let pool = Pool::default();
        let mut allocator = Allocator::new(&pool);
        let mut nodes: Vec<NodeId> = (0..1000).map(|_| allocator.node()).collect();
        let mut blocks: Vec<(BlockId, usize)> = (0..1000)
            .map(|i| (allocator.block(i % 218 + 1), i % 218 + 1))
            .collect();
        let mut granules: Vec<u32> = blocks
            .iter()
            .flat_map(|(b, n)| b.0..b.0 + classes_of(*n) as u32)
            .collect();
        granules.sort_unstable();
        assert!(granules.windows(2).all(|pair| pair[0] < pair[1]));
        let mut seen: Vec<u32> = nodes.iter().map(|n| n.0).collect();
        seen.dedup();
        assert_eq!(seen.len(), 1000);
        assert!(!seen.contains(&0));
        allocator.flush();
        assert_eq!(pool.live_nodes(), 1000);
        pool.take_back(&mut nodes, &mut blocks);
        assert_eq!((pool.live_nodes(), pool.live_bytes()), (0, 0));
        assert!((0..2000).any(|_| seen.contains(&allocator.node().0)));
    }
}
