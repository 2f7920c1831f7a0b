//! Corrections for cables: their delay is taken off each latency.

use super::ledger::by_ledger;
use super::{Arrival, MS, START_NS, US, options, pcap, try_run};
use crate::support::How;
use tailtrim_tail::analysis::Options;

/// 400 packets, 1 ms apart, that take 30 µs, but for every tenth, which takes 40 µs.
fn captures() -> (Vec<u8>, Vec<u8>) {
    let at_ns = |id: u32| START_NS + i64::from(id) * MS;
    let latency_ns = |id: u32| if id.is_multiple_of(10) { 40 * US } else { 30 * US };
    let ingress: Vec<(i64, u32)> = (0..400).map(|id| (at_ns(id), id)).collect();
    let egress: Vec<(i64, u32)> = (0..400).map(|id| (at_ns(id) + latency_ns(id), id)).collect();
    (pcap(&ingress), pcap(&egress))
}

#[test]
fn a_correction_is_taken_off_each_latency_whichever_its_sign() {
    let (ingress, egress) = captures();
    for correction_ns in [59, -64] {
        let options = Options { correction_ns, trim_ns: 0, ..options() };
        let files = (ingress.as_slice(), egress.as_slice());
        let (found, samples) = try_run(files, How::default(), Arrival::Mapped, &options).unwrap();
        let latency = &found.summary.latency_ns;
        assert_eq!(latency.min, Some(30 * US - correction_ns));
        assert_eq!(latency.max, Some(40 * US - correction_ns));
        assert_eq!(found.summary.correction_ns, correction_ns);
        assert!(samples.iter().all(|one| (one.latency_ns() + correction_ns) % (10 * US) == 0));
        let told = serde_json::to_string(&found.summary).unwrap();
        assert_eq!(told, by_ledger(files, &options, &found));
    }
}

#[test]
fn without_a_correction_the_summary_does_not_tell_of_one() {
    let (ingress, egress) = captures();
    let files = (ingress.as_slice(), egress.as_slice());
    let found = try_run(files, How::default(), Arrival::Mapped, &options()).unwrap().0;
    assert!(!serde_json::to_string(&found.summary).unwrap().contains("correction"));
}
