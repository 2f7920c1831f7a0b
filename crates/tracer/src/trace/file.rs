//! `events.jsonl.zst`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tailtrim_trace::Event;
use tailtrim_trace::lines::{self, Header, LineError};

/// Writes a trace.
///
/// # Errors
/// The system's error; the part that was written is left.
pub fn write(path: &Path, header: &Header, events: &[Event]) -> io::Result<()> {
    let mut file = BufWriter::new(zstd::Encoder::new(File::create(path)?, 3)?);
    let mut line = Vec::new();
    lines::append(&mut line, header)?;
    file.write_all(&line)?;
    for event in events {
        line.clear();
        lines::append(&mut line, event)?;
        file.write_all(&line)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?.sync_all()
}

/// Why a file of events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file.
    #[error(
        "{path}: cannot be read: {source}; expected events.jsonl.zst as `tailtrim-agent trace` writes it"
    )]
    Read {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A line.
    #[error("{path}: {source}")]
    Line {
        /// The file.
        path: String,
        /// The error in it.
        source: LineError,
    },
}

/// Reads a trace, compressed or not.
///
/// # Errors
/// The file or its first wrong line.
pub fn read(path: &Path) -> Result<(Header, Vec<Event>), FileError> {
    let name = || path.display().to_string();
    let failed = |source| FileError::Read { path: name(), source };
    let mut bytes = fs::read(path).map_err(failed)?;
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        bytes = zstd::decode_all(bytes.as_slice()).map_err(failed)?;
    }
    let text = String::from_utf8(bytes).map_err(io::Error::other).map_err(failed)?;
    lines::read(&text).map_err(|source| FileError::Line { path: name(), source })
}
