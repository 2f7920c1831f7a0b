//! Signatures that come again: copies of a mirror port, and identical frames.

use crate::frames::{
    Packet, Packets, Random, T0, US, body, datagram, explained, options, summary, udp, warning,
};
use tailtrim_tail::analysis::Options;

const PACKETS: u32 = 1_200;

fn entered_ns(number: u32) -> i64 {
    T0 + i64::from(number) * 30 * US
}

fn left(number: u32) -> (i64, Vec<u8>) {
    (entered_ns(number) + 12 * US + i64::from(number % 5), udp(number).routed().frame())
}

/// A packet as a mirror port writes it down a second time.
type Copy = fn(Packet) -> Packet;

const COPIES: [(&str, Copy); 4] = [
    ("tagged", |packet| Packet { vlan: Some(7), ..packet }),
    ("routed", |packet| packet.routed()),
    ("of another port", |packet| Packet { macs: [3; 12], ..packet }),
    ("identical", |packet| packet),
];

fn mirrored(copies: i64, copy: Copy, seed: u64) -> [Packets; 2] {
    let mut random = Random::new(seed);
    let mut taps = [Vec::new(), (0..PACKETS).map(left).collect()];
    for number in 0..PACKETS {
        taps[0].push((entered_ns(number), udp(number).frame()));
        for which in 1..=copies {
            // A busy mirror port loses some.
            if random.below(25) > 0 {
                let stamp_ns = entered_ns(number) + which * US + random.below(US);
                taps[0].push((stamp_ns, copy(udp(number)).frame()));
            }
        }
    }
    taps
}

#[test]
fn copies_of_a_mirror_port_are_one_packet() {
    for (name, copy) in COPIES {
        for copies in [1, 2] {
            let taps = mirrored(copies, copy, 51);
            let found = summary(&taps, &options());
            let ingress = found.ingress;
            assert_eq!(found.samples, u64::from(PACKETS), "{name}");
            assert_eq!(ingress.packets, ingress.matched + ingress.copy, "{name}");
            assert_eq!(warning(&found, "mirror_copies").count, ingress.copy, "{name}");
            assert_eq!(
                (found.latency_ns.min, found.latency_ns.max),
                (Some(12 * US), Some(12 * US + 4))
            );
            assert_eq!(found.bursts, None, "{name}: a packet and its copy are no burst");
        }
    }
}

#[test]
fn copies_at_egress_are_copies() {
    let mut taps = [
        (0..PACKETS).map(|number| (entered_ns(number), udp(number).frame())).collect(),
        Vec::new(),
    ];
    for number in 0..PACKETS {
        let (stamp_ns, frame) = left(number);
        taps[1].extend([(stamp_ns, frame.clone()), (stamp_ns + US, frame)]);
    }
    let found = summary(&taps, &options());
    assert_eq!((found.samples, found.egress.copy), (u64::from(PACKETS), u64::from(PACKETS)));
    assert_eq!(explained(&found), [""; 0]);
}

/// Frames that are sent twice leave twice.
#[test]
fn frames_that_a_generator_sends_twice_are_no_copies() {
    let twice =
        |(stamp_ns, frame): (i64, Vec<u8>)| [(stamp_ns, frame.clone()), (stamp_ns + US, frame)];
    let taps = [
        (0..PACKETS).flat_map(|number| twice((entered_ns(number), udp(number).frame()))).collect(),
        (0..PACKETS).flat_map(|number| twice(left(number))).collect(),
    ];
    let found = summary(&taps, &options());
    assert_eq!((found.ingress.copy, found.ingress.duplicate), (0, 2 * u64::from(PACKETS)));
}

/// A recording that is sent three times over.
#[test]
fn frames_of_a_loop_are_no_copies() {
    let part = |number: u32| number % (PACKETS / 3);
    let taps: [Packets; 2] = [
        (0..PACKETS).map(|number| (entered_ns(number), udp(part(number)).frame())).collect(),
        (0..PACKETS).map(|number| (left(number).0, udp(part(number)).routed().frame())).collect(),
    ];
    let found = summary(&taps, &options());
    assert_eq!((found.samples, found.ingress.copy), (u64::from(PACKETS), 0));
}

fn alike() -> Packet {
    Packet::new(17, datagram([5, 6], &[0; 90]))
}

/// Identical frames, each of which is in flight with others.
fn identical(count: u32) -> [Packets; 2] {
    [
        (0..count).map(|number| (entered_ns(number), alike().frame())).collect(),
        (0..count)
            .map(|number| (entered_ns(number) + 100 * US, alike().routed().frame()))
            .collect(),
    ]
}

#[test]
fn identical_frames_are_named_and_matched_in_their_order() {
    let found = summary(&identical(PACKETS), &options());
    let told = warning(&found, "identical");
    assert!(told.invalidates && told.text.contains("--in-order"), "{}", told.text);
    let found = summary(&identical(PACKETS), &Options { in_order: true, ..options() });
    assert_eq!(
        (found.samples, found.latency_ns.min, found.latency_ns.max),
        (u64::from(PACKETS), Some(100 * US), Some(100 * US))
    );
    let told = warning(&found, "in_order");
    assert!(!told.invalidates && found.signature.in_order, "{}", told.text);
    assert_eq!(explained(&found), [""; 0]);
}

#[test]
fn a_loss_among_identical_frames_invalidates_their_order() {
    let mut taps = identical(PACKETS);
    taps[1].remove(300);
    let found = summary(&taps, &Options { in_order: true, ..options() });
    let told = warning(&found, "in_order");
    assert!(
        told.invalidates && told.text.starts_with("1,200 packets entered and 1,199 left"),
        "{}",
        told.text
    );
}

/// In order, only frames of one signature are taken for each other.
#[test]
fn other_frames_may_change_their_order() {
    let mut taps = identical(PACKETS);
    for number in 0..PACKETS {
        taps[0].push((entered_ns(number) + 1, udp(number).frame()));
        taps[1].push((entered_ns(number) + 60 * US, udp(number).routed().frame()));
    }
    let found = summary(&taps, &Options { in_order: true, ..options() });
    assert_eq!(found.samples, 2 * u64::from(PACKETS));
    assert_eq!((found.latency_ns.min, found.latency_ns.max), (Some(60 * US - 1), Some(100 * US)));
}

#[test]
fn bytes_that_are_not_signed_but_differ_are_offered() {
    let numbered = |number: u32| {
        let data = [vec![0; 80], body(number, 8)].concat();
        Packet::new(17, datagram([5, 6], &data))
    };
    let taps: [Packets; 2] = [
        (0..PACKETS).map(|number| (entered_ns(number), numbered(number).frame())).collect(),
        (0..PACKETS)
            .map(|number| (entered_ns(number) + 100 * US, numbered(number).routed().frame()))
            .collect(),
    ];
    let found = summary(&taps, &options());
    let text = &warning(&found, "unsigned").text;
    let typed = text.split("--signature ").nth(1).unwrap().split(' ').next().unwrap();
    let selection = Some(typed.parse().unwrap());
    assert_eq!(
        summary(&taps, &Options { selection, ..options() }).samples,
        u64::from(PACKETS),
        "{typed}"
    );
}
