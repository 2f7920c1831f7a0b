//! Delays in this host and who had its CPU.

use super::super::parts::{Parts, Usual};
use super::*;
use crate::minute::{Outcome, Sample};
use tailtrim_roundtrip::{Ending, RoundTrip, Stamps};
use tailtrim_trace::lines::{Header, SCHEMA, Source};

const US: i64 = 1_000;
const SENDER: u32 = 812;

/// A probe that left then; the kernel had its reply after `network_us`, and we after another `behind_us`.
fn record(at_us: i64, network_us: i64, behind_us: i64) -> Record {
    let app_send_ns = at_us * US;
    let received_ns = app_send_ns + (5 + network_us) * US;
    let app_receive_ns = received_ns + behind_us * US;
    let stamps = Stamps {
        app_send_ns,
        sent_ns: Some(app_send_ns + 5 * US),
        received_ns: Some(received_ns),
        app_receive_ns: Some(app_receive_ns),
        ..Stamps::default()
    };
    let trip = RoundTrip {
        number: 0,
        intended_ns: app_send_ns,
        stamps,
        ending: Ending::Answered,
        reply_bytes: None,
        reply_hops: None,
        far_hops: None,
        clock_bound_ns: None,
        far_number: None,
        sender_stamp: 0,
    };
    let sample =
        Sample { begin_ns: app_send_ns, latency_ns: 0, residence_ns: None, own_host_ns: None };
    Record::of(0, &trip, Outcome::Answered(sample), false)
}

fn event(cpu: u32, kind: Kind, name: &str, pid: u32, from_us: i64, until_us: i64) -> Event {
    Event {
        cpu,
        start_ns: from_us * US,
        end_ns: until_us * US,
        kind,
        name: name.to_owned(),
        detail: (kind == Kind::Thread).then(|| format!("pid {pid}")),
        sender: None,
        left: None,
    }
}

fn around(mut events: Vec<Event>) -> Around {
    events.sort_by_key(|event| event.start_ns);
    let header = Header {
        schema: SCHEMA.to_owned(),
        error_ns: 100,
        holes: 0,
        cpus: "0-1".to_owned(),
        missing: Vec::new(),
        source: Source::Tracefs,
        clocks: Vec::new(),
        armed_ns: Some(0),
        disarmed_ns: Some(i64::MAX),
        throttled: Vec::new(),
    };
    Around { header, events, complete: true }
}

/// Twenty round trips in order, and the one that is late; who receives each; what was usual.
fn scene(late: Record) -> (Vec<Record>, Vec<Event>, Vec<Share>) {
    let mut records: Vec<Record> = (0..20).map(|at| record(at * 10_000, 1_000, 20)).collect();
    let mut usual = Usual::default();
    let mut events = Vec::new();
    records.iter().for_each(|record| usual.enter(Parts::of(&record.stamps()).unwrap()));
    records.push(late);
    for record in &records {
        let stamps = record.stamps();
        let (received_us, had_us) =
            (stamps.received_ns.unwrap() / US, stamps.app_receive_ns.unwrap() / US);
        events.push(event(1, Kind::Softirq, "NET_RX", 0, received_us - 2, received_us + 4));
        events.push(event(1, Kind::Thread, "tailtrim-agent", SENDER, had_us - 8, had_us + 30));
    }
    let shares = usual.shares(&Parts::of(&late.stamps()).unwrap());
    (records, events, shares)
}

fn named(host: &Host) -> (Option<(&str, i64)>, i64) {
    let verdict = &host.verdict;
    let late = &verdict.late[0];
    let most = late.causes.iter().max_by_key(|(_, ns)| *ns);
    let most = most.map(|(at, ns)| (verdict.explanation.causes[*at].name.as_str(), *ns));
    (most, late.unknown_ns)
}

#[test]
fn a_thread_that_had_the_cpu_is_the_cause_of_a_late_reception() {
    let late = record(205_000, 1_000, 4_020);
    let (records, mut events, shares) = scene(late);
    // It came at 206,005 and was received at 210,025; others had the other CPU.
    events.push(event(1, Kind::Thread, "hog", 99, 205_500, 210_017));
    events.push(event(0, Kind::Thread, "other", 98, 205_500, 210_017));
    let part = part_of(&shares).unwrap();
    assert_eq!(part, Part::OwnHostBehind);
    let host = explained(part, &late, &records, None, &around(events), SENDER).unwrap();
    let (cause, unknown_ns) = named(&host);
    let (name, ns) = cause.unwrap();
    assert_eq!((host.cpu, name), (1, "hog"));
    assert!(ns > 3_900 * US && unknown_ns < 100 * US, "{ns} {unknown_ns}");
}

#[test]
fn a_delay_of_the_network_has_no_cause_in_a_host_that_idles() {
    let late = record(205_000, 5_000, 20);
    let (records, mut events, shares) = scene(late);
    // A thread keeps no interrupt waiting.
    events.push(event(1, Kind::Thread, "hog", 99, 205_500, 209_990));
    let part = part_of(&shares).unwrap();
    assert_eq!((part, shares[0].name), (Part::Network, Part::Network));
    let usual_ns = shares[0].usual_ns;
    let host = explained(part, &late, &records, usual_ns, &around(events), SENDER).unwrap();
    let (_, unknown_ns) = named(&host);
    assert!(unknown_ns > 3_900 * US, "{unknown_ns}");
}

#[test]
fn an_interrupt_that_kept_the_kernel_from_receiving_is_a_cause_of_the_network_delay() {
    let late = record(205_000, 5_000, 20);
    let (records, mut events, shares) = scene(late);
    events.push(event(1, Kind::Irq, "slow_device", 0, 205_900, 210_000));
    let usual_ns = shares[0].usual_ns;
    let around = around(events);
    let host = explained(Part::Network, &late, &records, usual_ns, &around, SENDER).unwrap();
    let (cause, unknown_ns) = named(&host);
    let (name, ns) = cause.unwrap();
    assert_eq!(name, "slow_device");
    assert!(ns > 3_900 * US && unknown_ns < 100 * US, "{ns} {unknown_ns}");
}

#[test]
fn without_the_sender_in_the_trace_nothing_is_said() {
    let late = record(205_000, 1_000, 4_020);
    let (records, events, _) = scene(late);
    let around = around(events);
    assert!(explained(Part::OwnHostBehind, &late, &records, None, &around, SENDER + 1).is_none());
    assert!(explained(Part::Residence, &late, &records, None, &around, SENDER).is_none());
}
