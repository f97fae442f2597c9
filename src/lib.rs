//! Simurgh, a UCI chess engine: batched PUCT search over policy-value networks through libtorch.
//!
//! The rooms, in dependency order, each with its own first lines: [`options`], [`chess`], [`eval`],
//! [`encode`], [`model`], [`search`], [`engine`], [`uci`], [`client`], [`train`], [`measure`], [`cli`].

pub mod chess;
pub mod cli;
pub mod client;
pub mod encode;
pub mod engine;
pub mod eval;
pub mod measure;
pub mod model;
pub mod options;
pub mod search;
pub mod train;
pub mod uci;
