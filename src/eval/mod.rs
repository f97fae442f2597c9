//! The boundary between search and networks: leaves in, evaluations out. Never a tensor.
