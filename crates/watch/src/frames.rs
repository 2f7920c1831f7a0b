//! Frames of zstd in a file of minutes, one behind the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use zstd::zstd_safe;

/// Bytes at the end of a file that are looked at first, and that are read at once: a minute of 600 probes has 4,000.
pub(crate) const END_BYTES: u64 = 1 << 16;

/// Bytes in which a whole frame begins and ends in any case: minutes of the most values have less than 3,000,000.
const MOST_BYTES: u64 = 1 << 24;

/// Cuts off what follows the last whole frame of a file. A day may have gigabytes: its end alone is read.
pub(crate) fn cut_incomplete(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let mut whole = near_end(&mut file, |_| true)?;
    let walked = walk(&mut file, whole, |at, frame| {
        // After a crash of the host, blocks of the last frames may never have been written.
        if zstd::decode_all(frame).is_ok() {
            whole = at + frame.len() as u64;
        }
        Ok(())
    });
    if let Err(error) = walked
        && error.kind() != io::ErrorKind::UnexpectedEof
    {
        return Err(error);
    }
    if whole < file.metadata()?.len() {
        file.set_len(whole)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Finds the begin of a frame whose text fits, near the end of a file: the first whole frame of longer and longer ends
/// is looked at. Returns 0, the begin of the file, if none fits.
pub(crate) fn near_end(file: &mut File, fits: impl Fn(&[u8]) -> bool) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut end = END_BYTES;
    while end < length {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(length - end))?;
        file.by_ref().take(end.min(MOST_BYTES)).read_to_end(&mut bytes)?;
        if let Some((at, text)) = first_frame(&bytes)
            && fits(&text)
        {
            return Ok(length - end + at as u64);
        }
        end = end.saturating_mul(16);
    }
    Ok(0)
}

/// Offset and text of the first whole frame.
fn first_frame(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let magic = zstd_safe::MAGICNUMBER.to_le_bytes();
    (0..bytes.len()).find_map(|at| {
        let rest = bytes.get(at..).filter(|rest| rest.starts_with(&magic))?;
        // Its checksum tells it from data that look like a begin.
        let size = zstd_safe::find_frame_compressed_size(rest).ok()?;
        Some((at, zstd::decode_all(&rest[..size]).ok()?))
    })
}

/// Reads the frames of a file from the begin of one on, one at a time. `take` gets the offset and the bytes of each.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if other bytes follow the last whole frame; errors of the file and of `take`.
pub(crate) fn walk(
    file: &mut File,
    mut at: u64,
    mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    loop {
        let is_end = file.by_ref().take(END_BYTES).read_to_end(&mut bytes)? == 0;
        let mut used = 0;
        while let Ok(size) = zstd_safe::find_frame_compressed_size(&bytes[used..]) {
            take(at + used as u64, &bytes[used..used + size])?;
            used += size;
        }
        bytes.drain(..used);
        at += used as u64;
        if is_end && bytes.is_empty() {
            return Ok(());
        }
        if is_end || bytes.len() as u64 > MOST_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_frames_are_found_without_reading_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("day");
        let (mut random, mut bytes, mut begins) = (1_u64, Vec::<u8>::new(), Vec::new());
        for number in 0..30 {
            let noise = std::iter::repeat_with(|| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            });
            let text: Vec<u8> = std::iter::once(number).chain(noise.take(100_000)).collect();
            begins.push(bytes.len() as u64);
            bytes.extend(zstd::bulk::compress(&text, 3).unwrap());
        }
        std::fs::write(&path, &bytes).unwrap();
        let mut file = File::open(&path).unwrap();
        let length = bytes.len() as u64;
        assert_eq!(near_end(&mut file, |text| text[0] > 29).unwrap(), 0);
        let begin = near_end(&mut file, |text| text[0] < 29).unwrap();
        assert!(begins.contains(&begin) && begin >= length - 16 * END_BYTES, "{begin}");
        let mut walked = Vec::new();
        walk(&mut file, begin, |at, _| {
            walked.push(at);
            Ok(())
        })
        .unwrap();
        begins.retain(|at| *at >= begin);
        assert_eq!(walked, begins);
    }
}
