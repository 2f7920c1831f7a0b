//! Reports of targets whose names do not resolve, and a receiver of reports that has failed.

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
