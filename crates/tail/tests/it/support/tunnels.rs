//! Encapsulations built by hand, each around a packet.

use super::frames::{GRE, IPV4, IPV6, Ipv4, Ipv6, UDP, ethernet, gre, udp, vxlan};
use tailtrim_wire::frame::Encapsulation;

/// A frame, and the encapsulations around its innermost packet, outermost first.
pub(crate) struct Wrapped {
    pub(crate) by: Vec<Encapsulation>,
    pub(crate) frame: Vec<u8>,
}

fn wrapped(by: &[Encapsulation], frame: Vec<u8>) -> Wrapped {
    Wrapped { by: by.to_vec(), frame }
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// IPv4 around a payload.
pub(crate) fn in_ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    Ipv4::new(protocol, payload.to_vec()).frame()
}

/// UDP in IPv4 around a payload.
pub(crate) fn in_udp(destination: u16, payload: &[u8]) -> Vec<u8> {
    in_ip(UDP, &udp(50_000, destination, 0, payload))
}

/// A label stack of MPLS.
pub(crate) fn labels(count: u32) -> Vec<u8> {
    (1..=count).flat_map(|at| (at << 16 | u32::from(at == count) << 8 | 64).to_be_bytes()).collect()
}

/// The version of an IP packet, as the encapsulations name it.
fn by_version<T>(ethertype: u16, v4: T, v6: T) -> T {
    if ethertype == IPV4 { v4 } else { v6 }
}

/// Encapsulations of IP packets: `packet` has the given ethertype, [`IPV4`] or [`IPV6`].
pub(crate) fn of_packet(ethertype: u16, packet: &[u8]) -> Vec<Wrapped> {
    let ppp = by_version(ethertype, [0x00, 0x21], [0x00, 0x57]);
    let in_ppp = joined(&[&ppp, packet]);
    let mut all = by_ethertype(ethertype, packet, &in_ppp);
    all.extend(by_protocol(ethertype, packet, &in_ppp));
    all.extend(by_port(ethertype, packet, &in_ppp));
    all
}

fn by_ethertype(ethertype: u16, packet: &[u8], in_ppp: &[u8]) -> Vec<Wrapped> {
    use Encapsulation::*;
    let next = by_version(ethertype, 1, 2);
    let pppoe = |ppp: &[u8]| {
        let length = (ppp.len() as u16).to_be_bytes();
        ethernet(&[], 0x8864, &joined(&[&[0x11, 0, 0, 9], &length, ppp]))
    };
    let mut all = vec![
        wrapped(&[Mpls], ethernet(&[], 0x8847, &joined(&[&labels(1), packet]))),
        wrapped(&[Mpls], ethernet(&[], 0x8848, &joined(&[&labels(3), packet]))),
        wrapped(&[Vlan, Mpls], ethernet(&[(0x9200, 7)], 0x8847, &joined(&[&labels(2), packet]))),
        wrapped(&[Pppoe], pppoe(in_ppp)),
        // A protocol number of one byte, and with address and control.
        wrapped(&[Pppoe], pppoe(&in_ppp[1..])),
        wrapped(&[Pppoe], pppoe(&joined(&[&[0xff, 0x03], in_ppp]))),
        wrapped(&[Pppoe, Mpls], pppoe(&joined(&[&[0x02, 0x81], &labels(1), packet]))),
        wrapped(&[Macsec], {
            let tag = [0x00, 0, 0, 0, 0, 1];
            ethernet(&[], 0x88e5, &joined(&[&tag, &ethertype.to_be_bytes(), packet, &[9; 16]]))
        }),
        wrapped(&[Tag], {
            let stamp = [0, 1, 0, 0x20, 1, 2, 3, 4, 5, 6];
            ethernet(&[], 0xd28b, &joined(&[&stamp, &ethertype.to_be_bytes(), packet]))
        }),
        wrapped(&[Tag], {
            let stamp = [0, 1, 1, 0x11, 1, 2, 3, 4, 5, 6, 7, 8];
            ethernet(&[], 0xd28b, &joined(&[&stamp, &ethertype.to_be_bytes(), packet]))
        }),
        wrapped(&[Nsh], ethernet(&[], 0x894f, &joined(&[&nsh(next), packet]))),
    ];
    for (tag, bytes) in [(0x8926, 4), (0x893f, 6), (0x892f, 4), (0xf1c1, 4), (0x8909, 6)] {
        let payload = joined(&[&[0; 6][..bytes], &ethertype.to_be_bytes(), packet]);
        all.push(wrapped(&[Tag], ethernet(&[], tag, &payload)));
    }
    for tags in [&[(0x88a8, 5), (0x8100, 6)][..], &[(0x9100, 5)], &[(0x9200, 5)], &[(0x9300, 5)]] {
        all.push(wrapped(&vec![Vlan; tags.len()], ethernet(tags, ethertype, packet)));
    }
    all
}

