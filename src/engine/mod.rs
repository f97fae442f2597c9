//! Owns options, network and search; turns commands into events. Never parses or prints UCI.
