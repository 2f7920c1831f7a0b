//! Use of a CPU by each that had it, how often and how long: a trace without packets.

use super::groups::{Groups, common_detail};
use super::known::{self, KnownCause};
use super::timeline::timeline;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tailtrim_trace::{Event, Kind};

/// Use of a CPU over a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Occupation {
    /// The CPU.
    pub cpu: u32,
    /// Length of the trace.
    pub span_ns: i64,
    /// Time without any event: the CPU was idle, or the trace does not show what had it.
    pub idle_ns: i64,
    /// Threads and interrupts that had the CPU: own threads first, then by total time.
    pub occupants: Vec<Occupant>,
}

/// Something that had the CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Occupant {
    /// Its kind.
    pub kind: Kind,
    /// Vector, handler, softirq or thread.
    pub name: String,
    /// Function or reason, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether it is a thread of the device under test.
    pub own: bool,
    /// Number of times that it had the CPU.
    pub times: u64,
    /// Time for which it had the CPU itself, without what interrupted it.
    pub total_ns: i64,
    /// The longest of these times.
    pub longest_ns: i64,
    /// The known cause that it is recognised as; none of own threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownCause>,
}

/// Returns who had a CPU in `from_ns..until_ns`. `own` are the threads of the device under test, by their numbers.
#[must_use]
pub fn occupation(
    events: &[Event],
    cpu: u32,
    (from_ns, until_ns): (i64, i64),
    own: &BTreeSet<u32>,
) -> Occupation {
    let mut net_ns = vec![0; events.len()];
    for slice in timeline(events, cpu) {
        net_ns[slice.event] += slice.end_ns - slice.start_ns;
    }
    let is_own = |event: &Event| {
        let pid = event.detail.as_deref().and_then(|detail| detail.strip_prefix("pid "));
        pid.and_then(|pid| pid.parse().ok()).is_some_and(|pid| own.contains(&pid))
    };
    let groups = Groups::new(events, cpu);
    // A thread of the device may have the name of another one's.
    let mut of_each: Vec<[Vec<usize>; 2]> = vec![Default::default(); groups.len()];
    for (number, event) in events.iter().enumerate().filter(|(_, event)| event.cpu == cpu) {
        of_each[groups.of(number)][usize::from(is_own(event))].push(number);
    }
    let mut occupants = Vec::new();
    for (cause, parts) in of_each.iter().enumerate() {
        let (kind, name, _) = groups.key(cause);
        for (own, numbers) in [false, true].into_iter().zip(parts).filter(|(_, n)| !n.is_empty()) {
            let these: Vec<&Event> = numbers.iter().map(|n| &events[*n]).collect();
            let nets: Vec<i64> = numbers.iter().map(|n| net_ns[*n]).collect();
            occupants.push(Occupant {
                kind: *kind,
                name: name.clone(),
                detail: common_detail(&these).map(str::to_owned),
                own,
                times: numbers.len() as u64,
                total_ns: nets.iter().sum(),
                longest_ns: nets.iter().copied().max().unwrap_or(0),
                known: known::recognise(&these, &nets).filter(|_| !own),
            });
        }
    }
    occupants.sort_by_key(|one| (!one.own, Reverse(one.total_ns)));
    let span_ns = until_ns - from_ns;
    let idle_ns = (span_ns - net_ns.iter().sum::<i64>()).max(0);
    Occupation { cpu, span_ns, idle_ns, occupants }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, name: &str, detail: Option<&str>, start_ns: i64, end_ns: i64) -> Event {
        Event {
            cpu: 3,
            start_ns,
            end_ns,
            kind,
            name: name.into(),
            detail: detail.map(str::to_owned),
            sender: None,
            left: None,
        }
    }

    #[test]
    fn each_has_the_time_that_it_had_itself() {
        let events = [
            event(Kind::Thread, "python", Some("pid 7"), 0, 400),
            event(Kind::Irq, "local_timer", Some("tick_nohz_handler"), 100, 110),
            event(Kind::Thread, "python", Some("pid 8"), 400, 700),
            event(Kind::Thread, "bash", Some("pid 9"), 700, 750),
            Event { cpu: 2, ..event(Kind::Thread, "bash", Some("pid 9"), 0, 1_000) },
        ];
        let found = occupation(&events, 3, (0, 1_000), &BTreeSet::from([7]));
        let rows: Vec<_> = found
            .occupants
            .iter()
            .map(|one| (one.name.as_str(), one.own, one.times, one.total_ns, one.longest_ns))
            .collect();
        let expected = [
            ("python", true, 1, 390, 390),
            ("python", false, 1, 300, 300),
            ("bash", false, 1, 50, 50),
            ("local_timer", false, 1, 10, 10),
        ];
        assert_eq!(rows, expected);
        assert_eq!(found.idle_ns, 250);
        let checks = |n: usize| found.occupants[n].known.as_ref().map_or(&[][..], |one| one.checks);
        assert!(checks(0).is_empty(), "the application is not a cause");
        // 48 % of a CPU by a thread had no check beside it.
        assert!(checks(2).contains(&"ISO-001") && checks(2).contains(&"ISO-016"), "{found:?}");
    }
}
