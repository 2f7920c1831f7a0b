//! Frames of zstd in a file of minutes, one behind the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use zstd::zstd_safe;

/// Bytes at the end of a file among which a whole frame begins, as a rule: a minute of 600 probes has 4,000.
pub(crate) const END_BYTES: u64 = 1 << 16;

/// Cuts off what follows the last whole frame of a file. A day may have megabytes: its end alone is read, if a whole frame begins there.
pub(crate) fn cut_incomplete(path: &Path) -> io::Result<()> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut from = |begin| {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(begin))?;
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let begin = length.saturating_sub(END_BYTES);
    let end = from(begin)?;
    let whole = match first_frame(&end).filter(|_| begin > 0) {
        Some(at) => begin + (at + whole_bytes(&end[at..])) as u64,
        None => whole_bytes(&if begin > 0 { from(0)? } else { end }) as u64,
    };
    if whole < length {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(whole)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Offset of the first whole frame.
fn first_frame(bytes: &[u8]) -> Option<usize> {
    let magic = zstd_safe::MAGICNUMBER.to_le_bytes();
    (0..bytes.len()).find(|at| {
        let rest = &bytes[*at..];
        // Its checksum tells it from data that look like a begin.
        let size = rest.starts_with(&magic).then(|| zstd_safe::find_frame_compressed_size(rest));
        let frame = size.and_then(Result::ok).and_then(|size| rest.get(..size));
        frame.is_some_and(|frame| zstd::stream::decode_all(frame).is_ok())
    })
}

/// Number of bytes from the begin up to the last frame that has the checksum that it should have.
fn whole_bytes(bytes: &[u8]) -> usize {
    let (mut at, mut begins) = (0, Vec::new());
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty())
        && let Ok(size) = zstd_safe::find_frame_compressed_size(rest)
    {
        begins.push(at);
        at += size;
    }
    // After a crash of the host, blocks of the last frames may never have been written.
    while let Some(begin) = begins.pop() {
        if bytes.get(begin..at).is_some_and(|frame| zstd::stream::decode_all(frame).is_ok()) {
            return at;
        }
        at = begin;
    }
    0
}
