//! One lost and one unmatched packet that are the same: mostly the latest of all.

use crate::frames::{
    Packet, Packets, Random, US, body, datagram, explained, options, summary, udp, warning,
};
use crate::unmatched::{PACKETS, entered_ns, passed};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::signature::Rewrites;

fn translated(packet: Packet) -> Packet {
    let payload = [&[0x9c, 0x40][..], &packet.payload[2..]].concat();
    Packet { source: [203, 0, 113, 5], payload, ..packet }
}

/// Captures of which these packets are late and changed.
fn late(numbers: &[u32], change: fn(Packet) -> Packet, enters: fn(u32) -> Packet) -> [Packets; 2] {
    let is_late = |number: u32| numbers.contains(&number);
    let mut taps =
        passed(71, enters, |number, packet| if is_late(number) { change(packet) } else { packet });
    for (number, (stamp_ns, _)) in (0..).zip(&mut taps[1]) {
        *stamp_ns += if is_late(number) { 400 * US } else { 0 };
    }
    taps
}

/// A packet with a number and nothing else.
fn numbered(number: u32) -> Packet {
    let data = [&number.to_be_bytes()[..], &[0; 36]].concat();
    Packet { ident: number as u16, ..Packet::new(17, datagram([5_000, 6_000], &data)) }
}

#[test]
fn the_latest_packet_is_told_with_the_option_that_matches_it() {
    let (nat, tos, tunnel) = (
        Rewrites { nat: true, ..Rewrites::default() },
        Rewrites { tos: true, ..Rewrites::default() },
        Rewrites { tunnel: true, ..Rewrites::default() },
    );
    let in_gre =
        |packet: Packet| Packet::new(47, [&[0, 0, 8, 0][..], &packet.frame()[14..]].concat());
    for (change, rewrites, typed) in [
        ((|packet| Packet { tos: 3, ..packet }) as fn(Packet) -> Packet, tos, "--mask tos"),
        (translated, nat, "--mask nat"),
        (in_gre, tunnel, "--mask tunnel"),
    ] {
        for enters in [udp, numbered] {
            for (numbers, told) in [
                (&[700][..], "1 lost and 1 unmatched packet agree in all but"),
                (&[3, 1_100], "2 lost and 2 unmatched packets agree in all but"),
            ] {
                let taps = late(numbers, change, enters);
                let found = summary(&taps, &options());
                let text = &warning(&found, "masked").text;
                assert!(text.starts_with(told) && text.contains(typed), "{text}");
                assert!(warning(&found, "masked").invalidates);
                let found = summary(&taps, &Options { rewrites, ..options() });
                assert_eq!((found.samples, explained(&found)), (u64::from(PACKETS), vec![]));
                assert!(found.latency_ns.max > Some(400 * US));
            }
        }
    }
}

/// No mask is for other fields: the bytes that stay are told.
#[test]
fn the_latest_packet_is_told_with_bytes_that_match_it() {
    let changes: [fn(Packet) -> Packet; 2] = [
        |packet| Packet { fragment: 0x4000, ..packet },
        |packet| Packet { ident: 40_000, ..packet },
    ];
    for change in changes {
        for enters in [udp, numbered] {
            let taps = late(&[700], change, enters);
            let text = warning(&summary(&taps, &options()), "masked").text.clone();
            assert!(text.starts_with("1 lost and 1 unmatched packet agree in the bytes"), "{text}");
            let typed = text.split("--signature ").nth(1).unwrap().split(' ').next().unwrap();
            let selection = Some(typed.parse().unwrap());
            let found = summary(&taps, &Options { selection, ..options() });
            assert_eq!((found.samples, explained(&found)), (u64::from(PACKETS), vec![]), "{typed}");
        }
    }
}

