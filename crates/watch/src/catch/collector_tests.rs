//! Probes of simulated targets, and what is kept of them.

use super::*;
use crate::minute::Sample;
use crate::plan::Plan;
use std::fs;
use tailtrim_roundtrip::{Ending, RoundTrip, Stamps};

const MS: i64 = 1_000_000;
const BEGIN_NS: i64 = 1_893_456_000_000 * MS;

fn plans(text: &str) -> Vec<Arc<TargetPlan>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watch.yml");
    fs::write(&path, text).unwrap();
    Plan::read(&path).unwrap().targets.into_iter().map(Arc::new).collect()
}

/// Two targets, of which the first one has a limit on lateness and the second one on loss.
struct Watch {
    collector: Collector,
    now_ns: i64,
}

impl Watch {
    fn begin(an_hour: u32) -> Self {
        let targets = "targets:\n- {address: a, timeout: 1s, objectives: [p99 < 5ms]}\n\
                       - {address: b, timeout: 2s, objectives: [loss < 1%]}\n";
        let mut collector = Collector::new(an_hour, BEGIN_NS);
        for (place, plan) in plans(targets).into_iter().enumerate() {
            collector.take(Seen::Started { place, plan }, BEGIN_NS);
            let address = SocketAddr::from(([192, 0, 2, place as u8 + 1], 862));
            collector.take(Seen::Opened { place, address }, BEGIN_NS);
        }
        Self { collector, now_ns: BEGIN_NS }
    }

    /// A probe each 100 ms to both; `took_ms` of the first one, `None`: it was lost.
    fn probe(&mut self, place: usize, took_ms: Option<i64>, hops: u8) {
        let app_send_ns = self.now_ns;
        let took_ns = took_ms.map(|ms| ms * MS);
        let stamps = Stamps {
            app_send_ns,
            sent_ns: Some(app_send_ns + 10),
            received_ns: took_ns.map(|ns| app_send_ns + ns - 20),
            app_receive_ns: took_ns.map(|ns| app_send_ns + ns),
            ..Stamps::default()
        };
        let outcome = took_ns.map_or(Outcome::Lost, |latency_ns| {
            Outcome::Answered(Sample {
                begin_ns: app_send_ns,
                latency_ns,
                residence_ns: None,
                own_host_ns: None,
            })
        });
        let trip = RoundTrip {
            number: 0,
            intended_ns: app_send_ns,
            stamps,
            ending: if took_ns.is_some() { Ending::Answered } else { Ending::Lost },
            reply_bytes: None,
            reply_hops: Some(64),
            far_hops: Some(hops),
            clock_bound_ns: None,
            far_number: None,
            sender_stamp: 0,
        };
        self.collector.take(Seen::Decided { place, link: 0, trip, outcome }, self.now_ns);
    }

    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / 100 {
            self.probe(0, Some(2), 255);
            self.probe(1, Some(2), 255);
            self.now_ns += 100 * MS;
        }
    }

    fn fates(&mut self) -> Vec<Fate> {
        std::mem::take(&mut self.collector.fates)
    }
}

#[test]
fn a_late_probe_is_kept_with_those_around_it_of_all_targets() {
    let mut watch = Watch::begin(4);
    watch.pass(3_000);
    watch.probe(0, Some(30), 255);
    assert_eq!(watch.fates(), [Fate::Kept]);
    let late_ns = watch.now_ns;
    watch.now_ns += 50 * MS;
    watch.pass(3_000);
    assert!(watch.collector.ripe(watch.now_ns, false).is_empty(), "one of b may be under way");
    watch.pass(1_000);
    let catches = watch.collector.ripe(watch.now_ns, false);
    let [catch] = &catches[..] else { panic!() };
    assert_eq!(
        (catch.plan.name.as_str(), catch.late.app_send_ns, catch.cut),
        ("a", late_ns, false)
    );
    assert_eq!((catch.from_ns, catch.until_ns), (late_ns - 1_000 * MS, late_ns + 1_030 * MS));
    // Ten before, ten after, of each of both, and itself.
    assert_eq!((catch.records.len(), catch.targets.len()), (41, 2));
    assert!(catch.records.is_sorted_by_key(|record| record.app_send_ns));
    // Probes that no other catch can need are forgotten.
    let first_ns = watch.collector.records[0].app_send_ns;
    assert!(first_ns >= watch.now_ns - 3_500 * MS, "{}", watch.now_ns - first_ns);
}

