//! Days of a watch in seconds: real departures, sessions and files, with a path and a clock that are simulated.

use crate::book::Book;
use crate::change::{Asked, Changes};
use crate::departures::Departures;
use crate::keeping::Keep;
use crate::metrics::Metrics;
use crate::minute::{MINUTE_NS, Outcome, Sample};
use crate::plan::{Plan, TargetPlan};
use crate::report::Report;
use crate::store::Store;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tailtrim_roundtrip::{Ending, Patience, Reply, Session};

const MS: i64 = 1_000_000;
const DAY_NS: i64 = 86_400_000 * MS;
/// The first of January 2030.
const BEGIN_NS: i64 = 1_893_456_000_000 * MS;
const KEEP: Keep = Keep { time_ns: None, bytes: None };

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A target with a path: one probe in 100 is lost, one in 1,000 comes after the timeout, and between two times none is
/// answered.
struct Far {
    session: Session,
    replies: VecDeque<(i64, u64)>,
    random: Random,
    silent: std::ops::Range<i64>,
}

impl Far {
    fn send(&mut self, now_ns: i64) {
        let number = self.session.next();
        self.session.sent(now_ns, now_ns, 0);
        let fate = self.random.below(1_000);
        let took_ns = 2 * MS + self.random.below(3_000_000) as i64;
        match fate {
            _ if self.silent.contains(&now_ns) => {}
            0..10 => {}
            10 => self.replies.push_back((now_ns + 1_100 * MS, number)),
            _ => self.replies.push_back((now_ns + took_ns, number)),
        }
    }

    /// Decides probes by this time.
    fn settle(&mut self, place: usize, now_ns: i64, reports: &mut Vec<Report>) {
        self.replies.make_contiguous().sort_unstable();
        while let Some((at_ns, number)) = self.replies.pop_front_if(|(at_ns, _)| *at_ns <= now_ns) {
            let reply =
                Reply { app_receive_ns: at_ns, received_ns: Some(at_ns), ..Reply::default() };
            self.session.replied(number, &reply);
        }
        while let Some(trip) = self.session.settle(now_ns) {
            let stamps = &trip.stamps;
            let outcome = match trip.ending {
                Ending::Answered => Outcome::Answered(Sample {
                    begin_ns: stamps.app_send_ns,
                    latency_ns: stamps.received_ns.unwrap_or(0) - stamps.app_send_ns,
                    residence_ns: None,
                    own_host_ns: None,
                }),
                Ending::Late => Outcome::Late,
                _ => Outcome::Lost,
            };
            reports.push(Report::Decided { place, due_ns: trip.intended_ns, outcome });
        }
    }
}

fn plan() -> Vec<Arc<TargetPlan>> {
    let text = "defaults: {rate: 2pps, timeout: 1s, objectives: [p99 < 4.9ms, loss < 2%]}\n\
                targets: [{address: a}, {address: b}, {address: c}]\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watch.yml");
    fs::write(&path, text).unwrap();
    Plan::read(&path).unwrap().targets.into_iter().map(Arc::new).collect()
}

/// Probes by target and minute, and how many of them were answered.
type Expected = BTreeMap<(String, i64), (u64, u64)>;

/// Watches three targets for a time; the process is killed after each `life_ns`. Returns what was sent, and the minutes in
/// which it was killed.
fn watch(
    folder: &Path,
    length_ns: i64,
    life_ns: i64,
    silent: std::ops::Range<i64>,
) -> (Expected, Vec<i64>) {
    let targets = plan();
    let (mut expected, mut killed) = (Expected::new(), Vec::new());
    let mut now_ns = BEGIN_NS;
    let mut seed = 1;
    while now_ns < BEGIN_NS + length_ns {
        let end_ns = (now_ns + life_ns).min(BEGIN_NS + length_ns);
        let metrics = Arc::new(Metrics::new(Vec::new()));
        let store = Store::open(folder).unwrap();
        let changes = Changes::new(folder, Asked::of(None, None).unwrap());
        let warn = Box::new(|text: &str| panic!("{text}"));
        let mut book =
            Book::new(store, KEEP, changes, metrics, Arc::default(), now_ns, warn).unwrap();
        let (mut departures, mut reports) = (Departures::default(), Vec::new());
        let mut fars: Vec<Far> = (0..targets.len())
            .map(|_| {
                seed += 1;
                let patience = Patience {
                    timeout_ns: 1_000 * MS,
                    stamps_ns: 0,
                    remembered: 64,
                    software: false,
                    hardware: false,
                    follow_up: false,
                };
                Far {
                    session: Session::new(patience),
                    replies: VecDeque::new(),
                    random: Random(seed),
                    silent: silent.clone(),
                }
            })
            .collect();
        for (place, plan) in targets.iter().enumerate() {
            reports.push(Report::Started { place, plan: Arc::clone(plan), now_ns });
            departures.start(place, plan.interval_ns, now_ns);
        }
        while now_ns < end_ns {
            now_ns += 500 * MS;
            while let Some((due_ns, place)) = departures.take(now_ns) {
                fars[place].send(due_ns);
            }
            for (place, far) in fars.iter_mut().enumerate() {
                far.settle(place, now_ns, &mut reports);
            }
            for report in &reports {
                if let Report::Decided { place, due_ns, outcome } = report {
                    let minute = due_ns.div_euclid(MINUTE_NS) * MINUTE_NS;
                    let entry = expected.entry((targets[*place].name.clone(), minute)).or_default();
                    entry.0 += 1;
                    entry.1 += u64::from(matches!(outcome, Outcome::Answered(_)));
                }
            }
            reports.push(Report::Swept { now_ns });
            book.enter(std::mem::take(&mut reports));
        }
        killed.push(now_ns.div_euclid(MINUTE_NS) * MINUTE_NS);
    }
    (expected, killed)
}

