//! One tree and the game that leads to its root; re-rooting and freeing what falls away. Knows no
//! values and no search.

use std::sync::Arc;

use crate::chess::{Game, Move};

use super::node::{BlockId, NodeId, State};
use super::pool::{Allocator, Pool};

/// A tree below the current position of a game.
pub struct Tree {
    pool: Arc<Pool>,
    root: NodeId,
    game: Arc<Game>,
}

impl Tree {
    /// An empty tree.
    pub fn new(game: Arc<Game>) -> Tree {
        let pool = Arc::new(Pool::default());
        let root = Allocator::new(&pool).node();
        Tree { pool, root, game }
    }

    /// Where nodes and edges are.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The root.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The game whose current position is the root.
    pub fn game(&self) -> &Arc<Game> {
        &self.game
    }

    /// The tree for `game`: the part below its last moves where `self`'s game is a beginning of it,
    /// else an empty one. What falls away is freed in the background.
    pub fn advance(self, game: Arc<Game>) -> Tree {
        let kept = self.game.is_prefix_of(&game).then(|| {
            let line = &game.moves()[self.game.moves().len()..];
            line.iter().try_fold(self.root, |at, &m| self.child(at, m))
        });
        match kept.flatten() {
            Some(root) => {
                if root != self.root {
                    free_in_background(self.pool.clone(), self.root, root);
                }
                let tree = Tree {
                    pool: self.pool,
                    root,
                    game,
                };
                tree.revive_root();
                tree
            }
            None => {
                discard(self);
                Tree::new(game)
            }
        }
    }

    fn child(&self, at: NodeId, m: Move) -> Option<NodeId> {
        let node = self.pool.node(at);
        if node.meta().state() != State::Expanded {
            return None;
        }
        self.pool
            .edges_of(node)
            .iter()
            .map(|edge| edge.load())
            .find(|edge| edge.mv() == m)
            .map(|edge| edge.child())
            .filter(|child| !child.is_none())
    }

    /// A root is searched even if a draw can be claimed or a tablebase knows it.
    fn revive_root(&self) {
        let node = self.pool.node(self.root);
        if node.meta().state() != State::Expanded {
            node.reset();
        }
    }

    /// Walks the whole tree: nodes, visits in flight, and nodes claimed but not settled.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        let mut open = vec![self.root];
        while let Some(id) = open.pop() {
            let node = self.pool.node(id);
            census.nodes += 1;
            census.inflight += u64::from(node.inflight());
            match node.meta().state() {
                State::Expanding => census.claimed += 1,
                State::Expanded => {
                    census.expanded += 1;
                    let children = self.pool.edges_of(node).iter().map(|e| e.load().child());
                    open.extend(children.filter(|child| !child.is_none()));
                }
                _ => {}
            }
        }
        census
    }
}

/// What a walk over a resting tree finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Nodes reachable from the root.
    pub nodes: u64,
    /// Those with edges.
    pub expanded: u64,
    /// Sum of visits in flight; 0 at rest.
    pub inflight: u64,
    /// Nodes a worker has claimed and not settled; 0 at rest.
    pub claimed: u64,
}

/// Drops a whole tree on a thread of its own; unmapping gigabytes takes time.
pub fn discard(tree: Tree) {
    let dropping = std::thread::Builder::new()
        .name("tree-drop".to_owned())
        .spawn(move || drop(tree));
    // Without a thread the closure, and the tree in it, was dropped here.
    drop(dropping);
}

/// Frees the subtree of `top` except that of `kept`, on a thread of its own.
fn free_in_background(pool: Arc<Pool>, top: NodeId, kept: NodeId) {
    pool.begin_freeing();
    let work = Freeing(pool);
    let freeing = std::thread::Builder::new()
        .name("tree-free".to_owned())
        .spawn(move || free_subtree(&work.0, top, kept));
    // Without a thread the memory stays taken until the tree goes.
    drop(freeing);
}

/// Work on a pool that ends with this, however it ends.
struct Freeing(Arc<Pool>);

impl Drop for Freeing {
    fn drop(&mut self) {
        self.0.end_freeing();
    }
}

fn free_subtree(pool: &Pool, top: NodeId, kept: NodeId) {
    let mut open = vec![top];
    let mut nodes: Vec<NodeId> = Vec::new();
    let mut blocks: Vec<(BlockId, usize)> = Vec::new();
    while let Some(id) = open.pop() {
        if id == kept {
            continue;
        }
        let node = pool.node(id);
        if node.meta().state() == State::Expanded {
            let edges = pool.edges_of(node);
            let children = edges.iter().map(|edge| edge.load().child());
            open.extend(children.filter(|child| !child.is_none()));
            blocks.push((node.block(), edges.len()));
        }
        nodes.push(id);
        if nodes.len() >= 4096 {
            pool.take_back(&mut nodes, &mut blocks);
        }
    }
    pool.take_back(&mut nodes, &mut blocks);
}
