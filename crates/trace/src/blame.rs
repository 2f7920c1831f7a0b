//! Which events cover the gaps of a polling loop, or the delays of a timer.

use super::{Event, Kind, Sender};
use serde::Serialize;
use std::collections::HashMap;

/// Events that together cover less of a gap than one part in so many are not its cause: the CPU was away for
/// something that is not traced, and took the interrupts that waited when it came back.
///
/// In a gap that is not traced, ticks of 1 kHz with handlers of 10 µs (long ones, on a virtual machine) cover 1 %; a
/// single one that waited covers a tenth of a gap of 100 µs. A traced interrupt covers less than its gap, too: on
/// a virtual machine, handlers of 0.6 to 2 µs came with 6 to 9 µs in which the trace shows nothing, which is 7 to 24 %.
/// So a tenth separates the two but for the shortest handlers, which count as unknown.
const LEAST_SHARE: i64 = 10;

/// When a loop did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The CPU.
    pub cpu: u32,
    /// The last time before.
    pub start_ns: i64,
    /// The first time after.
    pub end_ns: i64,
}

/// One cause of gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GapCause {
    /// What took the CPU; `gap` where no event covers enough.
    pub kind: Kind,
    /// Which one; `unknown` for gaps that nothing covers.
    pub name: String,
    /// What it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Who sent it, as `comm (function)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Gaps of which it covers the largest part.
    pub gaps: u64,
    /// How long these are together.
    pub total_ns: i64,
    /// The longest of them.
    pub longest_ns: i64,
    /// How much of them events cover. Less than the total: entering and leaving the kernel is not in the events.
    pub covered_ns: i64,
}

/// Why a CPU is idle although a thread of it wants to run.
const NOT_ALLOWED: &str =
    "the thread was not allowed to run: real-time throttling, cpu.max, or stopped";

/// What causes are told apart by.
type Key<'a> = (Kind, &'a str, Option<&'a str>, Option<String>);

/// Whose gaps they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own<'a> {
    /// The name of the thread: its events are not causes.
    pub comm: &'a str,
    /// Whether it always wants to run. A gap in which nothing had the CPU is then one of a thread that was not
    /// allowed to; one that waits for a timer leaves the CPU idle by itself.
    pub polls: bool,
}

/// The name of the cause of gaps in which the CPU was idle although the loop wanted to run.
pub const IDLE: &str = "idle";

/// The causes, that of the most time first. `events` are those of all CPUs. An event may lie `slack_ns` beside
/// its gap.
#[must_use]
pub fn blame(gaps: &[Gap], events: &[Event], own: Own<'_>, slack_ns: i64) -> Vec<GapCause> {
    let mut causes: HashMap<Key<'_>, GapCause> = HashMap::new();
    let mut cpus: Vec<u32> = gaps.iter().map(|gap| gap.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for cpu in cpus {
        let mut events: Vec<&Event> = events.iter().filter(|event| event.cpu == cpu).collect();
        events.sort_by_key(|event| event.start_ns);
        let mut gaps: Vec<&Gap> = gaps.iter().filter(|gap| gap.cpu == cpu).collect();
        gaps.sort_by_key(|gap| gap.start_ns);
        let mut coming = events.into_iter().peekable();
        let mut present: Vec<&Event> = Vec::new();
        for gap in gaps {
            while let Some(event) = coming.next_if(|event| event.start_ns <= gap.end_ns + slack_ns)
            {
                present.push(event);
            }
            present.retain(|event| event.end_ns >= gap.start_ns - slack_ns);
            let (verdict, covered_ns) = of_gap(gap, &present, own);
            count(&mut causes, gap, verdict, covered_ns);
        }
    }
    let mut causes: Vec<GapCause> = causes.into_values().collect();
    causes.sort_by(|a, b| (b.total_ns, &a.name, &a.detail).cmp(&(a.total_ns, &b.name, &b.detail)));
    causes
}

/// What a gap is due to.
#[derive(Debug, Clone, Copy)]
enum DueTo<'a> {
    Event(&'a Event),
    Idle,
    Unknown,
}

fn count<'a>(
    causes: &mut HashMap<Key<'a>, GapCause>,
    gap: &Gap,
    verdict: DueTo<'a>,
    covered_ns: i64,
) {
    let key = match verdict {
        DueTo::Event(event) => {
            (event.kind, event.name.as_str(), distinction(event), event.sender.as_ref().map(told))
        }
        DueTo::Idle => (Kind::Thread, IDLE, Some(NOT_ALLOWED), None),
        DueTo::Unknown => (Kind::Gap, "unknown", None, None),
    };
    let sender = key.3.clone();
    let cause = causes.entry(key).or_insert_with_key(|key| GapCause {
        kind: key.0,
        name: key.1.to_owned(),
        detail: key.2.map(str::to_owned),
        sender,
        gaps: 0,
        total_ns: 0,
        longest_ns: 0,
        covered_ns: 0,
    });
    let length_ns = gap.end_ns - gap.start_ns;
    cause.gaps += 1;
    cause.total_ns += length_ns;
    cause.longest_ns = cause.longest_ns.max(length_ns);
    cause.covered_ns += covered_ns;
}

