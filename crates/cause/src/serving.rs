//! Which thread serves the packets: its time on the CPU is not theft.

use std::collections::BTreeMap;
use tailtrim_trace::{Event, Kind};

/// A thread as the trace names it: its name, and the process id behind it where known.
pub(super) type Thread = (String, Option<String>);

/// Finds the thread that has the CPU when packets leave, from egress stamps in any order.
///
/// None where fewer than half of them leave from one thread: the kernel itself may serve, in softirqs on top of
/// whatever runs. No other thread can have more packets than one that has half of them.
pub(super) fn serving(
    events: &[Event],
    cpu: u32,
    egress_ns: impl Iterator<Item = i64>,
    error_ns: i64,
) -> Option<Thread> {
    let mut threads: Vec<&Event> =
        events.iter().filter(|event| event.cpu == cpu && event.kind == Kind::Thread).collect();
    threads.sort_by_key(|event| event.start_ns);
    let mut found: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
    let mut packets = 0_u64;
    for stamp_ns in egress_ns {
        packets += 1;
        // The packet left a little before its stamp was taken.
        let after = threads.partition_point(|event| event.start_ns <= stamp_ns + error_ns);
        let Some(event) = after.checked_sub(1).map(|place| threads[place]) else { continue };
        if event.end_ns + error_ns >= stamp_ns {
            *found.entry((&event.name, event.detail.as_deref())).or_default() += 1;
        }
    }
    let ((name, detail), count) = found.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 2 >= packets).then(|| (name.to_owned(), detail.map(str::to_owned)))
}

/// Whether an event is the thread itself.
pub(super) fn is(event: &Event, thread: &Thread) -> bool {
    event.kind == Kind::Thread && event.name == thread.0 && event.detail == thread.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(name: &str, start_ns: i64, end_ns: i64) -> Event {
        Event {
            cpu: 1,
            start_ns,
            end_ns,
            kind: Kind::Thread,
            name: name.to_owned(),
            detail: None,
            sender: None,
            left: None,
        }
    }

    #[test]
    fn packets_leave_from_the_thread_that_serves_them() {
        let events =
            [thread("forwarder", 0, 100), thread("other", 100, 150), thread("forwarder", 150, 300)];
        let stamps = [10, 20, 99, 160, 170, 299, 120];
        let found = serving(&events, 1, stamps.into_iter(), 0);
        assert_eq!(found, Some(("forwarder".to_owned(), None)));
        assert!(
            is(&events[0], found.as_ref().unwrap()) && !is(&events[1], found.as_ref().unwrap())
        );
    }

    #[test]
    fn a_kernel_that_serves_alone_has_no_thread() {
        let events = [thread("a", 0, 10), thread("b", 1_000, 1_010)];
        assert_eq!(serving(&events, 1, [5, 400, 500, 600].into_iter(), 0), None);
        assert_eq!(serving(&events, 2, [5].into_iter(), 0), None);
        assert_eq!(serving(&[], 1, [].into_iter(), 0), None);
    }
}
