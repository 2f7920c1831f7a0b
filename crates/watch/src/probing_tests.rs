//! Reports of targets whose names do not resolve, of a process that stood still, and a receiver of reports that has failed.

use super::*;
use crate::plan::Plan;
use std::path::Path;
use std::sync::mpsc::channel;

#[test]
fn a_name_that_does_not_resolve_is_told_once_until_it_does() {
    let (sender, receiver) = channel();
    let mut probing = Probing::new(sender, Sight::default()).unwrap();
    let plan = Plan::parse("targets: [{address: gw.example}]", Path::new("watch.yml")).unwrap();
    probing.start(0, &Arc::new(plan.targets[0].clone()));
    let unknown = (None, Some("the name cannot be resolved".to_owned()));
    let known = (Some(SocketAddr::from(([127, 0, 0, 1], 862))), None);
    for (address, why) in [&unknown, &unknown, &known, &known, &unknown, &unknown, &known] {
        probing.direct(0, *address, why.clone());
    }
    probing.finish();
    let directed = |report: Report| match report {
        Report::Directed { address, why, .. } => Some((address, why)),
        _ => None,
    };
    let told: Vec<_> = receiver.into_iter().flatten().filter_map(directed).collect();
    assert_eq!(told, [unknown.clone(), known.clone(), unknown, known]);
}

#[test]
fn a_watch_whose_book_has_failed_ends() {
    let (sender, receiver) = channel();
    let mut probing = Probing::new(sender, Sight::default()).unwrap();
    drop(receiver);
    assert!((0..100).any(|_| probing.turn().is_err()));
}

/// Regression: the minutes of a process that had stood still were ended twice, the second time with what it had missed.
#[test]
fn missed_probes_are_told_before_their_minutes_end() {
    let (sender, receiver) = channel();
    let mut probing = Probing::new(sender, Sight::default()).unwrap();
    let text = "targets: [{address: 192.0.2.1, rate: 100pps}]";
    let plan = Plan::parse(text, Path::new("watch.yml")).unwrap();
    probing.start(0, &Arc::new(plan.targets[0].clone()));
    let begin_ns = probing.clock.now_ns() - 600_000_000_000;
    probing.departures.start(0, plan.targets[0].interval_ns, begin_ns);
    probing.sweep().unwrap();
    drop(probing);
    let mut due = Vec::new();
    let mut reports = receiver.into_iter().flatten();
    let swept_ns = reports.find_map(|report| match report {
        Report::Decided { due_ns, outcome: Outcome::Missed, .. } => {
            due.push(due_ns);
            None
        }
        Report::Swept { now_ns } => Some(now_ns),
        _ => None,
    });
    // All of ten minutes but the last second, which is not over.
    assert!((59_800..60_000).contains(&due.len()), "{}", due.len());
    assert!(due.last() > swept_ns.map(|now_ns| now_ns - MISSED_NS - 20_000_000).as_ref());
    assert!(reports.next().is_none());
}
