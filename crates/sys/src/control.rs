//! Control messages: data that goes to the kernel and comes from it together with a datagram.
//!
//! A control message is a length, a level and a type, then its data, all in the order of this machine; the
//! next one starts at a multiple of the word size (cmsg(3)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `SCM_TS_OPT_ID` of `<asm-generic/socket.h>`, Linux 6.13; not in libc.
const SCM_TS_OPT_ID: libc::c_int = 81;
/// `<linux/if_packet.h>`; not in libc.
const PACKET_TX_TIMESTAMP: libc::c_int = 16;
const SCM_TIMESTAMPING: libc::c_int = libc::SO_TIMESTAMPING;

/// `<linux/errqueue.h>`
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;
const ORIGIN_TIMESTAMPING: u8 = 4;
const ORIGIN_TXTIME: u8 = 6;
/// `SO_EE_CODE_TXTIME_MISSED`; the other code is of a frame that `send` has refused, too.
const TXTIME_MISSED: u8 = 2;

const WORD: usize = size_of::<usize>();
const HEADER_LEN: usize = WORD + 8;

/// A point on the way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Handed to the queueing discipline.
    Queued,
    /// Handed by the driver to the NIC; with a hardware stamp, on the wire.
    Sent,
}

/// Why a datagram does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// An ICMP message says so.
    Icmp {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// An ICMPv6 message says so.
    Icmp6 {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// This host says so.
    Local {
        /// The error's number.
        errno: i32,
    },
}

/// Control messages to send, at most those for source, class, hops and key.
#[derive(Debug, Clone, Copy)]
pub struct Builder {
    bytes: [u8; 128],
    length: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self { bytes: [0; 128], length: 0 }
    }
}

impl Builder {
    /// All of them, one behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn add(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let Some(room) = self.bytes.get_mut(self.length..) else { return };
        let Some(room) = room.get_mut(..aligned(HEADER_LEN + data.len())) else { return };
        room[..WORD].copy_from_slice(&(HEADER_LEN + data.len()).to_ne_bytes());
        room[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        room[WORD + 4..HEADER_LEN].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER_LEN..HEADER_LEN + data.len()].copy_from_slice(data);
        self.length += aligned(HEADER_LEN + data.len());
    }

    /// Sends from this address.
    pub fn source(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                // struct in_pktinfo: interface, source, destination.
                let mut data = [0; 12];
                data[4..8].copy_from_slice(&address.octets());
                self.add(libc::SOL_IP, libc::IP_PKTINFO, &data);
            }
            IpAddr::V6(address) => {
                // struct in6_pktinfo: address, interface.
                let mut data = [0; 20];
                data[..16].copy_from_slice(&address.octets());
                self.add(libc::SOL_IPV6, libc::IPV6_PKTINFO, &data);
            }
        }
    }

    /// Of this traffic class.
    pub fn traffic_class(&mut self, is_v6: bool, class: u8) {
        let (level, kind) =
            if is_v6 { (libc::SOL_IPV6, libc::IPV6_TCLASS) } else { (libc::SOL_IP, libc::IP_TOS) };
        self.add(level, kind, &libc::c_int::from(class).to_ne_bytes());
    }

    /// With this TTL or hop limit.
    pub fn hops(&mut self, is_v6: bool, hops: u8) {
        let (level, kind) = if is_v6 {
            (libc::SOL_IPV6, libc::IPV6_HOPLIMIT)
        } else {
            (libc::SOL_IP, libc::IP_TTL)
        };
        self.add(level, kind, &libc::c_int::from(hops).to_ne_bytes());
    }

    /// Departs at this time of the clock that the socket has (`SO_TXTIME`).
    pub fn departure(&mut self, at_ns: u64) {
        self.add(libc::SOL_SOCKET, libc::SCM_TXTIME, &at_ns.to_ne_bytes());
    }

    /// Key with which the stamps of this datagram come back.
    pub fn key(&mut self, key: u32) {
        self.add(libc::SOL_SOCKET, SCM_TS_OPT_ID, &key.to_ne_bytes());
    }
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(WORD)
}

/// All data that came from the kernel with a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// Stamp of the kernel, `CLOCK_REALTIME`.
    pub software_ns: Option<i64>,
    /// Stamp of the NIC, by its own clock.
    pub hardware_ns: Option<i64>,
    /// TTL or hop limit.
    pub hops: Option<u8>,
    /// DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// To which address of this host.
    pub to: Option<IpAddr>,
    /// A notice about what was sent.
    pub error: Option<Extended>,
}

/// `struct sock_extended_err`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extended {
    /// The error's number.
    pub errno: i32,
    origin: u8,
    kind: u8,
    code: u8,
    info: u32,
    /// The number of the datagram, of a stamp.
    pub data: u32,
    /// Sender of the ICMP message.
    pub offender: Option<IpAddr>,
}

impl Extended {
    /// At which point of the way out a stamp was taken; `None` where this is not a stamp.
    pub fn point(&self) -> Option<Point> {
        match (self.origin, self.info) {
            (ORIGIN_TIMESTAMPING, 1) => Some(Point::Queued),
            (ORIGIN_TIMESTAMPING, 0) => Some(Point::Sent),
            _ => None,
        }
    }

