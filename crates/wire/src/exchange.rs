//! Requests and replies: which packet answers which, of what an observer sees on the wire.
//!
//! | protocol | request | reply | key beside both addresses |
//! |---|---|---|---|
//! | ICMP and ICMPv6 echo | echo | echo reply | identifier, sequence number |
//! | UDP echo (RFC 862) | to port 7 | from port 7 | ports, first bytes of the payload |
//! | STAMP, TWAMP-Test | to port 862 | from port 862 | ports, the sender's sequence number |
//! | DNS | to port 53, QR 0 | from port 53, QR 1 | ports, identifier |
//! | TCP handshake | SYN | SYN and ACK | ports, sequence number |
//! | TCP timestamps (RFC 7323) | TSval of a segment with data | TSecr | ports, TSval |
//!
//! Both directions of a TCP connection have timestamps; the requests here go to the lower port, which is that of the
//! server. A TSval stands on all segments of a millisecond or more, and a TSecr on all that answer them: the first one
//! of each counts ([`Message::counter`]).

use crate::flow::Flow;
use crate::frame::{Layers, Link, Transport, Walk};
use crate::icmp::{HEADER_LEN, Version};
use crate::stamp;
use std::net::IpAddr;

/// A protocol whose packets say which request they answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// ICMP and ICMPv6 echo.
    Icmp,
    /// UDP echo.
    UdpEcho,
    /// STAMP and TWAMP-Test.
    Stamp,
    /// DNS over UDP.
    Dns,
    /// The handshake of TCP.
    TcpHandshake,
    /// The timestamp option of TCP.
    TcpTimestamp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Icmp, Self::UdpEcho, Self::Stamp, Self::Dns, Self::TcpHandshake, Self::TcpTimestamp];

    /// Name on command lines and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::UdpEcho => "udp-echo",
            Self::Stamp => "stamp",
            Self::Dns => "dns",
            Self::TcpHandshake => "tcp-handshake",
            Self::TcpTimestamp => "tcp-timestamp",
        }
    }
}

/// Side of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Asks.
    Request,
    /// Answers.
    Reply,
}

/// First bytes of an echoed payload that tell requests apart.
const ECHOED: usize = 24;

/// A request, or the reply to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its side.
    pub part: Part,
    /// Flow of the request.
    pub flow: Flow,
    /// Number of the request within the flow, in the first bytes.
    number: [u8; ECHOED],
}

impl Message {
    /// Bytes that a request and its reply have in common, and no other exchange.
    #[must_use]
    pub fn key(&self) -> [u8; KEY_LEN] {
        let mut key = [0; KEY_LEN];
        let Flow { source, destination, protocol: _, ports } = self.flow;
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let [from, to] = ports.unwrap_or_default().map(u16::to_be_bytes);
        let addresses = [octets(source), octets(destination)];
        let parts =
            [&[self.protocol as u8][..], addresses.as_flattened(), &from, &to, &self.number];
        key.iter_mut().zip(parts.into_iter().flatten()).for_each(|(byte, of)| *byte = *of);
        key
    }

    /// A counter that goes up, modulo 2³², where several packets carry the same one and the first counts.
    #[must_use]
    pub fn counter(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.number;
        (self.protocol == Protocol::TcpTimestamp).then(|| u32::from_be_bytes([a, b, c, d]))
    }
}

/// Bytes of [`Message::key`].
pub const KEY_LEN: usize = 1 + 32 + 4 + ECHOED;

impl Message {
    /// The message in a frame, that of the outermost packet that has one.
    #[must_use]
    pub fn of_frame(link: Link, frame: &[u8]) -> Option<Self> {
        Walk::new(link, frame)
            .find_map(|place| of_packet(&place.layers?, frame.get(place.start..place.end)?))
    }
}

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const ECHO_PORT: u16 = 7;
const DNS_PORT: u16 = 53;

fn of_packet(layers: &Layers, packet: &[u8]) -> Option<Message> {
    if layers.later_fragment {
        return None;
    }
    let flow = Flow::of_packet(layers, packet)?;
    let payload = packet.get(layers.payload..layers.end.min(packet.len()))?;
    match (layers.transport, layers.protocol) {
        (Some(Transport::Udp), _) => datagram(flow, payload),
        // The length says whether a segment has data, also where the capture cut it.
        (Some(Transport::Tcp), _) => {
            segment(flow, payload, layers.end.saturating_sub(layers.payload))
        }
        (None, ICMP) => echo(Version::V4, flow, payload),
        (None, ICMP_V6) => echo(Version::V6, flow, payload),
        _ => None,
    }
}

