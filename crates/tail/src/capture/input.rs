//! Where the bytes of a capture come from: a mapped file is one window that never moves, a pipe or a
//! decompressor is a buffer that does.

use std::io::{self, Read};

/// The bytes of a capture from the read position on.
pub trait Input: Send {
    /// The bytes at hand, starting at the read position.
    fn window(&self) -> &[u8];

    /// Moves the read position `count` bytes on.
    ///
    /// # Panics
    /// When `count` exceeds the length of [`window`](Self::window).
    fn consume(&mut self, count: usize);

    /// Reads until the window holds more than it does now. Returns `false` at the end of the input,
    /// where the window stays as it is.
    ///
    /// # Errors
    /// What the source reports, a damaged compression stream included.
    fn extend(&mut self) -> io::Result<bool>;
}

/// A capture whose bytes are all addressable, for example a mapped file.
#[derive(Debug)]
pub struct Whole<B> {
    bytes: B,
    position: usize,
}

impl<B: AsRef<[u8]>> Whole<B> {
    /// Starts at the first byte of `bytes`.
    pub fn new(bytes: B) -> Self {
        Self { bytes, position: 0 }
    }
}

impl<B: AsRef<[u8]> + Send> Input for Whole<B> {
    fn window(&self) -> &[u8] {
        &self.bytes.as_ref()[self.position..]
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.window().len(), "consumed past the window");
        self.position += count;
    }

    fn extend(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

/// Bytes asked of the source at a time: large enough that the copy of a partial record at the end of a
/// window does not count, small enough to stay in the second-level cache.
const CHUNK: usize = 256 * 1024;

/// A capture that arrives in pieces: standard input, or the output of a decompressor.
#[derive(Debug)]
pub struct Streamed<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    failure: Option<io::Error>,
}

impl<R: Read> Streamed<R> {
    /// Reads from `source` when asked to.
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::with_capacity(2 * CHUNK), start: 0, failure: None }
    }
}

impl<R: Read + Send> Input for Streamed<R> {
    fn window(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.start, "consumed past the window");
        self.start += count;
    }

    fn extend(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let before = self.buffer.len();
        let read = self.source.by_ref().take(CHUNK as u64).read_to_end(&mut self.buffer);
        let grown = self.buffer.len() > before;
        match read {
            Ok(_) => Ok(grown),
            // What arrived before the failure is good: hand it out first.
            Err(failure) if grown => {
                self.failure = Some(failure);
                Ok(true)
            }
            Err(failure) => Err(failure),
        }
    }
}
