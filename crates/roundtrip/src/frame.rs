//! Requests and replies as whole frames: Ethernet, perhaps a VLAN tag, IPv4 or IPv6, UDP.
//!
//! For reflectors that see frames before the kernel's stack does. The checks of the stack are made here, by the same
//! rules, except for the checksum of IPv4's header and for addresses: the program in front of the port passes frames to
//! the kernel that have wrong ones.

use super::reflect::{Arrival, Reflector, Refusal, Reply, Service};
use std::net::{IpAddr, SocketAddr};
use tailtrim_wire::bytes::{field, put};
use tailtrim_wire::checksum::{folded, of_udp, sum};
use tailtrim_wire::frame::{Link, Transport, layers};
use tailtrim_wire::tlv::StampedBy;

const ETHERNET: usize = 14;
const TAG: usize = 4;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// Arrival of a frame: time, clock and truncation.
#[derive(Debug, Clone, Copy)]
pub struct Came {
    /// T2, `CLOCK_REALTIME`.
    pub received_ns: i64,
    /// Source of T2.
    pub by: StampedBy,
    /// A clock that never steps.
    pub now_ns: i64,
    /// Whether the frame was longer than the bytes that are here.
    pub truncated: bool,
}

/// A reply as a frame, still without T3.
#[derive(Debug, Clone, Copy)]
pub struct FrameReply {
    reply: Reply,
    at: Places,
}

/// Positions of the headers in a frame.
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

/// Finds a whole UDP packet. `None` for other packets and fragments, for a wrong checksum, and for two VLAN tags, IPv6
/// extensions or IPv4 options, which are left to the kernel.
fn places(frame: &[u8]) -> Option<Places> {
    let (ethertype, network) = Link::Ethernet.payload(frame)?;
    let packet = frame.get(network..)?;
    let found = layers(ethertype, packet)?;
    let headers = if found.v6 { IPV6 } else { IPV4 };
    let plain = network <= ETHERNET + TAG
        && found.payload == headers
        && found.transport == Some(Transport::Udp)
        && !found.fragment;
    // Behind the packet may be padding of Ethernet.
    let datagram =
        packet.get(headers..found.end).filter(|datagram| plain && datagram.len() >= UDP)?;
    let word = |at: usize| usize::from(u16::from_be_bytes(field(datagram, at)));
    let (length, checked) = (word(4), word(6) != 0);
    // The length 0, as in a jumbogram.
    let length = if found.v6 && length == 0 { datagram.len() } else { length };
    // Behind the datagram may be UDP options (RFC 9868).
    let whole = (UDP..=datagram.len()).contains(&length) && (checked || !found.v6);
    let transport = network + headers;
    let at = Places { network, transport, end: transport + length, v6: found.v6, checked };
    (whole && (!checked || is_sound(frame, &at))).then_some(at)
}

/// Whether the checksum is right, or that of the pseudo header alone, as virtual interfaces leave it.
fn is_sound(frame: &[u8], at: &Places) -> bool {
    let datagram = &frame[at.transport..at.end];
    let pseudo_header = pseudo_header(frame, at);
    folded(pseudo_header + sum(datagram)) == 0
        || folded(pseudo_header) == !u16::from_be_bytes(field(datagram, 6))
}

fn pseudo_header(frame: &[u8], at: &Places) -> u64 {
    let (address_len, source) = at.addresses();
    let length = (at.end - at.transport) as u64;
    sum(&frame[source..source + 2 * address_len]) + length + u64::from(PROTOCOL_UDP)
}

fn address(frame: &[u8], at: usize, v6: bool) -> IpAddr {
    if v6 { IpAddr::from(field::<16>(frame, at)) } else { IpAddr::from(field::<4>(frame, at)) }
}

/// Turns the frame of a request into that of its reply; [`finish`] completes it. `None` where it is no request to one
/// of the services; nothing is counted then.
///
/// # Errors
/// The reason for a refusal, which is counted.
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
    let header = &mut frame[at.network..at.transport];
    if at.v6 {
        header[0] = 0x60 | reply.traffic_class >> 4;
        header[1] = header[1] & 0x0f | reply.traffic_class << 4;
        header[7] = reply.hops;
    } else {
        (header[1], header[8]) = (reply.traffic_class, reply.hops);
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
    let total = sum(datagram) + pseudo_header(frame, at);
    put(frame, at.transport + 6, &of_udp(total).to_be_bytes());
}
