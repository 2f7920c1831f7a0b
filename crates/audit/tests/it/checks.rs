//! Texts of every check, and their selection and waivers.

use super::hosts::untuned;
use super::{report, wish};
use std::collections::BTreeSet;
use tailtrim_audit::{self as audit, Intent, IntentError, Selection, Waiver, Wish, Workload};

#[test]
fn each_check_says_all_that_is_needed() {
    let ids: BTreeSet<&str> = audit::all().map(|check| check.id).collect();
    assert_eq!(ids.len(), audit::all().count(), "an id is used twice");
    for check in audit::all() {
        for (name, text) in [
            ("title", check.title),
            ("why", check.why),
            ("wanted", check.wanted),
            ("source", check.source),
        ] {
            assert!(!text.is_empty(), "{} has no {name}", check.id);
        }
        assert!(check.title.chars().count() <= 62, "{}: the title does not fit a line", check.id);
        assert!(!(check.set_now.is_empty() && check.set_boot.is_empty()), "{}: how?", check.id);
        for path in check.read_from {
            assert!(path.starts_with('/'), "{}: {path}", check.id);
        }
    }
}

#[test]
fn families_and_ids_select() {
    let select = |only: &[&str], skip: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection { only: owned(only), skip: owned(skip) }.checks().map(|checks| checks.len())
    };
    let family = |name| audit::all().filter(|check| check.family() == name).count();
    assert_eq!(select(&[], &[]), Ok(audit::all().count()));
    assert_eq!(select(&["iso"], &["ISO-001"]), Ok(family("ISO") - 1));
    assert_eq!(select(&["MEM-001", "SEC"], &[]), Ok(1 + family("SEC")));
    assert!(select(&["ISO-999"], &[]).unwrap_err().to_string().contains("ISO-999"));
}

#[test]
fn wishes_that_contradict() {
    let tree = untuned();
    let both = Wish { housekeeping: Some("0-2".parse().unwrap()), ..wish("2-3", Workload::Poll) };
    assert!(matches!(Intent::complete(both, &tree), Err(IntentError::Both(_))));
    let absent = Intent::complete(wish("6-9", Workload::Poll), &tree);
    assert!(matches!(absent, Err(IntentError::NoSuchCpus(..))));
    let nothing = Intent::complete(wish("0-7", Workload::Poll), &tree);
    assert!(matches!(nothing, Err(IntentError::NothingLeft(_))));
    let elsewhere = Wish { nics: Some(vec!["eth7".to_owned()]), ..wish("2-3", Workload::Poll) };
    let error = Intent::complete(elsewhere, &tree).unwrap_err().to_string();
    assert!(error.starts_with("no interface eth7 on this host, which has "), "{error}");
}

#[test]
fn waivers_hold_until_their_day_and_are_told_when_they_do_not() {
    let waiver = |id: &str, until: &str| Waiver {
        id: id.to_owned(),
        reason: "known".to_owned(),
        until: until.to_owned(),
    };
    let mut report = report(&untuned(), wish("2-3", Workload::Poll));
    let before = report.counts();
    report.waive(
        vec![
            waiver("ISO-001", "2026-11-21"),
            waiver("ISO-003", "2026-11-20"),
            waiver("MEM-003", "2027-01-01"),
            waiver("TEST-001", "2027-01-01"),
        ],
        "2026-11-21",
    );
    let after = report.counts();
    assert_eq!((after.fail, after.waived, after.total()), (before.fail - 1, 1, before.total()));
    let notes: Vec<String> = report.waivers.iter().map(ToString::to_string).collect();
    assert!(notes[0].contains("ISO-003 expired on 2026-11-20"), "{notes:?}");
    assert!(notes[1].contains("MEM-003 is not needed"), "{notes:?}");
    assert!(notes[2].contains("was not run"), "{notes:?}");
}
