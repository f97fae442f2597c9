//! Matches, statistics and reports. Never speaks to a GUI and knows no network.

pub mod book;
pub mod clock;
pub mod matches;
pub mod referee;
pub mod stats;
