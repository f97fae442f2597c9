//! The one integration binary, so that libtorch is linked once. Each module is a subject of its own.

mod client;
mod evaluation;
mod golden;
mod gpt;
mod hostile;
mod looking_inside;
mod notation;
mod perft;
mod real_engines;
mod rules;
mod search;
mod shared;
mod tidy;
mod tournaments;
mod training_data;
mod transformer;
mod uci;
