//! Parts of a stamped frame that are kept beside its record.

use tailtrim_wire::frame::Link;
use tailtrim_wire::label::Label;

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

impl Keep for Vec<Label> {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        self.push(Label::of_frame(link, frame));
    }

    fn identifier(&mut self, identifier: u32) {
        self.push(Label::new(None, Some(identifier.into())));
    }
}
