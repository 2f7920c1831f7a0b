//! Packets that are others on the two sides: merged by offload, or in fragments, also behind NAT and in tunnels.

use crate::frames::{
    Packet, Packets, US, body, datagram, explained, options, segment, summary, warning,
};
use crate::unmatched::entered_ns;
use tailtrim_tail::analysis::Options;
use tailtrim_tail::signature::Rewrites;

/// Segments of a stream, of which some are one frame where the kernel merges them.
fn segments(parts: u32) -> Vec<(i64, Packet)> {
    let data = |number: u32| body(number, 1_448);
    let whole = |number: u32| (0..parts).flat_map(|part| data(number + part)).collect::<Vec<_>>();
    let starts = (0..800).step_by(parts as usize);
    starts
        .map(|number| {
            let payload = segment(number * 1_448, &whole(number));
            (entered_ns(number), Packet { ident: number as u16, ..Packet::new(6, payload) })
        })
        .collect()
}

fn stream(parts: u32) -> Packets {
    segments(parts).into_iter().map(|(stamp_ns, packet)| (stamp_ns, packet.frame())).collect()
}

#[test]
fn offload_is_told_with_its_side() {
    let later = |packets: Packets| {
        packets.into_iter().map(|(ns, frame)| (ns + 200 * US, frame)).collect::<Packets>()
    };
    let found = summary(&[stream(1), later(stream(4))], &options());
    let told = warning(&found, "offload");
    assert!(
        told.text.starts_with("800 ingress packets are parts of 200 longer egress frames"),
        "{}",
        told.text
    );
    assert!(
        told.text.contains("ethtool -K INTERFACE gro off lro off tso off gso off")
            && told.invalidates
    );
    let found = summary(&[stream(5), later(stream(1))], &options());
    let text = &warning(&found, "offload").text;
    assert!(
        text.starts_with("800 egress packets are parts of 160 longer ingress frames"),
        "{text}"
    );
    // The same frames on both sides are not merged by the taps.
    assert_eq!(explained(&summary(&[stream(4), later(stream(4))], &options())), [""; 0]);
}

#[test]
fn merged_datagrams_are_told() {
    let data = |number: u32| body(number, 1_200);
    let packet = |number: u32, data: &[u8]| Packet {
        ident: number as u16,
        ..Packet::new(17, datagram([1, 2], data))
    };
    let parts = (0..300).map(|number| (entered_ns(number), packet(number, &data(number)).frame()));
    let parts: Packets = parts.collect();
    for (change, masks) in [
        ((|packet| packet) as fn(Packet) -> Packet, ""),
        (translated, ", and analyse with --mask nat"),
    ] {
        let whole = (0..300).step_by(3).map(|number| {
            let data = (number..number + 3).flat_map(data).collect::<Vec<_>>();
            (entered_ns(number) + 200 * US, change(packet(number, &data)).frame())
        });
        let found = summary(&[parts.clone(), whole.collect()], &options());
        let text = &warning(&found, "offload").text;
        assert!(
            text.starts_with("300 ingress packets are parts of 100 longer egress frames"),
            "{text}"
        );
        assert!(text.ends_with(&format!("gso off{masks}")), "{text}");
    }
}

/// Of payloads that are all alike, a longer one is not several shorter ones of other hosts.
#[test]
fn datagrams_of_zeros_are_not_merged() {
    let zeros = |number: u32, source, length| {
        let packet = Packet::new(17, datagram([1, 2], &vec![0; length]));
        let packet = Packet { ident: number as u16, source: [192, 0, 2, source], ..packet };
        (entered_ns(number), packet.frame())
    };
    let entered: Packets = (0..50).map(|number| zeros(number, 1, 80)).collect();
    let left = [entered[20..].to_vec(), vec![zeros(900, 9, 400)]].concat();
    assert_eq!(explained(&summary(&[entered, left], &options())), [""; 0]);
}

#[test]
fn fragments_are_told_and_the_first_of_them_can_be_matched() {
    let whole = |number: u32| Packet {
        ident: number as u16,
        ..Packet::new(17, datagram([1, 2], &body(number, 1_600)))
    };
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..400 {
        let packet = whole(number);
        taps[0].push((entered_ns(number), packet.frame()));
        let routed = packet.routed();
        let (first, second) = packet.payload.split_at(1_200);
        let left_ns = entered_ns(number) + 9 * US;
        taps[1].push((
            left_ns,
            Packet { fragment: 0x2000, payload: first.to_vec(), ..routed.clone() }.frame(),
        ));
        taps[1].push((
            left_ns + US,
            Packet { fragment: 150, payload: second.to_vec(), ..routed }.frame(),
        ));
    }
    let found = summary(&taps, &options());
    let told = warning(&found, "fragments");
    assert!(
        told.text.starts_with("800 egress packets are fragments of 400 ingress packets"),
        "{}",
        told.text
    );
    let typed = told.text.split("--signature ").nth(1).unwrap().split(' ').next().unwrap();
    let selection = Some(typed.parse().unwrap());
    let found = summary(&taps, &Options { selection, ..options() });
    assert_eq!((found.ingress.matched, found.latency_ns.max), (400, Some(9 * US)));
}

