//! Lost and unmatched packets that are the same: what would match them is told.

use crate::frames::{
    Packet, Packets, Random, T0, US, body, cut_to, datagram, explained, options, segment, summary,
    udp, warning,
};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::signature::Rewrites;

pub(crate) const PACKETS: u32 = 1_500;

pub(crate) fn entered_ns(number: u32) -> i64 {
    T0 + i64::from(number) * 40 * US
}

/// Packets that a device passes on in some microseconds, as it changes them.
pub(crate) fn passed(
    seed: u64,
    enters: impl Fn(u32) -> Packet,
    leaves: impl Fn(u32, Packet) -> Packet,
) -> [Packets; 2] {
    let mut random = Random::new(seed);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let packet = enters(number);
        let latency_ns = 4 * US + random.below(3 * US);
        taps[0].push((entered_ns(number), packet.frame()));
        taps[1].push((entered_ns(number) + latency_ns, leaves(number, packet.routed()).frame()));
    }
    taps
}

#[test]
fn a_mark_on_some_packets_is_told_with_the_option_that_matches_them() {
    let marked = |number: u32| number % 9 == 4;
    let mut taps = passed(11, udp, |number, packet| Packet {
        tos: if marked(number) { 3 } else { 0 },
        ..packet
    });
    // They are the late ones.
    for (number, (stamp_ns, _)) in (0..).zip(&mut taps[1]) {
        *stamp_ns += if marked(number) { 250 * US } else { 0 };
    }
    let count = (0..PACKETS).filter(|number| marked(*number)).count() as u64;
    let found = summary(&taps, &options());
    let told = warning(&found, "masked");
    assert!(told.invalidates && told.text.ends_with("--mask tos matches them"), "{}", told.text);
    assert_eq!(told.count, count);
    let rewrites = Rewrites { tos: true, ..Rewrites::default() };
    let found = summary(&taps, &Options { rewrites, ..options() });
    assert_eq!((found.samples, explained(&found)), (u64::from(PACKETS), vec![]));
}

#[test]
fn the_fewest_masks_that_match_most_are_told() {
    let translated = |packet: Packet| {
        let payload = [&[0x9c, 0x40, 0x17, 0x70][..], &packet.payload[4..]].concat();
        Packet { source: [203, 0, 113, 5], payload, ..packet }
    };
    let taps = passed(12, udp, |_, packet| translated(packet));
    assert!(
        warning(&summary(&taps, &options()), "masked").text.ends_with(": --mask nat matches them")
    );
    let taps = passed(13, udp, |_, packet| Packet { tos: 0x28, ..translated(packet) });
    let text = warning(&summary(&taps, &options()), "masked").text.clone();
    assert!(text.ends_with(": --mask nat --mask tos matches them"), "{text}");
    // One of them is given already.
    let rewrites = Rewrites { tos: true, ..Rewrites::default() };
    let found = summary(&taps, &Options { rewrites, ..options() });
    let text = &warning(&found, "masked").text;
    assert!(text.contains("agree in all but addresses and ports: --mask nat --mask tos"), "{text}");
}

/// No mask is for devices that change lengths: the bytes that stay are found.
#[test]
fn bytes_that_agree_become_a_signature() {
    let taps = passed(14, udp, |number, packet| {
        let data = [body(number, 64), vec![0xee; 12]].concat();
        Packet { payload: datagram([5_000, 6_000], &data), ident: 900, ..packet }
    });
    let found = summary(&taps, &options());
    let text = &warning(&found, "masked").text;
    let typed = text.split("--signature ").nth(1).unwrap().split(' ').next().unwrap();
    let selection = Some(typed.parse().unwrap());
    let found = summary(&taps, &Options { selection, ..options() });
    assert_eq!((found.samples, explained(&found)), (u64::from(PACKETS), vec![]), "{typed}");
}

/// Frames that are no IP end where they end: with a frame check sequence they are others.
#[test]
fn a_frame_check_sequence_on_one_side_is_told() {
    let plain = |number: u32| {
        let macs = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xcc];
        [&macs[..], &body(number, 50)].concat()
    };
    let checked = |number: u32| [plain(number), body(!number, 4)].concat();
    let tap = |shift: i64, frame: &dyn Fn(u32) -> Vec<u8>| -> Packets {
        (0..PACKETS).map(|number| (entered_ns(number) + shift, frame(number))).collect()
    };
    for (taps, facts) in [
        ([tap(0, &plain), tap(5 * US, &checked)], "1,500 egress packets that are not IP"),
        ([tap(0, &checked), tap(5 * US, &plain)], "1,500 ingress packets that are not IP"),
    ] {
        let found = summary(&taps, &options());
        let told = warning(&found, "trailer");
        assert!(told.invalidates && told.text.starts_with(facts), "{}", told.text);
        assert!(told.text.contains("4 bytes more") && told.text.contains("editcap"));
    }
}

