//! Files as a watch leaves them, and what is told of them.

use super::*;
use crate::minute::{Minute, Outcome, Sample};
use crate::store::{ENDING, Store};
use serde_json::Value;
use std::fs;
use std::path::Path;

const NS: i64 = 1_000_000_000;
/// The first of January 2030.
const BEGIN_S: i64 = 1_893_456_000;

/// A minute of ten probes a second; their round trips are different from minute to minute.
fn minute(begin_s: i64, lost: usize) -> Minute {
    let mut minute = Minute::default();
    for number in 0..600 {
        let latency_ns = 1_000_000 + (begin_s / 60 * 7_919 + number * 104_729) % 500_009;
        let begin_ns = begin_s * NS + number * 100_000_000;
        let sample = Sample { begin_ns, latency_ns, residence_ns: Some(7), own_host_ns: None };
        let outcome = if number < lost as i64 { Outcome::Lost } else { Outcome::Answered(sample) };
        minute.add(begin_s * NS, number * 100_000, outcome);
    }
    minute
}

fn append(store: &mut Store, begin_s: i64, lost: usize) {
    let line = minute(begin_s, lost).line(begin_s * NS).unwrap();
    store.append("far", begin_s * NS, &line).unwrap();
}

fn told(history: &History, span: Span, until_s: i64) -> Value {
    serde_json::from_str(&history.tell("far", span, until_s, until_s * NS).unwrap()).unwrap()
}

fn latencies(begins_s: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut all = Vec::new();
    for begin_s in begins_s {
        let crate::Values::Probes(probes) = minute(begin_s, 0).values else { panic!() };
        all.extend(probes.iter().filter_map(|(_, ns)| *ns));
    }
    all.sort_unstable();
    all
}

#[test]
fn percentiles_of_blocks_are_those_of_all_their_probes() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    (0..150).for_each(|n| append(&mut store, BEGIN_S + 60 * n, 0));
    let history = History::new(folder.path().to_owned());
    let until_s = BEGIN_S + 150 * 60;
    for (span, blocks, minutes) in [(Span::Hour, 60, 1), (Span::Day, 15, 10), (Span::Week, 3, 60)] {
        let told = told(&history, span, until_s);
        let all = told["blocks"].as_array().unwrap();
        assert_eq!((all.len(), told["is_whole"].as_bool()), (blocks, Some(true)), "{span:?}");
        let last = all.last().unwrap();
        let begin_s = last["begin_s"].as_i64().unwrap();
        let values = latencies((begin_s..until_s.min(begin_s + minutes * 60)).step_by(60));
        assert_eq!(last["samples"], values.len());
        for (index, (numerator, denominator)) in
            [(50, 100), (99, 100), (999, 1_000)].into_iter().enumerate()
        {
            let rank = (values.len() * numerator).div_ceil(denominator);
            let quantile = &last["quantiles"][index];
            assert_eq!(quantile["ns"], values[rank - 1], "{span:?}");
            assert!(quantile["low_ns"].as_i64() <= Some(values[rank - 1]));
            let high_ns = quantile["high_ns"].as_i64();
            assert!(high_ns.is_none_or(|high_ns| high_ns >= values[rank - 1]));
        }
        assert!(last["quantiles"][0]["high_ns"].is_i64());
        assert_eq!(last["worst"]["latency_ns"], values[values.len() - 1]);
        assert_eq!(last["worst"]["residence_ns"], 7);
    }
    // Of 600 probes six are beyond p99: too few for a bound, of an hour enough.
    let high = |span| told(&history, span, until_s)["blocks"][0]["quantiles"][1]["high_ns"].clone();
    assert!(high(Span::Hour).is_null() && high(Span::Week).is_i64());
}

#[test]
fn outages_and_times_without_the_watch_are_different() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for n in (0..60).filter(|n| !(20..25).contains(n)) {
        append(&mut store, BEGIN_S + 60 * n, if (40..43).contains(&n) { 600 } else { 3 });
    }
    let history = History::new(folder.path().to_owned());
    let at = |from: i64, to: i64| serde_json::json!([BEGIN_S + 60 * from, BEGIN_S + 60 * to]);
    for span in [Span::Hour, Span::Day, Span::Week] {
        let told = told(&history, span, BEGIN_S + 3_600);
        assert_eq!(told["outages"], Value::from(vec![at(40, 43)]), "{span:?}");
        let gaps = told["gaps"].as_array().unwrap();
        assert_eq!(gaps.last(), Some(&at(20, 25)), "{span:?}");
        // Before the first minute, too.
        assert_eq!(gaps.len(), if span == Span::Hour { 1 } else { 2 });
        let sum = |key: &str| -> u64 {
            let blocks = told["blocks"].as_array().unwrap();
            blocks.iter().map(|block| block[key].as_u64().unwrap()).sum()
        };
        assert_eq!((sum("due"), sum("unanswered")), (55 * 600, 3 * 600 + 52 * 3));
    }
}

#[test]
fn a_minute_in_which_nothing_was_due_is_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    append(&mut store, BEGIN_S, 0);
    let begin_ns = (BEGIN_S + 60) * NS;
    store.append("far", begin_ns, &Minute::default().line(begin_ns).unwrap()).unwrap();
    let history = History::new(folder.path().to_owned());
    let told = told(&history, Span::Hour, BEGIN_S + 120);
    assert_eq!(told["gaps"][1], serde_json::json!([BEGIN_S + 60, BEGIN_S + 120]));
}

