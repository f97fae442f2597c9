//! Matches, statistics and reports. Never speaks to a GUI.
