//! Captures by name: plain files, zstd and gzip decompressed on the way, `-` is standard input. Compression is
//! recognised by content, not by name.
//!
//! Files are read, not mapped into memory: a capture may still be written to, or be shortened, by another process.
//! Beyond the new end of a mapped file the kernel raises SIGBUS, which ends this process, or the Python process that it
//! is a module of; and a `&[u8]` must not change, as mapped bytes of such a file would. Bytes that were read into a
//! buffer do not change.

mod compressed;
mod frames;

use compressed::{Decompressed, MAGIC, is_compressed};
use frames::{Frames, Spare};

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tailtrim_tail::capture::{CaptureError, CaptureReader, Input, Only, StampSource, Streamed};

/// Bytes read from a file or pipe in one system call.
const READ: usize = 128 * 1024;

/// Sizes of files that one core reads at least as fast as two (benchmarks/runs/2026-11-30-epyc-2core-cores).
const SHORT_PLAIN: u64 = 32 << 20;
const SHORT_COMPRESSED: u64 = 2 << 20;

/// Settings for reading captures.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Source of the stamps.
    pub stamps: StampSource,
    /// Use the part in front of damage.
    pub salvage: bool,
    /// The packets that are read, where the capture holds others, too.
    pub only: Option<Only>,
}

/// A capture with its size.
pub struct CaptureInput {
    /// The capture.
    pub capture: CaptureReader,
    /// Its size, to tell progress.
    pub extent: Extent,
    /// The plain file, if it can be read from any place on.
    pub(crate) plain: Option<Plain>,
    /// The cores that decompress it ahead of its reader; `None` where it is not a compressed file.
    pub(crate) spare: Option<Spare>,
    /// Path and settings to open it a second time; `None` of a pipe.
    pub(crate) again: Option<(PathBuf, Reading)>,
}

/// Size of a file, for the share that has been read.
#[derive(Debug, Clone)]
pub enum Extent {
    /// A plain file of so many bytes.
    Plain(u64),
    /// A compressed file: its number of bytes, and the number of those that were read.
    Compressed(u64, Arc<AtomicU64>),
    /// A pipe.
    Unknown,
}

impl Extent {
    /// The share that is done (0 to 1) at `offset` bytes of the decompressed capture; `None` for pipes.
    #[must_use]
    pub fn done(&self, offset: u64) -> Option<f64> {
        match self {
            Self::Plain(size) => Some(offset as f64 / *size as f64),
            Self::Compressed(size, read) => Some(read.load(Relaxed) as f64 / *size as f64),
            Self::Unknown => None,
        }
    }

    /// Whether one core reads it in less time than others need to begin.
    pub(crate) fn is_short(&self) -> bool {
        match self {
            Self::Plain(size) => *size <= SHORT_PLAIN,
            Self::Compressed(size, _) => *size <= SHORT_COMPRESSED,
            Self::Unknown => false,
        }
    }
}

/// Opens the capture `path`, `-` for standard input. Names ending in `.mscap` (also `.mscap.zst`,
/// `.mscap.gz`) are `MoonSniff` records, which have no magic number.
///
/// A plain file is read up to the size that it has now: bytes that are appended later are left out, and bytes that are
/// overwritten meanwhile may be read as they were or as they are. A file that has become shorter is an error.
///
/// # Errors
/// [`CaptureError::Io`] when it cannot be opened, otherwise those of [`CaptureReader::open`].
pub fn open(path: &Path, reading: Reading) -> Result<CaptureInput, CaptureError> {
    let name = path.display().to_string();
    let io = |source| CaptureError::Open { path: name.clone(), source };
    let Opened { input, extent, plain, spare } = if name == "-" {
        Opened::streamed(io::stdin()).map_err(io)?
    } else {
        file(path).map_err(io)?
    };
    let moonsniff = is_moonsniff(&name);
    let again = (!matches!(extent, Extent::Unknown)).then(|| (path.to_owned(), reading.clone()));
    let mut capture = CaptureReader::open(name, input, reading.stamps, moonsniff, reading.salvage)?;
    if let Some(only) = reading.only {
        capture.take_only(only)?;
    }
    Ok(CaptureInput { capture, extent, plain, spare, again })
}

fn is_moonsniff(name: &str) -> bool {
    let name = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".gz")).unwrap_or(name);
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mscap"))
}

/// An open file or pipe; otherwise as [`CaptureInput`].
struct Opened {
    input: Box<dyn Input>,
    extent: Extent,
    plain: Option<Plain>,
    spare: Option<Spare>,
}

impl Opened {
    /// A pipe, or a file whose size is unknown.
    fn streamed(source: impl Read + Send + 'static) -> io::Result<Self> {
        let source = decompressed(BufReader::with_capacity(READ, source))?;
        let input = Box::new(Streamed::new(source));
        Ok(Self { input, extent: Extent::Unknown, plain: None, spare: None })
    }

    fn plain(file: File, size: u64) -> Self {
        let plain = Plain { file: Arc::new(file), size };
        let input = plain.input(0..size);
        Self { input, extent: Extent::Plain(size), plain: Some(plain), spare: None }
    }

    fn compressed(file: File, size: u64) -> io::Result<Self> {
        let (read, spare) = (Arc::<AtomicU64>::default(), Spare::default());
        let frames = Frames::new(Arc::new(file), Arc::clone(&read), Arc::clone(&spare))?;
        let (input, extent) = (Box::new(Streamed::new(frames)), Extent::Compressed(size, read));
        Ok(Self { input, extent, plain: None, spare: Some(spare) })
    }
}

fn file(path: &Path) -> io::Result<Opened> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("this is a directory, expected a capture file"));
    }
    // Some files, such as those of /proc, have the size 0 although they are not empty.
    if !metadata.is_file() || metadata.len() == 0 {
        return Opened::streamed(file);
    }
    let mut head = [0; MAGIC];
    let count = file.read_at(&mut head, 0)?;
    if is_compressed(&head[..count]) {
        Opened::compressed(file, metadata.len())
    } else {
        Ok(Opened::plain(file, metadata.len()))
    }
}

/// A plain file, as much of it as there was when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    pub(crate) file: Arc<File>,
    pub(crate) size: u64,
}

impl Plain {
    /// A part of the file.
    pub(crate) fn input(&self, part: Range<u64>) -> Box<dyn Input> {
        Box::new(Streamed::new(Part { plain: self.clone(), rest: part }))
    }
}

/// A part of a plain file being read.
struct Part {
    plain: Plain,
    rest: Range<u64>,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Range { start, end } = self.rest;
        let most = usize::try_from(end - start).map_or(buffer.len(), |left| left.min(buffer.len()));
        let count = self.plain.file.read_at(&mut buffer[..most], start)?;
        if count == 0 && most > 0 {
            let size = self.plain.size;
            return Err(io::Error::other(format!(
                "the file had {size} bytes when it was opened and ends after {start}: another process shortened it; \
                 expected a file that stays as it is"
            )));
        }
        self.rest.start += count as u64;
        Ok(count)
    }
}

/// The content of a source, decompressed if its first bytes show that it is compressed.
///
/// # Errors
///
/// It cannot be read.
pub fn decompressed(mut source: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    // A pipe may hand out its first bytes one by one.
    let mut head = Vec::with_capacity(MAGIC);
    source.by_ref().take(MAGIC as u64).read_to_end(&mut head)?;
    let compressed = is_compressed(&head);
    let source = io::Cursor::new(head).chain(source);
    if compressed { Ok(Box::new(Decompressed::new(source)?)) } else { Ok(Box::new(source)) }
}