/// Packets that are late by anything, among many that are lost and others that come from nowhere.
#[test]
fn marked_packets_among_lost_ones_are_told() {
    let mut random = Random::new(75);
    let mut taps = late(&[], |packet| packet, udp);
    let marked: Vec<u32> = (0..PACKETS).filter(|_| random.below(30) == 0).collect();
    taps[1].clear();
    for number in 0..PACKETS {
        let packet = udp(number).routed();
        let late_ns = entered_ns(number) + 5 * US;
        if marked.contains(&number) {
            let left_ns = late_ns + random.below(30_000 * US);
            taps[1].push((left_ns, Packet { tos: 3, ..packet }.frame()));
        } else if random.below(4) > 0 {
            taps[1].push((late_ns, packet.frame()));
        }
        if random.below(4) == 0 {
            taps[1].push((late_ns + US, udp(10_000_000 + number).frame()));
        }
    }
    let found = summary(&taps, &options());
    let told = warning(&found, "masked");
    assert_eq!(told.count, marked.len() as u64, "{}", told.text);
    assert!(told.text.ends_with("--mask tos matches them"), "{}", told.text);
}

/// Two hosts that say the same to others are not one, nor does a number of few values tell.
#[test]
fn few_packets_that_say_the_same_explain_nothing() {
    let say = |source: [u8; 4], destination, data: &[u8]| {
        let packet = Packet::new(17, datagram([5_353, 5_353], data));
        Packet { source, destination, ident: 0, ..packet }
    };
    let text = b"\x05_ipps\x04_tcp\x05local\x00\x00\x0c\x00\x01";
    for (name, destination, data) in [
        ("a request to a group", [224, 0, 0, 251], &text[..]),
        ("a sign of life", [198, 51, 100, 9], &[0xff]),
        ("a sign of life in words", [198, 51, 100, 9], b"HEARTBEAT of this agent, which is well"),
        ("a request without arguments", [198, 51, 100, 9], &[0x23, 0, 6, 0xec, 0, 0, 0, 0]),
        ("nothing", [198, 51, 100, 9], &[]),
    ] {
        let mut taps = passed(72, udp, |_, packet| packet);
        taps[0].push((entered_ns(300) + US, say([192, 0, 2, 77], destination, data).frame()));
        let other = say([192, 0, 2, 78], destination, data);
        taps[1].push((entered_ns(300) + 90 * US, other.frame()));
        let found = summary(&taps, &options());
        assert_eq!((found.ingress.lost, found.egress.unmatched), (1, 1), "{name}");
        assert_eq!(explained(&found), [""; 0], "{name}");
    }
}

/// A content that others repeat is not what one packet is known by.
#[test]
fn a_packet_that_others_repeat_explains_nothing() {
    let text = b"HEARTBEAT of this agent, which is well";
    let beat = |last: u8| Packet {
        source: [192, 0, 2, last],
        ident: 0,
        ..Packet::new(17, datagram([5, 6], text))
    };
    let mut taps = passed(73, udp, |_, packet| packet);
    for (last, number) in (10..20).zip((100..).step_by(100)) {
        taps[0].push((entered_ns(number) + US, beat(last).frame()));
        taps[1].push((entered_ns(number) + 7 * US, beat(last).routed().frame()));
    }
    taps[0].push((entered_ns(1_200) + US, beat(80).frame()));
    taps[1].push((entered_ns(1_201) + US, beat(90).frame()));
    let found = summary(&taps, &options());
    assert_eq!((found.ingress.lost, found.egress.unmatched), (1, 1));
    assert_eq!(explained(&found), [""; 0]);
}

/// Another packet with the same payload but for its last bytes, of which no signature knows.
#[test]
fn a_packet_that_differs_behind_the_signature_explains_nothing() {
    let mut taps = passed(74, udp, |_, packet| packet);
    let packet = |tos, last| {
        let data = [body(9_000, 80), vec![last; 20]].concat();
        Packet { tos, ..Packet::new(17, datagram([5_000, 6_000], &data)) }
    };
    taps[0].push((entered_ns(300) + US, packet(0, 1).frame()));
    taps[1].push((entered_ns(300) + 90 * US, packet(3, 2).frame()));
    assert_eq!(explained(&summary(&taps, &options())), [""; 0]);
}
