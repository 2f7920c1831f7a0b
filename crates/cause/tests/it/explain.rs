//! Late packets and their causes, against devices whose stalls are known.

use proptest::prelude::*;
use tailtrim_cause::explanation::{ExplanationOptions, Trace, explain};
use tailtrim_cause::queue::passages;
use tailtrim_cause::replay::{replay, replay_touched, taken};
use tailtrim_cause::timeline::timeline;
use tailtrim_trace::{Event, Kind, Sender};

const TRANSPORT_NS: i64 = 2_000;
const SERVICE_NS: i64 = 500;

fn event(kind: Kind, name: &str, start_ns: i64, long_ns: i64) -> Event {
    let sender = Sender { pid: 812, comm: "stress".to_owned(), function: None, sent_ns: None };
    Event {
        cpu: 2,
        start_ns,
        end_ns: start_ns + long_ns,
        kind,
        name: name.to_owned(),
        detail: None,
        sender: (name == "call_function").then_some(sender),
        left: None,
    }
}

/// The naive device: nanosecond by nanosecond work is done unless a stall holds the CPU.
fn device(arrivals: &[i64], stalls: &[Event]) -> Vec<(i64, i64)> {
    let mut free_ns = i64::MIN;
    arrivals
        .iter()
        .map(|arrival_ns| {
            let mut now_ns = free_ns.max(*arrival_ns);
            let mut left_ns = SERVICE_NS;
            while left_ns > 0 {
                let within = |s: &&Event| s.start_ns <= now_ns && now_ns < s.end_ns;
                if let Some(stall) = stalls.iter().find(within) {
                    now_ns = stall.end_ns;
                    continue;
                }
                let next_ns = stalls
                    .iter()
                    .map(|stall| stall.start_ns)
                    .filter(|start_ns| *start_ns > now_ns)
                    .min()
                    .unwrap_or(i64::MAX);
                let step_ns = left_ns.min(next_ns - now_ns);
                now_ns += step_ns;
                left_ns -= step_ns;
            }
            free_ns = now_ns;
            (*arrival_ns, now_ns + TRANSPORT_NS)
        })
        .collect()
}

fn arrivals(gaps: &[i64]) -> Vec<i64> {
    gaps.iter()
        .scan(0, |at_ns, gap_ns| {
            *at_ns += gap_ns;
            Some(*at_ns)
        })
        .collect()
}

/// Stalls that do not overlap, by the gap before and the length of each.
fn stalls(list: &[(i64, i64)]) -> Vec<Event> {
    let mut at_ns = 0;
    list.iter()
        .enumerate()
        .map(|(number, (gap_ns, long_ns))| {
            at_ns += gap_ns;
            let name = if number % 3 == 0 { "call_function" } else { "local_timer" };
            let stall = event(Kind::Irq, name, at_ns, *long_ns);
            at_ns += long_ns;
            stall
        })
        .collect()
}

fn asked(shifts_ns: Vec<i64>) -> ExplanationOptions {
    let quantiles = ["0.5", "0.99"].map(|text| text.parse().expect("a probability")).to_vec();
    ExplanationOptions { late_from: "0.9".parse().expect("a probability"), quantiles, shifts_ns }
}

