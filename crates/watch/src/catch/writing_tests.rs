//! Folders of catches.

use super::super::parts::Usual;
use super::*;
use crate::minute::{Outcome, Sample};
use crate::plan::Plan;
use serde_json::Value;
use std::sync::Arc;
use tailtrim_roundtrip::{Ending, RoundTrip, Stamps};

const AT_NS: i64 = 1_795_939_267_123_456_789;

fn record(at_ns: i64, residence_ns: i64, bound_ns: Option<u64>) -> Record {
    ahead(at_ns, residence_ns, bound_ns, 0)
}

/// The same with a far host whose clock is ahead.
fn ahead(at_ns: i64, residence_ns: i64, bound_ns: Option<u64>, ahead_ns: i64) -> Record {
    let stamps = Stamps {
        app_send_ns: at_ns,
        sent_ns: Some(at_ns + 10),
        far_received_ns: Some(at_ns + 1_000 + ahead_ns),
        far_sent_ns: Some(at_ns + 1_000 + ahead_ns + residence_ns),
        received_ns: Some(at_ns + 2_000 + residence_ns),
        app_receive_ns: Some(at_ns + 2_020 + residence_ns),
        ..Stamps::default()
    };
    let trip = RoundTrip {
        number: 0,
        intended_ns: at_ns,
        stamps,
        ending: Ending::Answered,
        reply_bytes: None,
        reply_hops: Some(64),
        far_hops: Some(255),
        clock_bound_ns: bound_ns,
        far_number: None,
        sender_stamp: 0,
    };
    let sample = Sample { begin_ns: at_ns, latency_ns: 1, residence_ns: None, own_host_ns: None };
    Record::of(0, &trip, Outcome::Answered(sample), residence_ns > 1_000_000)
}

fn catch(late: Record) -> Catch {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watch.yml");
    fs::write(&path, "targets: [{name: far, address: 192.0.2.7}]").unwrap();
    let plan = Arc::new(Plan::read(&path).unwrap().targets.remove(0));
    let mut usual = Usual::default();
    let mut records = Vec::new();
    for number in 1..=10 {
        let before = record(AT_NS - number * 100_000_000, 300, Some(100));
        usual.enter(Parts::of(&before.stamps()).unwrap());
        records.insert(0, before);
    }
    records.push(late);
    Catch {
        targets: BTreeMap::from([(0, Arc::clone(&plan))]),
        plan,
        address: Some(([192, 0, 2, 7], 862).into()),
        late,
        from_ns: AT_NS - 1_000_000_000,
        until_ns: AT_NS + 1_000_000_000,
        usual,
        records,
        cut: false,
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_catch_is_a_folder_named_by_its_time_with_the_part_that_took_long() {
    let folder = tempfile::tempdir().unwrap();
    let caught = catch(record(AT_NS, 8_000_300, Some(100)));
    let refused = Err("needs root".to_owned());
    let path = write(folder.path(), &caught, &refused, 1).unwrap();
    assert_eq!(path, folder.path().join("far/catches/2026-11-29T08-01-07.123"));
    let told = read(&path.join("catch.json"));
    assert_eq!(told["trace"]["missing"], "needs root");
    assert_eq!((&told["bad"]["far"], &told["complete"]), (&1.into(), &true.into()));
    let worst = read(&path.join("worst.json"));
    let packet = &worst["packets"][0];
    assert_eq!((&packet["ingress_ns"], &packet["latency_ns"]), (&AT_NS.into(), &8_002_320.into()));
    let part = &packet["parts"][0];
    assert_eq!((&part["name"], &part["share_ppm"]), (&"residence".into(), &1_000_000.into()));
    assert_eq!((&part["ns"], &part["usual_ns"]), (&8_000_300.into(), &300.into()));
    assert_eq!(packet["one_way"]["there_ns"], 990);
    let bytes = zstd::decode_all(File::open(path.join("stamps.jsonl.zst")).unwrap()).unwrap();
    let lines: Vec<Value> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!((lines.len(), &lines[10]["far_sent_ns"]), (11, &(AT_NS + 8_001_300).into()));
}

#[test]
fn one_way_times_are_told_only_by_clocks_that_agree() {
    let by = |bound_ns, ahead_ns| one_way(&ahead(AT_NS, 300, bound_ns, ahead_ns));
    assert_eq!(by(Some(100), 0).map(|both| (both.there_ns, both.back_ns)), Some((990, 1_000)));
    assert_eq!(by(None, 0), None);
    // It would have been there before it left, by more than the clocks may differ.
    assert_eq!(by(Some(100), -99_000), None);
    assert!(by(Some(100_000), -99_000).is_some());
}

#[test]
fn a_lost_probe_says_that_nothing_more_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut lost = record(AT_NS, 300, None);
    (lost.outcome, lost.bad) = ("lost", true);
    let caught = Catch { records: Vec::new(), ..catch(lost) };
    let path = write(folder.path(), &caught, &Err(String::new()), 1).unwrap();
    let worst = read(&path.join("worst.json"));
    assert_eq!(worst["packets"], Value::Array(Vec::new()));
    assert!(worst["problem"].as_str().unwrap().contains("counts as lost"));
}

#[test]
fn what_a_crash_left_half_written_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let catches = folder.path().join("far/catches");
    for name in [".draft-2026-11-29T08-01-07.123", "2026-11-29T08-01-07.123"] {
        fs::create_dir_all(catches.join(name)).unwrap();
    }
    remove_drafts(folder.path());
    let left: Vec<_> =
        fs::read_dir(&catches).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, ["2026-11-29T08-01-07.123"]);
}
