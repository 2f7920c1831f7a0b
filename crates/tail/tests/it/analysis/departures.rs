//! Packets of times in which the generator was not up to its schedule.

use super::{Arrival, MS, START_NS, US, options, pcap, try_run};
use crate::support::How;
use tailtrim_tail::analysis::{Departures, Options};
use tailtrim_tail::summary::{QuantileValue, Summary};

/// 400 packets, 1 ms apart, that take 30 µs; those from number 100 on, ten of them, take 900 µs.
fn analyzed(departures: Departures) -> Summary {
    trimmed(departures, 0)
}

fn trimmed(departures: Departures, trim_ns: i64) -> Summary {
    let at_ns = |id: u32| START_NS + i64::from(id) * MS;
    let latency_ns = |id: u32| if (100..110).contains(&id) { 900 * US } else { 30 * US };
    let ingress: Vec<(i64, u32)> = (0..400).map(|id| (at_ns(id), id)).collect();
    let egress: Vec<(i64, u32)> = (0..400).map(|id| (at_ns(id) + latency_ns(id), id)).collect();
    let options = Options { departures, trim_ns, ..options() };
    let files = (pcap(&ingress), pcap(&egress));
    let files = (files.0.as_slice(), files.1.as_slice());
    try_run(files, How::default(), Arrival::Mapped, &options).unwrap().0.summary
}

fn spans(from: u32, to: u32) -> Vec<(i64, i64)> {
    vec![(START_NS + i64::from(from) * MS, START_NS + i64::from(to) * MS)]
}

#[test]
fn packets_behind_a_stall_of_the_generator_are_set_aside_late_or_not() {
    let found = analyzed(Departures { stalled: spans(95, 109), late: Vec::new() });
    let (ingress, egress) = (found.ingress, found.egress);
    assert_eq!((ingress.packets, ingress.matched, ingress.stalled), (400, 385, 15));
    assert_eq!((egress.packets, egress.matched, egress.stalled), (400, 385, 15));
    assert_eq!((found.samples, found.latency_ns.max), (385, Some(30 * US)));
    assert!(found.warnings.iter().any(|warning| warning.code == "generator_stalled"));
}

#[test]
fn packets_that_departed_late_are_samples_and_the_result_without_them_is_told() {
    let found = analyzed(Departures { stalled: Vec::new(), late: spans(100, 109) });
    assert_eq!((found.samples, found.latency_ns.max), (400, Some(900 * US)));
    let late = found.departed_late.unwrap();
    let of = |p: &str| {
        let wanted = |one: &&QuantileValue| one.p == p.parse().unwrap();
        late.without_ns.iter().find(wanted).unwrap().value
    };
    assert_eq!((late.samples, of("0.99"), of("0.5")), (10, Some(30 * US), Some(30 * US)));
    let p99 = found.latency_ns.quantiles.iter().find(|one| one.p == "0.99".parse().unwrap());
    assert_eq!(p99.unwrap().value, Some(900 * US));
}

#[test]
fn a_generator_that_was_in_time_changes_nothing() {
    let found = analyzed(Departures::default());
    assert_eq!((found.ingress.stalled, found.departed_late), (0, None));
}

#[test]
fn a_constant_rate_that_keeps_to_a_clock_is_told() {
    let found = analyzed(Departures::default());
    let told = found.warnings.iter().find(|warning| warning.code == "phases_not_met").unwrap();
    // 1,000 packets a second: one phase of 1,000 Hz, four of 250 Hz.
    assert!(told.text.contains("1 % of 1000 Hz"), "{}", told.text);
}

#[test]
fn the_interval_of_a_constant_rate_is_not_longer_for_what_is_trimmed() {
    let found = trimmed(Departures::default(), 20 * MS);
    let told = found.warnings.iter().find(|warning| warning.code == "phases_not_met").unwrap();
    assert!(told.text.starts_with("packets every 1.00 ms meet"), "{}", told.text);
}
