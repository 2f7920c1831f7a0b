//! Packets that the beginning and the end of the captures, and the trim, cut off.

use super::{MS, START_NS, US, options, pcap, run, steady, warned};
use crate::support::{SECOND_NS, says};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::matching::Window;
use tailtrim_tail::summary;

#[test]
fn the_trim_ends_a_second_after_the_first_match() {
    let (ingress, egress) = steady(30_000);
    let options = Options { window: Window::default(), ..Options::default() };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options);
    // Those that left up to and including exactly one second after the first one.
    assert_eq!(analysis.summary.ingress.trimmed, 10_001);
    assert_eq!(analysis.summary.egress.trimmed, 10_001);
    assert_eq!(analysis.summary.samples, 19_999);
    // Gaps that begin at or before the end of the trim do not count: 30 µs lie between the taps.
    assert_eq!(analysis.egress_gaps.sorted(), [(100 * US, 19_998)]);
    assert_eq!(analysis.ingress_gaps.sorted(), [(100 * US, 19_998)]);
    let warned = analysis.summary.warnings.iter().map(|warning| warning.code);
    assert_eq!(warned.collect::<Vec<_>>(), ["phases_not_met"]);
    let without = Options { trim_ns: 0, ..options };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &without);
    assert_eq!((analysis.summary.samples, analysis.summary.ingress.trimmed), (30_000, 0));
    assert_eq!(analysis.ingress_gaps.sorted(), [(100 * US, 29_999)]);
}

#[test]
fn packets_after_the_end_of_the_egress_capture_are_cut_however_many() {
    // More than the matcher remembers, and for much longer than twice the window.
    let (ingress, mut egress) = steady(60_000);
    egress.truncate(1_000);
    for trim_ns in [0, MS] {
        let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { trim_ns, ..options() });
        let outcomes = analysis.summary.ingress;
        let trimmed = if trim_ns > 0 { 11 } else { 0 };
        assert_eq!((outcomes.lost, outcomes.cut), (0, 59_000));
        assert_eq!((outcomes.matched, outcomes.trimmed), (1_000 - trimmed, trimmed));
        assert!(analysis.seconds.iter().all(|second| second.lost == 0));
    }
}

#[test]
fn egress_packets_before_the_first_ingress_packet_are_cut() {
    let (mut ingress, egress) = steady(1_000);
    ingress.drain(..300);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.summary.egress.cut, 300);
    assert_eq!(analysis.summary.egress.unmatched, 0);
    assert_eq!(analysis.summary.samples, 700);
}

#[test]
fn an_egress_packet_is_cut_up_to_the_longest_latency_after_the_first_ingress_stamp() {
    // Every packet takes 30 µs: one that left no later than that may have entered before the capture.
    for (after_ns, expected) in [(30 * US - 1, 1), (30 * US, 1), (30 * US + 1, 0)] {
        let (ingress, mut egress) = steady(400);
        egress.push((START_NS + after_ns, 9_999));
        egress.sort_by_key(|packet| packet.0);
        let outcomes = run(&pcap(&ingress), &pcap(&egress), &options()).summary.egress;
        assert_eq!((outcomes.cut, outcomes.unmatched), (expected, 1 - expected), "{after_ns} ns");
    }
}

#[test]
fn unmatched_packets_of_the_first_moments_are_not_cut_when_they_cannot_have_entered_before() {
    // Duplicates enter and leave; what leaves is unmatched at once.
    let (mut ingress, mut egress) = steady(400);
    ingress.splice(50..50, [(START_NS + 4_950 * US, 7_000), (START_NS + 4_960 * US, 7_000)]);
    egress.splice(50..50, [(START_NS + 4_980 * US, 7_000), (START_NS + 4_990 * US, 7_000)]);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.summary.ingress.duplicate, 2);
    assert_eq!((analysis.summary.egress.unmatched, analysis.summary.egress.cut), (2, 0));
}

