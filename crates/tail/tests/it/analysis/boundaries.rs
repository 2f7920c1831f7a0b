//! Every boundary of the rules, a nanosecond to both sides, by the native matcher and by the ledger.

use super::ledger::by_ledger;
use super::{Arrival, MS, START_NS, US, options, pcap, try_run};
use crate::support::{How, SECOND_NS};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::summary::{Egress, Ingress};

/// `options()` has this window, and this much of clock disagreement.
const WINDOW_NS: i64 = 50 * MS;
const EARLY_NS: i64 = MS;

/// Latency of all packets but those of a case. It is the longest latency.
const LATENCY_NS: i64 = 30 * US;

/// Packets beside those of a case, 10 ms apart.
const STEADY: u32 = 40;

/// Packets in captures: stamps since [`START_NS`] and identifiers.
type Packets<'a> = &'a [(i64, u32)];

/// Outcomes of the steady packets and of those added to them.
fn analyzed(options: &Options, entering: Packets<'_>, leaving: Packets<'_>) -> (Ingress, Egress) {
    let at = |id: u32| START_NS + i64::from(id) * 10 * MS;
    let mut ingress: Vec<(i64, u32)> = (0..STEADY).map(|id| (at(id), id)).collect();
    let mut egress: Vec<(i64, u32)> = (0..STEADY).map(|id| (at(id) + LATENCY_NS, id)).collect();
    let added = |&(after_ns, id): &(i64, u32)| (START_NS + after_ns, id);
    ingress.extend(entering.iter().map(added));
    egress.extend(leaving.iter().map(added));
    ingress.sort_by_key(|packet| packet.0);
    egress.sort_by_key(|packet| packet.0);
    let (ingress, egress) = (pcap(&ingress), pcap(&egress));
    let files = (ingress.as_slice(), egress.as_slice());
    let (analysis, _) = try_run(files, How::default(), Arrival::Mapped, options).unwrap();
    let text = serde_json::to_string(&analysis.summary).unwrap();
    assert_eq!(by_ledger(files, options, &analysis), text);
    (analysis.summary.ingress, analysis.summary.egress)
}

/// Outcomes of the packets added to the steady ones, which all match.
fn outcomes(options: &Options, entering: Packets<'_>, leaving: Packets<'_>) -> (Ingress, Egress) {
    let (mut ingress, mut egress) = analyzed(options, entering, leaving);
    let steady = u64::from(STEADY);
    ingress.packets -= steady + entering.len() as u64;
    egress.packets -= steady + leaving.len() as u64;
    ingress.matched -= steady;
    egress.matched -= steady;
    (ingress, egress)
}

#[test]
fn a_latency_at_every_bound_of_the_window() {
    let (none_in, none_out) = (Ingress::default(), Egress::default());
    let matched = (Ingress { matched: 1, ..none_in }, Egress { matched: 1, ..none_out });
    let beyond = (Ingress { beyond_window: 1, ..none_in }, Egress { unmatched: 1, ..none_out });
    let apart = (Ingress { lost: 1, ..none_in }, Egress { unmatched: 1, ..none_out });
    for (latency_ns, expected) in [
        (-EARLY_NS - 1, apart),
        (-EARLY_NS, apart),
        (-EARLY_NS + 1, matched),
        (0, matched),
        (WINDOW_NS - 1, matched),
        (WINDOW_NS, beyond),
        (2 * WINDOW_NS - 1, beyond),
        (2 * WINDOW_NS, apart),
    ] {
        let entered_ns = 205 * MS;
        let found = outcomes(&options(), &[(entered_ns, 900)], &[(entered_ns + latency_ns, 900)]);
        assert_eq!(found, expected, "{latency_ns} ns");
    }
}

#[test]
fn a_packet_in_flight_at_every_bound_of_the_end() {
    let last_ns = i64::from(STEADY - 1) * 10 * MS + LATENCY_NS;
    for watched_to_the_end in [false, true] {
        let options = Options { watched_to_the_end, ..options() };
        for (left_ns, lost) in
            [(LATENCY_NS + 1, true), (LATENCY_NS, false), (0, false), (-MS, false)]
        {
            let (ingress, _) = outcomes(&options, &[(last_ns - left_ns, 900)], &[]);
            let lost = u64::from(lost || watched_to_the_end);
            let expected = Ingress { lost, cut: 1 - lost, ..Ingress::default() };
            assert_eq!(ingress, expected, "{left_ns} ns before the end");
        }
        // Given up while packets still come is lost, whoever watched.
        let (ingress, _) = outcomes(&options, &[(5 * MS, 900), (5 * MS + WINDOW_NS, 900)], &[]);
        assert_eq!(ingress, Ingress { lost: 2, ..Ingress::default() });
    }
}

#[test]
fn a_packet_that_left_at_every_bound_of_the_beginning() {
    for watched_to_the_end in [false, true] {
        let options = Options { watched_to_the_end, ..options() };
        for (after_ns, cut) in
            [(-MS, 1), (0, 1), (LATENCY_NS, 1), (LATENCY_NS + 1, 0), (200 * MS, 0)]
        {
            let (_, egress) = outcomes(&options, &[], &[(after_ns, 900)]);
            let expected = Egress { cut, unmatched: 1 - cut, ..Egress::default() };
            assert_eq!(egress, expected, "{after_ns} ns after the first packet entered");
        }
    }
}

#[test]
fn a_packet_at_the_end_of_the_trim() {
    let options = Options { trim_ns: 100 * MS, ..options() };
    // Packets 0 to 10 left within the trim, the last of them at its end.
    let until_ns = 100 * MS + LATENCY_NS;
    for (stamp_ns, trimmed) in [(until_ns, 1), (until_ns + 1, 0)] {
        let (ingress, egress) = analyzed(&options, &[(stamp_ns, 900)], &[(stamp_ns, 901)]);
        assert_eq!((ingress.trimmed, ingress.lost), (11 + trimmed, 1 - trimmed), "{stamp_ns}");
        assert_eq!((egress.trimmed, egress.unmatched), (11 + trimmed, 1 - trimmed), "{stamp_ns}");
    }
}

#[test]
fn without_a_match_what_left_first_may_have_entered_before() {
    // No packet has taken any time, so that only what left no later than the first one entered may.
    for trim_ns in [0, SECOND_NS] {
        let options = Options { trim_ns, ..options() };
        let ingress = pcap(&[(START_NS, 1), (START_NS + MS, 2)]);
        let egress = pcap(&[(START_NS - 1, 3), (START_NS, 4), (START_NS + 1, 5)]);
        let files = (ingress.as_slice(), egress.as_slice());
        let (analysis, _) = try_run(files, How::default(), Arrival::Mapped, &options).unwrap();
        let Egress { cut, unmatched, .. } = analysis.summary.egress;
        assert_eq!((cut, unmatched), (2, 1), "trim {trim_ns}");
        let text = serde_json::to_string(&analysis.summary).unwrap();
        assert_eq!(by_ledger(files, &options, &analysis), text);
    }
}
