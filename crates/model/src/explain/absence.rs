//! When the device's own thread was away from its CPU, and why.
//!
//! A thread that gave the CPU up by itself, was stopped, or used the quota of its group up leaves an idle CPU
//! or one that others make use of. Who only ran because it was away is no thief.

use super::serving::{self, Thread};
use crate::trace::{Event, Kind, Left};

/// Details of the events that say why the device's thread was away.
pub(super) const ASLEEP: &str = "asleep";
/// See [`ASLEEP`].
pub(super) const STOPPED: &str = "stopped";
/// See [`ASLEEP`].
pub(super) const THROTTLED: &str = "throttled";

/// The events of others, and before them one for each time that the thread was away. Others that were seen
/// running meanwhile go first in the timeline, except threads while it was stopped.
pub(super) fn others(events: &[Event], cpu: u32, thread: &Thread) -> Vec<Event> {
    let mut own: Vec<&Event> = events
        .iter()
        .filter(|event| event.cpu == cpu && serving::is(event, thread) && event.left.is_some())
        .collect();
    own.sort_by_key(|event| event.start_ns);
    let holes: Vec<&Event> =
        events.iter().filter(|event| event.cpu == cpu && event.kind == Kind::Hole).collect();
    let mut away = Vec::new();
    for (before, after) in own.iter().zip(own.iter().skip(1)) {
        let (start_ns, end_ns) = (before.end_ns, after.start_ns);
        let lost = holes.iter().any(|hole| hole.start_ns < end_ns && hole.end_ns > start_ns);
        let why = match before.left {
            Some(Left::Runnable) => THROTTLED,
            Some(Left::Sleeping) => ASLEEP,
            Some(Left::Stopped) => STOPPED,
            Some(Left::Ended) | None => continue,
        };
        if start_ns < end_ns && !lost {
            let detail = Some(why.to_owned());
            away.push(Event { start_ns, end_ns, detail, left: None, ..(*before).clone() });
        }
    }
    let stopped: Vec<(i64, i64)> = away
        .iter()
        .filter(|event| event.detail.as_deref() == Some(STOPPED))
        .map(|event| (event.start_ns, event.end_ns))
        .collect();
    let let_in = |event: &Event| {
        let next = stopped.partition_point(|(_, end_ns)| *end_ns < event.end_ns);
        event.cpu == cpu
            && event.kind == Kind::Thread
            && stopped.get(next).is_some_and(|(start_ns, _)| *start_ns <= event.start_ns)
    };
    let rest = events.iter().filter(|event| !serving::is(event, thread) && !let_in(event)).cloned();
    away.extend(rest);
    away
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(name: &str, start_ns: i64, end_ns: i64, left: Left) -> Event {
        Event {
            cpu: 1,
            start_ns,
            end_ns,
            kind: Kind::Thread,
            name: name.to_owned(),
            detail: None,
            sender: None,
            left: Some(left),
        }
    }

    #[test]
    fn who_ran_because_the_device_was_stopped_is_no_thief() {
        let events = [
            ran("dut", 0, 10, Left::Stopped),
            ran("passer-by", 12, 15, Left::Sleeping),
            ran("dut", 20, 30, Left::Runnable),
            ran("thief", 30, 35, Left::Runnable),
            ran("dut", 36, 40, Left::Sleeping),
            ran("dut", 50, 60, Left::Runnable),
        ];
        let told: Vec<(i64, i64, String)> = others(&events, 1, &("dut".to_owned(), None))
            .into_iter()
            .map(|event| (event.start_ns, event.end_ns, event.detail.unwrap_or(event.name)))
            .collect();
        let expected =
            [(10, 20, STOPPED), (30, 36, THROTTLED), (40, 50, ASLEEP), (30, 35, "thief")];
        assert_eq!(told, expected.map(|(start, end, name)| (start, end, name.to_owned())));
    }

    #[test]
    fn nothing_is_known_across_a_hole() {
        let hole = Event { kind: Kind::Hole, ..ran("lost", 12, 15, Left::Runnable) };
        let events =
            [ran("dut", 0, 10, Left::Stopped), hole.clone(), ran("dut", 20, 30, Left::Runnable)];
        assert_eq!(others(&events, 1, &("dut".to_owned(), None)), [hole]);
    }
}
