//! Networks in libtorch. Never a search tree, never stdout.
