//! Packets whose stamps are none: zero, or far from those of their neighbours.

use super::{START_NS, US, options, pcap, run, steady, warned};
use crate::support::SECOND_NS;
use tailtrim_tail::analysis::Analysis;

const NOW_NS: i64 = 1_700_000_000 * SECOND_NS;
/// A time in 2061.
const FAR_NS: i64 = 2_894_531_997_938_836_488;

/// Packets every 100 µs in 2023, and the same 30 µs later.
fn today(count: u32) -> [Vec<(i64, u32)>; 2] {
    let (ingress, egress) = steady(count);
    [ingress, egress].map(|side| {
        side.into_iter().map(|(stamp_ns, id)| (stamp_ns - START_NS + NOW_NS, id)).collect()
    })
}

/// Samples, lost packets, and those without a stamp on each side.
fn counts(analysis: &Analysis) -> (u64, u64, [u64; 2]) {
    let summary = &analysis.summary;
    let unstamped = [summary.ingress.unstamped, summary.egress.unstamped];
    (summary.samples, summary.ingress.lost, unstamped)
}

#[test]
fn one_packet_of_another_decade() {
    // At the begin, at the end, between, and where a batch ends.
    for at in [0, 1, 255, 256, 299, 150] {
        for odd_ns in [FAR_NS, 0, 77, NOW_NS + 5 * SECOND_NS, NOW_NS - 5 * SECOND_NS] {
            // Such an end may be a pause, and such a begin one before a pause.
            let near = odd_ns.abs_diff(NOW_NS) < 10 * SECOND_NS.unsigned_abs();
            if near && (at == 299 && odd_ns > NOW_NS || at == 0 && odd_ns < NOW_NS) {
                continue;
            }
            let [mut ingress, egress] = today(300);
            ingress[at].0 = odd_ns;
            let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
            // The first one to leave may have entered before the capture began.
            let other = u64::from(at > 0);
            assert_eq!(counts(&analysis), (299, 0, [1, other]), "{at} {odd_ns}");
            assert_eq!(analysis.summary.egress.cut, 1 - other);
            assert_eq!(analysis.latencies.entries(), [(30 * US, 299)]);
            let odd = analysis.summary.taps.ingress.odd_stamp.unwrap();
            assert_eq!((odd.packet, odd.stamp_ns), (at as u64 + 1, odd_ns));
            assert_eq!(analysis.summary.taps.ingress.out_of_order, 0);
        }
    }
}

#[test]
fn some_odd_stamps_in_a_row() {
    // At the begin, at the end, between, and across the end of a batch.
    for (at, count) in [(0, 2), (150, 2), (150, 3), (254, 3), (255, 2), (298, 2)] {
        for odd_ns in [0, NOW_NS + 5 * SECOND_NS, NOW_NS - 5 * SECOND_NS] {
            let near = odd_ns != 0;
            if near && (at == 298 || at == 0 && odd_ns < NOW_NS) {
                continue;
            }
            let [mut ingress, egress] = today(300);
            for (packet, more_ns) in ingress[at..at + count].iter_mut().zip(0..) {
                packet.0 = odd_ns + more_ns;
            }
            let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
            let odd = count as u64;
            let (samples, lost, [entered, _]) = counts(&analysis);
            assert_eq!((samples, lost, entered), (300 - odd, 0, odd), "{at} {count} {odd_ns}");
            assert_eq!(analysis.latencies.entries(), [(30 * US, 300 - odd)]);
        }
    }
}

#[test]
fn the_warning_names_the_packet_and_its_time() {
    let [mut ingress, mut egress] = today(2_000);
    ingress[1_000].0 = FAR_NS;
    for packet in &mut egress[..5] {
        packet.0 = 0;
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    // The other half of each is neither lost nor unexplained.
    assert_eq!(counts(&analysis), (1_994, 0, [6, 6]));
    assert_eq!(analysis.summary.egress.unmatched, 0);
    assert_eq!(analysis.seconds.iter().map(|second| second.lost).sum::<u64>(), 0);
    let left_out = analysis.summary.warnings.iter().filter(|warning| warning.code == "unstamped");
    let left_out: Vec<_> = left_out.cloned().collect();
    let facts: [(&str, u64, &[&str]); 2] = [
        ("unstamped", 1, &["1 ingress", "packet 1,001", "2061-09-21 12:39:57 UTC"]),
        ("unstamped", 5, &["5 egress", "packet 1 is stamped 0"]),
    ];
    warned(&left_out, &facts);
}

#[test]
fn a_clock_that_begins_at_zero_has_a_packet_there() {
    let (mut ingress, mut egress) = steady(300);
    for side in [&mut ingress, &mut egress] {
        side.iter_mut().for_each(|packet| packet.0 -= START_NS);
    }
    assert_eq!(ingress[0].0, 0);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(counts(&analysis), (300, 0, [0, 0]));
}

#[test]
fn a_capture_of_zeros_has_no_stamps() {
    let zeros: Vec<(i64, u32)> = (0..300).map(|id| (0, id)).collect();
    let [ingress, _] = today(300);
    let analysis = run(&pcap(&ingress), &pcap(&zeros), &options());
    assert_eq!(counts(&analysis), (0, 0, [300, 300]));
    assert_eq!(analysis.summary.samples, 0);
}

#[test]
fn pauses_are_no_odd_stamps() {
    // Every packet comes after a pause, one of them after an hour.
    let at =
        |id: u32| NOW_NS + i64::from(id) * 2 * SECOND_NS + i64::from(id / 20) * 3_600 * SECOND_NS;
    let ingress: Vec<(i64, u32)> = (0..40).map(|id| (at(id), id)).collect();
    let egress: Vec<(i64, u32)> = (0..40).map(|id| (at(id) + 30 * US, id)).collect();
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(counts(&analysis), (40, 0, [0, 0]));
    assert_eq!(analysis.summary.taps.ingress.odd_stamp, None);
}
