//! Source of the bytes of a capture: a mapped file is one window that never moves, a pipe or a
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

/// Bytes asked of the source at a time: large enough that calls and the copy of a partial record at the end of a window
/// do not count, small enough to stay in the second-level cache.
const CHUNK: usize = 256 * 1024;

/// A capture that arrives in pieces: a file that is read, standard input, or the output of a decompressor.
#[derive(Debug)]
pub struct Streamed<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: Read> Streamed<R> {
    /// Reads from `source` when asked to.
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), start: 0, end: 0 }
    }
}

impl<R: Read + Send> Input for Streamed<R> {
    fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "consumed past the window");
        self.start += count;
    }

    fn extend(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < self.end + CHUNK {
            self.buffer.resize((self.end + CHUNK).next_multiple_of(CHUNK), 0);
        }
        // One call, into memory that is there already: `Read::read_to_end` begins with small pieces, which took a
        // quarter longer for a file in the page cache.
        let room = &mut self.buffer[self.end..self.end + CHUNK];
        loop {
            match self.source.read(room) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
