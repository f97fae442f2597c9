//! The one integration binary, so that libtorch is linked once. Each module is a subject of its own.

mod notation;
mod shared;
mod tidy;