/// Of packets in a tunnel, the snap length leaves less than of others.
#[test]
fn a_tunnel_that_the_snap_length_cuts_is_told() {
    let mut taps = passed(17, udp, |_, packet| packet);
    for (number, (_, frame)) in (0..).zip(&mut taps[0]) {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], frame].concat();
        *frame = Packet::new(17, datagram([50_000 + number, 4_789], &vxlan)).frame();
    }
    let found = cut_to(&taps, [104, 65_535], &options());
    let text = &warning(&found, "masked").text;
    assert!(text.ends_with(": --mask tunnel matches them"), "{text}");
    let rewrites = Rewrites { tunnel: true, ..Rewrites::default() };
    let found = cut_to(&taps, [104, 65_535], &Options { rewrites, ..options() });
    assert_eq!(found.samples, u64::from(PACKETS));
}

/// A mirror session may truncate what it carries, in frames that are whole.
#[test]
fn a_tunnel_of_truncated_packets_is_told_and_matched() {
    let mut taps = passed(21, udp, |_, packet| packet);
    for (number, (_, frame)) in (0..).zip(&mut taps[0]) {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0], &frame[..64]].concat();
        *frame = Packet::new(17, datagram([50_000 + number, 4_789], &vxlan)).frame();
    }
    let text = &warning(&summary(&taps, &options()), "masked").text.clone();
    assert!(text.ends_with(": --mask tunnel matches them"), "{text}");
    let rewrites = Rewrites { tunnel: true, ..Rewrites::default() };
    let found = summary(&taps, &Options { rewrites, ..options() });
    assert_eq!((found.samples, found.ingress.lost), (u64::from(PACKETS), 0));
}

/// NAT64 changes headers for others of another length.
#[test]
fn a_translation_between_versions_of_ip_is_named() {
    let mut taps = passed(22, udp, |_, packet| Packet { source: [203, 0, 113, 5], ..packet });
    for (number, (_, frame)) in (0..).zip(&mut taps[0]) {
        let payload = udp(number).payload;
        let header = [&[0x60, 0, 0, 0, 0, payload.len() as u8, 17, 64][..], &[9; 32]].concat();
        *frame = [&frame[..12], &[0x86, 0xdd], &header, &payload].concat();
    }
    let found = summary(&taps, &options());
    let text = &warning(&found, "no_samples").text;
    assert!(text.contains("those of one side are IPv6, those of the other IPv4 (NAT64)"), "{text}");
}

/// Nodes on the way add routing headers, and change the destination to the first segment.
#[test]
fn extension_headers_on_one_side_are_told_and_matched() {
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let payload = udp(number).payload;
        let header = |more: u8, next, limit, last| {
            let head = [0x60, 0, 0, 0, 0, payload.len() as u8 + more, next, limit];
            [&[2; 12], &[0x86, 0xdd][..], &head, &[0xfd; 16], &[last; 16]].concat()
        };
        let segments = [&[17, 4, 4, 1, 1, 0, 0, 0][..], &[0xfc; 16], &[0xfe; 16]].concat();
        let entered = [header(0, 17, 64, 0xfc), payload.clone()].concat();
        let left = [header(40, 43, 63, 0xfe), segments, payload.clone()].concat();
        taps[0].push((entered_ns(number), entered));
        taps[1].push((entered_ns(number) + 5 * US, left));
    }
    let text = warning(&summary(&taps, &options()), "masked").text.clone();
    let told = "agree in all but extension headers of IPv6: --mask tunnel matches them";
    assert!(text.ends_with(told), "{text}");
    let rewrites = Rewrites { tunnel: true, ..Rewrites::default() };
    let found = summary(&taps, &Options { rewrites, ..options() });
    assert_eq!((found.samples, explained(&found)), (u64::from(PACKETS), vec![]));
}

/// Encryption and frames of a radio hide packets. CAPWAP may carry Ethernet.
#[test]
fn a_tunnel_that_hides_packets_is_named() {
    let in_capwap = |second: u8| {
        move |_: u32, packet: Packet| {
            let inner = [&[0, 0x10, second, 0, 0, 0, 0, 0][..], &packet.frame()].concat();
            Packet::new(17, datagram([50_000, 5_247], &inner))
        }
    };
    let taps = passed(23, udp, in_capwap(3));
    let text = warning(&summary(&taps, &options()), "no_samples").text.clone();
    assert!(text.contains("Those of one side are in CAPWAP with 802.11 or DTLS"), "{text}");
    let text = warning(&summary(&passed(24, udp, in_capwap(2)), &options()), "masked").text.clone();
    assert!(text.ends_with("--mask tunnel matches them"), "{text}");
    let taps = passed(25, udp, |number, packet| Packet {
        protocol: 50,
        payload: body(!number, 90),
        ..packet
    });
    let text = warning(&summary(&taps, &options()), "no_samples").text.clone();
    assert!(text.contains("in IPsec ESP, where no bytes identify them"), "{text}");
}