#[test]
fn without_a_match_there_is_no_trim() {
    let (ingress, _) = steady(300);
    let (_, mut egress) = steady(200);
    for packet in &mut egress {
        packet.1 += 10_000;
    }
    for trim_ns in [0, SECOND_NS] {
        let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { trim_ns, ..options() });
        let summary = &analysis.summary;
        // Packets that entered before the last egress packet did not leave; of the others nobody knows.
        assert_eq!((summary.ingress.lost, summary.ingress.cut), (200, 100), "trim {trim_ns}");
        assert_eq!(summary.egress.unmatched, 200);
        assert_eq!(summary.samples, 0);
        assert_eq!(summary.latency_ns.quantiles[0].value, None);
        assert_eq!(summary.delivery_adjusted_ns[0].value, None);
        warned(&summary.warnings, &[("no_samples", 300, &["no packet", "--mask", "--signature"])]);
    }
}

#[test]
fn captures_that_do_not_overlap() {
    let (ingress, mut egress) = steady(10);
    for packet in &mut egress {
        packet.0 += 3_600 * SECOND_NS;
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    warned(&analysis.summary.warnings, &[("no_samples", 10, &["do not overlap", "clocks"])]);
}

#[test]
fn behind_a_dead_device_everything_is_lost() {
    let (ingress, _) = steady(20);
    let analysis = run(&pcap(&ingress), &pcap(&[]), &options());
    let summary = &analysis.summary;
    assert_eq!((summary.ingress.lost, summary.ingress.cut), (20, 0));
    warned(&summary.warnings, &[("egress_empty", 20, &["all 20 ingress", "lost", "unless"])]);
}

#[test]
fn a_device_that_dies_amid_a_run_is_pointed_at() {
    let (mut ingress, egress) = steady(20);
    let last = *ingress.last().unwrap();
    ingress.push((last.0 + 3 * SECOND_NS, last.1 + 1));
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.summary.ingress.cut, 1);
    warned(&analysis.summary.warnings, &[("egress_ended_early", 1, &["3.0 s before"])]);
}

/// An egress tap that is started late did not see what left before.
#[test]
fn packets_before_a_late_start_of_the_egress_capture_are_cut() {
    let (mut ingress, mut egress) = steady(40_000);
    egress.drain(..20_000);
    // After the start, packets are lost.
    egress.remove(10);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    let outcomes = analysis.summary.ingress;
    assert_eq!((outcomes.lost, outcomes.cut, outcomes.matched), (1, 20_000, 19_999));
    let late =
        analysis.summary.warnings.iter().find(|one| one.code == "egress_began_late").unwrap();
    assert!(late.count == 20_000 && says(&late.text, &["2.0 s after", "cut"]), "{late:?}");
    // A device may lose the first packets, as it does while it asks for addresses.
    ingress.drain(..15_000);
    let outcomes = run(&pcap(&ingress), &pcap(&egress), &options()).summary.ingress;
    assert_eq!((outcomes.lost, outcomes.cut), (5_001, 0));
}

#[test]
fn empty_captures_have_an_empty_result() {
    let (ingress, egress) = steady(20);
    let (ingress, egress, none) = (pcap(&ingress), pcap(&egress), pcap(&[]));
    for trim_ns in [0, SECOND_NS] {
        let options = Options { trim_ns, ..options() };
        let analysis = run(&none, &none, &options);
        assert_eq!(analysis.summary.ingress, summary::Ingress::default());
        assert_eq!(analysis.summary.egress, summary::Egress::default());
        assert_eq!(analysis.summary.taps.ingress.first_ns, None);
        assert_eq!(analysis.seconds, []);
        assert_eq!(analysis.summary.warnings, []);
        let analysis = run(&ingress, &none, &options);
        assert_eq!((analysis.summary.ingress.cut, analysis.summary.ingress.lost), (0, 20));
        let analysis = run(&none, &egress, &options);
        assert_eq!(analysis.summary.egress.packets, 20);
        assert_eq!((analysis.summary.egress.cut, analysis.summary.egress.unmatched), (20, 0));
        warned(&analysis.summary.warnings, &[("ingress_empty", 20, &["ingress capture has no"])]);
    }
}
