//! Late packets and their causes, against devices whose stalls are known.

use proptest::prelude::*;
use tailtrim_model::explain::queue::passages;
use tailtrim_model::explain::replay::{replay, taken};
use tailtrim_model::explain::timeline::timeline;
use tailtrim_model::explain::verdict::{Asked, Trace, verdict};
use tailtrim_model::trace::{Event, Kind, Sender};

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

fn asked(shifts_ns: Vec<i64>) -> Asked {
    let quantiles = ["0.5", "0.99"].map(|text| text.parse().expect("a probability")).to_vec();
    Asked { late_from: "0.9".parse().expect("a probability"), quantiles, shifts_ns }
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
        for taken in taken(&passages, &service, &timeline(&events, 2), 0) {
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
        let trace = Trace { events: &events, cpu: 2, error_ns };
        let verdict = verdict(&samples, trace, &asked(vec![12_345]));
        for late in &verdict.late {
            let causes_ns: i64 = late.causes.iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!(causes_ns + late.queue_ns + late.unknown_ns, late.excess_ns);
            prop_assert!(late.unknown_ns >= 0 && late.causes.iter().all(|(_, ns)| *ns > 0));
        }
        let by_cause: i64 = verdict.causes.iter().map(|cause| cause.excess_ns).sum();
        prop_assert_eq!(by_cause + verdict.queue_ns + verdict.unknown_ns, verdict.excess_ns);
        for cause in &verdict.causes {
            let better = cause.without_ns.iter().zip(&verdict.quantiles_ns);
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
    let trace = Trace { events: &events, cpu: 2, error_ns: 100 };
    let asked =
        Asked { late_from: "0.99".parse().unwrap(), ..asked(vec![211_111, 377_777, 731_313]) };
    let verdict = verdict(&samples, trace, &asked);
    assert!(verdict.explained_ppm > 980_000, "{}", verdict.explained_ppm);
    assert!(verdict.null_ppm.unwrap() < 200_000, "{:?}", verdict.null_ppm);
    let [flush, tick] = &verdict.causes[..] else { panic!("{:?}", verdict.causes) };
    assert_eq!((flush.name.as_str(), tick.name.as_str()), ("call_function", "local_timer"));
    assert_eq!(flush.sender.as_ref().map(|(sender, count)| (sender.pid, *count)), Some((812, 80)));
    assert_eq!(tick.signature.as_ref().map(|signature| signature.name), Some("tick"));
    assert!(flush.without_ns[1] < verdict.quantiles_ns[1], "{flush:?}");
    // A packet behind a stalled one has the stall as its cause though it came after its end.
    let behind = verdict.late.iter().find(|late| {
        events
            .iter()
            .all(|event| event.end_ns <= late.arrival_ns || late.arrival_ns < event.start_ns)
    });
    if let Some(late) = behind {
        assert!(!late.causes.is_empty(), "{late:?}");
    }
}

#[test]
fn what_is_not_in_the_trace_is_unknown() {
    let (samples, _) = run();
    let trace = Trace { events: &[], cpu: 2, error_ns: 100 };
    let verdict = verdict(&samples, trace, &asked(vec![1]));
    assert_eq!((verdict.explained_ppm, verdict.null_ppm), (0, None));
    assert_eq!(verdict.unknown_ns + verdict.queue_ns, verdict.excess_ns);
    assert!(verdict.unknown_ns > 0);
}
