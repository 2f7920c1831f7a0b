//! Captures by name: plain files are mapped, `.zst` and `.gz` decompressed on the way, `-` is standard
//! input. Compression is recognised by content, not by name.

use crate::sys::map;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use tailtrim_model::capture::{Capture, CaptureError, Input, StampSource, Streamed, Whole};

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes read from a file or pipe in one system call.
const READ: usize = 128 * 1024;

/// How to read captures.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// Where stamps are taken from.
    pub stamps: StampSource,
    /// Use what precedes damage.
    pub salvage: bool,
}

/// Opens the capture `path`, `-` for standard input. Names ending in `.mscap` (also `.mscap.zst`,
/// `.mscap.gz`) are `MoonSniff` records, which have no magic number.
///
/// # Errors
/// [`CaptureError::Io`] when it cannot be opened, otherwise those of [`Capture::open`].
pub fn open(path: &Path, reading: Reading) -> Result<Capture, CaptureError> {
    let name = path.display().to_string();
    let io = |source| CaptureError::Io { path: name.clone(), offset: 0, source };
    let input: Box<dyn Input> = if name == "-" {
        compressed_or_plain(BufReader::with_capacity(READ, io::stdin())).map_err(io)?
    } else {
        file(path).map_err(io)?
    };
    Capture::open(name.clone(), input, reading.stamps, is_moonsniff(&name), reading.salvage)
}

/// Bytes of the capture file, compressed as it is; `None` for pipes. To be set against
/// [`Capture::offset`] only where the file is not compressed.
#[must_use]
pub fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
}

fn is_moonsniff(name: &str) -> bool {
    let name = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".gz")).unwrap_or(name);
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mscap"))
}

fn file(path: &Path) -> io::Result<Box<dyn Input>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("this is a directory, expected a capture file"));
    }
    // Pipes cannot be mapped, and files of length 0 neither.
    if metadata.is_file() && metadata.len() > 0 {
        let map = map::sequential(&file)?;
        if !is_compressed(&map) {
            return Ok(Box::new(Whole::new(map)));
        }
    }
    compressed_or_plain(BufReader::with_capacity(READ, file))
}

fn is_compressed(head: &[u8]) -> bool {
    head.starts_with(&ZSTD) || head.starts_with(&GZIP)
}

fn compressed_or_plain(mut source: impl BufRead + Send + 'static) -> io::Result<Box<dyn Input>> {
    let head = source.fill_buf()?;
    let source: Box<dyn Read + Send> = if head.starts_with(&ZSTD) {
        Box::new(zstd::Decoder::with_buffer(source)?)
    } else if head.starts_with(&GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(source))
    } else {
        Box::new(source)
    };
    Ok(Box::new(Streamed::new(source)))
}