fn lines(folder: &Path) -> Vec<(String, Value)> {
    let mut lines = Vec::new();
    for name in ["a", "b", "c"] {
        let days = fs::read_dir(folder.join(name)).unwrap().map(|entry| entry.unwrap().path());
        for day in days.filter(|path| path.extension().is_some_and(|end| end == "zst")) {
            let bytes = zstd::stream::decode_all(fs::File::open(day).unwrap()).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
            lines.extend(parsed.map(|line| (name.to_owned(), line)));
        }
    }
    lines
}

fn found(folder: &Path) -> Expected {
    let mut found = Expected::new();
    for (name, line) in lines(folder) {
        let of = |key: &str| line[key].as_u64().unwrap();
        let entry = found.entry((name, line["begin_ns"].as_i64().unwrap())).or_default();
        entry.0 += of("due");
        entry.1 += of("answered");
        let outcomes =
            ["answered", "late", "lost", "altered", "undelivered", "refused", "missed", "cut"];
        assert_eq!(outcomes.map(of).iter().sum::<u64>(), of("due"));
        assert_eq!(line["latency_ns"].as_array().unwrap().len() as u64, of("due"));
    }
    found
}

#[test]
fn a_day_has_each_of_its_probes_in_its_minute() {
    let folder = tempfile::tempdir().unwrap();
    let (mut expected, _) = watch(folder.path(), DAY_NS, DAY_NS, 0..0);
    // Minutes whose probes can still be under way are not written yet.
    let last_ns = BEGIN_NS + DAY_NS - MINUTE_NS;
    expected.retain(|(_, minute), _| *minute < last_ns);
    let found = found(folder.path());
    assert_eq!(found.len(), 3 * (1_440 - 1));
    assert!(found == expected);
}

#[test]
fn a_kill_loses_no_minute_but_the_running_one() {
    let folder = tempfile::tempdir().unwrap();
    let life_ns = 61_700 * MS;
    let (expected, killed) = watch(folder.path(), DAY_NS / 8, life_ns, 0..0);
    let found = found(folder.path());
    for (key, probes) in &expected {
        // A minute that was over is written up to 3 s later: its probes may still be under way.
        let running = killed.iter().any(|minute| *minute == key.1 || *minute - MINUTE_NS == key.1);
        let written = found.get(key).copied().unwrap_or_default();
        assert!(written == *probes || (running && written.0 < probes.0), "{key:?}");
    }
    let kept: u64 = found.values().map(|probes| probes.0).sum();
    assert!(kept > 0);
}

#[test]
fn an_outage_is_on_disk_while_it_lasts() {
    let folder = tempfile::tempdir().unwrap();
    let silent = BEGIN_NS + 3 * MINUTE_NS..i64::MAX;
    watch(folder.path(), 6 * MINUTE_NS + 5_000 * MS, DAY_NS, silent);
    let answered: Vec<(i64, u64, u64)> = lines(folder.path())
        .iter()
        .filter(|(name, _)| name == "b")
        .map(|(_, line)| {
            let of = |key: &str| line[key].as_u64().unwrap();
            (
                (line["begin_ns"].as_i64().unwrap() - BEGIN_NS) / MINUTE_NS,
                of("answered"),
                of("lost"),
            )
        })
        .collect();
    assert_eq!(answered.len(), 6);
    for (minute, answered, lost) in answered {
        assert_eq!((answered == 0, lost >= 119), (minute >= 3, minute >= 3), "{minute}");
    }
}
