//! Packets that are missing together, and stamps that are taken together.

use crate::frames::{
    Packet, Packets, Random, T0, US, datagram, explained, options, summary, udp, warning,
};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::matching::Window;
use tailtrim_tail::summary::grouped;

const SECOND: i64 = 1_000_000_000;

/// A packet that enters, and when it leaves.
fn taps(
    packets: u32,
    every_ns: i64,
    frame: impl Fn(u32) -> Packet,
    leaves: impl Fn(u32, i64) -> Option<i64>,
) -> [Packets; 2] {
    let mut random = Random::new(21);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..packets {
        let stamp_ns = T0 + i64::from(number) * every_ns;
        taps[0].push((stamp_ns, frame(number).frame()));
        let left_ns = stamp_ns + 9 * US + random.below(US);
        let left = leaves(number, left_ns).map(|ns| (ns, frame(number).routed().frame()));
        taps[1].extend(left);
    }
    taps
}

/// It was loss of the device, without a word.
#[test]
fn a_hole_of_the_egress_capture_is_told_with_both_reasons() {
    for seconds in [2, 60] {
        let hole = T0 + 5 * SECOND..T0 + (5 + seconds) * SECOND;
        let leaves = |_, ns: i64| (!hole.contains(&ns)).then_some(ns);
        let found = summary(&taps(8_000, 10_000 * US, udp, leaves), &options());
        let told = warning(&found, "hole");
        assert_eq!(told.count, found.ingress.lost);
        assert_eq!(told.count, 100 * seconds as u64);
        for part in [
            format!("for {seconds}.0"),
            "UTC, 4.990 s after the first packet: ".to_owned(),
            format!("{} packets entered meanwhile", grouped(told.count + 1)),
            "either the device forwarded nothing, or the egress tap did not record".to_owned(),
        ] {
            assert!(told.text.contains(&part), "{part}: {}", told.text);
        }
        assert_eq!(explained(&found), ["hole"]);
    }
}

#[test]
fn a_hole_of_the_ingress_capture_is_told() {
    let [mut entered, left] = taps(8_000, 10_000 * US, udp, |_, ns| Some(ns));
    entered.retain(|(ns, _)| !(T0 + 5 * SECOND..T0 + 8 * SECOND).contains(ns));
    let found = summary(&[entered, left], &options());
    let told = warning(&found, "hole");
    assert_eq!((told.count, found.egress.unmatched), (300, 300));
    assert!(told.text.contains("the ingress tap did not record"), "{}", told.text);
}

/// A device that loses most packets, and a pause of the sender.
#[test]
fn rare_packets_and_pauses_are_no_holes() {
    let rare = |number: u32, ns| number.is_multiple_of(150).then_some(ns);
    let found = summary(&taps(8_000, 10_000 * US, udp, rare), &options());
    assert_eq!(explained(&found), [""; 0]);
    let [mut entered, mut left] =
        taps(8_000, 10_000 * US, udp, |number, ns| (!number.is_multiple_of(50)).then_some(ns));
    for packets in [&mut entered, &mut left] {
        packets.retain(|(ns, _)| !(T0 + 5 * SECOND..T0 + 8 * SECOND).contains(ns));
    }
    assert_eq!(explained(&summary(&[entered, left], &options())), [""; 0]);
}

/// A packet of one of so many flows.
fn of_flow(number: u32, flows: u32) -> Packet {
    let payload = number.to_be_bytes().repeat(16);
    Packet::new(17, datagram([5_000 + (number % flows) as u16, 6_000], &payload))
}

#[test]
fn flows_that_are_missing_as_a_whole_are_told() {
    let half = |number: u32, ns| (!(number % 16).is_multiple_of(2)).then_some(ns);
    let found = summary(&taps(3_200, 50 * US, |n| of_flow(n, 16), half), &options());
    let told = warning(&found, "missing_flows");
    // The last ones may leave behind the end.
    assert!(told.count.abs_diff(found.ingress.lost) < 3);
    assert!(told.text.starts_with("8 of 16 flows are missing as a whole"), "{}", told.text);
    assert!(told.text.contains("The others lose 0.00 %"), "{}", told.text);
    assert!(!told.invalidates);
    let one = |number: u32, ns| (number % 16 != 3 && !number.is_multiple_of(7)).then_some(ns);
    let found = summary(&taps(3_200, 50 * US, |n| of_flow(n, 16), one), &options());
    let told = warning(&found, "missing_flows");
    assert!(told.text.starts_with("1 of 16 flows"), "{}", told.text);
}

