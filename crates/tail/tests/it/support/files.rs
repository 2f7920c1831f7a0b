//! Capture files built by hand.

use super::SECOND_NS;

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
        self.versioned_section(order, [1, 0])
    }

    pub(crate) fn versioned_section(&mut self, order: Order, version: [u16; 2]) -> &mut Self {
        self.order = order;
        let mut body = order.u32(0x1a2b_3c4d).to_vec();
        body.extend(version.map(|number| order.u16(number)).as_flattened());
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

    /// An interface of nanoseconds with a name and a description.
    pub(crate) fn named_interface(&mut self, link_type: u16, names: [&str; 2]) -> &mut Self {
        let mut body = self.order.u16(link_type).to_vec();
        body.extend([0; 6]);
        for (code, name) in [2, 3].into_iter().zip(names) {
            body.extend(self.option(code, name.as_bytes()));
        }
        body.extend(self.option(9, &[9]));
        body.extend(self.option(0, &[]));
        self.block(1, &body)
    }

    /// A packet that was received (1) or sent (2).
    pub(crate) fn directed_packet(
        &mut self,
        interface: u32,
        ticks: u64,
        direction: u32,
        frame: &[u8],
    ) -> &mut Self {
        let length = frame.len() as u32;
        let words = [interface, (ticks >> 32) as u32, ticks as u32, length, length];
        let mut body: Vec<u8> = words.iter().flat_map(|&word| self.order.u32(word)).collect();
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.option(2, &self.order.u32(direction)));
        body.extend(self.option(0, &[]));
        self.block(6, &body)
    }

    /// A packet in the form that enhanced packet blocks replaced.
    pub(crate) fn obsolete_packet(
        &mut self,
        interface: u16,
        ticks: u64,
        frame: &[u8],
    ) -> &mut Self {
        let length = frame.len() as u32;
        let mut body = [interface, 0].map(|number| self.order.u16(number)).concat();
        let words = [(ticks >> 32) as u32, ticks as u32, length, length];
        body.extend(words.iter().flat_map(|&word| self.order.u32(word)));
        body.extend(frame);
        self.block(2, &body)
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

    /// Statistics of an interface by the capturing host: frames dropped by it and by the host.
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

/// A modified pcap of microseconds: records tell interface and packet type.
pub(crate) fn modified_pcap(order: Order, packets: &[(i64, u32, u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Pcap::new(order, false, 1).bytes;
    bytes[..4].copy_from_slice(&order.u32(0xa1b2_cd34));
    for &(stamp_ns, interface, kind, frame) in packets {
        let length = frame.len() as u32;
        let (seconds, fraction) = (stamp_ns / SECOND_NS, stamp_ns % SECOND_NS / 1_000);
        let words = [seconds as u32, fraction as u32, length, length, interface];
        bytes.extend(words.iter().flat_map(|&word| order.u32(word)));
        bytes.extend(order.u16(0x0800));
        bytes.extend([kind, 0]);
        bytes.extend(frame);
    }
    bytes
}

/// A record of ERF: `body` behind the header, with the length on the wire.
pub(crate) fn erf(kind: u8, interface: u8, stamp_ns: i64, wire: usize, body: &[u8]) -> Vec<u8> {
    let fraction = ((stamp_ns % SECOND_NS) as u64 * (1 << 32)) / SECOND_NS as u64;
    let mut bytes = (fraction as u32).to_le_bytes().to_vec();
    bytes.extend(((stamp_ns / SECOND_NS) as u32).to_le_bytes());
    bytes.extend([kind, interface]);
    let length = (16 + body.len()).next_multiple_of(8);
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend((wire as u16).to_be_bytes());
    bytes.extend(body);
    bytes.resize(length, 0);
    bytes
}

/// A record of ERF with a frame of Ethernet, and the FCS that cards capture.
pub(crate) fn erf_ethernet(interface: u8, stamp_ns: i64, frame: &[u8]) -> Vec<u8> {
    let body = [&[0, 0], frame, &[0xfc; 4]].concat();
    erf(2, interface, stamp_ns, frame.len() + 4, &body)
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
