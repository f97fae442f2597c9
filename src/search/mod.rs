//! PUCT tree search over a batcher of leaves. Never a tensor, never stdout.
