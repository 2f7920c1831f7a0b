//! Minutes of a device, from captures of it.

use super::counting::{Counting, Found, locked};
use super::{OverMinute, TapEntry, TapPlan};
use crate::book::Book;
use crate::change::{Asked, Changes};
use crate::keeping::Keep;
use crate::metrics::{Format, Metrics};
use crate::minute::{MINUTE_NS, begin_of};
use crate::report::Report;
use crate::state::Share;
use crate::store::Store;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use tailtrim_tail::analysis::analyze;
use tailtrim_tail::capture::write::{header, record_header};
use tailtrim_tail::capture::{CaptureReader, StampSource, Whole};

const MS: i64 = 1_000_000;
/// A whole minute of January 2030.
const BEGIN_NS: i64 = 1_893_456_000_000 * MS;

fn plan(rest: &str) -> Result<TapPlan, (String, String)> {
    let text = format!("{{name: device, ingress: eth1, egress: eth2, window: 500ms{rest}}}");
    let entry: TapEntry =
        serde_saphyr::from_str(&text).map_err(|e| (String::new(), e.to_string()))?;
    TapPlan::all(&[entry], &mut BTreeSet::new()).map(|mut plans| plans.remove(0))
}

/// A capture of datagrams by when they passed and their number.
fn capture(name: &str, packets: &[(i64, u32)]) -> CaptureReader {
    let mut bytes = header(96).to_vec();
    for (stamp_ns, number) in packets {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([192, 0, 2, 1, 198, 51, 100, 9, 0, 7, 0x13, 0x88, 0, 24, 0, 0]);
        frame.extend(u64::from(*number).to_be_bytes());
        frame.extend([7; 8]);
        bytes.extend(record_header(*stamp_ns, frame.len() as u32, frame.len() as u32));
        bytes.extend(frame);
    }
    let input = Box::new(Whole::new(bytes));
    CaptureReader::open(name, input, StampSource::Header, false, false).unwrap()
}

/// The minutes of captures, with the metrics at their end; the clock is not stepped.
fn minutes(
    plan: &TapPlan,
    ingress: &[(i64, u32)],
    egress: &[(i64, u32)],
) -> (Vec<OverMinute>, String) {
    let metrics = Arc::new(Metrics::new(vec![0.000_05]));
    let of_tap = metrics.packets(&plan.name, &plan.objectives);
    let counting = Arc::new(Mutex::new(Counting::new(plan, of_tap, BEGIN_NS + 1)));
    locked(&counting).begin(BEGIN_NS + 15_000 * MS);
    let mut found = Found::new(Arc::clone(&counting));
    let (mut first, mut second) = (capture("in", ingress), capture("out", egress));
    let go_on = |_, _| ControlFlow::Continue(());
    analyze(&mut first, &mut second, &plan.options, &mut found, go_on).unwrap();
    found.hand_on(i64::MIN);
    let mut counting = locked(&counting);
    let last_ns = BEGIN_NS + 3 * MINUTE_NS + 30_000 * MS;
    let mut over = counting.over(last_ns, false);
    counting.end([ingress.len() as u64, egress.len() as u64], last_ns);
    over.extend(counting.over(last_ns, true));
    over.extend(counting.all());
    (over, String::from_utf8(metrics.encode(Format::Text).unwrap()).unwrap())
}

fn lines(over: &[OverMinute]) -> Vec<Value> {
    let line = |over: &OverMinute| over.minute.line(over.begin_ns).unwrap();
    over.iter().map(|over| serde_json::from_slice(&line(over)).unwrap()).collect()
}