#[test]
fn each_probe_beyond_a_limit_has_one_fate() {
    let mut watch = Watch::begin(2);
    // Nothing is usual before eight probes.
    watch.probe(0, Some(30), 255);
    watch.pass(2_000);
    watch.probe(0, Some(30), 255);
    // A second one, and one of another target, within a second.
    watch.now_ns += 200 * MS;
    watch.probe(0, Some(40), 255);
    watch.probe(1, None, 255);
    assert_eq!(watch.fates(), [Fate::Continued, Fate::Kept, Fate::Around, Fate::Around]);
    // It goes on for minutes.
    watch.now_ns += 2_000 * MS;
    for _ in 0..5 {
        watch.probe(0, Some(40), 255);
        watch.now_ns += 1_000 * MS;
    }
    assert_eq!(watch.fates(), [Fate::Continued; 5]);
    for expected in [Fate::Kept, Fate::Limited, Fate::Limited] {
        watch.pass(2_000);
        watch.probe(0, Some(30), 255);
        assert_eq!(watch.fates(), [expected]);
        watch.now_ns += 2_000 * MS;
    }
    // A limit on lateness says nothing of a lost one, and the other way round.
    watch.pass(2_000);
    watch.probe(0, None, 255);
    watch.probe(1, Some(500), 255);
    assert_eq!(watch.fates(), []);
    assert_eq!(watch.collector.ripe(watch.now_ns, true).len(), 2);
}

#[test]
fn what_is_not_complete_at_the_end_says_so() {
    let mut watch = Watch::begin(4);
    watch.pass(2_000);
    watch.probe(1, None, 255);
    assert_eq!(watch.fates(), [Fate::Kept]);
    watch.collector.take(Seen::Ended { place: 0 }, watch.now_ns);
    // Where it ends is looked up.
    let last = watch.collector.wanted.pop().unwrap();
    assert_eq!((last.plan.name.as_str(), last.why), ("b", Why::Unanswered));
    let catches = watch.collector.ripe(watch.now_ns, true);
    assert!(catches[0].cut && catches[0].late.outcome == "lost");
    assert_eq!(catches[0].targets.len(), 2, "also those that have ended");
    watch.now_ns += 10_000 * MS;
    watch.collector.ripe(watch.now_ns, false);
    assert_eq!(watch.collector.watched.len(), 1);
}

#[test]
fn a_step_of_the_clock_cuts_a_catch_and_leaves_it_its_probes() {
    for step_ms in [-60_000, 60_000] {
        let mut watch = Watch::begin(4);
        watch.pass(2_000);
        watch.probe(0, Some(30), 255);
        watch.now_ns += step_ms * MS;
        watch.collector.take(Seen::Stepped, watch.now_ns);
        let catches = watch.collector.ripe(watch.now_ns, false);
        let [catch] = &catches[..] else { panic!() };
        // Ten before, of each of both, and itself.
        assert_eq!((catch.cut, catch.records.len(), catch.targets.len()), (true, 21, 2));
    }
}

#[test]
fn the_path_is_looked_up_once_and_when_it_changes() {
    let mut watch = Watch::begin(1);
    watch.pass(1_000);
    let first: Vec<_> = watch.collector.wanted.drain(..).collect();
    assert_eq!(first.len(), 2);
    assert!(first.iter().all(|wanted| wanted.why == Why::Start && wanted.routers == Some(0)));
    for _ in 0..4 {
        watch.probe(0, Some(2), 254);
    }
    let [wanted] = &watch.collector.wanted[..] else { panic!() };
    assert_eq!((wanted.plan.name.as_str(), wanted.routers), ("a", Some(1)));
    let Why::Changed(change) = wanted.why else { panic!() };
    assert!(change.there.is_some() && change.back.is_none());
    // The other one changes, too; one an hour is looked up.
    watch.now_ns += PATH_NS;
    for _ in 0..4 {
        watch.probe(1, Some(2), 254);
    }
    assert_eq!(watch.collector.wanted.len(), 1);
}
