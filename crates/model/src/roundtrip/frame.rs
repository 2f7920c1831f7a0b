//! Requests and replies as whole frames: Ethernet, perhaps a VLAN tag, IPv4 or IPv6, UDP.
//!
//! For reflectors that see frames before the kernel's stack does. What the stack would check is checked here,
//! but not the checksum of a request: between virtual interfaces it is left unfinished.

use super::icmp::{folded, sum};
use super::reflect::{Arrival, Reflector, Refusal, Reply, Service};
use super::tlv::StampedBy;
use super::{field, put};
use std::net::{IpAddr, SocketAddr};

const ETHERNET: usize = 14;
const TAG: usize = 4;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;
/// TTL and hop limit of echoes; test packets say themselves.
const HOPS: u8 = 64;

/// How a frame came.
#[derive(Debug, Clone, Copy)]
pub struct Came {
    /// T2, `CLOCK_REALTIME`.
    pub received_ns: i64,
    /// Who took it.
    pub by: StampedBy,
    /// A clock that never steps.
    pub now_ns: i64,
    /// Whether it was longer than what is here.
    pub truncated: bool,
}

/// A reply as a frame, still without T3.
#[derive(Debug, Clone, Copy)]
pub struct FrameReply {
    reply: Reply,
    at: Places,
}

/// Where things stand.
#[derive(Debug, Clone, Copy)]
struct Places {
    network: usize,
    transport: usize,
    end: usize,
    v6: bool,
    /// Whether the request had a checksum; over IPv4 it need not.
    checked: bool,
}

impl Places {
    /// Bytes of an address and where the source's begin; the destination's follow.
    fn addresses(&self) -> (usize, usize) {
        if self.v6 { (16, self.network + 8) } else { (4, self.network + 12) }
    }
}

/// Finds a UDP packet that is whole; `None` where it is none, or a fragment, or has IPv6 extensions or IPv4
/// options, which the kernel may know.
fn places(frame: &[u8]) -> Option<Places> {
    let tagged = matches!(frame.get(12..14)?, [0x81, 0x00] | [0x88, 0xa8]);
    let network = ETHERNET + if tagged { TAG } else { 0 };
    let v6 = match frame.get(network - 2..network)? {
        [0x08, 0x00] => false,
        [0x86, 0xdd] => true,
        _ => return None,
    };
    let packet = frame.get(network..)?;
    let transport = network + if v6 { IPV6 } else { IPV4 };
    if packet.len() < transport - network + UDP {
        return None;
    }
    let word = |at: usize| usize::from(u16::from_be_bytes(field(packet, at)));
    let length = if v6 { word(4) + IPV6 } else { word(2) };
    let plain = if v6 {
        packet[0] >> 4 == 6 && packet[6] == PROTOCOL_UDP
    } else {
        packet[0] == 0x45 && word(6) & 0x3fff == 0 && packet[9] == PROTOCOL_UDP
    };
    let datagram = word(transport - network + 4);
    // The datagram ends where the packet does; behind it may be padding of Ethernet.
    let whole =
        datagram >= UDP && transport - network + datagram == length && length <= packet.len();
    let checked = word(transport - network + 6) != 0;
    (plain && whole).then_some(Places { network, transport, end: network + length, v6, checked })
}

fn address(frame: &[u8], at: usize, v6: bool) -> IpAddr {
    if v6 { IpAddr::from(field::<16>(frame, at)) } else { IpAddr::from(field::<4>(frame, at)) }
}

/// Makes a frame with a request the one with its reply, for [`finish`] to complete. `None` where it is no
/// request to one of the services; nothing is counted then.
///
/// # Errors
/// Why it gets no reply, which is counted.
pub fn reflect(
    reflector: &mut Reflector,
    services: &[(Service, u16)],
    came: &Came,
    frame: &mut [u8],
) -> Option<Result<FrameReply, Refusal>> {
    let at = places(frame)?;
    let (address_len, source) = at.addresses();
    let [from_port, port] =
        [0, 2].map(|offset| u16::from_be_bytes(field(frame, at.transport + offset)));
    let (service, _) = services.iter().find(|(_, service_port)| *service_port == port)?;
    let (from, to) = (address(frame, source, at.v6), address(frame, source + address_len, at.v6));
    let [class, hops] = if at.v6 {
        [frame[at.network] << 4 | frame[at.network + 1] >> 4, frame[at.network + 7]]
    } else {
        [frame[at.network + 1], frame[at.network + 8]]
    };
    let arrival = Arrival {
        from: SocketAddr::new(from, from_port),
        to: Some(to),
        port,
        received_ns: came.received_ns,
        by: came.by,
        now_ns: came.now_ns,
        hops: Some(hops),
        traffic_class: Some(class),
        mac: Some(field(frame, 6)),
        truncated: came.truncated,
    };
    let reply = reflector.reflect(*service, &arrival, &mut frame[at.transport + UDP..at.end]);
    Some(reply.map(|reply| {
        turn_round(frame, &at);
        header(frame, &at, &reply);
        FrameReply { reply, at }
    }))
}

fn turn_round(frame: &mut [u8], at: &Places) {
    let (address_len, source) = at.addresses();
    for (start, length) in [(0, 6), (source, address_len), (at.transport, 2)] {
        let (one, other) = frame[start..start + 2 * length].split_at_mut(length);
        one.swap_with_slice(other);
    }
}

fn header(frame: &mut [u8], at: &Places, reply: &Reply) {
    let hops = reply.hops.unwrap_or(HOPS);
    let header = &mut frame[at.network..at.transport];
    if at.v6 {
        header[0] = 0x60 | reply.traffic_class >> 4;
        header[1] = header[1] & 0x0f | reply.traffic_class << 4;
        header[7] = hops;
    } else {
        (header[1], header[8]) = (reply.traffic_class, hops);
        put(header, 10, &[0; 2]);
        let checksum = folded(sum(header));
        put(header, 10, &checksum.to_be_bytes());
    }
}

/// Writes T3 and the checksum.
pub fn finish(reflector: &Reflector, reply: &FrameReply, frame: &mut [u8], sent_ns: i64) {
    let FrameReply { reply, at } = reply;
    let Some(datagram) = frame.get_mut(at.transport..at.end) else { return };
    reflector.stamp(reply, &mut datagram[UDP..], sent_ns);
    put(datagram, 6, &[0; 2]);
    if !at.checked && !at.v6 {
        return;
    }
    let total = sum(datagram) + datagram.len() as u64 + u64::from(PROTOCOL_UDP);
    let (address_len, source) = at.addresses();
    let pseudo = sum(&frame[source..source + 2 * address_len]);
    let checksum = match folded(total + pseudo) {
        // 0 would say that there is none.
        0 => 0xffff,
        checksum => checksum,
    };
    put(frame, at.transport + 6, &checksum.to_be_bytes());
}