#[test]
fn packets_are_in_the_minute_in_which_they_entered() {
    let plan = plan(", objectives: [p99 < 50us, loss < 1%]").unwrap();
    let (mut ingress, mut egress) = (Vec::new(), Vec::new());
    // Ten packets a second for two and a half minutes; one in twenty is lost, one in thirty takes 60 µs.
    for number in 0..1_500_u32 {
        let at_ns = BEGIN_NS + 15_000 * MS + i64::from(number) * 100 * MS;
        ingress.push((at_ns, number));
        if number % 20 != 7 {
            let slow = number % 30 == 1;
            egress.push((at_ns + if slow { 60_000 } else { 30_000 } + i64::from(number), number));
        }
    }
    // A copy, and a stranger.
    egress.push((egress[egress.len() - 1].0 + 1_000, 1_499));
    egress.push((egress[egress.len() - 1].0 + 1_000, 77_777));
    let (over, metrics) = minutes(&plan, &ingress, &egress);
    let lines = lines(&over);
    assert_eq!(lines.len(), 4);
    for (line, (number, packets)) in
        lines.iter().zip([450_u64, 600, 450, 0].into_iter().enumerate())
    {
        let of = |key: &str| line[key].as_u64().unwrap();
        let parts = ["matched", "lost", "beyond_window", "duplicate", "copy", "unstamped", "cut"];
        assert_eq!(parts.map(of).iter().sum::<u64>(), of("packets"));
        assert_eq!(of("packets"), packets);
        assert_eq!(line["begin_ns"].as_i64(), Some(BEGIN_NS + number as i64 * MINUTE_NS));
        let egress = &line["egress"];
        let of = |key: &str| egress[key].as_u64().unwrap();
        let parts = ["matched", "unmatched", "copy", "unstamped", "cut"];
        assert_eq!(parts.map(of).iter().sum::<u64>(), of("packets"));
        let latencies = line["latency_ns"].as_array().unwrap();
        let lost = latencies.iter().filter(|ns| ns.is_null()).count() as u64;
        assert_eq!(lost, line["lost"].as_u64().unwrap());
        assert_eq!(latencies.len() as u64, packets - line["cut"].as_u64().unwrap());
    }
    let sum = |key: &str| lines.iter().map(|line| line[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("matched"), sum("lost"), sum("cut")), (1_425, 75, 0));
    let egress =
        |key: &str| lines.iter().map(|line| line["egress"][key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((egress("packets"), egress("copy"), egress("unmatched")), (1_427, 1, 1));
    let tapped = lines.iter().map(|line| line["health"]["tapped_ns"].as_i64().unwrap());
    assert_eq!(tapped.collect::<Vec<_>>(), [45_000 * MS, MINUTE_NS, MINUTE_NS, 30_000 * MS]);
    assert_eq!(lines[1]["worst"]["latency_ns"].as_i64().unwrap() / 1_000, 61);
    let judged: Vec<_> = over.iter().map(|over| &over.shares).collect();
    let bad = |at: usize| judged.iter().map(|shares| shares[at].bad).sum::<u64>();
    assert_eq!((bad(0), bad(1)), (50, 75));
    for expected in [
        "tailtrim_watch_packets_total{target=\"device\",outcome=\"matched\"} 1425",
        "tailtrim_watch_packets_total{target=\"device\",outcome=\"lost\"} 75",
        "tailtrim_watch_egress_packets_total{target=\"device\",outcome=\"copy\"} 1",
        "tailtrim_watch_slo_bad_total{target=\"device\",objective=\"loss < 1%\"} 75",
        "tailtrim_watch_latency_seconds_count{target=\"device\"} 1425",
        "tailtrim_watch_meter_tapped_seconds_total{target=\"device\"} 195",
    ] {
        assert!(metrics.contains(expected), "{expected}\n{metrics}");
    }
}

#[test]
fn a_minute_of_a_million_different_latencies_stays_small() {
    let plan = plan("").unwrap();
    let at = |number: i64| BEGIN_NS + 15_000 * MS + number * 20_000;
    let latency_ns = |number: i64| 140_000 + (number * 7_919) % 300_000_007;
    let ingress: Vec<_> = (0..1_000_000).map(|number| (at(number), number as u32)).collect();
    let mut egress: Vec<_> =
        (0..1_000_000).map(|number| (at(number) + latency_ns(number), number as u32)).collect();
    egress.sort_unstable();
    let (over, _) = minutes(&plan, &ingress, &egress);
    let lines = lines(&over);
    let samples =
        lines.iter().flat_map(|line| line["samples"].as_array().cloned().unwrap_or_default());
    assert_eq!(samples.map(|count| count.as_u64().unwrap()).sum::<u64>(), 1_000_000);
    assert_eq!(lines[0]["rounded"], true);
    let written = over[0].minute.line(BEGIN_NS).unwrap().len();
    assert!(written < 1 << 20, "{written}");
}

#[test]
fn packets_that_an_analysis_did_not_tell_are_cut() {
    let plan = plan("").unwrap();
    let metrics = Metrics::new(Vec::new());
    let mut counting = Counting::new(&plan, metrics.packets("device", &[]), BEGIN_NS);
    counting.begin(BEGIN_NS);
    counting.lose(3, [0, 4]);
    counting.end([10, 7], BEGIN_NS + 1);
    let lines = lines(&counting.all());
    let of = |pointer: &str| {
        lines.iter().filter_map(|line| line.pointer(pointer)?.as_u64()).sum::<u64>()
    };
    assert_eq!(
        (of("/packets"), of("/cut"), of("/egress/packets"), of("/egress/cut")),
        (10, 10, 7, 7)
    );
    assert_eq!((of("/foreign"), of("/health/egress_dropped")), (3, 4));
}

/// Fifty packets in five seconds, of which one in ten is lost.
fn few() -> [Vec<(i64, u32)>; 2] {
    let ingress: Vec<_> =
        (0..50).map(|number| (BEGIN_NS + i64::from(number) * 100 * MS, number)).collect();
    let left = ingress.iter().filter(|(_, number)| number % 10 != 3);
    let egress = left.map(|(at_ns, number)| (at_ns + 30_000, *number)).collect();
    [ingress, egress]
}

#[test]
fn what_was_under_way_at_a_step_of_the_clock_is_no_sample() {
    let plan = plan(", objectives: [loss < 1%]").unwrap();
    let metrics = Metrics::new(Vec::new());
    let of_tap = metrics.packets(&plan.name, &plan.objectives);
    let counting = Arc::new(Mutex::new(Counting::new(&plan, of_tap, BEGIN_NS)));
    locked(&counting).begin(BEGIN_NS);
    let hour_ns = 60 * MINUTE_NS;
    locked(&counting).pretend_step(hour_ns);
    let mut found = Found::new(Arc::clone(&counting));
    let [ingress, egress] = few();
    let (mut first, mut second) = (capture("in", &ingress), capture("out", &egress));
    let go_on = |_, _| ControlFlow::Continue(());
    analyze(&mut first, &mut second, &plan.options, &mut found, go_on).unwrap();
    found.hand_on(i64::MIN);
    let mut counting = locked(&counting);
    // Two seconds later by the clock that was stepped.
    let now_ns = BEGIN_NS + hour_ns + 2_000 * MS;
    counting.end([50, 45], now_ns);
    let over = counting.step(now_ns);
    let [line, rest @ ..] = &lines(&over)[..] else { panic!() };
    assert_eq!((&line["packets"], &line["disturbed"]), (&50.into(), &45.into()));
    assert_eq!((&line["cut"], &line["lost"]), (&5.into(), &0.into()));
    assert_eq!(line["health"]["clock_stepped_ns"], hour_ns);
    assert_eq!(line["health"]["tapped_ns"], 2_000 * MS);
    assert_eq!(over[0].shares[0], Share::default());
    assert!(rest.iter().all(|line| line["packets"] == 0));
    // The next minute is that of the clock as it is now.
    let next = counting.over(now_ns + 2 * MINUTE_NS, true);
    assert_eq!(next[0].begin_ns, begin_of(now_ns));
}

#[test]
fn minutes_of_a_device_are_written_and_judged_as_those_of_targets() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(", objectives: [p99 < 50us, loss < 1%]").unwrap();
    let [ingress, egress] = few();
    let (over, _) = minutes(&plan, &ingress, &egress);
    let metrics = Arc::new(Metrics::new(Vec::new()));
    let store = Store::open(folder.path()).unwrap();
    let keep = Keep { time_ns: None, bytes: None };
    let warn = Box::new(|text: &str| panic!("{text}"));
    let (board, of_metrics) = (Arc::default(), Arc::clone(&metrics));
    let changes = Changes::new(folder.path(), Asked::of(None, None).unwrap());
    let mut book = Book::new(store, keep, changes, of_metrics, board, BEGIN_NS, warn).unwrap();
    let (to_device, _given) = std::sync::mpsc::channel();
    let begins: Vec<i64> = over.iter().map(|over| over.begin_ns).collect();
    book.enter(vec![
        Report::Tapping { place: 7, plan: Arc::new(plan), metrics: to_device },
        Report::Failed { place: 7, why: "packet:eth1: gone".to_owned() },
        Report::Failed { place: 7, why: "packet:eth1: gone".to_owned() },
        Report::Tapped { place: 7 },
        Report::Over { place: 7, minutes: over },
        Report::Swept { now_ns: BEGIN_NS + 5 * MINUTE_NS },
    ]);
    let file = std::fs::File::open(folder.path().join("device/2030-01-01.jsonl.zst")).unwrap();
    let text = String::from_utf8(zstd::stream::decode_all(file).unwrap()).unwrap();
    let written: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        written.iter().map(|line| line["begin_ns"].as_i64().unwrap()).collect::<Vec<_>>(),
        begins
    );
    assert_eq!((&written[0]["matched"], &written[0]["lost"]), (&45.into(), &5.into()));
    let told = String::from_utf8(metrics.encode(Format::Text).unwrap()).unwrap();
    let state =
        "tailtrim_watch_slo_state{target=\"device\",objective=\"loss < 1%\",state=\"not met\"} 1";
    assert!(told.contains(state), "{told}");
    let events = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<String> =
        events.map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(events, ["start", "target", "failed", "tapped"]);
    book.enter(vec![Report::Ended { place: 7 }]);
    assert!(!String::from_utf8(metrics.encode(Format::Text).unwrap()).unwrap().contains("device"));
}

