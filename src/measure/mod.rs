//! Matches, statistics and reports. Never speaks to a GUI and knows no network.

pub mod adjudication;
pub mod attention;
pub mod book;
pub mod clock;
pub mod evaluate;
pub mod matches;
mod page;
pub mod referee;
pub mod replay;
pub mod sprt;
pub mod stats;