#[test]
fn fragments_of_ipv6_are_told() {
    // With an extension header only fragments have an identification, and all behind it is elsewhere.
    let frame = |limit: u8, next: u8, payload: &[u8]| {
        let head = [0x60, 0, 0, 0, (payload.len() >> 8) as u8, payload.len() as u8, next, limit];
        let ends = [[0xfd; 16], [0xfc; 16]].concat();
        [&[2; 12], &[0x86, 0xdd][..], &head, &ends, payload].concat()
    };
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..100 {
        let whole = datagram([1, 2], &body(number, 1_392));
        taps[0].push((entered_ns(number), frame(64, 17, &whole)));
        let (first, second) = whole.split_at(1_000);
        for (offset_and_more, part, at_ns) in [(1_u16, first, 9 * US), (1_000, second, 10 * US)] {
            let [high, low] = offset_and_more.to_be_bytes();
            let part = [&[17, 0, high, low, 0, 0, 0, number as u8], part].concat();
            taps[1].push((entered_ns(number) + at_ns, frame(63, 44, &part)));
        }
    }
    let found = summary(&taps, &options());
    let text = &warning(&found, "fragments").text;
    assert!(text.starts_with("200 egress packets are fragments of 100 ingress packets"), "{text}");
    assert!(text.ends_with("raise the MTU"), "{text}");
}

/// A device that changes packets, and the masks that are to be typed.
type Way = (&'static str, fn(Packet) -> Packet, Rewrites);

const PLAIN: Rewrites = Rewrites { nat: false, tos: false, tunnel: false };

fn translated(packet: Packet) -> Packet {
    let payload = [&[0x9c, 0x40][..], &packet.payload[2..]].concat();
    Packet { source: [203, 0, 113, 5], payload, ..packet }
}

fn in_vxlan(packet: Packet) -> Packet {
    let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &packet.frame()].concat();
    Packet::new(17, datagram([50_000, 4_789], &vxlan))
}

fn in_gre(packet: Packet) -> Packet {
    Packet::new(47, [&[0, 0, 8, 0][..], &packet.frame()[14..]].concat())
}

const WAYS: [Way; 4] = [
    ("", translated, Rewrites { nat: true, ..PLAIN }),
    ("VXLAN", in_vxlan, Rewrites { tunnel: true, ..PLAIN }),
    ("GRE", in_gre, Rewrites { tunnel: true, ..PLAIN }),
    (
        "NAT in VXLAN",
        |packet| in_vxlan(translated(packet)),
        Rewrites { nat: true, tunnel: true, tos: false },
    ),
];

fn masks(rewrites: Rewrites) -> String {
    let is = [(rewrites.nat, " --mask nat"), (rewrites.tunnel, " --mask tunnel")];
    is.iter().filter(|(is, _)| *is).map(|(_, mask)| *mask).collect()
}

/// Addresses, ports and headers around a packet hide no segments that are merged.
#[test]
fn offload_behind_nat_and_in_tunnels_is_told() {
    for (name, changed, rewrites) in WAYS {
        let tap = |parts, way: fn(Packet) -> Packet| -> Packets {
            let packets = segments(parts).into_iter();
            packets.map(|(stamp_ns, packet)| (stamp_ns, way(packet).frame())).collect()
        };
        let later = |packets: Packets| -> Packets {
            packets.into_iter().map(|(ns, frame)| (ns + 200 * US, frame)).collect()
        };
        let taps = [tap(1, |packet| packet), later(tap(4, changed))];
        let text = warning(&summary(&taps, &options()), "offload").text.clone();
        let parts = "800 ingress packets are parts of 200 longer egress frames";
        assert!(text.starts_with(parts), "{name}: {text}");
        let typed = format!("gso off, and analyse with{}", masks(rewrites));
        assert!(text.ends_with(&typed), "{name}: {text}");
        // With the masks it is told, too.
        let text =
            warning(&summary(&taps, &Options { rewrites, ..options() }), "offload").text.clone();
        assert!(text.starts_with(parts) && text.ends_with("gso off"), "{name}: {text}");
        let taps = [tap(4, changed), later(tap(1, |packet| packet))];
        let text = warning(&summary(&taps, &options()), "offload").text.clone();
        let parts = "800 egress packets are parts of 200 longer ingress frames";
        assert!(text.starts_with(parts), "{name}: {text}");
    }
}

