//! One side of the device under test within a capture that holds both: packets of an interface, of a direction, or both.

use super::keep::Keep;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tailtrim_wire::frame::Link;

/// The way of a packet at its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum InterfaceDirection {
    /// Received.
    In,
    /// Sent.
    Out,
}

/// Packet type of Linux for packets that are sent (`PACKET_OUTGOING`).
const OUTGOING: u8 = 4;

impl InterfaceDirection {
    /// That of a packet type of Linux.
    pub(super) fn of_packet_type(kind: u8) -> Self {
        if kind == OUTGOING { Self::Out } else { Self::In }
    }

    fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// Which packets of a capture are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    interface: Option<String>,
    direction: Option<InterfaceDirection>,
    side: InterfaceDirection,
}

impl Only {
    /// Those that `text` names: an interface by number, name or description, with `:in` or `:out` behind it those of a
    /// direction only, or a direction only. `side` is the direction where none is named and the capture itself tells
    /// packets received from packets sent: that of `tcpdump -i any`, and the modified pcap.
    #[must_use]
    pub fn named(text: &str, side: InterfaceDirection) -> Self {
        let named = |end| text.strip_suffix(end).map(|interface: &str| interface.to_owned());
        let (interface, direction) = match (named(":in"), named(":out")) {
            (Some(interface), _) => (interface, Some(InterfaceDirection::In)),
            (None, Some(interface)) => (interface, Some(InterfaceDirection::Out)),
            (None, None) => (text.to_owned(), None),
        };
        let interface = Some(interface).filter(|interface| !interface.is_empty());
        Self { interface, direction, side }
    }

    /// These, where the capture tells the direction of each packet.
    pub(super) fn of_a_direction(self) -> Self {
        Self { direction: self.direction.or(Some(self.side)), ..self }
    }

    pub(super) fn takes(&self, place: &Place<'_>) -> bool {
        let named = |wanted: &String| {
            place.names.contains(wanted)
                || place.index.is_some_and(|index| index.to_string() == *wanted)
        };
        self.interface.as_ref().is_none_or(named)
            && self.direction.is_none_or(|direction| place.direction == Some(direction))
    }
}

/// Place at which a packet was captured, as far as its capture tells.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// Number of the interface.
    pub(super) index: Option<u32>,
    /// Its name and its description.
    pub(super) names: &'a [String],
    pub(super) direction: Option<InterfaceDirection>,
}

/// Packets of an interface and direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Spelling that [`Only::named`] takes.
    pub choice: String,
    /// The number of the interface and its other names.
    pub interface: String,
    /// Packets.
    pub packets: u64,
}

/// Number and names of an interface, and the direction.
type Key = (Option<u32>, Vec<String>, Option<InterfaceDirection>);

/// Counts packets by place.
#[derive(Debug, Default)]
pub(super) struct Survey(BTreeMap<Key, u64>);

impl Keep for Survey {
    fn frame(&mut self, _: Link, _: &[u8]) {}

    fn identifier(&mut self, _: u32) {}

    fn takes(&mut self, place: &Place<'_>, is_read: bool) -> bool {
        if is_read {
            let key = (place.index, place.names.to_vec(), place.direction);
            *self.0.entry(key).or_default() += 1;
        }
        true
    }
}

impl Survey {
    pub(super) fn seen(self) -> Vec<Seen> {
        let indices: BTreeSet<(String, Option<u32>)> = self
            .0
            .keys()
            .flat_map(|(index, names, _)| names.iter().map(|name| (name.clone(), *index)))
            .collect();
        // Interfaces of two hosts may have one name.
        let is_unique = |name: &&String| indices.iter().filter(|(of, _)| of == *name).count() == 1;
        let told = |((index, names, direction), packets): (Key, u64)| {
            let index = index.map(|index| index.to_string());
            let name = names.first().filter(is_unique);
            let choice = name.or(index.as_ref()).cloned().unwrap_or_default();
            let interface = match (&index, names.is_empty()) {
                (Some(index), false) => format!("{index} ({})", names.join(", ")),
                (Some(index), true) => index.clone(),
                (None, _) => "any".to_owned(),
            };
            let direction = direction.map_or(String::new(), |way| format!(":{}", way.name()));
            Seen { choice: choice + &direction, interface, packets }
        };
        self.0.into_iter().map(told).collect()
    }
}
