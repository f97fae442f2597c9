//! One declaration per option: name, type, default, range, help. Knows nothing else of ours.
