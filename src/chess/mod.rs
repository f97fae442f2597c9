//! Rules and notation. Knows nothing of networks or search.
