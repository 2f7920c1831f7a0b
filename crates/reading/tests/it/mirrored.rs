//! Copies of a mirror port in captures that show something else, too: it is told as without them.

use crate::frames::{
    Packet, Packets, Random, T0, US, explained, options, summary, try_analyze, udp, warning,
};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::signature::Rewrites;

const PACKETS: u32 = 1_600;
const SECOND: i64 = 1_000_000_000;

/// Packets that pass in some microseconds, as the device changes them.
fn passed(seed: u64, leaves: impl Fn(u32, Packet) -> Packet) -> [Packets; 2] {
    let mut random = Random::new(seed);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let stamp_ns = T0 + i64::from(number) * 1_000 * US;
        let left_ns = stamp_ns + 4 * US + random.below(3 * US);
        taps[0].push((stamp_ns, udp(number).frame()));
        taps[1].push((left_ns, leaves(number, udp(number).routed()).frame()));
    }
    taps
}

/// The captures where a mirror port writes each packet of some sides down so many times more, with a VLAN tag.
fn mirrored(taps: &[Packets; 2], copies: [i64; 2]) -> [Packets; 2] {
    let tagged = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0, 2], &frame[12..]].concat();
    [0, 1].map(|side| {
        let each = taps[side].iter().flat_map(|(stamp_ns, frame)| {
            (0..=copies[side]).map(move |which| {
                let copy = if which == 0 { frame.clone() } else { tagged(frame) };
                (stamp_ns + which * US / 2, copy)
            })
        });
        each.collect()
    })
}

const COPIES: [[i64; 2]; 4] = [[1, 0], [0, 1], [0, 2], [1, 1]];

fn translated(packet: Packet) -> Packet {
    let payload = [&[0x9c, 0x40, 0x17, 0x70][..], &packet.payload[4..]].concat();
    Packet { source: [203, 0, 113, 5], payload, ..packet }
}

#[test]
fn a_mask_that_matches_packets_is_told_of_copies() {
    let nat = Rewrites { nat: true, ..Rewrites::default() };
    let tos = Rewrites { tos: true, ..Rewrites::default() };
    let late = |number: u32| number % 20 == 3;
    let marked = |number, packet| Packet { tos: if late(number) { 0x28 } else { 0 }, ..packet };
    let some =
        |number: u32, packet| if number.is_multiple_of(2) { translated(packet) } else { packet };
    for (taps, typed, rewrites) in [
        (passed(81, |_, packet| translated(packet)), "--mask nat matches them", nat),
        (passed(82, some), "--mask nat matches them", nat),
        (passed(83, |_, packet| Packet { tos: 0x28, ..packet }), "--mask tos matches them", tos),
        (passed(84, marked), "--mask tos matches them", tos),
    ] {
        let unlike = warning(&summary(&taps, &options()), "masked").clone();
        for copies in [[0, 1], [0, 2]] {
            let taps = mirrored(&taps, copies);
            let told = warning(&summary(&taps, &options()), "masked").clone();
            assert!(told.invalidates && told.text.ends_with(typed), "{copies:?} {}", told.text);
            assert_eq!((told.count, &told.text), (unlike.count, &unlike.text), "{copies:?}");
            let found = summary(&taps, &Options { rewrites, ..options() });
            assert_eq!((found.samples, found.egress.unmatched), (u64::from(PACKETS), 0));
            assert_eq!(explained(&found), [""; 0]);
        }
    }
}

/// Error of a clock at a time since the begin, in ns.
type Clock = Box<dyn Fn(i64) -> i64>;

#[test]
fn clocks_are_told_and_corrected_in_spite_of_copies() {
    let middle_ns = i64::from(PACKETS / 2) * 1_000 * US;
    let set = |by_ns: i64| move |since_ns: i64| if since_ns > middle_ns { by_ns } else { 0 };
    let clocks: [(&str, Clock); 4] = [
        ("clock_drift", Box::new(|since_ns| since_ns / 20_000)),
        ("clock_step", Box::new(set(SECOND / 5))),
        ("clock_step", Box::new(set(37 * SECOND))),
        ("clock_offset", Box::new(|_| 37 * SECOND)),
    ];
    for (code, off) in clocks {
        let [ingress, egress] = passed(85, |_, packet| packet);
        let egress = egress.into_iter();
        let egress = egress.map(|(stamp_ns, frame)| (stamp_ns + off(stamp_ns - T0), frame));
        let taps = [ingress, egress.collect()];
        for copies in COPIES {
            let taps = mirrored(&taps, copies);
            let told = warning(&summary(&taps, &options()), code).clone();
            assert!(told.invalidates, "{copies:?} {}", told.text);
            let asked = Options { fit_clocks: true, ..options() };
            let found = try_analyze(&taps, &asked).unwrap();
            assert_eq!(found.check_order(), Ok(()));
            let found = found.summary;
            assert_eq!(found.samples, u64::from(PACKETS), "{code} {copies:?}");
            let [min, max] = [found.latency_ns.min, found.latency_ns.max].map(Option::unwrap);
            assert!(max - min < 4 * US, "{code} {copies:?} {min} to {max}");
        }
    }
}
