//! Captures and frames built by hand, byte by byte, and ways to read them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod frames;

use std::io::{self, Read};
use tailtrim_tail::capture::{
    Capture, CaptureError, Input, Record, Remedy, StampSource, Streamed, Whole,
};
use tailtrim_tail::signature::Signer;

pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// Byte order of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn u64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// A classic pcap file being written.
#[derive(Debug, Clone)]
pub(crate) struct Pcap {
    order: Order,
    nanoseconds: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Pcap {
    pub(crate) const HEADER: usize = 24;
    pub(crate) const RECORD_HEADER: usize = 16;

    pub(crate) fn new(order: Order, nanoseconds: bool, link_type: u32) -> Self {
        Self::with_snap_length(order, nanoseconds, link_type, 262_144)
    }

    pub(crate) fn with_snap_length(
        order: Order,
        nanoseconds: bool,
        link_type: u32,
        snap_length: u32,
    ) -> Self {
        let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut bytes = Vec::new();
        bytes.extend(order.u32(magic));
        bytes.extend(order.u16(2));
        bytes.extend(order.u16(4));
        bytes.extend([0; 8]);
        bytes.extend(order.u32(snap_length));
        bytes.extend(order.u32(link_type));
        Self { order, nanoseconds, bytes }
    }

    /// The usual one: little endian, nanoseconds, Ethernet.
    pub(crate) fn ethernet() -> Self {
        Self::new(Order::Little, true, 1)
    }

    pub(crate) fn frame(&mut self, stamp_ns: i64, frame: &[u8]) -> &mut Self {
        self.cut_frame(stamp_ns, frame, frame.len() as u32)
    }

    /// A frame of which only `kept` of its `length` bytes were recorded.
    pub(crate) fn cut_frame(&mut self, stamp_ns: i64, kept: &[u8], length: u32) -> &mut Self {
        let unit_ns = if self.nanoseconds { 1 } else { 1000 };
        let seconds = stamp_ns.div_euclid(SECOND_NS) as u32;
        let fraction = (stamp_ns.rem_euclid(SECOND_NS) / unit_ns) as u32;
        self.record([seconds, fraction, kept.len() as u32, length], kept)
    }

    /// A record with any header.
    pub(crate) fn record(&mut self, header: [u32; 4], body: &[u8]) -> &mut Self {
        for word in header {
            self.bytes.extend(self.order.u32(word));
        }
        self.bytes.extend(body);
        self
    }
}

/// A pcapng file being written.
#[derive(Debug, Clone)]
pub(crate) struct Pcapng {
    pub(crate) order: Order,
    pub(crate) bytes: Vec<u8>,
}

impl Pcapng {
    /// Begins with a section header.
    pub(crate) fn new(order: Order) -> Self {
        let mut file = Self { order, bytes: Vec::new() };
        file.section(order);
        file
    }

    pub(crate) fn section(&mut self, order: Order) -> &mut Self {
        self.order = order;
        let mut body = order.u32(0x1a2b_3c4d).to_vec();
        body.extend(order.u16(1));
        body.extend(order.u16(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    /// A block of any type. `body` is padded to a multiple of four.
    pub(crate) fn block(&mut self, kind: u32, body: &[u8]) -> &mut Self {
        let padded = body.len().next_multiple_of(4);
        let length = self.order.u32(padded as u32 + 12);
        self.bytes.extend(self.order.u32(kind));
        self.bytes.extend(length);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(length);
        self
    }

    pub(crate) fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = self.order.u16(code).to_vec();
        option.extend(self.order.u16(value.len() as u16));
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    pub(crate) fn interface(
        &mut self,
        link_type: u16,
        resolution: Option<u8>,
        offset_s: Option<i64>,
    ) -> &mut Self {
        let mut body = self.order.u16(link_type).to_vec();
        body.extend([0, 0]);
        body.extend(self.order.u32(0));
        if let Some(resolution) = resolution {
            body.extend(self.option(9, &[resolution]));
        }
        if let Some(offset_s) = offset_s {
            body.extend(self.option(14, &self.order.u64(offset_s.cast_unsigned())));
        }
        if resolution.is_some() || offset_s.is_some() {
            body.extend(self.option(0, &[]));
        }
        self.block(1, &body)
    }

    pub(crate) fn packet(&mut self, interface: u32, ticks: u64, frame: &[u8]) -> &mut Self {
        self.cut_packet(interface, ticks, frame, frame.len() as u32)
    }

    pub(crate) fn cut_packet(
        &mut self,
        interface: u32,
        ticks: u64,
        kept: &[u8],
        length: u32,
    ) -> &mut Self {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, kept.len() as u32, length];
        let mut body: Vec<u8> = words.iter().flat_map(|&word| self.order.u32(word)).collect();
        body.extend(kept);
        self.block(6, &body)
    }

    pub(crate) fn simple_packet(&mut self, kept: &[u8], length: u32) -> &mut Self {
        let mut body = self.order.u32(length).to_vec();
        body.extend(kept);
        self.block(3, &body)
    }

    /// What the capturing host says about an interface: frames dropped by it and by the host.
    pub(crate) fn statistics(
        &mut self,
        interface: u32,
        by_interface: u64,
        by_host: u64,
    ) -> &mut Self {
        let mut body = self.order.u32(interface).to_vec();
        body.extend([0; 8]);
        body.extend(self.option(5, &self.order.u64(by_interface)));
        body.extend(self.option(7, &self.order.u64(by_host)));
        body.extend(self.option(0, &[]));
        self.block(5, &body)
    }
}

/// `MoonSniff` records: stamp and identifier.
pub(crate) fn mscap(records: &[(u64, u32)]) -> Vec<u8> {
    let bytes = |&(stamp, identifier): &(u64, u32)| {
        let mut record = stamp.to_le_bytes().to_vec();
        record.extend(identifier.to_le_bytes());
        record
    };
    records.iter().flat_map(bytes).collect()
}

/// The frame with the trailer of an X552 NIC.
pub(crate) fn x552(frame: &[u8], nanoseconds: u32, seconds: u32) -> Vec<u8> {
    let trailer = [nanoseconds.to_le_bytes(), seconds.to_le_bytes()];
    [frame, trailer.as_flattened()].concat()
}

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

/// The same bytes as a mapped file, as a pipe, and byte by byte.
pub(crate) fn inputs(bytes: &[u8]) -> [Box<dyn Input>; 3] {
    [
        Box::new(Whole::new(bytes.to_vec())),
        Box::new(Streamed::new(Trickle::new(bytes.to_vec()))),
        Box::new(Creeping::new(bytes.to_vec())),
    ]
}

/// How to open a capture.
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

    pub(crate) fn open(self, input: Box<dyn Input>) -> Result<Capture, CaptureError> {
        Capture::open(NAME, input, self.stamps, self.moonsniff, self.salvage)
    }
}

/// Everything that comes out of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) records: Vec<Record>,
    /// The error at which it failed, as text.
    pub(crate) error: Option<String>,
    /// What can be done about it.
    pub(crate) hint: Option<Remedy>,
    /// The damage at which it was salvaged, as text.
    pub(crate) damage: Option<String>,
    pub(crate) tap_drops: Option<u64>,
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
