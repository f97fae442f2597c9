//! The one integration binary, so that libtorch is linked once. Each module is a subject of its own.

mod notation;
mod perft;
mod rules;
mod shared;
mod tidy;
