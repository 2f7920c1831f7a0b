//! Decompression as by `zstd -d` and `gzip -d`: zstd frames, skippable frames (as in pzstd's and seekable files) and
//! gzip members, one after the other in any order.

use std::io::{self, BufRead, ErrorKind, Read};
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};

/// Bytes by which the next frame or member is recognised.
pub(super) const MAGIC: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Zstd,
    Skipped,
    Gzip,
}

impl Kind {
    fn of(head: &[u8]) -> Option<Self> {
        match *head {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Skipped),
            // With the compression method: two bytes alone may also begin an mscap file.
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            _ => None,
        }
    }

    /// Whether a file that ends after these bytes may have had a frame or member there.
    fn begins(head: &[u8]) -> bool {
        let rest = [[0x28, 0xb5, 0x2f, 0xfd], [0x50, 0x2a, 0x4d, 0x18], [0x1f, 0x8b, 8, 0]];
        head.len() < MAGIC
            && rest.iter().any(|magic| Self::of(&[head, &magic[head.len()..]].concat()).is_some())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd frame",
            Self::Skipped => "skippable zstd frame",
            Self::Gzip => "gzip member",
        }
    }
}

/// Whether a file that begins like this is compressed.
pub(super) fn is_compressed(head: &[u8]) -> bool {
    Kind::of(head).is_some()
}

/// A compressed file, decompressed as it is read. An error names its place in the compressed file, and comes again at
/// the next read.
pub(super) struct Decompressed<R> {
    state: State<R>,
    /// Made once: a file may have millions of frames.
    zstd: raw::Decoder<'static>,
    /// Beginning of the present frame or member.
    begin: u64,
}

enum State<R> {
    /// Before a frame or member, and after one of this kind.
    Between(Counted<R>, Option<Kind>),
    /// Within a frame.
    Zstd(Counted<R>, Kind),
    /// Within a member.
    Gzip(Box<flate2::bufread::GzDecoder<Counted<R>>>),
    Ended,
    Failed(ErrorKind, String),
}

impl<R: BufRead> Decompressed<R> {
    /// # Errors
    ///
    /// Memory for a decoder cannot be allocated.
    pub(super) fn new(source: R) -> io::Result<Self> {
        Self::from_place(source, 0)
    }

    /// A source whose first byte is this one of the compressed file.
    ///
    /// # Errors
    ///
    /// Memory for a decoder cannot be allocated.
    pub(super) fn from_place(source: R, at: u64) -> io::Result<Self> {
        let source = Counted { source, at, head: [0; MAGIC], ahead: 0..0 };
        Ok(Self { state: State::Between(source, None), zstd: raw::Decoder::new()?, begin: at })
    }

    /// Beginning of the next frame or member, unless one is being read.
    pub(super) fn between(&self) -> Option<u64> {
        match &self.state {
            State::Between(source, _) => Some(source.at),
            _ => None,
        }
    }

    /// The next bytes, or the state to go on with where there are none yet.
    fn step(&mut self, state: State<R>, out: &mut [u8]) -> io::Result<(State<R>, usize)> {
        match state {
            State::Between(source, last) => Ok((self.next(source, last)?, 0)),
            State::Zstd(source, kind) => self.zstd(source, kind, out),
            State::Gzip(mut member) => match member.read(out) {
                Ok(0) => Ok((State::Between(member.into_inner(), Some(Kind::Gzip)), 0)),
                Ok(count) => Ok((State::Gzip(member), count)),
                Err(error) => Err(self.told(&error, Kind::Gzip, member.get_ref().at)),
            },
            State::Ended => Ok((State::Ended, 0)),
            State::Failed(kind, told) => Err(io::Error::new(kind, told)),
        }
    }

