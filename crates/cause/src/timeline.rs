//! Timeline of a CPU: the nested intervals of a trace as disjoint slices.

use std::collections::BTreeSet;
use tailtrim_trace::{Event, Kind};

/// A time in which one event had the CPU: its interval without what interrupted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// The event, as an index among those given.
    pub event: usize,
}

/// Precedence of a kind: it comes before the kinds that it interrupts. A hole says less than anything that was seen in
/// it, and more than a gap, which says that nothing was seen on the CPU.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Nmi => 6,
        Kind::Irq => 5,
        Kind::Softirq => 4,
        Kind::Fault => 3,
        Kind::Thread => 2,
        Kind::Hole => 1,
        Kind::Gap => 0,
    }
}

/// The disjoint slices of the events of a CPU, ascending. Of two events of one kind the one that began
/// later has the CPU: it interrupted the other.
#[must_use]
pub fn timeline(events: &[Event], cpu: u32) -> Vec<Slice> {
    let mut edges: Vec<(i64, bool, usize)> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        if event.cpu == cpu && event.start_ns < event.end_ns {
            edges.push((event.start_ns, true, index));
            edges.push((event.end_ns, false, index));
        }
    }
    edges.sort_unstable();
    let mut running: BTreeSet<(u8, i64, usize)> = BTreeSet::new();
    let mut slices: Vec<Slice> = Vec::new();
    let mut since_ns = i64::MIN;
    for (at_ns, begins, index) in edges {
        if let Some(&(_, _, event)) = running.last()
            && since_ns < at_ns
        {
            match slices.last_mut() {
                Some(last) if last.event == event && last.end_ns == since_ns => last.end_ns = at_ns,
                _ => slices.push(Slice { start_ns: since_ns, end_ns: at_ns, event }),
            }
        }
        since_ns = at_ns;
        let key = (rank(events[index].kind), events[index].start_ns, index);
        if begins {
            running.insert(key);
        } else {
            running.remove(&key);
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(kind: Kind, start_ns: i64, end_ns: i64) -> Event {
        Event {
            cpu: 1,
            start_ns,
            end_ns,
            kind,
            name: String::new(),
            detail: None,
            sender: None,
            left: None,
        }
    }

    #[test]
    fn what_is_nested_is_taken_off() {
        let events = [
            event(Kind::Thread, 0, 100),
            event(Kind::Irq, 20, 50),
            event(Kind::Nmi, 30, 35),
            event(Kind::Irq, 90, 110),
        ];
        let found: Vec<(i64, i64, usize)> = timeline(&events, 1)
            .iter()
            .map(|slice| (slice.start_ns, slice.end_ns, slice.event))
            .collect();
        let expected =
            [(0, 20, 0), (20, 30, 1), (30, 35, 2), (35, 50, 1), (50, 90, 0), (90, 110, 3)];
        assert_eq!(found, expected);
        assert!(timeline(&events, 0).is_empty());
    }

    proptest! {
        #[test]
        fn each_moment_belongs_to_the_highest_that_runs(
            list in prop::collection::vec((0_usize..7, 0_i64..60, 1_i64..30), 0..12),
        ) {
            let kinds = [
                Kind::Gap, Kind::Hole, Kind::Thread, Kind::Fault, Kind::Softirq, Kind::Irq, Kind::Nmi,
            ];
            let events: Vec<Event> =
                list.iter().map(|(kind, at, long)| event(kinds[*kind], *at, at + long)).collect();
            let slices = timeline(&events, 1);
            prop_assert!(slices.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
            for moment in 0..100 {
                let highest = (0..events.len())
                    .filter(|n| (events[*n].start_ns..events[*n].end_ns).contains(&moment))
                    .max_by_key(|n| (rank(events[*n].kind), events[*n].start_ns, *n));
                let had = slices
                    .iter()
                    .find(|slice| (slice.start_ns..slice.end_ns).contains(&moment))
                    .map(|slice| slice.event);
                prop_assert_eq!(had, highest);
            }
        }
    }
}