proptest! {
    #[test]
    fn nothing_removed_changes_nothing(
        gaps in prop::collection::vec(100_i64..6_000, 2..300),
        list in prop::collection::vec((1_000_i64..40_000, 100_i64..20_000), 0..20),
    ) {
        let samples = device(&arrivals(&gaps), &stalls(&list));
        let (service, passages) = passages(&samples);
        let departures: Vec<i64> = passages.iter().map(|p| p.departure_ns).collect();
        let nothing = vec![0; passages.len()];
        prop_assert_eq!(replay(&passages, &service, &nothing), departures);
    }

    #[test]
    fn what_is_not_touched_leaves_when_it_did(
        gaps in prop::collection::vec(100_i64..3_000, 2..300),
        list in prop::collection::vec((1_000_i64..40_000, 100_i64..20_000), 0..20),
        touched in prop::collection::btree_map(0_usize..300, 1_i64..20_000, 0..10),
    ) {
        let samples = device(&arrivals(&gaps), &stalls(&list));
        let (service, passages) = passages(&samples);
        let touched: Vec<(usize, i64)> =
            touched.into_iter().filter(|(packet, _)| *packet < passages.len()).collect();
        let mut less = vec![0; passages.len()];
        touched.iter().for_each(|(packet, ns)| less[*packet] = *ns);
        let mut departures: Vec<i64> = passages.iter().map(|p| p.departure_ns).collect();
        replay_touched(&passages, &service, &touched, |packet, ns| departures[packet] = ns);
        prop_assert_eq!(replay(&passages, &service, &less), departures);
    }

    #[test]
    fn all_stalls_removed_is_the_device_without_stalls(
        gaps in prop::collection::vec(700_i64..6_000, 50..300),
        list in prop::collection::vec((60_000_i64..90_000, 1_000_i64..20_000), 0..6),
    ) {
        let arrivals = arrivals(&gaps);
        let events = stalls(&list);
        let samples = device(&arrivals, &events);
        let (service, passages) = passages(&samples);
        prop_assume!(service.base_ns == TRANSPORT_NS + SERVICE_NS);
        prop_assume!(service.service_ns == SERVICE_NS);
        let mut less = vec![0; passages.len()];
        for taken in taken(&passages, &timeline(&events, 2), 0) {
            less[taken.packet] += taken.ns;
        }
        let naive: Vec<i64> = device(&arrivals, &[]).iter().map(|sample| sample.1).collect();
        prop_assert_eq!(replay(&passages, &service, &less), naive);
    }

    #[test]
    fn the_parts_of_an_excess_add_up(
        gaps in prop::collection::vec(100_i64..6_000, 2..300),
        list in prop::collection::vec((1_000_i64..60_000, 100_i64..20_000), 0..20),
        error_ns in 0_i64..2_000,
        offset_ns in -3_000_i64..3_000,
    ) {
        let samples = device(&arrivals(&gaps), &stalls(&list));
        let mut events = stalls(&list);
        for event in &mut events {
            event.start_ns += offset_ns;
            event.end_ns += offset_ns;
        }
        let trace = Trace { events: &events, cpu: 2, error_ns, throttled: &[] };
        let explanation = explain(&samples, trace, &asked(vec![12_345]));
        for late in &explanation.late {
            let causes_ns: i64 = late.causes.iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!(causes_ns + late.queue_ns + late.unknown_ns, late.excess_ns);
            prop_assert!(late.unknown_ns >= 0 && late.causes.iter().all(|(_, ns)| *ns > 0));
        }
        let by_cause: i64 = explanation.causes.iter().map(|cause| cause.excess_ns).sum();
        prop_assert_eq!(by_cause + explanation.queue_ns + explanation.unknown_ns, explanation.excess_ns);
        for cause in &explanation.causes {
            let better = cause.without_ns.iter().zip(&explanation.quantiles_ns);
            prop_assert!(better.into_iter().all(|(without, with)| without <= with));
        }
    }
}

/// A forwarder under 2 % load, stalled by two causes at times that are not those of its packets.
fn run() -> (Vec<(i64, i64)>, Vec<Event>) {
    let gaps: Vec<i64> = (0_i64..20_000).map(|n| 2_000 + n * 7919 % 4_000).collect();
    let mut events = Vec::new();
    for n in 0..80 {
        events.push(event(Kind::Irq, "local_timer", 40_000 + n * 1_000_000, 9_000));
        events.push(event(Kind::Irq, "call_function", 517_000 + n * 1_000_000, 30_000));
    }
    events.sort_by_key(|event| event.start_ns);
    (device(&arrivals(&gaps), &events), events)
}

#[test]
fn causes_are_named_with_their_senders_and_checks() {
    let (samples, events) = run();
    let trace = Trace { events: &events, cpu: 2, error_ns: 100, throttled: &[] };
    let asked = ExplanationOptions {
        late_from: "0.99".parse().unwrap(),
        ..asked(vec![211_111, 377_777, 731_313])
    };
    let explanation = explain(&samples, trace, &asked);
    assert!(explanation.explained_ppm > 980_000, "{}", explanation.explained_ppm);
    assert!(explanation.null_ppm.unwrap() < 200_000, "{:?}", explanation.null_ppm);
    let [flush, tick] = &explanation.causes[..] else { panic!("{:?}", explanation.causes) };
    assert_eq!((flush.name.as_str(), tick.name.as_str()), ("call_function", "local_timer"));
    assert_eq!(flush.sender.as_ref().map(|(sender, count)| (sender.pid, *count)), Some((812, 80)));
    assert_eq!(tick.signature.as_ref().map(|signature| &*signature.name), Some("tick"));
    assert!(flush.without_ns[1] < explanation.quantiles_ns[1], "{flush:?}");
    // A packet behind a stalled one has the stall as its cause though it came after its end.
    let behind = explanation.late.iter().find(|late| {
        events
            .iter()
            .all(|event| event.end_ns <= late.arrival_ns || late.arrival_ns < event.start_ns)
    });
    if let Some(late) = behind {
        assert!(!late.causes.is_empty(), "{late:?}");
    }
}

#[test]
fn checks_are_named_of_causes_that_cost_something() {
    let (samples, events) = run();
    let trace = Trace { events: &events, cpu: 2, error_ns: 100, throttled: &[] };
    let checks = |late_from: &str| {
        let asked = ExplanationOptions { late_from: late_from.parse().unwrap(), ..asked(vec![]) };
        explain(&samples, trace, &asked).checks()
    };
    // The latest packets met shootdowns only; among the others are those that met ticks.
    assert_eq!(checks("0.999"), ["IRQ-008"]);
    assert!(checks("0.9").contains(&"ISO-003"), "{:?}", checks("0.9"));
}

#[test]
fn what_is_not_in_the_trace_is_unknown() {
    let (samples, _) = run();
    let trace = Trace { events: &[], cpu: 2, error_ns: 100, throttled: &[] };
    let explanation = explain(&samples, trace, &asked(vec![1]));
    assert_eq!((explanation.explained_ppm, explanation.null_ppm), (0, None));
    assert_eq!(explanation.unknown_ns + explanation.queue_ns, explanation.excess_ns);
    assert!(explanation.unknown_ns > 0);
}

