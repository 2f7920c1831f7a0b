//! Which events are one cause: those of one kind, name and [distinction](Event::distinction).

use std::collections::HashMap;
use tailtrim_trace::{Event, Kind};

/// Key that the events of a cause share: kind, name, and detail.
pub(super) type Key = (Kind, String, Option<String>);

/// The causes of a trace, numbered in the order in which they first had the CPU.
pub(super) struct Groups {
    keys: Vec<Key>,
    /// The cause of each event; of those on other CPUs, none.
    of: Vec<usize>,
}

/// No cause.
const NONE: usize = usize::MAX;

impl Groups {
    pub(super) fn new(events: &[Event], cpu: u32) -> Self {
        let mut known: HashMap<(Kind, &str, Option<&str>), usize> = HashMap::new();
        let mut keys = Vec::new();
        let mut of = vec![NONE; events.len()];
        let mut order: Vec<usize> = (0..events.len()).filter(|n| events[*n].cpu == cpu).collect();
        order.sort_by_key(|n| events[*n].start_ns);
        for number in order {
            let event = &events[number];
            let key = (event.kind, event.name.as_str(), event.distinction());
            let cause = *known.entry(key).or_insert_with(|| {
                keys.push((event.kind, event.name.clone(), event.detail.clone()));
                keys.len() - 1
            });
            if keys[cause].2 != event.detail {
                // Several processes of one name.
                keys[cause].2 = None;
            }
            of[number] = cause;
        }
        Self { keys, of }
    }

    /// All of them as one cause.
    pub(super) fn as_one(&self) -> Self {
        let one = |cause: &usize| if *cause == NONE { NONE } else { 0 };
        Self {
            keys: self.keys.iter().take(1).cloned().collect(),
            of: self.of.iter().map(one).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn indices(&self) -> std::ops::Range<usize> {
        0..self.keys.len()
    }

    /// The cause of an event on the CPU.
    pub(super) fn of(&self, event: usize) -> usize {
        self.of[event]
    }

    pub(super) fn key(&self, cause: usize) -> &Key {
        &self.keys[cause]
    }

    /// The events of each cause.
    pub(super) fn events<'e>(&self, events: &'e [Event]) -> Vec<Vec<&'e Event>> {
        let mut by_cause = vec![Vec::new(); self.keys.len()];
        for (event, cause) in events.iter().zip(&self.of) {
            if *cause != NONE {
                by_cause[*cause].push(event);
            }
        }
        by_cause
    }
}

/// The detail that all of these events have.
pub(super) fn common_detail<'e>(events: &[&'e Event]) -> Option<&'e str> {
    let detail = events.first()?.detail.as_deref();
    detail.filter(|_| events.iter().all(|event| event.detail.as_deref() == detail))
}

#[cfg(test)]
mod tests {
    use super::Groups;
    use tailtrim_trace::{Event, Kind};

    /// A script that starts a program again and again was as many causes as it had processes.
    #[test]
    fn processes_of_one_name_are_one_cause() {
        let ran = |name: &str, detail: &str, start_ns| Event {
            cpu: 1,
            start_ns,
            end_ns: start_ns + 5,
            kind: Kind::Thread,
            name: name.to_owned(),
            detail: Some(detail.to_owned()),
            sender: None,
            left: None,
        };
        let events = [
            ran("sh", "pid 7", 0),
            ran("sh", "pid 8", 10),
            ran("python", "pid 9", 20),
            ran("kworker/1:1", "vmstat_update", 30),
            ran("kworker/1:1", "drain_local_pages", 40),
        ];
        let groups = Groups::new(&events, 1);
        let keys: Vec<_> = groups
            .indices()
            .map(|n| (groups.key(n).1.as_str(), groups.key(n).2.as_deref()))
            .collect();
        let works = [Some("vmstat_update"), Some("drain_local_pages")];
        assert_eq!(
            keys,
            [
                ("sh", None),
                ("python", Some("pid 9")),
                ("kworker/1:1", works[0]),
                ("kworker/1:1", works[1])
            ]
        );
        assert_eq!(groups.events(&events)[0], [&events[0], &events[1]]);
    }
}