#[test]
fn minutes_of_a_tapped_device_are_read_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for (n, rest) in [
        (
            0,
            r#""packets": 3, "matched": 1, "lost": 1, "beyond_window": 1, "latency_ns": [5, null, null], "health": {"tapped_ns": 60000000000}"#,
        ),
        (1, r#""packets": 0, "health": {"tapped_ns": 60000000000}"#),
        (2, r#""packets": 0, "health": {"tapped_ns": 0}"#),
        (
            3,
            r#""packets": 9, "matched": 9, "latency_ns": [5, 7], "samples": [8, 1], "rounded": false, "health": {"tapped_ns": 1}"#,
        ),
    ] {
        let begin_s = BEGIN_S + 60 * n;
        let line = format!("{{\"begin_ns\": {begin_s}000000000, {rest}}}\n");
        store.append("far", begin_s * NS, line.as_bytes()).unwrap();
    }
    let history = History::new(folder.path().to_owned());
    let told = told(&history, Span::Hour, BEGIN_S + 240);
    let first = &told["blocks"][0];
    assert_eq!(
        (&first["due"], &first["answered"], &first["unanswered"]),
        (&3.into(), &1.into(), &2.into())
    );
    assert_eq!(told["gaps"][1], serde_json::json!([BEGIN_S + 120, BEGIN_S + 180]));
    let last = &told["blocks"][3];
    assert_eq!((&last["samples"], &last["quantiles"][1]["ns"]), (&9.into(), &7.into()));
    // They are only counted, so it is not known whether late ones came together.
    assert!(last["quantiles"][0]["low_ns"].is_null());
}

#[test]
fn what_is_remembered_and_what_is_new_are_as_if_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let history = History::new(folder.path().to_owned());
    // Over midnight, with a minute that a restart has cut in two.
    let begin_s = BEGIN_S + 86_400 - 3_600;
    for n in 0..130 {
        append(&mut store, begin_s + 60 * n, 0);
        if n == 70 {
            append(&mut store, begin_s + 60 * n, 5);
        }
        for span in [Span::Hour, Span::Day, Span::Week] {
            let until_s = begin_s + 60 * (n + 1);
            let fresh = History::new(folder.path().to_owned());
            let told_now = told(&history, span, until_s);
            if n % 13 == 0 {
                assert_eq!(told_now, told(&fresh, span, until_s), "{n}");
            }
        }
    }
}

#[test]
fn minutes_after_a_step_back_count_without_percentiles() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for n in [0, 1, 2, 1, 3] {
        append(&mut store, BEGIN_S + 60 * n, 0);
    }
    let history = History::new(folder.path().to_owned());
    for _ in 0..2 {
        let told = told(&history, Span::Hour, BEGIN_S + 240);
        let of = |n: usize, key: &str| told["blocks"][n][key].clone();
        assert_eq!((of(1, "due"), of(2, "due")), (1_200.into(), 600.into()));
        assert!(of(1, "quantiles").is_null() && of(2, "quantiles").is_array());
    }
}

#[test]
fn a_damaged_file_is_told_and_a_frame_on_its_way_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    append(&mut store, BEGIN_S + 86_340, 0);
    append(&mut store, BEGIN_S + 86_400, 0);
    let of_day = |day: &str| folder.path().join("far").join(day.to_owned() + ENDING);
    let cut = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
    };
    let until_s = BEGIN_S + 86_460;
    let read = || told(&History::new(folder.path().to_owned()), Span::Hour, until_s);
    cut(&of_day("2030-01-02"));
    assert_eq!(read()["is_whole"], true);
    cut(&of_day("2030-01-01"));
    assert_eq!(
        (read()["is_whole"].as_bool(), &read()["blocks"]),
        (Some(false), &Value::from(Vec::<Value>::new()))
    );
}

#[test]
fn catches_of_these_days_are_told_with_their_slowest_probe() {
    let folder = tempfile::tempdir().unwrap();
    let catches = folder.path().join("far/catches");
    let caught = |name: &str, text: &str| {
        fs::create_dir_all(catches.join(name)).unwrap();
        fs::write(catches.join(name).join("worst.json"), text).unwrap();
    };
    caught("2029-12-31T08-01-07.123", r#"{"packets": [{"latency_ns": 1}]}"#);
    caught("2030-01-01T08-01-07.123", r#"{"packets": [{"latency_ns": 7}, {"latency_ns": 5}]}"#);
    caught("2030-01-01T09-01-07.123", r#"{"packets": [], "problem": "lost"}"#);
    caught("2030-01-01T10-01-07.123", "{");
    caught(".draft-2030-01-01T11-01-07.123", "");
    let history = History::new(folder.path().to_owned());
    let told = told(&history, Span::Hour, BEGIN_S + 43_200);
    let told = told["catches"].as_array().unwrap();
    assert_eq!(told.len(), 3);
    assert!(told[0]["problem"].as_str().unwrap().starts_with("worst.json: "));
    assert_eq!((&told[1]["problem"], &told[1]["packet"]), (&"lost".into(), &Value::Null));
    assert_eq!(told[2]["name"], "2030-01-01T08-01-07.123");
    assert_eq!(told[2]["packet"]["latency_ns"], 7);
}

#[test]
fn the_longest_unasked_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::new(folder.path().to_owned());
    for number in 0..MOST as i64 + 10 {
        history.tell(&format!("target{number}"), Span::Hour, BEGIN_S, number).unwrap();
    }
    let all = history.lock();
    assert_eq!(all.len(), MOST);
    assert!(!all.contains_key(&("target9".to_owned(), Span::Hour)));
}
