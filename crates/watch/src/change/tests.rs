//! Minutes on disk, a baseline, and changes that begin and end.

use super::*;
use crate::minute::{Outcome, Sample};
use crate::store::Store;
use serde_json::Value;
use std::thread;
use std::time::Duration;

const DAY: i64 = 1_440;
/// A Tuesday in 2030, as a number of minutes.
const BEGIN: i64 = 21_915 * DAY;
const PROBES: i64 = 20;

/// A watch of one target, whose path is simulated.
struct Watch {
    folder: tempfile::TempDir,
    store: Option<Store>,
    changes: Option<Changes>,
    events: Vec<Value>,
    minute: i64,
    random: u64,
}

impl Watch {
    /// With three days of minutes on disk.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Some(Store::open(folder.path()).unwrap());
        let mut watch =
            Self { folder, store, changes: None, events: vec![], minute: BEGIN, random: 1 };
        (0..3 * DAY).for_each(|_| watch.pass(1.0, 0));
        watch
    }

    fn start(&mut self, baseline: Option<&str>) {
        self.changes = None;
        let asked = Asked::of(baseline, None).unwrap();
        let mut changes = Changes::new(self.folder.path(), asked);
        changes.begin(0, "a", self.minute * MINUTE_NS);
        self.changes = Some(changes);
        self.settle();
    }

    /// Writes the next minute and enters it.
    fn pass(&mut self, factor: f64, lost: i64) {
        let begin_ns = self.minute * MINUTE_NS;
        let mut minute = Minute::default();
        for probe in 0..PROBES {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let latency = 1e6 * factor * (0.9 + 0.2 * (self.random >> 11) as f64 / 9e15);
            let at_ns = probe * 3_000_000_000;
            let outcome = match probe < lost {
                true => Outcome::Lost,
                false => Outcome::Answered(Sample {
                    begin_ns: begin_ns + at_ns,
                    latency_ns: latency as i64,
                    residence_ns: None,
                    own_host_ns: None,
                }),
            };
            minute.add(begin_ns, at_ns / 1_000, outcome);
        }
        let line = minute.line(begin_ns).unwrap();
        self.store.as_mut().unwrap().append("a", begin_ns, &line).unwrap();
        self.minute += 1;
        if let Some(changes) = &mut self.changes {
            changes.enter(0, begin_ns, &minute);
            self.settle();
        }
    }

    /// Does as the book does.
    fn take(&mut self) {
        let told = self.changes.as_mut().unwrap().turn();
        let store = self.store.as_mut().unwrap();
        for line in &told.events {
            store.note("events.jsonl", line).unwrap();
            self.events.push(serde_json::from_slice(line).unwrap());
        }
        for (path, text) in &told.files {
            store.replace(path, text).unwrap();
        }
    }

    /// Waits for the thread that reads: minutes of this test take no time.
    fn settle(&mut self) {
        for _ in 0..30_000 {
            self.take();
            let followed = self.changes.as_ref().unwrap().places[&0].followed.as_ref();
            if followed.is_some_and(|followed| followed.untold().is_empty()) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("nothing was read");
    }

    /// Minutes until another event.
    fn until_event(&mut self, factor: f64, lost: i64) -> Option<i64> {
        let (count, first) = (self.events.len(), self.minute);
        while self.events.len() == count && self.minute < first + 3 * DAY {
            self.pass(factor, lost);
        }
        (self.events.len() > count).then(|| self.minute - first)
    }

    fn shown(&self) -> TargetChanges {
        lock(&self.changes.as_ref().unwrap().board())["a"].clone()
    }

    fn goes_on(&self) -> bool {
        self.shown().changes.iter().any(|change| change.ended_ns.is_none())
    }
}

#[test]
fn a_change_is_told_once_with_its_size_and_so_is_its_end() {
    let mut watch = Watch::new();
    watch.start(Some("2030-01-01..2030-01-04"));
    for _ in 0..DAY {
        watch.pass(1.0, 0);
    }
    assert_eq!(watch.events, Vec::<Value>::new());
    assert_eq!(watch.shown().against[0].judged, ["p50", "p99", "p99.9", "loss"]);
    let begin = watch.minute;
    let delay = watch.until_event(1.3, 0).unwrap();
    assert!(delay <= 20, "{delay}");
    let event = watch.events[0].clone();
    let text = |key: &str| event[key].as_str().unwrap().to_owned();
    assert_eq!([text("event"), text("target"), text("direction")], ["change", "a", "worse"]);
    assert_eq!(text("against"), "baseline");
    assert!((event["since_ns"].as_i64().unwrap() / MINUTE_NS - begin).abs() <= 1, "{event}");
    let number = |key: &str| event[key].as_f64().unwrap();
    assert!((number("ratio") - 1.3).abs() < 0.03, "{event}");
    assert!(number("ratio_low") <= 1.31 && number("now_ns") > 1.15 * number("was_ns"), "{event}");
    // The process is killed, before the state was saved at the latest: nothing is told again.
    let saved = watch.folder.path().join("a").join(SAVED);
    for forgotten in [false, true] {
        if forgotten {
            fs::remove_file(&saved).unwrap();
        }
        let before = watch.events.len();
        watch.start(Some("2030-01-01..2030-01-04"));
        watch.pass(1.3, 0);
        let again = |event: &Value| {
            watch.events[..before].iter().any(|old| {
                ["event", "of", "direction", "against"].iter().all(|key| old[key] == event[key])
            })
        };
        assert!(!watch.events[before..].iter().any(again), "{:?}", watch.events);
    }
    assert!(watch.goes_on());
    let first = watch.minute;
    while watch.goes_on() {
        watch.pass(1.0, 0);
        assert!(watch.minute < first + 2 * DAY);
    }
    assert_eq!(watch.events.last().unwrap()["event"], "change_end");
}

#[test]
fn without_a_baseline_nothing_is_judged() {
    let mut watch = Watch::new();
    watch.start(None);
    for _ in 0..30 {
        watch.pass(5.0, 3);
    }
    assert!(watch.events.is_empty());
    let shown = watch.shown();
    let judged: Vec<_> = shown.against.iter().map(|of| (of.name, of.judged.len())).collect();
    assert_eq!((judged, shown.changes.len()), (vec![("last week", 0)], 0));
}

#[test]
fn loss_is_told_and_another_baseline_ends_it() {
    let mut watch = Watch::new();
    watch.start(Some("2030-01-01..2030-01-04"));
    watch.until_event(1.0, 4).unwrap();
    let event = watch.events[0].clone();
    assert_eq!((&event["of"], &event["direction"]), (&"loss".into(), &"worse".into()));
    assert!((event["now_share"].as_f64().unwrap() - 0.2).abs() < 0.01, "{event}");
    watch.changes.as_mut().unwrap().ask_for(Asked::of(None, None).unwrap());
    watch.settle();
    assert_eq!(watch.events[1]["event"], "change_end");
}
