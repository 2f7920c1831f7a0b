//! Captures whose stamps were converted from one clock to another.

use crate::frames::{T0, US, options, pcap, udp, warning};
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use tailtrim_reading::analysis::analyze;
use tailtrim_reading::converted::Converted;
use tailtrim_reading::source::{Reading, open};
use tailtrim_tail::analysis::AnalysisError;
use tailtrim_tail::summary::Summary;
use tempfile::TempDir;

/// Matches packets that take 20 µs, with such a file beside the egress capture.
fn found(beside: &str) -> Result<Summary, AnalysisError> {
    let folder = TempDir::new().unwrap();
    let paths = ["in.pcap", "out.pcap"].map(|name| folder.path().join(name));
    for (path, late_ns) in paths.iter().zip([0, 20 * US]) {
        let packet = |n: u32| (T0 + i64::from(n) * 100 * US + late_ns, udp(n).frame());
        fs::write(path, pcap(&(0..500).map(packet).collect(), usize::MAX)).unwrap();
    }
    fs::write(Converted::path(&paths[1]), beside).unwrap();
    let [ingress, egress] = paths.map(|path| open(&path, Reading::default()).unwrap());
    let go_on = |_, _| ControlFlow::Continue(());
    analyze(ingress, egress, NonZeroUsize::MIN, &options(), &mut (), go_on)
        .map(|found| found.summary)
}

fn told(error_ns: Option<i64>, invalid: &[&str]) -> String {
    let invalid = invalid.iter().map(|&why| why.to_owned()).collect();
    serde_json::to_string(&Converted::new("ptp1", "ptp0", error_ns, invalid)).unwrap()
}

#[test]
fn the_error_of_the_clocks_is_told_with_the_latencies() {
    let summary = found(&told(Some(1_500), &[])).unwrap();
    assert_eq!(summary.clock_error_ns, 1_500);
    let warning = warning(&summary, "clock_error");
    assert!(
        warning.text.ends_with("each latency is within 1.50 µs of the true one"),
        "{}",
        warning.text
    );
    assert!(!warning.invalidates);
}

#[test]
fn latencies_below_the_error_or_without_one_are_none() {
    assert!(warning(&found(&told(Some(20 * US), &[])).unwrap(), "clock_error").invalidates);
    let summary = found(&told(None, &["the clock ptp1 jumped"])).unwrap();
    let warning = warning(&summary, "clock_error");
    assert!(warning.invalidates && warning.text.contains("ptp1 jumped"), "{}", warning.text);
}

#[test]
fn a_file_of_another_form_is_an_error_that_names_it() {
    for text in ["{", "[]", &told(Some(-1), &[]), &told(None, &[]).replace("clocks/1", "clocks/9")]
    {
        let error = found(text).unwrap_err().to_string();
        assert!(error.contains("out.pcap.clocks.json: cannot be opened"), "{error}");
    }
}
