//! Assignment of the gaps of a polling loop, or the delays of a timer, to the events that cover them.

use super::{Event, Kind, Sender};
use serde::Serialize;
use std::collections::HashMap;

/// Events that together cover less of a gap than one part in so many are not its cause: the CPU was taken by something
/// that is not traced, and handled the waiting interrupts when it came back.
///
/// In a gap that is not traced, ticks of 1 kHz with handlers of 10 µs (long ones, on a virtual machine) cover 1 %; a
/// single one that waited covers a tenth of a gap of 100 µs. A traced interrupt covers less than its gap, too: on
/// a virtual machine, handlers of 0.6 to 2 µs came with 6 to 9 µs in which the trace shows nothing, which is 7 to 24 %.
/// So a tenth separates the two but for the shortest handlers, for which [`Entry`] decides.
const LEAST_SHARE: i64 = 10;

/// Time that an interrupt takes of a CPU in addition to its handler: entering and leaving the kernel and, on a virtual
/// machine, the hypervisor. It depends on the machine, and so it is measured: the median over the gaps with one
/// interrupt and nothing else. A gap whose interrupts leave no more than twice that each uncovered is due to them,
/// however short their handlers are: on an Intel Xeon's virtual machine, handlers of 0.6 µs came with 12 µs in which
/// the trace shows nothing.
#[derive(Debug, Clone, Copy)]
struct Entry {
    most_ns: i64,
}

impl Entry {
    /// Fewest gaps for an estimate: with so many, the 95 % interval of the median lies between the quartiles.
    const FEWEST: usize = 20;

    /// Largest plausible value; hypervisors took 6 to 9 µs (AMD EPYC) and 10 to 14 µs (Intel Xeon). Where a CPU is
    /// mostly taken by something that is not traced, the interrupts that wait meanwhile must not pass for its cause.
    const MOST_NS: i64 = 20_000;

    fn of(gaps: &[(&Gap, Seen<'_>)]) -> Self {
        let alone = gaps.iter().filter(|(_, seen)| (seen.interrupts, seen.others) == (1, 0));
        let mut rests: Vec<i64> = alone.map(|(gap, seen)| seen.rest_ns(gap)).collect();
        if rests.len() < Self::FEWEST {
            return Self { most_ns: 0 };
        }
        let middle = rests.len() / 2;
        let (_, median_ns, _) = rests.select_nth_unstable(middle);
        Self { most_ns: (2 * *median_ns).min(Self::MOST_NS) }
    }
}

/// Time in which a loop did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The CPU.
    pub cpu: u32,
    /// The last time at which it ran before.
    pub start_ns: i64,
    /// The first time at which it ran again.
    pub end_ns: i64,
}

/// One cause of gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GapCause {
    /// Kind of the event that took the CPU; `gap` where no event covers enough.
    pub kind: Kind,
    /// Name of the event; `unknown` for gaps that nothing covers.
    pub name: String,
    /// The event's action, such as a kernel function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Sender of an interrupt, as `comm (function)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Number of gaps of which it covers the largest part.
    pub gaps: u64,
    /// Their total length.
    pub total_ns: i64,
    /// The longest of them.
    pub longest_ns: i64,
    /// Part of the total that events cover: less, since entering and leaving the kernel is not in the events.
    pub covered_ns: i64,
}

/// Why a CPU is idle although a thread of it wants to run.
const NOT_ALLOWED: &str =
    "the thread was not allowed to run: real-time throttling, cpu.max, or stopped";

/// Properties that distinguish causes.
type Key<'a> = (Kind, &'a str, Option<&'a str>, Option<String>);

/// The thread whose gaps they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own<'a> {
    /// The name of the thread: its events are not causes.
    pub comm: &'a str,
    /// Whether it always wants to run. A gap in which nothing had the CPU is then one of a thread that was not allowed
    /// to; a thread that waits for a timer leaves the CPU idle by itself.
    pub polls: bool,
}

/// The name of the cause of gaps in which the CPU was idle although the loop wanted to run.
pub const IDLE: &str = "idle";

/// The causes, longest total time first. `events` are those of all CPUs. An event may lie up to `slack_ns` outside of
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
        let mut seen = Vec::with_capacity(gaps.len());
        for gap in gaps {
            while let Some(event) = coming.next_if(|event| event.start_ns <= gap.end_ns + slack_ns)
            {
                present.push(event);
            }
            present.retain(|event| event.end_ns >= gap.start_ns - slack_ns);
            seen.push((gap, seen_in(gap, &present, own)));
        }
        let entry = Entry::of(&seen);
        for (gap, seen) in seen {
            let (due_to, covered_ns) = seen.verdict(gap, entry);
            count(&mut causes, gap, due_to, covered_ns);
        }
    }
    let mut causes: Vec<GapCause> = causes.into_values().collect();
    causes.sort_by(|a, b| (b.total_ns, &a.name, &a.detail).cmp(&(a.total_ns, &b.name, &b.detail)));
    causes
}

/// Cause of a gap.
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
            (event.kind, event.name.as_str(), event.distinction(), event.sender.as_ref().map(told))
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

