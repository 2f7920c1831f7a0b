//! A compressed file whose zstd frames several threads decompress ahead of its reader, as pzstd and seekable files
//! allow: their frames are small and do not depend on each other.
//!
//! Anything else is decompressed while it is read, and so are all bytes behind it: large frames (`zstd` writes a file
//! as one), gzip members, damage. So errors are those of [`Decompressed`], whatever the number of threads.

use super::READ;
use super::compressed::Decompressed;
use crate::cores::Cores;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use zstd::zstd_safe::{self, DCtx};

/// A thread is given frames of about so many decompressed bytes. A frame of pzstd has 8 MiB at its usual level.
const ENOUGH: usize = 4 << 20;

/// The most bytes of a frame, compressed or not, that a thread is given.
const MOST: usize = 32 << 20;

/// Decompressed bytes that wait to be read, whatever the number of threads.
const WAITING: usize = 64 << 20;

/// Compressed bytes read at a time, at first.
const PIECE: usize = 1 << 20;

/// The cores that decompress ahead. Not set: none to spare.
pub(crate) type Spare = Arc<OnceLock<Arc<Cores>>>;

/// A compressed file being read.
pub(super) struct Frames {
    file: Arc<File>,
    spare: Spare,
    /// Number of compressed bytes that were read, for progress.
    read: Arc<AtomicU64>,
    /// Decompresses while it is read; `None` while threads decompress.
    rest: Option<Decompressed<BufReader<From>>>,
    /// Whether threads are given no more.
    rest_only: bool,
    ahead: VecDeque<Ahead>,
    /// Beginning of the frames that no thread was given.
    next: u64,
    ready: Cursor<Vec<u8>>,
}

/// Frames that a thread decompresses.
struct Ahead {
    begin: u64,
    end: u64,
    bound: usize,
    /// `None` where decompression failed.
    decompressed: JoinHandle<Option<Vec<u8>>>,
}

impl Frames {
    /// # Errors
    ///
    /// Memory for a decoder cannot be allocated.
    pub(super) fn new(file: Arc<File>, read: Arc<AtomicU64>, spare: Spare) -> io::Result<Self> {
        let rest = Some(rest(&file, &read, 0)?);
        let (ahead, ready) = (VecDeque::new(), Cursor::default());
        Ok(Self { file, spare, read, rest, rest_only: false, ahead, next: 0, ready })
    }

    /// Gives frames to threads, as many as there are cores and as fit into [`WAITING`].
    fn give(&mut self, cores: &Arc<Cores>) {
        while !self.rest_only && self.ahead.len() < cores.count() {
            let waiting: usize = self.ahead.iter().map(|ahead| ahead.bound).sum();
            if waiting > WAITING - MOST {
                return;
            }
            let (compressed, bound) = frames(&self.file, self.next);
            let (begin, end) = (self.next, self.next + compressed.len() as u64);
            let cores = Arc::clone(cores);
            let decompress = move || {
                let _working = cores.work();
                let mut bytes = Vec::with_capacity(bound);
                DCtx::try_create()?.decompress(&mut bytes, &compressed).ok()?;
                Some(bytes)
            };
            let spawn = || Builder::new().name("decompress".to_owned()).spawn(decompress).ok();
            let Some(decompressed) = (end > begin).then(spawn).flatten() else {
                self.rest_only = true;
                return;
            };
            self.ahead.push_back(Ahead { begin, end, bound, decompressed });
            self.next = end;
        }
    }

    /// Waits for the frames that come next. Where they cannot be decompressed, the rest begins there, and reading it
    /// returns the error.
    fn take(&mut self, cores: &Cores) -> io::Result<()> {
        let Some(Ahead { begin, end, decompressed, .. }) = self.ahead.pop_front() else {
            self.rest = Some(rest(&self.file, &self.read, self.next)?);
            return Ok(());
        };
        let joined = cores.lend(|| decompressed.join());
        if let Some(bytes) = joined.unwrap_or_else(|failure| panic::resume_unwind(failure)) {
            self.ready = Cursor::new(bytes);
            self.read.store(end, Relaxed);
        } else {
            self.ahead.clear();
            (self.rest_only, self.next) = (true, begin);
        }
        Ok(())
    }
}

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let spare = self.spare.get().cloned();
            match (&mut self.rest, spare) {
                (None, Some(cores)) => {
                    self.give(&cores);
                    self.take(&cores)?;
                }
                (Some(rest), Some(_))
                    if !self.rest_only
                        && let Some(place) = rest.between() =>
                {
                    (self.rest, self.next) = (None, place);
                }
                (Some(rest), _) => return rest.read(out),
                // Cannot happen: the cores are never unset.
                (None, None) => return Err(io::Error::other("the cores that decompress are gone")),
            }
        }
    }
}

/// Decompression from this place on, while it is read.
fn rest(
    file: &Arc<File>,
    read: &Arc<AtomicU64>,
    at: u64,
) -> io::Result<Decompressed<BufReader<From>>> {
    read.store(at, Relaxed);
    let source = From { file: Arc::clone(file), at, read: Arc::clone(read) };
    Decompressed::from_place(BufReader::with_capacity(READ, source), at)
}

/// The next frames, as many as are [`ENOUGH`], and the most bytes that they have decompressed. No frame at the end, in
/// front of something else, and in front of a frame of more than [`MOST`] bytes.
fn frames(file: &File, at: u64) -> (Vec<u8>, usize) {
    let (mut bytes, mut end, mut bound) = (Vec::new(), 0, 0);
    while end.max(bound) < ENOUGH
        && let Some((size, decompressed)) = frame(file, at, &mut bytes, end)
    {
        end += size;
        bound += decompressed;
    }
    bytes.truncate(end);
    (bytes, bound)
}

/// The size of the frame that begins behind so many bytes, compressed and the most decompressed. Reads the bytes that
/// are needed for it.
fn frame(file: &File, at: u64, bytes: &mut Vec<u8>, begin: usize) -> Option<(usize, usize)> {
    let most = |size: u64| usize::try_from(size).ok().filter(|size| *size <= MOST);
    loop {
        let frame = &bytes[begin..];
        if let Ok(size) = zstd_safe::find_frame_compressed_size(frame) {
            let bound = zstd_safe::decompress_bound(&frame[..size]).ok().and_then(most)?;
            return Some((size, bound));
        }
        if let Ok(Some(size)) = zstd_safe::get_frame_content_size(frame) {
            most(size)?;
        }
        if frame.len() >= MOST {
            return None;
        }
        let known = bytes.len();
        bytes.resize(known + frame.len().max(PIECE), 0);
        let count = read_at(file, &mut bytes[known..], at + known as u64)?;
        bytes.truncate(known + count);
        if count == 0 {
            return None;
        }
    }
}

/// Reads from this place on; `None` where that fails.
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> Option<usize> {
    loop {
        match file.read_at(bytes, at) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.ok(),
        }
    }
}

/// A file from some place on, which counts the bytes that were read. Each call ends at a multiple of [`READ`], wherever
/// the first begins: the output of a decoder in front of damage depends on where its input ends.
struct From {
    file: Arc<File>,
    at: u64,
    read: Arc<AtomicU64>,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(READ - self.at as usize % READ);
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        self.read.store(self.at, Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
