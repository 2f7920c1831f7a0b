//! Which events are one cause: those of one kind, name and detail.

use std::collections::HashMap;
use tailtrim_trace::{Event, Kind};

/// What the events of a cause have in common.
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
            let key = (event.kind, event.name.as_str(), event.detail.as_deref());
            of[number] = *known.entry(key).or_insert_with(|| {
                keys.push((event.kind, event.name.clone(), event.detail.clone()));
                keys.len() - 1
            });
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

    /// The events of a cause.
    pub(super) fn events(&self, cause: usize) -> impl Iterator<Item = usize> {
        self.of.iter().enumerate().filter(move |(_, of)| **of == cause).map(|(event, _)| event)
    }
}