/// The part of the detail that causes are told apart by: not the number of a process.
fn distinction(event: &Event) -> Option<&str> {
    event
        .detail
        .as_deref()
        .filter(|detail| event.kind != Kind::Thread || !detail.starts_with("pid "))
}

fn told(sender: &Sender) -> String {
    match &sender.function {
        Some(function) => format!("{} ({function})", sender.comm),
        None => sender.comm.clone(),
    }
}

/// What most of the gap is due to when what nests is taken away, and how much of it is seen at all.
fn of_gap<'a>(gap: &Gap, events: &[&'a Event], own: Own<'_>) -> (DueTo<'a>, i64) {
    let is_own = |event: &&&Event| event.kind == Kind::Thread && event.name == own.comm;
    let mut within: Vec<&'a Event> =
        events.iter().filter(|event| !is_own(event)).copied().collect();
    // What interrupts comes before what is interrupted; of the same kind the inner one is the shorter.
    within.sort_by_key(|event| (event.kind, event.end_ns - event.start_ns));
    let part = |event: &Event| (event.start_ns.max(gap.start_ns), event.end_ns.min(gap.end_ns));
    let mut taken: Vec<(i64, i64)> = Vec::new();
    let mut best: Option<(i64, &Event)> = None;
    let mut covered_ns = 0;
    for event in within {
        let net_ns = take(&mut taken, part(event));
        covered_ns += net_ns;
        if best.is_none_or(|(most_ns, _)| net_ns > most_ns) {
            best = Some((net_ns, event));
        }
    }
    let length_ns = gap.end_ns - gap.start_ns;
    let own_ns: i64 = events.iter().filter(is_own).map(|event| take(&mut taken, part(event))).sum();
    // Where the loop's own turns on the CPU are traced, what neither it nor anything else had was idle.
    let traced = own.polls && events.iter().any(|event| is_own(&event));
    let idle_ns = if traced { length_ns - covered_ns - own_ns } else { 0 };
    let enough = |net_ns: i64| net_ns > 0 && net_ns >= length_ns / LEAST_SHARE;
    match best {
        Some((net_ns, event)) if net_ns > 0 && enough(covered_ns) && covered_ns >= idle_ns => {
            (DueTo::Event(event), covered_ns)
        }
        _ if enough(idle_ns) => (DueTo::Idle, covered_ns + idle_ns),
        _ => (DueTo::Unknown, covered_ns),
    }
}

