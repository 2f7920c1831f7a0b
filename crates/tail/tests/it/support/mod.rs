//! Captures and frames built by hand, byte by byte, and ways to read them.

mod files;
pub(crate) mod frames;
pub(crate) mod tunnels;

pub(crate) use files::{Order, Pcap, Pcapng, erf, erf_ethernet, modified_pcap, mscap, x552};

use std::io::{self, Read};
use tailtrim_tail::capture::{
    CaptureError, CaptureReader, Input, Record, Remedy, StampSource, Streamed, Whole,
};
use tailtrim_tail::signature::Signer;

pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// Gives one to seven bytes at a time, and interruptions between them.
#[derive(Debug)]
pub(crate) struct Trickle {
    bytes: Vec<u8>,
    position: usize,
    calls: usize,
}

impl Trickle {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, position: 0, calls: 0 }
    }
}

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let rest = &self.bytes[self.position..];
        let count = (self.calls % 7 + 1).min(rest.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.position += count;
        Ok(count)
    }
}

/// Hands out `bytes` and then fails.
#[derive(Debug)]
pub(crate) struct Failing(pub(crate) Vec<u8>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the cable is cut"));
        }
        let count = self.0.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

/// An input whose window grows by one byte a time: every place is the end of a window once.
#[derive(Debug)]
pub(crate) struct Creeping {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Creeping {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0, end: 0 }
    }
}

impl Input for Creeping {
    fn window(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        assert!(self.start <= self.end);
    }

    fn extend(&mut self) -> io::Result<bool> {
        let more = self.end < self.bytes.len();
        self.end += usize::from(more);
        Ok(more)
    }
}

/// The name of every capture in these tests.
pub(crate) const NAME: &str = "some/capture";

/// Whether a text says all of these, in this order.
pub(crate) fn says(text: &str, facts: &[&str]) -> bool {
    facts.iter().try_fold(text, |rest, fact| rest.split_once(fact).map(|parts| parts.1)).is_some()
}

/// The same bytes as a mapped file, as a pipe, and byte by byte.
pub(crate) fn inputs(bytes: &[u8]) -> [Box<dyn Input>; 3] {
    [
        Box::new(Whole::new(bytes.to_vec())),
        Box::new(Streamed::new(Trickle::new(bytes.to_vec()))),
        Box::new(Creeping::new(bytes.to_vec())),
    ]
}

/// Options for opening a capture.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) stamps: StampSource,
    pub(crate) moonsniff: bool,
    pub(crate) salvage: bool,
}

impl How {
    pub(crate) const SALVAGE: Self =
        Self { stamps: StampSource::Header, moonsniff: false, salvage: true };
    pub(crate) const MOONSNIFF: Self =
        Self { stamps: StampSource::Header, moonsniff: true, salvage: false };
    pub(crate) const X552: Self =
        Self { stamps: StampSource::X552Trailer, moonsniff: false, salvage: false };

    pub(crate) fn open(self, input: Box<dyn Input>) -> Result<CaptureReader, CaptureError> {
        CaptureReader::open(NAME, input, self.stamps, self.moonsniff, self.salvage)
    }
}

/// Everything that comes out of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) records: Vec<Record>,
    /// The error at which it failed, as text.
    pub(crate) error: Option<String>,
    /// The remedy for the error.
    pub(crate) hint: Option<Remedy>,
    /// The damage at which it was salvaged, as text.
    pub(crate) damage: Option<String>,
    pub(crate) tap_drops: Option<u64>,
    /// Packets that are not read, in words.
    pub(crate) unread: Vec<String>,
    pub(crate) offset: u64,
}

impl Content {
    /// The records of a sound capture.
    pub(crate) fn sound(self) -> Vec<Record> {
        assert_eq!((self.error, self.damage), (None, None));
        self.records
    }
}

/// Reads `input` to its end.
pub(crate) fn drain(input: Box<dyn Input>, how: How, signer: &Signer) -> Content {
    let mut content = Content {
        records: Vec::new(),
        error: None,
        hint: None,
        damage: None,
        tap_drops: None,
        unread: Vec::new(),
        offset: 0,
    };
    let fail = |content: &mut Content, error: CaptureError| {
        content.error = Some(error.to_string());
        content.hint = error.remedy();
    };
    match how.open(input) {
        Err(error) => fail(&mut content, error),
        Ok(mut capture) => {
            assert_eq!(capture.name(), NAME);
            let mut batch = Vec::new();
            loop {
                match capture.read(signer, &mut batch) {
                    Ok(true) => content.records.extend(&batch),
                    Ok(false) => break,
                    Err(error) => {
                        fail(&mut content, error);
                        break;
                    }
                }
                assert!(!batch.is_empty());
            }
            // The end stays the end.
            assert!(!capture.read(signer, &mut batch).unwrap());
            content.damage = capture.damage().map(ToString::to_string);
            content.tap_drops = capture.tap_drops();
            content.unread = capture.unread().iter().map(ToString::to_string).collect();
            content.offset = capture.offset();
        }
    }
    content
}

/// Reads `bytes` in all ways, which must agree.
pub(crate) fn read(bytes: &[u8], how: How, signer: &Signer) -> Content {
    let [whole, streamed, creeping] = inputs(bytes).map(|input| drain(input, how, signer));
    assert_eq!(whole, streamed);
    assert_eq!(whole, creeping);
    whole
}