fn by_protocol(ethertype: u16, packet: &[u8], in_ppp: &[u8]) -> Vec<Wrapped> {
    use Encapsulation::*;
    let next = by_version(ethertype, 1, 2);
    let protocol = by_version(ethertype, 4, 41);
    let in_gre = |flags, protocol, payload: &[u8]| in_ip(GRE, &gre(flags, protocol, payload));
    let mut all = vec![
        wrapped(&[Mpls], in_ip(137, &joined(&[&labels(1), packet]))),
        wrapped(&[Gre, Nsh], in_gre(0x2000, 0x894f, &joined(&[&nsh(next), packet]))),
        wrapped(&[Pptp], in_ip(GRE, &joined(&[&[0x20, 1, 0x88, 0x0b, 0, 9, 0, 1], in_ppp]))),
        wrapped(&[Pptp], {
            let header = [0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 5, 0, 0, 0, 4];
            in_ip(GRE, &joined(&[&header, &[0xff, 0x03], in_ppp]))
        }),
        wrapped(&[Erspan], {
            let header = [0x20, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0x08, 0];
            in_gre(0x1000, 0x22eb, &joined(&[&header, packet]))
        }),
        wrapped(&[by_version(ethertype, IpIp, SixInFour)], in_ip(protocol, packet)),
        wrapped(
            &[by_version(ethertype, FourInSix, SixInSix)],
            Ipv6::new(protocol, packet.to_vec()).frame(),
        ),
        wrapped(&[by_version(ethertype, IpIp, SixInFour)], {
            // Authenticated, with a value of 96 bits.
            let header = [&[protocol, 4, 0, 0], [7; 20].as_slice()].concat();
            in_ip(51, &joined(&[&header, packet]))
        }),
        wrapped(&[Srv6], {
            let segments = [vec![0, 0, 4, 1, 1, 0, 0, 0], vec![0xfd; 32]].concat();
            let mut outer = Ipv6::new(protocol, packet.to_vec());
            outer.extensions = vec![(43, segments)];
            outer.frame()
        }),
    ];
    for flags in [0, 0x8000, 0x2000, 0x1000, 0xb000] {
        all.push(wrapped(&[Gre], in_gre(flags, ethertype, packet)));
    }
    all
}

fn by_port(ethertype: u16, packet: &[u8], in_ppp: &[u8]) -> Vec<Wrapped> {
    use Encapsulation::*;
    let next = by_version(ethertype, 1, 2);
    let mut all = vec![
        wrapped(&[Mpls], in_udp(6635, &joined(&[&labels(1), packet]))),
        wrapped(&[VxlanGpe], in_udp(4790, &joined(&[&[0x0c, 0, 0, next, 0, 0, 7, 0], packet]))),
        wrapped(&[VxlanGpe, Nsh], {
            in_udp(4790, &joined(&[&[0x0c, 0, 0, 4, 0, 0, 7, 0], &nsh(next), packet]))
        }),
        wrapped(&[Geneve], {
            let [high, low] = ethertype.to_be_bytes();
            in_udp(6081, &joined(&[&[0, 0, high, low, 0, 0, 7, 0], packet]))
        }),
        wrapped(&[L2tp], in_udp(1701, &joined(&[&[0, 2, 0, 1, 0, 2], in_ppp]))),
        wrapped(&[L2tp], {
            let header = [0x4a, 2, 0, 99, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 0xee, 0xee, 0xff, 0x03];
            in_udp(1701, &joined(&[&header, in_ppp]))
        }),
        wrapped(&[Lisp], in_udp(4341, &joined(&[&[0x80, 0, 0, 0, 0, 0, 0, 0], packet]))),
    ];
    // Of GTP-U: nothing, a sequence number, and two extension headers of 4 and 8 bytes.
    for header in [
        &[0x30, 0xff, 0, 0, 0, 0, 0, 1][..],
        &[0x32, 0xff, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0],
        &[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0xc0, 2, 0, 5, 0, 5, 0, 5, 0],
    ] {
        all.push(wrapped(&[GtpU], in_udp(2152, &joined(&[header, packet]))));
    }
    if ethertype == IPV6 {
        all.push(wrapped(&[Teredo], in_udp(3544, packet)));
        all.push(wrapped(&[Teredo], in_udp(3544, &joined(&[&[0; 8], packet]))));
    }
    all
}

