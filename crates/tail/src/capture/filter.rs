//! Packets of a capture that are read, where not all are.

use super::Record;
use super::keep::Keep;
use super::side::{Only, Place};
use crate::signature::Signature;
use tailtrim_wire::frame::Link;

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It is left out.
    Leave,
    /// It takes part.
    Take,
    /// It takes part with another signature than that of its bytes, which are not shown.
    TakeAs(Signature),
    /// It takes part, told apart by this number from others of the same signature.
    TakeNumbered(u64),
}

/// Decides about the packets of a capture in their order. A copy of it decides about those that are looked at before they
/// are read.
pub trait Choose: Send {
    /// The decision about a stamped frame; `None` stands for a packet without a stamp or without a frame.
    fn choose(&mut self, frame: Option<(Link, &[u8])>) -> Choice;

    /// A copy.
    fn copied(&self) -> Box<dyn Choose>;
}

impl<F: FnMut(Option<(Link, &[u8])>) -> Choice + Clone + Send + 'static> Choose for F {
    fn choose(&mut self, frame: Option<(Link, &[u8])>) -> Choice {
        self(frame)
    }

    fn copied(&self) -> Box<dyn Choose> {
        Box::new(self.clone())
    }
}

/// Leaves out packets by place, by what a function chooses, or both.
#[derive(Default)]
pub(super) struct Filter {
    pub(super) only: Option<Only>,
    pub(super) choose: Vec<Box<dyn Choose>>,
    /// About those of the packets that were read last which have a stamp.
    choices: Vec<Choice>,
}

impl Clone for Filter {
    fn clone(&self) -> Self {
        let choose = self.choose.iter().map(|choose| choose.copied()).collect();
        Self { only: self.only.clone(), choose, choices: Vec::new() }
    }
}

impl Filter {
    /// Sees the packets first and shows those that take part to `keep`.
    pub(super) fn before<'a, K>(&'a mut self, keep: &'a mut K) -> Filtering<'a, K> {
        Filtering { filter: self, keep }
    }

    /// All have to take a packet; its signature is that of the last one which gives it another.
    fn choice(&mut self, frame: Option<(Link, &[u8])>) -> Choice {
        let mut choice = Choice::Take;
        for choose in &mut self.choose {
            match choose.choose(frame) {
                Choice::Leave => return Choice::Leave,
                Choice::Take => {}
                other => choice = other,
            }
        }
        choice
    }

    /// Takes out of the records those of packets that are left out.
    pub(super) fn leave_out(&mut self, records: &mut Vec<Record>) {
        if self.choose.is_empty() {
            return;
        }
        let choices = std::mem::take(&mut self.choices);
        let mut stamped = choices.iter();
        records.retain_mut(|record| {
            let choice = if record.stamped { stamped.next().copied() } else { None };
            match choice.unwrap_or_else(|| self.choice(None)) {
                Choice::Leave => false,
                Choice::Take => true,
                Choice::TakeAs(signature) => {
                    // That of all its bytes, however many the capture has.
                    (record.signature, record.cut) = (signature, false);
                    true
                }
                Choice::TakeNumbered(number) => {
                    record.signature = record.signature.numbered(number);
                    true
                }
            }
        });
        self.choices = choices;
        self.choices.clear();
    }
}

/// Shows packets that take part to another one.
pub(super) struct Filtering<'a, K> {
    filter: &'a mut Filter,
    keep: &'a mut K,
}

impl<K: Keep> Filtering<'_, K> {
    /// Whether a stamped packet takes part with its bytes.
    fn is_taken(&mut self, frame: Option<(Link, &[u8])>) -> bool {
        let choice = self.filter.choice(frame);
        self.filter.choices.push(choice);
        matches!(choice, Choice::Take | Choice::TakeNumbered(_))
    }
}

impl<K: Keep> Keep for Filtering<'_, K> {
    fn frame(&mut self, link: Link, frame: &[u8]) {
        if self.is_taken(Some((link, frame))) {
            self.keep.frame(link, frame);
        }
    }

    fn identifier(&mut self, identifier: u32) {
        if self.is_taken(None) {
            self.keep.identifier(identifier);
        }
    }

    fn takes(&mut self, place: &Place<'_>, is_read: bool) -> bool {
        self.filter.only.as_ref().is_none_or(|only| only.takes(place))
            && self.keep.takes(place, is_read)
    }
}
