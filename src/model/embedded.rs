//! The network inside the binary, if the build put one there. Reads nothing from it.

/// Name and bytes of the embedded network file.
pub fn embedded() -> Option<(&'static str, &'static [u8])> {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"))
}