/// Clocks that are further apart than the window hide which masking matches.
#[test]
fn a_masking_is_told_although_the_clocks_are_apart() {
    let mut taps = passed(18, udp, |_, packet| Packet { source: [203, 0, 113, 5], ..packet });
    for packet in &mut taps[1] {
        packet.0 += 37_000_000_000;
    }
    let text = warning(&summary(&taps, &options()), "masked").text.clone();
    assert!(text.contains("--mask nat matches them with --clock-fit"), "{text}");
    let rewrites = Rewrites { nat: true, ..Rewrites::default() };
    let found = summary(&taps, &Options { rewrites, fit_clocks: true, ..options() });
    assert_eq!(found.samples, u64::from(PACKETS));
}

/// A home router: no signature matches TCP and UDP at once, and the advice for one is not that for the other.
#[test]
fn packets_of_two_kinds_take_two_signatures() {
    let enters = |number: u32| {
        let data = body(number, 64);
        match number % 3 {
            0 => Packet::new(17, datagram([5_000, 6_000], &data)),
            _ => Packet::new(6, segment(number * 64, &data)),
        }
    };
    let taps = passed(19, enters, |number, packet| {
        let mut payload = [&[0x9c, 0x40][..], &packet.payload[2..]].concat();
        if packet.protocol == 17 {
            // The checksum, where TCP has its sequence number.
            payload[6..8].copy_from_slice(&(number as u16 | 1).to_be_bytes());
        }
        let ident = 40_000_u32.wrapping_add(number * 7_919) as u16;
        Packet { source: [203, 0, 113, 5], ident, payload, ..packet }
    });
    let text = warning(&summary(&taps, &options()), "masked").text.clone();
    let selection = text.split("--signature ").nth(1).unwrap().split(' ').next().unwrap();
    let selection = Some(selection.parse().unwrap());
    let found = summary(&taps, &Options { selection, ..options() });
    assert_eq!(found.samples, 1_000);
    let text = &warning(&found, "masked").text;
    assert!(
        text.starts_with("500 lost") && text.contains("not those that are matched now"),
        "{text}"
    );
}

#[test]
fn a_wrong_signature_is_told() {
    let taps = passed(15, udp, |_, packet| packet);
    // The MAC addresses.
    let selection = Some("0:40".parse().unwrap());
    let found = summary(&taps, &Options { selection, ..options() });
    assert!(warning(&found, "unsigned").text.contains("without --signature"));
}

/// Losses, strangers, another order, and copies at egress are what they are.
#[test]
fn packets_that_differ_are_explained_by_nothing() {
    for seed in 20..26 {
        let mut random = Random::new(seed);
        let mut taps = passed(seed, udp, |_, packet| packet);
        taps[1].retain(|_| random.below(20) > 0);
        for number in 0..200 {
            let stamp_ns = entered_ns(number * 7) + random.below(100 * US);
            taps[1].push((stamp_ns, udp(10_000_000 + number).frame()));
        }
        for packet in &mut taps[1] {
            packet.0 += random.below(200 * US);
        }
        assert_eq!(explained(&summary(&taps, &options())), [""; 0], "{seed}");
    }
}

/// Numbers of two bytes are the same by chance, at any distance in time.
#[test]
fn numbers_that_agree_by_chance_explain_nothing() {
    for seed in 30..36 {
        let mut random = Random::new(seed);
        let mut number = |of: u32| {
            let ident = random.below(1 << 12) as u16;
            Packet { ident, ..udp(of) }
        };
        let taps = [0, 1].map(|side: u32| {
            (0..PACKETS).map(|of| (entered_ns(of), number(of + side * 1_000_000).frame())).collect()
        });
        assert_eq!(explained(&summary(&taps, &options())), [""; 0], "{seed}");
    }
}

/// Routers and hosts make no packet another one.
#[test]
fn padding_checksums_and_another_order_are_no_difference() {
    let mut random = Random::new(40);
    let small = |number: u32| Packet::new(17, datagram([5_000, 6_000], &body(number, 6)));
    let mut taps = passed(41, small, |_, packet| packet);
    for (stamp_ns, frame) in &mut taps[1] {
        frame.resize(60, 0);
        // Of a checksum that the NIC was to fill in.
        frame[40..42].copy_from_slice(&[0xab, 0xcd]);
        // Queues of several CPUs.
        *stamp_ns += random.below(8) * 50 * US;
    }
    let found = summary(&taps, &options());
    assert_eq!((found.samples, explained(&found)), (u64::from(PACKETS), vec![]));
}

/// An egress tap that is started a moment late. A device may lose some packets while it asks for addresses.
#[test]
fn lost_packets_before_the_first_that_left_are_told() {
    let taps = passed(29, udp, |_, packet| packet);
    for (missing, told) in [(200, true), (20, false)] {
        let found = summary(&[taps[0].clone(), taps[1][missing..].to_vec()], &options());
        assert_eq!(found.ingress.lost, missing as u64);
        let late = found.warnings.iter().find(|warning| warning.code == "egress_began_late");
        assert_eq!(late.is_some(), told);
        assert!(late.is_none_or(|late| late.count == found.ingress.lost && !late.invalidates));
    }
}
