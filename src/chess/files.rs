//! Text files that may be gzipped, told apart by content. Knows nothing of what is in them.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// Opens a file for reading by lines; a gzipped one (whatever its name) is unpacked on the way.
///
/// # Errors
/// When the file cannot be opened or its first bytes cannot be read.
pub fn open_maybe_gz(path: impl AsRef<Path>) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let gzipped = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(match gzipped {
        true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))),
        false => Box::new(file),
    })
}