fn told(sender: &Sender) -> String {
    match &sender.function {
        Some(function) => format!("{} ({function})", sender.comm),
        None => sender.comm.clone(),
    }
}

/// Events within a gap.
#[derive(Debug)]
struct Seen<'a> {
    /// The event that covers most of the gap, without the events that are nested in it.
    best: Option<&'a Event>,
    /// Time of the gap that events cover, without the loop's own turns.
    covered_ns: i64,
    /// Time for which the CPU was idle, where the loop's own turns are traced.
    idle_ns: i64,
    /// Number of interrupts, and of other events.
    interrupts: i64,
    others: i64,
}

impl<'a> Seen<'a> {
    /// Time of the gap without any event.
    fn rest_ns(&self, gap: &Gap) -> i64 {
        gap.end_ns - gap.start_ns - self.covered_ns - self.idle_ns
    }

    /// Cause of the gap, and the time that it covers.
    fn verdict(&self, gap: &Gap, entry: Entry) -> (DueTo<'a>, i64) {
        let &Self { best, covered_ns, idle_ns, interrupts, .. } = self;
        let enough =
            |net_ns: i64| net_ns > 0 && net_ns >= (gap.end_ns - gap.start_ns) / LEAST_SHARE;
        let entered = self.rest_ns(gap) <= interrupts * entry.most_ns;
        match best {
            Some(event) if (enough(covered_ns) || entered) && covered_ns >= idle_ns => {
                (DueTo::Event(event), covered_ns)
            }
            _ if enough(idle_ns) => (DueTo::Idle, covered_ns + idle_ns),
            _ => (DueTo::Unknown, covered_ns),
        }
    }
}

fn seen_in<'a>(gap: &Gap, events: &[&'a Event], own: Own<'_>) -> Seen<'a> {
    let is_own = |event: &&&Event| event.kind == Kind::Thread && event.name == own.comm;
    let mut within: Vec<&'a Event> =
        events.iter().filter(|event| !is_own(event)).copied().collect();
    // Interrupting events come before the interrupted ones; of the same kind the inner one is the shorter.
    within.sort_by_key(|event| (event.kind, event.end_ns - event.start_ns));
    let part = |event: &Event| (event.start_ns.max(gap.start_ns), event.end_ns.min(gap.end_ns));
    let mut taken: Vec<(i64, i64)> = Vec::new();
    let (mut best, mut most_ns) = (None, 0);
    let (mut covered_ns, mut interrupts, mut others) = (0, 0, 0);
    for event in within {
        let net_ns = take(&mut taken, part(event));
        covered_ns += net_ns;
        if net_ns > most_ns {
            (best, most_ns) = (Some(event), net_ns);
        }
        if net_ns > 0 {
            let interrupt = matches!(event.kind, Kind::Irq | Kind::Nmi);
            *(if interrupt { &mut interrupts } else { &mut others }) += 1;
        }
    }
    let own_ns: i64 = events.iter().filter(is_own).map(|event| take(&mut taken, part(event))).sum();
    // Where the loop's own turns on the CPU are traced, the time without any event was idle.
    let traced = own.polls && events.iter().any(|event| is_own(&event));
    let idle_ns = if traced { gap.end_ns - gap.start_ns - covered_ns - own_ns } else { 0 };
    Seen { best, covered_ns, idle_ns, interrupts, others }
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
        // Events that cover less than a tenth were waiting for the CPU to come back.
        assert_eq!(rows(&[gap(10, 110)], &events), [("unknown".into(), 1, 100, 9)]);
        assert_eq!(rows(&[gap(20, 110)], &events), [("local_timer".into(), 1, 90, 9)]);
    }

    /// An interrupt of a virtual machine may take twenty times as long as its handler.
    #[test]
    fn short_handlers_are_the_cause_where_all_interrupts_take_that_long() {
        let at = |n: i64| n * 1_000_000;
        let mut events: Vec<Event> =
            (0..20).map(|n| event(Kind::Irq, "flush", at(n) + 11_000, at(n) + 11_600)).collect();
        let mut gaps: Vec<Gap> = (0..20).map(|n| gap(at(n), at(n) + 13_000)).collect();
        assert_eq!(rows(&gaps, &events), [("flush".into(), 20, 260_000, 12_000)]);
        // Too few gaps for an estimate of an interrupt's time.
        assert_eq!(rows(&gaps[1..], &events), [("unknown".into(), 19, 247_000, 11_400)]);
        // The CPU was taken for longer, and an interrupt waited; two of them take twice as long as one.
        events.push(event(Kind::Irq, "late", at(30), at(30) + 600));
        gaps.push(gap(at(30) - 100, at(30) + 25_000));
        events.push(event(Kind::Irq, "one", at(31) + 5_000, at(31) + 5_600));
        events.push(event(Kind::Irq, "two", at(31) + 17_000, at(31) + 17_700));
        gaps.push(gap(at(31), at(31) + 27_000));
        assert_eq!(
            rows(&gaps, &events),
            [
                ("flush".into(), 20, 260_000, 12_000),
                ("two".into(), 1, 27_000, 1_300),
                ("unknown".into(), 1, 25_100, 600)
            ]
        );
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
        /// Compared with time counted tick by tick.
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
