//! Encapsulations on one side: the innermost packet has the signature that it has without them.

use super::{PLAIN, TUNNEL, defined, records, sign};
use crate::support::frames::{IPV4, IPV6, Ipv4, Ipv6, TCP, UDP, ethernet, tcp, udp};
use crate::support::tunnels::{
    Wrapped, encrypted, in_ip, labels, none, of_frame, of_frame_with_packet, of_packet,
};
use proptest::prelude::*;
use std::sync::LazyLock;
use tailtrim_tail::signature::Signer;
use tailtrim_wire::frame::{Encapsulation, Link, Walk, is_bare};

fn packets() -> [(u16, Vec<u8>); 3] {
    [
        (IPV4, Ipv4::new(UDP, udp(1024, 53, 0x1111, b"what is asked, and a bit more")).bytes()),
        (IPV4, Ipv4::new(TCP, tcp(1024, 80, 0x1111, b"GET / HTTP/1.1")).bytes()),
        (IPV6, Ipv6::new(TCP, tcp(1024, 80, 0x1111, b"GET / HTTP/1.1")).bytes()),
    ]
}

/// All encapsulations of each of the packets, with the frame that the packet has without them.
fn all() -> Vec<(Vec<u8>, Wrapped)> {
    let mut all = Vec::new();
    for (ethertype, packet) in packets() {
        let frame = ethernet(&[], ethertype, &packet);
        let wrapped = of_packet(ethertype, &packet).into_iter().chain(of_frame(&frame));
        let wrapped = wrapped.chain(of_frame_with_packet(&frame));
        all.extend(wrapped.map(|wrapped| (frame.clone(), wrapped)));
    }
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1], [7; 20].as_slice()].concat();
    let arp = ethernet(&[], 0x0806, &arp);
    all.extend(of_frame(&arp).into_iter().map(|wrapped| (arp.clone(), wrapped)));
    all
}

fn found(frame: &[u8]) -> Vec<Encapsulation> {
    Walk::new(Link::Ethernet, frame).filter_map(|place| place.encapsulation).collect()
}

#[test]
fn the_innermost_packet_is_found_in_every_encapsulation() {
    for (frame, Wrapped { by, frame: wrapped }) in all() {
        assert_eq!(found(&wrapped), by);
        let innermost = Walk::new(Link::Ethernet, &wrapped).last().unwrap();
        assert!(wrapped[innermost.start..].starts_with(&frame[14..]), "{by:?}");
        assert_eq!(sign(TUNNEL, &wrapped), sign(TUNNEL, &frame), "{by:?}");
        // Without tunnels, masks or none say the same of the frame.
        assert_eq!(sign(PLAIN, &frame), sign(TUNNEL, &frame), "{by:?}");
        let is_tagged = by.iter().all(|one| *one == Encapsulation::Vlan);
        assert_eq!(sign(PLAIN, &wrapped) == sign(PLAIN, &frame), is_tagged, "{by:?}");
    }
}

#[test]
fn packets_of_different_encapsulations_match() {
    let (ethertype, packet) = &packets()[0];
    let frame = ethernet(&[], *ethertype, packet);
    let outside = of_packet(*ethertype, packet);
    for outer in of_frame(&frame).into_iter().chain(of_frame_with_packet(&frame)) {
        for other in &outside {
            assert_eq!(sign(TUNNEL, &outer.frame), sign(TUNNEL, &other.frame), "{:?}", other.by);
        }
        // A tunnel in each of them.
        if outer.frame[12..].starts_with(&IPV4.to_be_bytes()) {
            for nested in of_packet(IPV4, &outer.frame[14..]) {
                assert_eq!(found(&nested.frame), [nested.by, outer.by.clone()].concat());
                assert_eq!(sign(TUNNEL, &nested.frame), sign(TUNNEL, &frame));
            }
        }
    }
}

#[test]
fn encrypted_packets_are_named_and_signed_as_they_are() {
    for Wrapped { by, frame } in encrypted() {
        assert_eq!(found(&frame), by);
        assert_eq!(sign(TUNNEL, &frame), sign(PLAIN, &frame), "{by:?}");
    }
}

#[test]
fn what_looks_like_an_encapsulation_is_none() {
    for (ethertype, packet) in &packets()[..2] {
        for frame in none(&ethernet(&[], *ethertype, packet)) {
            assert_eq!(found(&frame), [], "{frame:02x?}");
            assert_eq!(sign(TUNNEL, &frame), sign(PLAIN, &frame));
        }
    }
}

#[test]
fn without_the_mask_labels_and_sessions_take_part() {
    let (_, packet) = &packets()[0];
    let labelled = [labels(2), packet.clone()].concat();
    assert_eq!(sign(PLAIN, &ethernet(&[], 0x8847, &labelled)), defined(&labelled, &[]));
    let session = [&[0x11, 0, 0, 1, 0, 9, 0, 0x21], packet.as_slice()].concat();
    assert_eq!(sign(PLAIN, &ethernet(&[], 0x8864, &session)), defined(&session, &[]));
}

