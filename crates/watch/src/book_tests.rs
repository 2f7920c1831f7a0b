//! Reports that are made up, and what the book has of them.

use super::*;
use crate::change::Asked;
use crate::metrics::Format;
use crate::plan::Plan;
use std::fs;
use tempfile::TempDir;

const SECOND_NS: i64 = 1_000_000_000;
/// A whole minute of January 2030.
const BEGIN_NS: i64 = 1_893_456_000 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// A book, and the folder into which it writes.
struct Watch {
    folder: TempDir,
    metrics: Arc<Metrics>,
    book: Book,
}

impl Watch {
    /// Begins with a target at the place 0.
    fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Arc::new(Metrics::new(Vec::new()));
        let store = Store::open(folder.path()).unwrap();
        let keep = Keep { time_ns: None, bytes: None };
        let changes = Changes::new(folder.path(), Asked::of(None, None).unwrap());
        let warn = Box::new(|text: &str| panic!("{text}"));
        let (of_book, board) = (Arc::clone(&metrics), Arc::default());
        let mut book = Book::new(store, keep, changes, of_book, board, BEGIN_NS, warn).unwrap();
        let plan = plan("targets: [{name: a, address: 192.0.2.7, objectives: [loss < 1%]}]");
        let plan = Arc::new(plan.targets[0].clone());
        book.enter(vec![Report::Started { place: 0, plan, now_ns: BEGIN_NS }]);
        Self { folder, metrics, book }
    }

    /// Decides a probe that was due so long after the begin.
    fn decide(&mut self, after_ns: i64, outcome: Outcome) {
        let due_ns = BEGIN_NS + after_ns;
        self.book.enter(vec![Report::Decided { place: 0, due_ns, outcome }]);
    }

    fn fail(&mut self) {
        self.book.enter(vec![Report::Failed { place: 0, why: "no such device".to_owned() }]);
    }

    /// Decides all probes up to this time after the begin.
    fn sweep(&mut self, after_ns: i64) {
        self.book.enter(vec![Report::Swept { now_ns: BEGIN_NS + after_ns }]);
    }

    /// The number of events of this name.
    fn told(&self, event: &str) -> usize {
        let events = fs::read_to_string(self.folder.path().join("events.jsonl")).unwrap();
        events.matches(&format!("\"event\":\"{event}\"")).count()
    }

    fn encoded(&self) -> String {
        String::from_utf8(self.metrics.encode(Format::Text).unwrap()).unwrap()
    }
}

fn plan(text: &str) -> Plan {
    Plan::parse(text, Path::new("watch.yml")).unwrap()
}

#[test]
fn a_failure_is_told_again_after_a_minute_without_one() {
    let mut watch = Watch::begin();
    watch.fail();
    watch.fail();
    watch.decide(SECOND_NS, Outcome::Refused);
    watch.sweep(MINUTE_NS + 10 * SECOND_NS);
    watch.fail();
    assert_eq!(watch.told("failed"), 1);
    watch.decide(MINUTE_NS + 20 * SECOND_NS, Outcome::Lost);
    watch.sweep(2 * MINUTE_NS + 10 * SECOND_NS);
    watch.fail();
    assert_eq!(watch.told("failed"), 2);
}

#[test]
fn a_name_that_moves_from_targets_to_taps_keeps_its_metrics() {
    let mut watch = Watch::begin();
    let text = "taps: [{name: a, ingress: eth1, egress: eth2, objectives: [loss < 1%]}]";
    let tap = Arc::new(plan(text).taps[0].clone());
    let (to_device, given) = std::sync::mpsc::channel();
    watch.book.enter(vec![Report::Tapping { place: 7, plan: tap, metrics: to_device }]);
    let packets = given.recv().unwrap();
    // The thread of the target reports its end later.
    watch.book.enter(vec![Report::Ended { place: 0 }]);
    packets.judged(&[Share { bad: 1, packets: 3 }]);
    packets.entered("lost", 1);
    let told = watch.encoded();
    for expected in [
        "tailtrim_watch_slo_bad_total{target=\"a\",objective=\"loss < 1%\"} 1",
        "tailtrim_watch_slo_total{target=\"a\",objective=\"loss < 1%\"} 3",
        "tailtrim_watch_packets_total{target=\"a\",outcome=\"lost\"} 1",
        "tailtrim_watch_slo_state{target=\"a\",objective=\"loss < 1%\",state=\"not decided\"} 1",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
    assert!(!told.contains("tailtrim_watch_probes_total{target=\"a\""), "{told}");
    assert_eq!((watch.told("end"), watch.told("target")), (1, 2));
    watch.book.enter(vec![Report::Ended { place: 7 }]);
    assert!(!watch.encoded().contains("target=\"a\""));
}

#[test]
fn a_device_that_is_changed_counts_in_metrics_that_are_shown() {
    let mut watch = Watch::begin();
    for (place, window) in [(7, "1s"), (8, "2s")] {
        let text = format!("taps: [{{name: wall, ingress: a, egress: b, window: {window}}}]");
        let tap = Arc::new(plan(&text).taps[0].clone());
        let (to_device, given) = std::sync::mpsc::channel();
        let tapping = Report::Tapping { place, plan: tap, metrics: to_device };
        // The end of the former one may be in the same batch.
        watch.book.enter(vec![Report::Ended { place: place - 1 }, tapping]);
        given.recv().unwrap().entered("lost", 1);
        let expected = "tailtrim_watch_packets_total{target=\"wall\",outcome=\"lost\"} 1";
        assert!(watch.encoded().contains(expected), "{window}");
    }
}

#[test]
fn minutes_that_a_step_of_the_clock_ends_are_judged() {
    let mut watch = Watch::begin();
    watch.decide(10 * SECOND_NS, Outcome::Lost);
    watch.book.enter(vec![Report::Stepped { by_ns: HOUR_NS }]);
    assert!(watch.book.kept[&0].shares.is_empty());
    watch.decide(20 * SECOND_NS, Outcome::Lost);
    watch.sweep(2 * MINUTE_NS);
    assert_eq!(watch.book.kept[&0].states[0].hour(), Share { bad: 2, packets: 2 });
}
