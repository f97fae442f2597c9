//! Text files that may be packed by gzip or zstd, told apart by content. Knows nothing of what is in them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// Opens a file for reading by lines; a packed one (whatever its name) is unpacked on the way.
///
/// # Errors
/// When the file cannot be opened or its first bytes cannot be read.
pub fn open_maybe_packed(path: impl AsRef<Path>) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let unpacked: Box<dyn Read + Send> = match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(file)?),
        _ => return Ok(Box::new(file)),
    };
    Ok(Box::new(BufReader::with_capacity(1 << 16, unpacked)))
}