/// Version 0, 24 bytes, a path.
fn nsh(next: u8) -> Vec<u8> {
    [&[0x0f, 0xc6, 1, next, 0, 0, 1, 255], [3; 16].as_slice()].concat()
}

/// Encapsulations of Ethernet frames.
pub(crate) fn of_frame(frame: &[u8]) -> Vec<Wrapped> {
    use Encapsulation::*;
    let in_gre = |flags, protocol, payload: &[u8]| in_ip(GRE, &gre(flags, protocol, payload));
    let vni = [0x08, 0, 0, 0, 0, 0, 42, 0];
    let control_word = [0, 0, 0, 1];
    vec![
        wrapped(&[Pbb], ethernet(&[], 0x88e7, &joined(&[&[0, 0, 0, 9], frame]))),
        wrapped(&[Vlan, Pbb], ethernet(&[(0x88a8, 4)], 0x88e7, &joined(&[&[0, 0, 0, 9], frame]))),
        wrapped(&[Mpls], ethernet(&[], 0x8847, &joined(&[&labels(2), frame]))),
        wrapped(&[Mpls], ethernet(&[], 0x8847, &joined(&[&labels(1), &control_word, frame]))),
        wrapped(&[Gre], in_gre(0x2000, 0x6558, frame)),
        wrapped(&[Erspan], in_gre(0, 0x88be, frame)),
        wrapped(&[Erspan], in_gre(0x1000, 0x88be, &joined(&[&[0x10, 1, 0, 2, 0, 0, 0, 3], frame]))),
        wrapped(&[Erspan], in_gre(0x1000, 0x22eb, &joined(&[&[0x20, 1, 0, 2], &[0; 8], frame]))),
        wrapped(&[Erspan], {
            let header = [0x20, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1];
            in_gre(0x1000, 0x22eb, &joined(&[&header, &[7; 8], frame]))
        }),
        wrapped(&[EtherIp], in_ip(97, &joined(&[&[0x30, 0], frame]))),
        wrapped(&[EtherIp], Ipv6::new(143, frame.to_vec()).frame()),
        wrapped(&[Vxlan], in_ip(UDP, &vxlan(frame))),
        wrapped(&[Vxlan], Ipv6::new(UDP, vxlan(frame)).frame()),
        wrapped(&[Vxlan], in_udp(8472, &joined(&[&vni, frame]))),
        // With a group policy.
        wrapped(&[Vxlan], in_udp(4789, &joined(&[&[0x88, 0, 0, 9, 0, 0, 42, 0], frame]))),
        wrapped(&[VxlanGpe], in_udp(4790, &joined(&[&vni, frame]))),
        wrapped(&[VxlanGpe], in_udp(4790, &joined(&[&[0x0c, 0, 0, 3, 0, 0, 7, 0], frame]))),
        wrapped(&[Geneve], in_udp(6081, &joined(&[&[0, 0, 0x65, 0x58, 0, 0, 7, 0], frame]))),
        wrapped(&[Geneve], {
            let header = [2, 0, 0x65, 0x58, 0, 0, 7, 0, 0xff, 0xff, 0x80, 1, 9, 9, 9, 9];
            in_udp(6081, &joined(&[&header, frame]))
        }),
        wrapped(&[Capwap], in_udp(5247, &joined(&[&[0, 0x10, 2, 0, 0, 0, 0, 0], frame]))),
        wrapped(&[Capwap], {
            // With the address of the radio, and the first part of a frame.
            let header = [0, 0x20, 2, 0x90, 0, 9, 0, 0, 6, 2, 0, 0, 0, 0, 9, 0];
            in_udp(5247, &joined(&[&header, frame]))
        }),
        wrapped(&[Gre, Vxlan], in_gre(0, IPV4, &in_ip(UDP, &vxlan(frame))[14..])),
        wrapped(&[Vxlan, Gre], in_ip(UDP, &vxlan(&in_gre(0, 0x6558, frame)))),
    ]
}

