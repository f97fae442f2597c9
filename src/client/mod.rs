//! The other side of UCI: starts and drives any engine. Knows nothing of our own search.
