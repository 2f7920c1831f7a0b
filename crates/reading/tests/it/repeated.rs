//! Signatures that come again: copies of a mirror port, and identical frames.

use crate::frames::{
    Packet, Packets, Random, T0, US, body, cut_to, datagram, explained, options, summary, udp,
    warning,
};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::signature::Rewrites;

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

/// A switch that mirrors one of its VLANs, or flows, once more than the others.
#[test]
fn copies_of_some_packets_only_are_told() {
    for (name, copy) in COPIES {
        let mut taps = [Vec::new(), (0..PACKETS).map(left).collect()];
        for number in 0..PACKETS {
            taps[0].push((entered_ns(number), udp(number).frame()));
            if number % 25 < 8 {
                taps[0].push((entered_ns(number) + US, copy(udp(number)).frame()));
            }
        }
        let found = summary(&taps, &options());
        assert_eq!(found.samples, u64::from(PACKETS), "{name}");
        assert_eq!(warning(&found, "mirror_copies").count, 384, "{name}");
    }
}

/// Few copies are enough where they differ: a frame that is sent twice is the same one.
#[test]
fn few_copies_that_differ_are_told() {
    for (name, copy) in &COPIES[..3] {
        for (packets, one_of) in [(PACKETS, 24), (10_000, 200)] {
            let mut taps = [Vec::new(), (0..packets).map(left).collect()];
            for number in 0..packets {
                taps[0].push((entered_ns(number), udp(number).frame()));
                if number % one_of == 5 {
                    taps[0].push((entered_ns(number) + US, copy(udp(number)).frame()));
                }
            }
            let found = summary(&taps, &options());
            assert_eq!((found.samples, found.ingress.copy), (u64::from(packets), 50), "{name}");
            assert_eq!(explained(&found), ["mirror_copies"], "{name}");
        }
    }
}

/// A mirror session that is added while the tap records: the first packets have no copies.
#[test]
fn copies_that_begin_later_are_copies() {
    let (packets, begun) = (9_000, 5_000);
    for (name, copy) in COPIES {
        let mut taps = [Vec::new(), (0..packets).map(left).collect()];
        for number in 0..packets {
            taps[0].push((entered_ns(number), udp(number).frame()));
            if number >= begun {
                taps[0].push((entered_ns(number) + US, copy(udp(number)).frame()));
            }
        }
        let found = summary(&taps, &options());
        let copies = u64::from(packets - begun);
        assert_eq!((found.samples, found.ingress.copy), (u64::from(packets), copies), "{name}");
        assert_eq!(warning(&found, "mirror_copies").count, copies, "{name}");
        assert_eq!(found.latency_ns.max, Some(12 * US + 4));
    }
}

/// Both ports of a device in one capture: the copy of a late packet comes late.
#[test]
fn copies_of_late_packets_are_copies() {
    let late = |number: u32| if number.is_multiple_of(200) { 200 * US } else { 0 };
    let leaves = |number| (left(number).0 + late(number), left(number).1);
    let mut taps = [Vec::new(), (0..PACKETS).map(leaves).collect()];
    for number in 0..PACKETS {
        taps[0].extend([(entered_ns(number), udp(number).frame()), leaves(number)]);
    }
    let found = summary(&taps, &options());
    assert_eq!((found.samples, found.ingress.copy), (u64::from(PACKETS), u64::from(PACKETS)));
    assert!(found.latency_ns.max > Some(200 * US));
}

/// Packets that are lost and sent again leave once, as copies do, but are few, and come again late.
#[test]
fn packets_that_are_sent_again_are_no_copies() {
    let is_lost = |number: u32| number % 20 == 3;
    let again_ns = |number| entered_ns(number) + 3_000 * US;
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        taps[0].push((entered_ns(number), udp(number).frame()));
        let (left_ns, frame) = left(number);
        if is_lost(number) {
            taps[0].push((again_ns(number), udp(number).frame()));
            taps[1].push((again_ns(number) + 12 * US, frame));
        } else {
            taps[1].push((left_ns, frame));
        }
    }
    let found = summary(&taps, &options());
    assert_eq!((found.ingress.copy, found.ingress.duplicate), (0, 120));
    let quantile =
        |p: &str| found.latency_ns.quantiles.iter().find(|q| q.p == p.parse().unwrap()).unwrap();
    // 120 of 1,260 packets may be late.
    let [p90, p99] = ["0.9", "0.99"].map(quantile);
    assert!(!p99.supported && p99.high.is_none() && p99.effective_samples >= p99.samples_needed);
    assert!(quantile("0.5").supported && p90.low <= p90.value);
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

