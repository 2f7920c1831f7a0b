//! Parts of a stamped frame that are kept beside its record.

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

/// In what frames of one signature may differ: all up to the TTL.
#[derive(Debug, Default)]
pub(super) struct Forms(pub(super) Vec<u64>);

impl Keep for Forms {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        let start = link.payload(frame).map_or(frame.len(), |(_, start)| start);
        // TTL and hop limit, with the protocol or the first byte of an address.
        let end = frame.len().min(start + 9);
        let until = frame.len().min(start);
        let ttl = &frame[frame.len().min(start + 7)..end];
        self.0.push(xxh3_64(&[&frame[..until], ttl].concat()));
    }

    fn identifier(&mut self, _: u32) {
        self.0.push(0);
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
