//! Parts of a stamped frame that are kept beside its record.

use super::side::Place;
use std::collections::BTreeMap;
use tailtrim_wire::frame::{Encapsulation, Link};
use tailtrim_wire::label::Label;
use xxhash_rust::xxh3::xxh3_64;

/// Packets by the encapsulations around them.
pub type Encapsulations = BTreeMap<Encapsulation, u64>;

/// Is shown each stamped frame in turn.
pub(super) trait Keep {
    /// A frame as the capture has it.
    fn frame(&mut self, link: Link, frame: &[u8]);

    /// A packet of which the capture has an identifier only.
    fn identifier(&mut self, identifier: u32);

    /// Whether a packet at this place takes part; asked where the capture tells it and every record is looked at. Links that
    /// are not understood are not read.
    #[inline]
    fn takes(&mut self, _: &Place<'_>, _is_read: bool) -> bool {
        true
    }
}

/// Nothing: the compiler leaves no trace of it in the path of matching.
impl Keep for () {
    #[inline]
    fn frame(&mut self, _: Link, _: &[u8]) {}

    #[inline]
    fn identifier(&mut self, _: u32) {}
}

/// In what frames of one signature may differ: the L2 header and the TTL.
#[derive(Default)]
pub(super) struct Forms(pub(super) Vec<u64>);

impl Keep for Forms {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        let start = link.payload(frame).map_or(frame.len(), |(_, start)| start).min(frame.len());
        // TTL or hop limit, beside a byte that does not change.
        let ttl = frame.get(start + 7..start + 9).unwrap_or_default();
        self.0.push(xxh3_64(&[&frame[..start], ttl].concat()));
    }

    fn identifier(&mut self, _: u32) {
        self.0.push(0);
    }
}

/// Labels of the frames that were read last, and how many of all frames so far have which encapsulation.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) labels: Vec<Label>,
    pub(super) encapsulations: Encapsulations,
}

impl Labels {
    pub(super) fn clear(&mut self) {
        self.labels.clear();
    }
}

impl Keep for Labels {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        let mut seen = 0_u64;
        self.labels.push(Label::and_encapsulations(link, frame, |encapsulation| {
            // Two tags of one kind are one packet.
            let bit = 1 << encapsulation as u32;
            if seen & bit == 0 {
                seen |= bit;
                *self.encapsulations.entry(encapsulation).or_default() += 1;
            }
        }));
    }

    fn identifier(&mut self, identifier: u32) {
        self.labels.push(Label::new(None, Some(identifier.into())));
    }
}

/// Nothing, but each frame is shown to a function.
pub(super) struct Shown<F>(pub(super) F);

impl<F: FnMut(Link, &[u8])> Keep for Shown<F> {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        (self.0)(link, frame);
    }

    fn identifier(&mut self, _: u32) {}
}