#[test]
fn bytes_behind_the_outer_packet_take_no_part() {
    // A control message in a tunnel says nothing of its length.
    let inner = ethernet(&[], 0x88cc, &[7; 20]);
    for Wrapped { by, frame } in of_frame(&inner) {
        if !frame[12..].starts_with(&[8, 0]) {
            continue;
        }
        let padded = [frame.as_slice(), &[0x99; 30]].concat();
        assert_eq!(sign(TUNNEL, &padded), sign(TUNNEL, &frame), "{by:?}");
    }
}

#[test]
fn a_nesting_without_end_is_left() {
    let (_, mut packet) = packets()[0].clone();
    for _ in 0..200 {
        packet = in_ip(4, &packet)[14..].to_vec();
    }
    let frame = ethernet(&[], IPV4, &packet);
    assert_eq!(found(&frame).len(), 32);
}

/// Frames of a packet on each link, with its pcap link type.
fn on_links(ethertype: u16, packet: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let joined = |parts: &[&[u8]]| parts.concat();
    let kind = ethertype.to_be_bytes();
    let (family, version) = if ethertype == IPV4 { (2, [0, 0x21]) } else { (10, [0, 0x57]) };
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let length = (packet.len() as u16 + 2).to_be_bytes();
    let attribute = |little: bool| {
        let word = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
        let prefix = joined(&[&word(6), &word(10), b"A\0", &[0, 0]]);
        let payload = [word(packet.len() as u16 + 4), word(9)].concat();
        joined(&[&[family, 0, 0, 42], &prefix, &payload, packet])
    };
    vec![
        (0, joined(&[&[family, 0, 0, 0], packet])),
        (0, joined(&[&[0, 0, 0, family], packet])),
        (108, joined(&[&[0, 0, 0, family], packet])),
        (9, joined(&[&version, packet])),
        (9, joined(&[&[0xff, 3], &version, packet])),
        (50, joined(&[&[0xff, 3], &version, packet])),
        (50, joined(&[&[0x0f, 0], &kind, packet])),
        (51, joined(&[&[0x11, 0, 0, 7], &length, &version, packet])),
        (101, packet.to_vec()),
        (104, joined(&[&[0x0f, 0], &kind, packet])),
        (113, joined(&[&[0; 14], &kind, packet])),
        (239, attribute(true)),
        (239, attribute(false)),
        (276, joined(&[&kind, &[0; 18], packet])),
        (281, joined(&[&addresses, &[0x20, 0, 0, 5], &kind, packet])),
        (282, joined(&[&[0x20, 0, 0, 5], &addresses, &kind, packet])),
        (284, joined(&[&addresses, &[0xc0, 0x0a, 0, 0], &kind, packet])),
        (284, joined(&[&addresses, &[0xc0, 0x0a, 0, 0, 0x81, 0, 0, 5], &kind, packet])),
        (285, joined(&[&addresses, &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 0], &kind, packet])),
    ]
}

#[test]
fn a_packet_has_one_signature_on_every_link() {
    for (ethertype, packet) in packets() {
        let expected = sign(PLAIN, &ethernet(&[], ethertype, &packet));
        for (link_type, frame) in on_links(ethertype, &packet) {
            for rewrites in [PLAIN, TUNNEL] {
                let record = records(link_type, &[&frame], &Signer::new(rewrites))[0];
                assert_eq!(record.signature, expected, "link type {link_type}");
            }
        }
    }
}

static ALL: LazyLock<Vec<(Vec<u8>, Wrapped)>> = LazyLock::new(all);

const LINK_TYPES: [u32; 18] =
    [0, 1, 9, 12, 50, 51, 101, 104, 108, 113, 228, 229, 239, 276, 281, 282, 284, 285];

fn walked(link: Link, frame: &[u8]) -> Result<(), TestCaseError> {
    let mut places = 0;
    for place in Walk::new(link, frame) {
        prop_assert!(place.start <= place.end && place.end <= frame.len());
        // Without a walk no more is known than it finds.
        prop_assert!(!is_bare(link, frame) || place.encapsulation.is_none());
        places += 1;
    }
    prop_assert!(places <= 33);
    Ok(())
}

proptest! {
    #[test]
    fn walking_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        for link_type in LINK_TYPES {
            walked(Link::from_link_type(link_type).unwrap(), &bytes)?;
        }
    }

    #[test]
    fn walking_survives_damage(
        one in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut frame = one.get(&ALL).1.frame.clone();
        let at = at.index(frame.len());
        frame[at] = byte;
        frame.truncate(kept.index(frame.len() + 1));
        walked(Link::Ethernet, &frame)?;
    }
}