/// A device that takes all that wait, 32 at most, works on each and sends them together.
fn batches(arrivals: &[i64], stalls: &[Event]) -> Vec<(i64, i64)> {
    const BATCH: usize = 32;
    let mut samples = Vec::new();
    let (mut free_ns, mut first) = (i64::MIN, 0);
    while let Some(arrival_ns) = arrivals.get(first) {
        let start_ns = free_ns.max(*arrival_ns);
        let waiting = arrivals[first..].partition_point(|arrival_ns| *arrival_ns <= start_ns);
        let batch = &arrivals[first..first + waiting.min(BATCH)];
        // The batch takes as long as the naive device with this work.
        let works = vec![start_ns; batch.len()];
        let done_ns = device(&works, stalls).last().map_or(start_ns, |sample| sample.1);
        let sent = batch.iter().zip(0_i64..).map(|(at_ns, number)| (*at_ns, done_ns + 30 * number));
        samples.extend(sent);
        free_ns = done_ns - TRANSPORT_NS + 30 * (batch.len() as i64 - 1);
        first += batch.len();
    }
    samples
}

#[test]
fn a_batch_takes_the_time_of_all_of_its_packets() {
    // Bursts of one to nine packets.
    let bursts = (0_i64..3_000).map(|n| (n * 20_000, 1 + n * 7919 % 9));
    let arrivals: Vec<i64> =
        bursts.flat_map(|(at_ns, count)| (0..count).map(move |n| at_ns + n * 60)).collect();
    let (service, passages) = passages(&batches(&arrivals, &[]));
    assert!((SERVICE_NS..SERVICE_NS + 40).contains(&service.service_ns), "{service:?}");
    assert!((2..9).contains(&service.batch), "{service:?}");
    // Nothing has stalled it: nobody took more than is its own.
    let most_ns = passages.iter().map(|p| p.taken_ns() - p.own_ns).max().unwrap();
    assert!(most_ns <= 9 * 40, "{most_ns}");
}

#[test]
fn what_stalls_a_batch_is_told_from_its_length() {
    let bursts = (0_i64..20_000).map(|n| (n * 20_000, 1 + n * 7919 % 9));
    let arrivals: Vec<i64> =
        bursts.flat_map(|(at_ns, count)| (0..count).map(move |n| at_ns + n * 60)).collect();
    let events: Vec<Event> =
        (0..200).map(|n| event(Kind::Irq, "local_timer", n * 2_000_300 + 1_000, 9_000)).collect();
    let samples = batches(&arrivals, &events);
    let asked = ExplanationOptions {
        late_from: "0.999".parse().unwrap(),
        ..asked(vec![777_777, 1_313_131])
    };
    let explanation =
        explain(&samples, Trace { events: &events, cpu: 2, error_ns: 50, throttled: &[] }, &asked);
    // The load's own queue, up to eight packets ahead, is not the tick's.
    assert!(explanation.queue_ns > 0);
    assert!(explanation.unknown_ns * 20 < explanation.excess_ns, "{explanation:#?}");
    let [tick] = &explanation.causes[..] else { panic!("{:?}", explanation.causes) };
    assert!(tick.excess_ns * 2 > explanation.excess_ns, "{tick:?}");
    assert!(tick.without_ns[1] <= explanation.quantiles_ns[1]);
}

#[test]
fn a_queue_after_a_stall_is_no_batch() {
    let arrivals: Vec<i64> = (0..50_000).map(|n| n * 1_000).collect();
    let stalls: Vec<(i64, i64)> =
        (0_i64..400).map(|n| (90_000, 3_000 + n * 7919 % 20_000)).collect();
    let (service, _) = passages(&device(&arrivals, &self::stalls(&stalls)));
    assert_eq!((service.service_ns, service.batch), (SERVICE_NS, 1));
}

#[test]
fn what_all_packets_take_longer_than_the_fastest_is_not_unknown() {
    // Packets take up to 1.6 µs longer than the fastest, and an interrupt of 800 ns is met by some.
    let gaps: Vec<i64> = (0_i64..20_000).map(|n| 9_000 + n * 7919 % 4_000).collect();
    let arrivals = arrivals(&gaps);
    let of_packets = arrivals.iter().step_by(20);
    let events: Vec<Event> =
        of_packets.map(|at_ns| event(Kind::Irq, "local_timer", at_ns + 100, 800)).collect();
    let mut samples = device(&arrivals, &events);
    for (number, (_, egress_ns)) in (0_i64..).zip(&mut samples) {
        *egress_ns += number * 6151 % 1_600;
    }
    let trace = Trace { events: &events, cpu: 2, error_ns: 0, throttled: &[] };
    let explanation = explain(&samples, trace, &asked(vec![]));
    let met: Vec<_> = explanation.late.iter().filter(|late| !late.causes.is_empty()).collect();
    assert!(met.len() > 500, "{}", met.len());
    assert!(met.iter().all(|late| late.causes[0].1 > late.unknown_ns), "{met:?}");
}