#[test]
fn loss_of_any_packets_is_no_loss_of_flows() {
    let mut random = Random::new(22);
    let lost: Vec<bool> = (0..3_200).map(|_| random.below(2) == 0).collect();
    for flows in [1, 16, 400, 3_200] {
        let some = |number: u32, ns| (!lost[number as usize]).then_some(ns);
        let found = summary(&taps(3_200, 50 * US, |n| of_flow(n, flows), some), &options());
        assert_eq!(explained(&found), [""; 0], "{flows}");
    }
}

/// Packets that waited for 12 s were lost and unmatched.
#[test]
fn packets_beyond_twice_the_window_are_told_with_the_option() {
    let late = |number: u32, ns| Some(if number % 40 == 9 { ns + 12 * SECOND } else { ns });
    let taps = taps(4_000, 10_000 * US, udp, late);
    let found = summary(&taps, &options());
    let told = warning(&found, "left_after_all");
    assert!(told.text.contains("--window 14s"), "{}", told.text);
    assert_eq!(explained(&found), [""; 0]);
    let window = Window { window_ns: 14 * SECOND, ..Window::default() };
    let found = summary(&taps, &Options { window, ..options() });
    assert!(found.latency_ns.max > Some(12 * SECOND) && found.ingress.lost == 0);
}

/// When a driver stamps a packet that comes then: `batch` µs after the batch before, some ns behind the one before.
fn stamped(packets: &Packets, batch: i64, phase: i64) -> Packets {
    let mut sorted = packets.clone();
    sorted.sort_by_key(|(ns, _)| *ns);
    let (mut last, mut place) = (0, 0);
    for (ns, _) in &mut sorted {
        let interrupt = (*ns - phase).div_euclid(batch * US) + 1;
        place = if interrupt == last { place + 1 } else { 0 };
        last = interrupt;
        *ns = interrupt * batch * US + phase + place * 20;
    }
    sorted
}

/// p50 was 0.66 µs instead of 9.4 µs, or "clocks disagree", without a word.
#[test]
fn stamps_in_batches_at_both_taps_are_told() {
    let mut random = Random::new(23);
    let jitter: Vec<i64> = (0..6_000).map(|_| random.below(9 * US)).collect();
    for (name, evenly) in [("even", true), ("random", false)] {
        for phase in [660, 90_000, 99_400] {
            let [entered, left] = taps(6_000, 10 * US, udp, |number, ns| {
                let late_ns = if number % 200 == 3 { 150 * US } else { 0 };
                Some(ns + late_ns + if evenly { 0 } else { jitter[number as usize] })
            });
            let taps = [stamped(&entered, 100, 0), stamped(&left, 100, phase)];
            let found = summary(&taps, &options());
            let told = warning(&found, "batched_stamps");
            assert!(told.invalidates && told.text.contains("every 100 µs"), "{name} {}", told.text);
            let clocks = |code: &str| code == "not_positive" || code.starts_with("clock_");
            let of_clocks: Vec<_> = found.warnings.iter().filter(|one| clocks(one.code)).collect();
            assert!(of_clocks.is_empty(), "{name} {phase} {of_clocks:?}");
            assert_eq!(explained(&found), ["batched_stamps"]);
        }
    }
}

/// Packets that a generator sends in bursts, through devices that hold or hurry them.
#[test]
fn bursts_are_no_stamps_in_batches() {
    let mut random = Random::new(24);
    for burst in [4, 10, 32] {
        for (stalls, service_ns) in [(0, 100), (40, 100), (5, 700), (40, 3_000)] {
            let mut taps = [Vec::new(), Vec::new()];
            let mut free_ns = 0;
            for number in 0..6_000 {
                let place = i64::from(number % burst);
                let begun = i64::from(number / burst) * i64::from(burst) * 12 * US;
                let stamp_ns = T0 + begun + place * 80;
                free_ns = free_ns.max(stamp_ns);
                if stalls > 0 && random.below(1_000) < stalls {
                    free_ns += random.below(i64::from(burst) * 30 * US);
                }
                free_ns += service_ns;
                taps[0].push((stamp_ns, udp(number as u32).frame()));
                taps[1].push((free_ns + 5 * US, udp(number as u32).routed().frame()));
            }
            let found = summary(&taps, &options());
            let told = found.warnings.iter().find(|one| one.text.contains("stamps of both taps"));
            assert_eq!(told, None, "{burst} {stalls} {service_ns}");
        }
    }
}