/// Side of a packet of a flow, where the server has this port.
fn part(flow: Flow, port: u16) -> Option<Part> {
    match flow.ports? {
        [_, destination] if destination == port => Some(Part::Request),
        [source, _] if source == port => Some(Part::Reply),
        _ => None,
    }
}

fn message(protocol: Protocol, part: Part, sender: Flow, number: &[u8]) -> Message {
    let mut kept = [0; ECHOED];
    kept.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
    let flow = if part == Part::Request { sender } else { sender.reversed() };
    Message { protocol, part, flow, number: kept }
}

fn echo(version: Version, flow: Flow, payload: &[u8]) -> Option<Message> {
    // Without its data, so that a cut frame is none with a wrong checksum: who observes does not judge.
    let (header, _) = payload.split_first_chunk::<HEADER_LEN>()?;
    let part = match (version, header[0], header[1]) {
        (Version::V4, 8, 0) | (Version::V6, 128, 0) => Part::Request,
        (Version::V4, 0, 0) | (Version::V6, 129, 0) => Part::Reply,
        _ => return None,
    };
    Some(message(Protocol::Icmp, part, flow, &header[4..]))
}

fn datagram(flow: Flow, payload: &[u8]) -> Option<Message> {
    let (_, payload) = payload.split_first_chunk::<8>()?;
    // Ports tell no sides where both are the server's.
    let side = |part, port, is_reply| match flow.ports {
        Some(ports) if ports == [port; 2] && is_reply => Part::Reply,
        _ => part,
    };
    if let Some(part) = part(flow, DNS_PORT) {
        let is_response = payload.get(2)? & 0x80 != 0;
        let part = side(part, DNS_PORT, is_response);
        return (payload.len() >= 12 && is_response == (part == Part::Reply))
            .then(|| message(Protocol::Dns, part, flow, &payload[..2]));
    }
    if let Some(part) = part(flow, stamp::PORT) {
        let part = side(part, stamp::PORT, stamp::is_reply(None, payload));
        // A reply has the sender's number behind its own and its own stamps.
        let at = if part == Part::Request { 0 } else { 24 };
        return Some(message(Protocol::Stamp, part, flow, payload.get(at..at + 4)?));
    }
    let part = part(flow, ECHO_PORT)?;
    Some(message(Protocol::UdpEcho, part, flow, payload))
}

const SYN: u8 = 0x02;
const FIN: u8 = 0x01;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

fn segment(flow: Flow, bytes: &[u8], whole: usize) -> Option<Message> {
    let header = bytes.first_chunk::<20>()?;
    let flags = header[13];
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if flags & SYN != 0 {
        let (part, number) = if flags & ACK == 0 {
            (Part::Request, word(4).wrapping_add(1))
        } else {
            (Part::Reply, word(8))
        };
        return Some(message(Protocol::TcpHandshake, part, flow, &number.to_be_bytes()));
    }
    let length = usize::from(header[12] >> 4) * 4;
    let [value, echoed] = timestamps(bytes.get(20..length)?)?;
    let [source, destination] = flow.ports?;
    let to_server = (destination, flow.destination) < (source, flow.source);
    // A segment without data is not acknowledged.
    let has_data = whole > length || flags & FIN != 0;
    if to_server {
        has_data.then(|| message(Protocol::TcpTimestamp, Part::Request, flow, &value))
    } else {
        (flags & (ACK | RST) == ACK)
            .then(|| message(Protocol::TcpTimestamp, Part::Reply, flow, &echoed))
    }
}

/// TSval and TSecr among the options of a segment.
fn timestamps(mut options: &[u8]) -> Option<[[u8; 4]; 2]> {
    loop {
        match *options {
            [1, ref rest @ ..] => options = rest,
            [8, 10, a, b, c, d, e, f, g, h, ..] => return Some([[a, b, c, d], [e, f, g, h]]),
            [kind, length, ..] if kind != 0 && length >= 2 => {
                options = options.get(usize::from(length)..)?;
            }
            _ => return None,
        }
    }
}