/// Two segments that are one frame, the largest latency of all.
#[test]
fn one_merged_frame_is_told() {
    let plain = |packet: (i64, Packet)| (packet.0, packet.1.frame());
    let mut taps =
        [segments(1), segments(1)].map(|side| side.into_iter().map(plain).collect::<Vec<_>>());
    taps[1].iter_mut().for_each(|packet| packet.0 += 6 * US);
    let merged = segment(400 * 1_448, &[body(400, 1_448), body(401, 1_448)].concat());
    taps[1].drain(400..402);
    taps[1].push((
        entered_ns(401) + 300 * US,
        Packet { ident: 400, ..Packet::new(6, merged) }.frame(),
    ));
    let text = warning(&summary(&taps, &options()), "offload").text.clone();
    assert!(
        text.starts_with("2 ingress packets are parts of 1 longer egress frame (up to"),
        "{text}"
    );
}

/// The fragments of a packet, cut at this byte of its payload.
fn cut(packet: &Packet, at: usize) -> [Packet; 2] {
    let (first, second) = packet.payload.split_at(at);
    let offset = (at / 8) as u16;
    [
        Packet { fragment: 0x2000, payload: first.to_vec(), ..packet.clone() },
        Packet { fragment: offset, payload: second.to_vec(), ..packet.clone() },
    ]
}

/// Captures of packets and their fragments, of which the device changes the packets before or after it cuts them.
fn fragmented(
    count: u32,
    before: fn(Packet) -> Packet,
    after: fn(Packet) -> Packet,
) -> [Packets; 2] {
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..count {
        let data = body(number, 1_400);
        let packet =
            Packet { ident: 9_000 + number as u16, ..Packet::new(17, datagram([1, 2], &data)) };
        taps[0].push((entered_ns(number), packet.frame()));
        for (part, later_ns) in
            cut(&before(packet.routed()), 1_200).into_iter().zip([9 * US, 10 * US])
        {
            taps[1].push((entered_ns(number) + later_ns, after(part).frame()));
        }
    }
    taps
}

#[test]
fn fragments_behind_nat_and_in_tunnels_are_told() {
    let same = |packet| packet;
    for (name, taps, remedy) in [
        ("NAT", fragmented(400, translated, same), "--signature "),
        // Of the packet around it; the first has what identifies the packet in it.
        (
            "a tunnel",
            fragmented(400, |packet| Packet { ident: packet.ident, ..in_vxlan(packet) }, same),
            "--mask tunnel ",
        ),
        ("in a tunnel", fragmented(400, same, in_gre), "raise the MTU"),
        ("NAT in a tunnel", fragmented(400, translated, in_vxlan), "raise the MTU"),
    ] {
        let found = summary(&taps, &options());
        let text = &warning(&found, "fragments").text;
        let told = "800 egress packets are fragments of 400 ingress packets";
        assert!(text.starts_with(told), "{name}: {text}");
        assert!(text.contains(&format!("the device fragments them; {remedy}")), "{name}: {text}");
        assert_eq!(explained(&found), ["fragments"], "{name}");
    }
}

/// One packet of many is too long.
#[test]
fn one_fragmented_packet_is_told() {
    for (name, before) in
        [("plain", (|packet| packet) as fn(Packet) -> Packet), ("NAT", translated)]
    {
        let mut taps = fragmented(1, before, |packet| packet);
        for number in 10..200 {
            let packet = Packet::new(17, datagram([1, 2], &body(number, 300)));
            taps[0].push((entered_ns(number), packet.frame()));
            taps[1].push((entered_ns(number) + 9 * US, packet.routed().frame()));
        }
        let text = warning(&summary(&taps, &options()), "fragments").text.clone();
        assert!(
            text.starts_with("2 egress packets are fragments of 1 ingress packet,"),
            "{name}: {text}"
        );
    }
}

/// A signature that was chosen for something else, and a mask.
#[test]
fn no_list_of_fields_is_empty() {
    let rewrites = Rewrites { nat: true, ..PLAIN };
    let taps = [0, 1].map(|side: u32| -> Packets {
        let packet = |number| {
            let packet = Packet {
                ident: number as u16,
                ..Packet::new(17, datagram([1, 2], &body(number, 90)))
            };
            if side == 0 { packet } else { translated(packet.routed()) }
        };
        (0..300)
            .map(|number| (entered_ns(number) + i64::from(side) * 7 * US, packet(number).frame()))
            .collect()
    });
    // It has the source port, and a field that NAT leaves.
    let selection = Some("18:2,34:2".parse().unwrap());
    let found = summary(&taps, &Options { selection, rewrites, ..options() });
    let text = &warning(&found, "masked").text;
    assert!(!text.contains("but :") && text.contains("--mask nat without --signature"), "{text}");
}
