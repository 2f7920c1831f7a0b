//! Parts of a stamped frame that are kept beside its record.

use super::side::Place;
use tailtrim_wire::frame::Link;
use tailtrim_wire::label::Label;

/// Is shown each stamped frame in turn.
pub(super) trait Keep {
    /// A frame as the capture has it.
    fn frame(&mut self, link: Link, frame: &[u8]);

    /// A packet of which the capture has an identifier only.
    fn identifier(&mut self, identifier: u32);

    /// Place of a frame, where the capture tells it and every record is looked at.
    #[inline]
    fn place(&mut self, _: &Place<'_>) {}
}

/// Nothing: the compiler leaves no trace of it in the path of matching.
impl Keep for () {
    #[inline]
    fn frame(&mut self, _: Link, _: &[u8]) {}

    #[inline]
    fn identifier(&mut self, _: u32) {}
}

impl Keep for Vec<Label> {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        self.push(Label::of_frame(link, frame));
    }

    fn identifier(&mut self, identifier: u32) {
        self.push(Label::new(None, Some(identifier.into())));
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
