//! Packets that a program stamped itself give the summary of captures of them, to the byte.

use super::{Arrival, Kept, MS, START_NS, US, try_run};
use crate::support::{How, SECOND_NS};
use proptest::prelude::*;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{Numbered, Numbers, Options, analyze};
use tailtrim_tail::capture::write;
use tailtrim_tail::matching::Window;

const LENGTH: u32 = 66;

fn options() -> Options {
    let window = Window { window_ns: 2 * SECOND_NS, ..Window::default() };
    Options { window, ..Options::default() }.for_round_trips()
}

/// A capture whose frames are the numbers alone.
fn pcap(packets: &[Numbered]) -> Vec<u8> {
    let mut bytes = write::header(8).to_vec();
    for packet in packets {
        bytes.extend(write::record_header(packet.stamp_ns, 8, LENGTH));
        bytes.extend(packet.number.to_be_bytes());
    }
    bytes
}

fn check(sent: &[Numbered], received: &[Numbered], block: usize) {
    let files = (pcap(sent), pcap(received));
    let files = (files.0.as_slice(), files.1.as_slice());
    let (captured, samples) = try_run(files, How::default(), Arrival::Mapped, &options()).unwrap();
    let blocks = |name, packets: &[Numbered]| {
        let blocks: Vec<_> = packets.chunks(block).map(<[Numbered]>::to_vec).collect();
        Numbers::new(name, LENGTH, blocks.into_iter())
    };
    let mut kept = Kept::default();
    let (mut ingress, mut egress) = (blocks("in", sent), blocks("out", received));
    let go = |_, _| ControlFlow::Continue(());
    let found = analyze(&mut ingress, &mut egress, &options(), &mut kept, go).unwrap();
    let text = |summary| serde_json::to_string(summary).unwrap();
    assert_eq!(text(&found.summary), text(&captured.summary));
    assert_eq!(kept.0, samples);
    assert_eq!(found.worst, captured.worst);
    assert_eq!(found.seconds, captured.seconds);
}

/// Probes in bursts of four; `took_ns` is the round-trip time, or nothing without a reply.
fn round_trips(count: u64, took_ns: impl Fn(u64) -> Option<i64>) -> [Vec<Numbered>; 2] {
    let stamp_ns =
        |number: u64| START_NS + (number / 4) as i64 * 400 * US + (number % 4) as i64 * 700;
    let sent = (0..count).map(|number| Numbered { stamp_ns: stamp_ns(number), number });
    let replies = (0..count).filter_map(|number| {
        took_ns(number).map(|took_ns| Numbered { stamp_ns: stamp_ns(number) + took_ns, number })
    });
    let (sent, mut received): (Vec<_>, Vec<_>) = (sent.collect(), replies.collect());
    received.sort_unstable();
    [sent, received]
}

#[test]
fn more_packets_than_are_looked_at_first() {
    // Traffic is no burst any more behind what is looked at first; blocks end anywhere.
    for count in [10_921, 10_922, 10_923, 30_000] {
        let [mut sent, received] =
            round_trips(count, |number| (number % 10 != 3).then_some(50 * US + number as i64));
        for packet in sent.iter_mut().skip(10_922) {
            packet.stamp_ns += packet.number as i64 % 4 * 90 * US;
        }
        for block in [1, 255, 4_096, 100_000] {
            check(&sent, &received, block);
        }
    }
}

#[test]
fn no_probe_and_no_reply() {
    let [sent, received] = round_trips(500, |_| None);
    check(&sent, &received, 64);
    check(&[], &[], 64);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn round_trips_by_chance(
        took_ns in prop::collection::vec(prop::option::weighted(0.9, 1..3_000 * MS), 1..600),
        block in 1..300_usize,
    ) {
        let [sent, received] =
            round_trips(took_ns.len() as u64, |number| took_ns[number as usize]);
        check(&sent, &received, block);
    }
}
