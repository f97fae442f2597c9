//! Positions to network inputs and moves to policy indices, on plain slices. Never a tensor.