/// Behind NAT, frames that are alike on each side are not alike on both.
#[test]
fn identical_frames_behind_nat_take_a_mask_as_well() {
    let rewrites = Rewrites { nat: true, ..Rewrites::default() };
    for (late_ns, apart) in [(0, false), (-90 * US, true)] {
        let mut taps = identical(PACKETS);
        let translated = Packet { source: [203, 0, 113, 5], ..alike().routed() };
        for (stamp_ns, frame) in &mut taps[1] {
            *stamp_ns += late_ns;
            *frame = translated.frame();
        }
        let found = summary(&taps, &options());
        let told = warning(&found, "identical");
        assert!(
            told.invalidates && told.text.contains("agree in all but addresses and ports"),
            "{}",
            told.text
        );
        assert!(told.text.contains("--mask nat --in-order the n-th that leaves"), "{}", told.text);
        // Their order alone matches nothing.
        let found = summary(&taps, &Options { in_order: true, ..options() });
        assert!(found.warnings.iter().all(|one| !["in_order", "no_samples"].contains(&one.code)));
        let text = &warning(&found, "masked").text;
        assert!(
            text.starts_with("1,200 lost and 1,200 unmatched packets agree in all but addresses"),
            "{text}"
        );
        assert!(text.contains("--mask nat --in-order"), "{text}");
        let found = summary(&taps, &Options { in_order: true, rewrites, ..options() });
        assert_eq!(found.samples, u64::from(PACKETS));
        // As it says, the mask alone is enough where each leaves before the next one enters.
        let found = summary(&taps, &Options { rewrites, ..options() });
        assert_eq!(found.samples, if apart { u64::from(PACKETS) } else { 0 });
    }
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
    // The last bytes of frames of one length, and of several.
    for lengths in [&[80][..], &[80, 300, 900]] {
        let taps = numbered(lengths, |packet| packet);
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
}

/// As long as none is in flight with another one, they are matched.
#[test]
fn bytes_that_are_not_signed_are_told_without_duplicates() {
    let mut taps = numbered(&[80, 300], |packet| packet);
    taps[1].iter_mut().for_each(|(stamp_ns, _)| *stamp_ns -= 95 * US);
    let found = summary(&taps, &options());
    let told = warning(&found, "unsigned");
    assert!(!told.invalidates && told.text.starts_with("frames differ"), "{}", told.text);
    assert_eq!((found.samples, found.latency_ns.max), (u64::from(PACKETS), Some(5 * US)));
}

/// Bytes that tell frames apart may be behind the snap length.
#[test]
fn a_snap_length_that_leaves_frames_alike_is_told() {
    let taps = [
        (0..PACKETS).map(|number| (entered_ns(number), udp(number).frame())).collect(),
        (0..PACKETS).map(|number| (left(number).0 + 100 * US, left(number).1)).collect(),
    ];
    let found = cut_to(&taps, [42, 65_535], &options());
    let told = warning(&found, "identical");
    assert!(told.invalidates && told.text.contains("in the 28 bytes"), "{}", told.text);
    assert!(told.text.contains("tcpdump -s 0"), "{}", told.text);
}

/// Frames that a number behind so many zeros tells apart.
fn numbered(lengths: &[usize], enters: impl Fn(Packet) -> Packet) -> [Packets; 2] {
    let packet = |number: u32| {
        let data = [vec![0; lengths[number as usize % lengths.len()]], body(number, 8)].concat();
        Packet::new(17, datagram([5, 6], &data))
    };
    let left_ns = |number| entered_ns(number) + 100 * US;
    [
        (0..PACKETS).map(|number| (entered_ns(number), enters(packet(number)).frame())).collect(),
        (0..PACKETS).map(|number| (left_ns(number), packet(number).routed().frame())).collect(),
    ]
}

/// A tag on one side moves what tells frames apart: no signature matches them, and none is offered.
#[test]
fn bytes_that_are_elsewhere_on_the_other_side_are_told() {
    let found = summary(&numbered(&[80], |packet| Packet { vlan: Some(7), ..packet }), &options());
    let told = warning(&found, "unsigned");
    assert!(told.invalidates && !told.text.contains("--signature"), "{}", told.text);
    assert!(told.text.contains("egress frames do not have them at the same place"));
}
