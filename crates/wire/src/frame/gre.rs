//! GRE, and what is built on it: PPTP and ERSPAN.

use super::encapsulation::{BRIDGED, Encapsulation, Step, ethernet, ip, ppp};
use super::{be16, be32};

/// GRE with checksum, key and sequence number (RFC 2784, RFC 2890); with a routing field it is obsolete and not read.
const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Of PPTP (RFC 2637).
const ACKNOWLEDGED: u16 = 0x0080;

const PPP: u16 = 0x880b;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// Protocol numbers below are not ethertypes: 0 is a keepalive.
const LEAST_ETHERTYPE: u16 = 0x0600;

/// The packet behind the GRE header at `at`.
pub(super) fn gre(packet: &[u8], at: usize) -> Option<Step> {
    let (flags, protocol) = (be16(packet, at)?, be16(packet, at + 2)?);
    let has = |bit: u16| usize::from(flags & bit != 0);
    let into = |encapsulation, inner: Option<_>| Some((encapsulation, Some(inner?)));
    match flags & 7 {
        0 if flags & ROUTING == 0 => {
            let offset = at + 4 + 4 * (has(CHECKSUM) + has(KEY) + has(SEQUENCE));
            match protocol {
                BRIDGED => into(Encapsulation::Gre, ethernet(packet, offset)),
                PPP => into(Encapsulation::Gre, behind(packet, offset, ppp)),
                // Type I has no header of its own, type II one of eight bytes.
                ERSPAN => into(Encapsulation::Erspan, ethernet(packet, offset + 8 * has(SEQUENCE))),
                ERSPAN_3 => into(Encapsulation::Erspan, erspan_3(packet, offset)),
                LEAST_ETHERTYPE.. => into(Encapsulation::Gre, Some((protocol, offset))),
                _ => None,
            }
        }
        1 if protocol == PPP => {
            let offset = at + 8 + 4 * (has(SEQUENCE) + has(ACKNOWLEDGED));
            into(Encapsulation::Pptp, behind(packet, offset, ppp))
        }
        _ => None,
    }
}

/// The packet that `read` finds in the bytes from `offset` on.
pub(super) fn behind(
    packet: &[u8],
    offset: usize,
    read: impl Fn(&[u8]) -> Option<(u16, usize)>,
) -> Option<(u16, usize)> {
    let (ethertype, inner) = read(packet.get(offset..)?)?;
    Some((ethertype, offset + inner))
}

/// ERSPAN type III: a header of twelve bytes, of which the last bit announces eight more.
fn erspan_3(packet: &[u8], at: usize) -> Option<(u16, usize)> {
    let last = be32(packet, at + 8)?;
    let offset = at + 12 + if last & 1 != 0 { 8 } else { 0 };
    match last >> 10 & 0x1f {
        0 => ethernet(packet, offset),
        2 => ip(packet, offset),
        _ => None,
    }
}