/// Encapsulations that are known by a valid IP packet in them.
pub(crate) fn of_frame_with_packet(frame: &[u8]) -> Vec<Wrapped> {
    use Encapsulation::*;
    let mut all = vec![
        wrapped(&[Vxlan], in_udp(12_345, &joined(&[&[0x08, 0, 0, 0, 0, 0, 42, 0], frame]))),
        wrapped(&[GtpU], in_udp(2152, &joined(&[&[0x30, 0xff, 0, 0, 0, 0, 0, 1], frame]))),
    ];
    for bytes in [0, 4, 8, 12] {
        let cookie = &[0xab; 12][..bytes];
        all.push(wrapped(&[L2tp], in_ip(115, &joined(&[&[0, 0, 0, 1], cookie, frame]))));
        let over_udp = joined(&[&[0, 3, 0, 0, 0, 0, 0, 1], cookie, frame]);
        all.push(wrapped(&[L2tp], in_udp(1701, &over_udp)));
    }
    // Addresses that begin like IP, a control word or a channel, without a control word.
    for first in [0x00, 0x10, 0x44, 0x66, 0xf2] {
        let mut frame = frame.to_vec();
        frame[0] = first;
        all.push(wrapped(&[Mpls], ethernet(&[], 0x8847, &joined(&[&labels(1), &frame]))));
    }
    all
}

/// Packets in which nothing can be seen, with their names.
pub(crate) fn encrypted() -> Vec<Wrapped> {
    use Encapsulation::*;
    let data = [&[4, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0], [0xee; 64].as_slice()].concat();
    let request = [&[1, 0, 0, 0], [0xee; 144].as_slice()].concat();
    vec![
        wrapped(&[Esp], in_ip(50, &[7; 60])),
        wrapped(&[Esp], Ipv6::new(50, vec![7; 60]).frame()),
        wrapped(&[Esp], in_udp(4500, &[7; 60])),
        wrapped(&[WireGuard], in_udp(51_820, &data)),
        wrapped(&[WireGuard], in_udp(33_333, &request)),
        wrapped(&[Macsec], ethernet(&[], 0x88e5, &[&[0x0c], [9; 60].as_slice()].concat())),
        // A frame of the radio, and DTLS.
        wrapped(&[CapwapClosed], in_udp(5247, &[&[0, 0x10, 3, 0], [0x88; 60].as_slice()].concat())),
        wrapped(&[CapwapClosed], in_udp(5247, &[&[1, 0, 0, 0], [0x17; 60].as_slice()].concat())),
    ]
}

/// Frames that look like an encapsulation and are none.
pub(crate) fn none(frame: &[u8]) -> Vec<Vec<u8>> {
    let vni = [0x08, 0, 0, 0, 0, 0, 42, 0];
    let mut damaged = frame.to_vec();
    damaged[14 + 12] ^= 1;
    let fragment = Ipv4 { fragment: 100, ..Ipv4::new(GRE, gre(0, 0x6558, frame)) };
    vec![
        // The checksum of the packet in it is wrong, or a reserved byte is used.
        in_udp(12_345, &joined(&[&vni, &damaged])),
        in_udp(12_345, &joined(&[&[0x08, 0, 1, 0, 0, 0, 42, 0], frame])),
        in_udp(12_345, &joined(&[&[0x08, 0, 0, 0, 0, 0, 42, 1], frame])),
        // No network identifier.
        in_udp(4789, &joined(&[&[0; 8], frame])),
        fragment.frame(),
        // Routing; a keepalive; an unknown version.
        in_ip(GRE, &gre(0x4000, 0x6558, frame)),
        in_ip(GRE, &gre(0, 0, &[])),
        in_ip(GRE, &gre(2, 0x6558, frame)),
        // Echo and control messages.
        in_udp(2152, &joined(&[&[0x30, 1, 0, 0, 0, 0, 0, 0], &frame[14..]])),
        in_udp(1701, &joined(&[&[0xc8, 2, 0, 12, 0, 1, 0, 0], &frame[14..]])),
        in_udp(6081, &joined(&[&[0, 0x80, 0x65, 0x58, 0, 0, 7, 0], frame])),
        in_udp(4500, &joined(&[&[0; 4], frame])),
        // A keepalive, a later part of a frame, and no header.
        in_udp(5247, &joined(&[&[0, 0x10, 2, 8, 0, 0, 0, 0], frame])),
        in_udp(5247, &joined(&[&[0, 0x10, 2, 0x80, 0, 9, 0, 8], frame])),
        in_udp(5247, frame),
        in_udp(4500, &[0xff]),
        ethernet(&[], 0x8863, &joined(&[&[0x11, 9, 0, 0, 0, 0], frame])),
        ethernet(&[], 0x8864, &joined(&[&[0x12, 0, 0, 9, 0, 9, 0, 0x21], &frame[14..]])),
        ethernet(&[], 0x8847, &[0, 0, 0, 0].repeat(20)),
    ]
}