    /// Whether the queueing discipline dropped it, because its time had passed.
    pub fn is_missed(&self) -> bool {
        self.origin == ORIGIN_TXTIME && self.code == TXTIME_MISSED
    }

    /// Why a datagram did not arrive.
    pub fn cause(&self) -> ErrorOrigin {
        match self.origin {
            ORIGIN_ICMP => ErrorOrigin::Icmp { kind: self.kind, code: self.code },
            ORIGIN_ICMP6 => ErrorOrigin::Icmp6 { kind: self.kind, code: self.code },
            _ => ErrorOrigin::Local { errno: self.errno },
        }
    }
}

/// Reads control messages. Unknown ones and an incomplete end are skipped.
pub fn parse(mut bytes: &[u8]) -> Said {
    let mut said = Said::default();
    while let Some((level, kind, data, rest)) = next(bytes) {
        note(&mut said, level, kind, data);
        bytes = rest;
    }
    said
}

fn next(bytes: &[u8]) -> Option<(libc::c_int, libc::c_int, &[u8], &[u8])> {
    let length = usize::from_ne_bytes(*bytes.first_chunk()?);
    let data = bytes.get(HEADER_LEN..length)?;
    let rest = bytes.get(aligned(length)..).unwrap_or_default();
    Some((integer(&bytes[WORD..])?, integer(&bytes[WORD + 4..])?, data, rest))
}

fn note(said: &mut Said, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
    match (level, kind) {
        (libc::SOL_SOCKET, SCM_TIMESTAMPING) => {
            // Three times: software, no longer used, the NIC's own. Missing ones are zero.
            said.software_ns = time_ns(data);
            said.hardware_ns = data.get(32..).and_then(time_ns);
        }
        (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
            said.hops = integer(data).and_then(|hops| u8::try_from(hops).ok());
        }
        (libc::SOL_IP, libc::IP_TOS) => said.traffic_class = data.first().copied(),
        (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
            said.traffic_class = integer(data).and_then(|class| u8::try_from(class).ok());
        }
        (libc::SOL_IP, libc::IP_PKTINFO) => {
            // The last of the three is the destination address in the packet, whichever host it was routed to.
            let address = data.get(8..).and_then(|data| data.first_chunk::<4>());
            said.to = address.map(|octets| IpAddr::V4(Ipv4Addr::from(*octets)));
        }
        (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
            let address = data.first_chunk::<16>();
            said.to = address.map(|octets| IpAddr::V6(Ipv6Addr::from(*octets)));
        }
        (libc::SOL_IP, libc::IP_RECVERR)
        | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        | (libc::SOL_PACKET, PACKET_TX_TIMESTAMP) => {
            said.error = extended(data);
        }
        _ => {}
    }
}

fn extended(data: &[u8]) -> Option<Extended> {
    let (head, offender) = data.split_first_chunk::<16>()?;
    Some(Extended {
        errno: integer(head)?,
        origin: head[4],
        kind: head[5],
        code: head[6],
        info: u32::from_ne_bytes(*head[8..].first_chunk()?),
        data: u32::from_ne_bytes(*head[12..].first_chunk()?),
        offender: crate::address::decode(offender).map(|address| address.ip()),
    })
}

fn integer(bytes: &[u8]) -> Option<libc::c_int> {
    bytes.first_chunk().map(|bytes| libc::c_int::from_ne_bytes(*bytes))
}

/// `struct timespec` of 64-bit kernels as nanoseconds; `None` for zero, which means that there is none.
fn time_ns(bytes: &[u8]) -> Option<i64> {
    let seconds = i64::from_ne_bytes(*bytes.first_chunk()?);
    let nanoseconds = i64::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    let time_ns = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    (time_ns != 0).then_some(time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_sent_can_be_read() {
        let mut builder = Builder::default();
        builder.source("2001:db8::1".parse().unwrap());
        builder.traffic_class(true, 0xb8);
        builder.hops(true, 7);
        builder.key(9);
        let said = parse(builder.bytes());
        assert_eq!(said.to, Some("2001:db8::1".parse().unwrap()));
        assert_eq!((said.traffic_class, said.hops), (Some(0xb8), Some(7)));
        // All four fit, the last one too.
        assert_eq!(builder.bytes().len(), aligned(HEADER_LEN + 20) + 3 * aligned(HEADER_LEN + 4));
    }

    #[test]
    fn a_stamp_of_the_way_out() {
        let mut builder = Builder::default();
        let mut times = [0; 48];
        times[..8].copy_from_slice(&3_i64.to_ne_bytes());
        times[8..16].copy_from_slice(&14_i64.to_ne_bytes());
        builder.add(libc::SOL_SOCKET, SCM_TIMESTAMPING, &times);
        let mut error = [0; 32];
        error[..4].copy_from_slice(&libc::ENOMSG.to_ne_bytes());
        error[4] = ORIGIN_TIMESTAMPING;
        error[8..12].copy_from_slice(&1_u32.to_ne_bytes());
        error[12..16].copy_from_slice(&77_u32.to_ne_bytes());
        builder.add(libc::SOL_IP, libc::IP_RECVERR, &error);
        let said = parse(builder.bytes());
        assert_eq!((said.software_ns, said.hardware_ns), (Some(3_000_000_014), None));
        let extended = said.error.unwrap();
        assert_eq!((extended.point(), extended.data), (Some(Point::Queued), 77));
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }
    }
}
