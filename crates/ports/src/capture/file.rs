//! A capture file being written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A capture file being written.
pub struct CaptureFile {
    pub(super) path: PathBuf,
    writer: Writer,
}

enum Writer {
    Plain(BufWriter<File>),
    Zstd(BufWriter<zstd::Encoder<'static, File>>),
}

impl CaptureFile {
    /// Creates the file, compressed with zstd or not.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path, zstd: bool) -> io::Result<Self> {
        let file = File::create(path)?;
        const BUFFER: usize = 1 << 20;
        let writer = if zstd {
            Writer::Zstd(BufWriter::with_capacity(BUFFER, zstd::Encoder::new(file, 1)?))
        } else {
            Writer::Plain(BufWriter::with_capacity(BUFFER, file))
        };
        Ok(Self { path: path.to_owned(), writer })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.writer {
            Writer::Plain(file) => file.write_all(bytes),
            Writer::Zstd(file) => file.write_all(bytes),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self.writer {
            Writer::Plain(mut file) => file.flush(),
            Writer::Zstd(file) => {
                file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
                Ok(())
            }
        }
    }
}