    fn next(&mut self, mut source: Counted<R>, last: Option<Kind>) -> io::Result<State<R>> {
        self.begin = source.at;
        let head = source.peek()?;
        let Some(first) = head.first() else { return Ok(State::Ended) };
        match Kind::of(head) {
            Some(Kind::Gzip) => Ok(State::Gzip(Box::new(flate2::bufread::GzDecoder::new(source)))),
            Some(kind) => {
                self.zstd.reinit()?;
                Ok(State::Zstd(source, kind))
            }
            // Tapes and block devices fill up with zeros, which gzip leaves out, too.
            None if last == Some(Kind::Gzip) && *first == 0 => {
                source.skip_zeros()?;
                Ok(State::Between(source, None))
            }
            None if Kind::begins(head) => Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                format!(
                    "the compressed file ends after byte {}, within the magic number that begins at byte {}",
                    self.begin + head.len() as u64,
                    self.begin
                ),
            )),
            None => {
                let found: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
                Err(io::Error::new(
                    ErrorKind::InvalidData,
                    format!(
                        "byte {} of the compressed file is {}, expected its end or another zstd frame or gzip member",
                        self.begin,
                        found.join(" ")
                    ),
                ))
            }
        }
    }

    fn zstd(
        &mut self,
        mut source: Counted<R>,
        kind: Kind,
        out: &mut [u8],
    ) -> io::Result<(State<R>, usize)> {
        let mut output = OutBuffer::around(out);
        let bytes = source.fill_buf()?;
        let ended = bytes.is_empty();
        let mut input = InBuffer::around(bytes);
        let left = self.zstd.run(&mut input, &mut output);
        let (read, written) = (input.pos(), output.pos());
        source.consume(read);
        let left = left.map_err(|error| self.told(&error, kind, source.at))?;
        if left == 0 {
            return Ok((State::Between(source, Some(Kind::Zstd)), written));
        }
        if ended && written == 0 {
            return Err(self.told(&ErrorKind::UnexpectedEof.into(), kind, source.at));
        }
        Ok((State::Zstd(source, kind), written))
    }

    fn told(&self, error: &io::Error, kind: Kind, at: u64) -> io::Error {
        let place = format!("the {} that begins at byte {}", kind.name(), self.begin);
        let why = if error.kind() == ErrorKind::UnexpectedEof {
            format!("the compressed file ends after byte {at}, within {place}")
        } else {
            format!("byte {at} of the compressed file, in {place}: {error}")
        };
        io::Error::new(error.kind(), why)
    }
}

impl<R: BufRead> Read for Decompressed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let state = std::mem::replace(&mut self.state, State::Ended);
            match self.step(state, out) {
                Ok((state, count)) => {
                    let ended = matches!(state, State::Ended);
                    self.state = state;
                    if count > 0 || ended {
                        return Ok(count);
                    }
                }
                Err(error) => {
                    self.state = State::Failed(error.kind(), error.to_string());
                    return Err(error);
                }
            }
        }
    }
}

/// A source that counts its consumed bytes, and whose next bytes can be looked at before they are read.
struct Counted<R> {
    source: R,
    at: u64,
    /// Bytes that were looked at; those of this range still have to be read.
    head: [u8; MAGIC],
    ahead: std::ops::Range<usize>,
}

impl<R: BufRead> Counted<R> {
    /// The next bytes, as many as are needed to recognise the next part; fewer at the end.
    fn peek(&mut self) -> io::Result<&[u8]> {
        let ahead = self.ahead.len();
        self.head.copy_within(self.ahead.clone(), 0);
        self.ahead = 0..ahead;
        while self.ahead.end < MAGIC {
            match self.source.read(&mut self.head[self.ahead.end..]) {
                Ok(0) => break,
                Ok(count) => self.ahead.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.head[self.ahead.clone()])
    }

    fn skip_zeros(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let all = zeros == bytes.len();
            self.consume(zeros);
            if !all || zeros == 0 {
                return Ok(());
            }
        }
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(out.len());
        out[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ahead.is_empty() {
            return loop {
                // Not `fill_buf` alone: its result would be borrowed for longer than the loop's turn.
                match self.source.fill_buf() {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => break Err(error),
                    Ok(_) => break self.source.fill_buf(),
                }
            };
        }
        Ok(&self.head[self.ahead.clone()])
    }

    fn consume(&mut self, count: usize) {
        self.at += count as u64;
        if self.ahead.is_empty() {
            self.source.consume(count);
        } else {
            self.ahead.start += count;
        }
    }
}
