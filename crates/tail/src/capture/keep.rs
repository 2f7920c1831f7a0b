//! Parts of a stamped frame that are kept beside its record.

use super::Record;
use std::sync::Arc;
use tailtrim_wire::frame::Link;
use tailtrim_wire::label::Label;
use xxhash_rust::xxh3::xxh3_64;

/// Is shown each stamped frame in turn.
pub(super) trait Keep {
    /// A frame as the capture has it.
    fn frame(&mut self, link: Link, frame: &[u8]);

    /// A packet of which the capture has an identifier only.
    fn identifier(&mut self, identifier: u32);
}

/// Nothing: the compiler leaves no trace of it in the path of matching.
impl Keep for () {
    #[inline]
    fn frame(&mut self, _: Link, _: &[u8]) {}

    #[inline]
    fn identifier(&mut self, _: u32) {}
}

/// First bytes of the frames that were read last, and the link of each.
#[derive(Debug)]
pub(super) struct Heads {
    /// Most bytes of each frame.
    most: usize,
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<(Link, usize)>,
}

impl Heads {
    pub(super) fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), ends: Vec::new() }
    }

    /// The heads of the stamped frames, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Link, &[u8])> {
        let begins = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        begins.zip(&self.ends).map(|(begin, &(link, end))| (link, &self.bytes[begin..end]))
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl Keep for Heads {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        self.bytes.extend_from_slice(&frame[..frame.len().min(self.most)]);
        self.ends.push((link, self.bytes.len()));
    }

    fn identifier(&mut self, _: u32) {
        self.ends.push((Link::Ethernet, self.bytes.len()));
    }
}

/// Says which frames of a capture are wanted.
pub type Wanted = Arc<dyn Fn(Link, &[u8]) -> bool + Send + Sync>;

/// Leaves out frames that are not wanted.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) wanted: Wanted,
    /// Of the stamped frames that were read last.
    verdicts: Vec<bool>,
}

impl Filter {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { wanted, verdicts: Vec::new() }
    }

    /// Takes out of the records those of frames that are not wanted.
    pub(super) fn leave_out(&mut self, records: &mut Vec<Record>) {
        let mut verdicts = self.verdicts.drain(..);
        records.retain(|record| !record.stamped || verdicts.next().unwrap_or(true));
    }
}

impl Keep for Filter {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        self.verdicts.push((self.wanted)(link, frame));
    }

    fn identifier(&mut self, _: u32) {
        self.verdicts.push(true);
    }
}

/// In what frames of one signature may differ: the L2 header and the TTL; `None` of frames that are not wanted.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) forms: Vec<Option<u64>>,
    pub(super) wanted: Option<Wanted>,
}

impl Keep for Forms {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        let start = link.payload(frame).map_or(frame.len(), |(_, start)| start).min(frame.len());
        // TTL or hop limit, beside a byte that does not change.
        let ttl = frame.get(start + 7..start + 9).unwrap_or_default();
        let wanted = self.wanted.as_ref().is_none_or(|wanted| wanted(link, frame));
        self.forms.push(wanted.then(|| xxh3_64(&[&frame[..start], ttl].concat())));
    }

    fn identifier(&mut self, _: u32) {
        self.forms.push(Some(0));
    }
}

impl Keep for Vec<Label> {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        self.push(Label::of_frame(link, frame));
    }

    fn identifier(&mut self, identifier: u32) {
        self.push(Label::new(None, Some(identifier.into())));
    }
}