#[test]
fn entries_that_are_wrong_are_told_with_their_place() {
    assert!(plan(", filter: udp and port 5000, mask: [nat], snap: 64, buffer: 8").is_ok());
    for (rest, key) in [
        (", filter: udp or tcp", "filter"),
        (", mask: [mac]", "mask"),
        (", signature: here", "signature"),
        (", signature: '42:4', mask: [nat]", "signature"),
        (", snap: 3", "snap"),
        (", buffer: 0", "buffer"),
        (", objectives: [fast]", "objectives"),
    ] {
        let (place, text) = plan(rest).unwrap_err();
        assert_eq!(place, format!("tap 1, {key}"), "{text}");
    }
    assert!(plan(", colour: red").unwrap_err().1.contains("colour"));
    let entry = |text: &str| serde_saphyr::from_str::<TapEntry>(text);
    assert!(entry("{name: device, ingress: eth1}").unwrap_err().to_string().contains("egress"));
    for (text, place) in [
        ("{name: device, ingress: eth1, egress: eth1}", "tap 1, egress"),
        ("{name: device, ingress: 'a b', egress: eth1}", "tap 1, ingress"),
        ("{name: .., ingress: eth0, egress: eth1}", "tap 1, name"),
    ] {
        let told = TapPlan::all(&[entry(text).unwrap()], &mut BTreeSet::new()).unwrap_err();
        assert_eq!(told.0, place);
    }
    let same = entry("{name: device, ingress: eth1, egress: eth2}").unwrap();
    let told = TapPlan::all(&[same.clone(), same], &mut BTreeSet::new()).unwrap_err();
    assert_eq!(told.0, "tap 2, name");
}
