//! Frames built by hand, checksums included.

pub(crate) const UDP: u8 = 17;
pub(crate) const TCP: u8 = 6;
pub(crate) const GRE: u8 = 47;
pub(crate) const ICMP: u8 = 1;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;

fn ones_complement(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An Ethernet frame with the given VLAN tags (tag protocol, tag control), outermost first.
pub(crate) fn ethernet(vlans: &[(u16, u16)], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
    for &(protocol, control) in vlans {
        frame.extend(protocol.to_be_bytes());
        frame.extend(control.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An IPv4 packet.
#[derive(Debug, Clone)]
pub(crate) struct Ipv4 {
    pub(crate) tos: u8,
    pub(crate) identification: u16,
    /// Flags and fragment offset.
    pub(crate) fragment: u16,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    pub(crate) source: [u8; 4],
    pub(crate) destination: [u8; 4],
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Ipv4 {
    pub(crate) fn new(protocol: u8, payload: Vec<u8>) -> Self {
        Self {
            tos: 0,
            identification: 0x1234,
            fragment: 0x4000,
            ttl: 64,
            protocol,
            source: [10, 0, 0, 1],
            destination: [10, 0, 1, 2],
            options: Vec::new(),
            payload,
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        assert!(self.options.len().is_multiple_of(4));
        let header = 20 + self.options.len();
        let mut packet = vec![0x40 | (header / 4) as u8, self.tos];
        packet.extend(((header + self.payload.len()) as u16).to_be_bytes());
        packet.extend(self.identification.to_be_bytes());
        packet.extend(self.fragment.to_be_bytes());
        packet.extend([self.ttl, self.protocol, 0, 0]);
        packet.extend(self.source);
        packet.extend(self.destination);
        packet.extend(&self.options);
        let checksum = ones_complement(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(&self.payload);
        packet
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        ethernet(&[], IPV4, &self.bytes())
    }
}

/// An IPv6 packet.
#[derive(Debug, Clone)]
pub(crate) struct Ipv6 {
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    /// Protocol numbers and contents of the extension headers; the first two bytes of each are filled in.
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    pub(crate) protocol: u8,
    pub(crate) payload: Vec<u8>,
}

impl Ipv6 {
    pub(crate) fn new(protocol: u8, payload: Vec<u8>) -> Self {
        let address = |last| {
            let mut address = [0; 16];
            (address[0], address[1], address[15]) = (0xfd, 0x01, last);
            address
        };
        Self {
            traffic_class: 0,
            hop_limit: 64,
            source: address(1),
            destination: address(2),
            extensions: Vec::new(),
            protocol,
            payload,
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let following: Vec<u8> = self.extensions[..]
            .iter()
            .map(|(protocol, _)| *protocol)
            .chain([self.protocol])
            .collect();
        let mut body = Vec::new();
        for ((protocol, content), next) in self.extensions.iter().zip(&following[1..]) {
            assert!(content.len().is_multiple_of(8));
            body.push(*next);
            // The fragment header has no length.
            body.push(if *protocol == 44 { 0 } else { (content.len() / 8 - 1) as u8 });
            body.extend(&content[2..]);
        }
        body.extend(&self.payload);
        let class = u32::from(self.traffic_class) << 20;
        let mut packet = (0x6000_0000 | class | 0x000a_bcde).to_be_bytes().to_vec();
        packet.extend((body.len() as u16).to_be_bytes());
        packet.extend([following[0], self.hop_limit]);
        packet.extend(self.source);
        packet.extend(self.destination);
        packet.extend(body);
        packet
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        ethernet(&[], IPV6, &self.bytes())
    }
}

/// A UDP datagram.
pub(crate) fn udp(source: u16, destination: u16, checksum: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = source.to_be_bytes().to_vec();
    datagram.extend(destination.to_be_bytes());
    datagram.extend((payload.len() as u16 + 8).to_be_bytes());
    datagram.extend(checksum.to_be_bytes());
    datagram.extend(payload);
    datagram
}

/// A TCP segment.
pub(crate) fn tcp(source: u16, destination: u16, checksum: u16, payload: &[u8]) -> Vec<u8> {
    let mut segment = source.to_be_bytes().to_vec();
    segment.extend(destination.to_be_bytes());
    segment.extend([0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 0x20, 0]);
    segment.extend(checksum.to_be_bytes());
    segment.extend([0, 0]);
    segment.extend(payload);
    segment
}

/// A UDP probe in IPv4 in Ethernet, with a sequence number.
pub(crate) fn probe(sequence: u32) -> Vec<u8> {
    let mut payload = sequence.to_be_bytes().to_vec();
    payload.extend([0x55; 18]);
    Ipv4::new(UDP, udp(1024, 53, 0, &payload)).frame()
}

/// A VXLAN header and the frame behind it.
pub(crate) fn vxlan(frame: &[u8]) -> Vec<u8> {
    let header = [0x08, 0, 0, 0, 0, 0, 42, 0];
    udp(50_000, 4789, 0, &[&header, frame].concat())
}

/// A GRE header with the optional fields that `flags` announce, and what is behind it.
pub(crate) fn gre(flags: u16, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = flags.to_be_bytes().to_vec();
    bytes.extend(ethertype.to_be_bytes());
    for bit in [0x8000, 0x2000, 0x1000] {
        if flags & bit != 0 {
            bytes.extend([0xab, 0xcd, 0xef, 0x01]);
        }
    }
    bytes.extend(payload);
    bytes
}