/// Takes a part of the time, and returns how much of it was free.
fn take(taken: &mut Vec<(i64, i64)>, part: (i64, i64)) -> i64 {
    if part.0 >= part.1 {
        return 0;
    }
    let overlap: i64 =
        taken.iter().map(|(start, end)| (part.1.min(*end) - part.0.max(*start)).max(0)).sum();
    let net = part.1 - part.0 - overlap;
    // Merged, so that nothing is counted twice.
    let (mut start, mut end) = part;
    taken.retain(|old| {
        let apart = old.1 < start || end < old.0;
        if !apart {
            (start, end) = (start.min(old.0), end.max(old.1));
        }
        apart
    });
    taken.push((start, end));
    net
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: Own<'_> = Own { comm: "own", polls: true };

    fn event(kind: Kind, name: &str, start_ns: i64, end_ns: i64) -> Event {
        Event {
            cpu: 1,
            start_ns,
            end_ns,
            kind,
            name: name.into(),
            detail: None,
            sender: None,
            left: None,
        }
    }

    fn gap(start_ns: i64, end_ns: i64) -> Gap {
        Gap { cpu: 1, start_ns, end_ns }
    }

    fn rows(gaps: &[Gap], events: &[Event]) -> Vec<(String, u64, i64, i64)> {
        let causes = blame(gaps, events, OWN, 0);
        causes.into_iter().map(|c| (c.name, c.gaps, c.total_ns, c.covered_ns)).collect()
    }

    #[test]
    fn the_largest_net_part_is_the_cause() {
        let events = [
            event(Kind::Thread, "own", 0, 1_000),
            event(Kind::Thread, "hog", 1_000, 2_000),
            event(Kind::Irq, "local_timer", 1_100, 1_300),
            event(Kind::Softirq, "TIMER", 1_250, 1_900),
        ];
        assert_eq!(rows(&[gap(990, 2_010)], &events), [("TIMER".into(), 1, 1_020, 1_000)]);
        assert_eq!(rows(&[gap(1_000, 1_150)], &events), [("hog".into(), 1, 150, 150)]);
    }

    #[test]
    fn what_nothing_covers_is_unknown() {
        let events = [event(Kind::Irq, "local_timer", 100, 109)];
        assert_eq!(rows(&[gap(0, 50)], &events), [("unknown".into(), 1, 50, 0)]);
        // Less than a tenth is what waited for the CPU to come back.
        assert_eq!(rows(&[gap(10, 110)], &events), [("unknown".into(), 1, 100, 9)]);
        assert_eq!(rows(&[gap(20, 110)], &events), [("local_timer".into(), 1, 90, 9)]);
    }

    #[test]
    fn idle_although_the_loop_wants_to_run() {
        let events = [
            event(Kind::Thread, "own", 0, 1_000),
            event(Kind::Irq, "local_timer", 1_500, 1_600),
            event(Kind::Thread, "own", 2_000, 3_000),
        ];
        let seen = [gap(995, 2_005), gap(2_100, 2_200)];
        assert_eq!(
            rows(&seen, &events),
            [(IDLE.into(), 1, 1_010, 1_000), ("unknown".into(), 1, 100, 0)]
        );
        // A timer's thread sleeps by itself.
        let sleeps = Own { polls: false, ..OWN };
        assert_eq!(blame(&seen[..1], &events, sleeps, 0)[0].name, "unknown");
    }

    #[test]
    fn causes_are_told_apart_by_function_and_sender_but_not_by_process() {
        let mut events = Vec::new();
        for (start, pid, comm) in [(0, 1, "a"), (100, 2, "a"), (200, 3, "b")] {
            let mut irq = event(Kind::Irq, "call", start, start + 50);
            irq.sender =
                Some(Sender { pid, comm: comm.into(), function: Some("f".into()), sent_ns: None });
            events.push(irq);
        }
        let causes = blame(&[gap(0, 60), gap(90, 150), gap(200, 250)], &events, OWN, 0);
        let told: Vec<_> = causes.iter().map(|c| (c.sender.as_deref().unwrap(), c.gaps)).collect();
        assert_eq!(told, [("a (f)", 2), ("b (f)", 1)]);
    }

    proptest! {
        /// Against time counted tick by tick.
        #[test]
        fn covered_time(parts in proptest::collection::vec((0_i64..60, 0_i64..30, 0_usize..3), 0..12)) {
            let kinds = [Kind::Irq, Kind::Softirq, Kind::Thread];
            let events: Vec<Event> = parts.iter().map(|(start, length, kind)| event(kinds[*kind], "x", *start, start + length)).collect();
            let covered = (20..50).filter(|tick| events.iter().any(|e| e.start_ns <= *tick && *tick < e.end_ns)).count() as i64;
            let causes = blame(&[gap(20, 50)], &events, OWN, 0);
            prop_assert_eq!(causes.iter().map(|c| c.covered_ns).sum::<i64>(), covered);
            prop_assert_eq!(causes.iter().map(|c| c.gaps).sum::<u64>(), 1);
        }
    }
}
