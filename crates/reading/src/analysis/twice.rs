//! Packets that captures have twice: those from before the device are left out, and those of two VLANs told apart.

use super::second_look::{SecondLook, each};
use crate::source::CaptureInput;
use std::collections::HashSet;
use std::sync::Arc;
use tailtrim_tail::analysis::{Copies, Options, Terms};
use tailtrim_tail::capture::{CaptureError, Choice, Link};
use tailtrim_tail::directions::HEADERS;
use tailtrim_tail::summary::Summary;
use tailtrim_tail::twice::{Look, MOST_LOOKS, Twice, is_likely, maskings, told_hidden};

/// Packets at the beginning of each capture that tell of a masking.
const FIRST: u64 = 1 << 13;

/// Distinction of packets that are there twice.
#[derive(Debug, Clone)]
pub(super) enum Apart {
    /// Egress frames that look as these which entered are left out.
    Entered { keys: Arc<HashSet<u64>>, by_tags: bool },
    /// Frames of different VLANs are different.
    Vlans,
}

impl Apart {
    /// A side whose packets are told apart.
    pub(super) fn told(&self, input: CaptureInput, side: usize) -> CaptureInput {
        let capture = match self.clone() {
            Self::Entered { .. } if side == 0 => input.capture,
            Self::Entered { keys, by_tags } => {
                input.capture.choosing(move |frame: Option<(Link, &[u8])>| match frame {
                    Some((link, frame)) if keys.contains(&Look::of(link, frame).key(by_tags)) => {
                        Choice::Leave
                    }
                    _ => Choice::Take,
                })
            }
            Self::Vlans => input.capture.choosing(|frame: Option<(Link, &[u8])>| {
                frame.map_or(Choice::Take, |(link, frame)| {
                    Choice::TakeNumbered(Look::of(link, frame).vlans())
                })
            }),
        };
        CaptureInput { capture, ..input }
    }
}

impl SecondLook {
    /// Finds packets that the captures of this result have twice, and which of them count: they are then analysed again.
    pub(crate) fn twice(
        &self,
        summary: &Summary,
        options: &Options,
    ) -> Result<Option<Twice>, CaptureError> {
        if !is_likely(summary, options) {
            return Ok(None);
        }
        Ok(self.there_twice(options)?.filter(|twice| twice.concerns(summary)))
    }

    fn there_twice(&self, options: &Options) -> Result<Option<Twice>, CaptureError> {
        self.looked_at(options, u64::MAX, |look| look)
    }

    fn looked_at(
        &self,
        options: &Options,
        first: u64,
        part: impl Fn(Look) -> Look,
    ) -> Result<Option<Twice>, CaptureError> {
        let look = |link, head: &[u8], _| part(Look::of(link, head));
        let [ingress, egress] = self.marked(options, [first; 2], look)?;
        Ok(Twice::of(&ingress, &egress, options))
    }

    /// Tells the packets apart from now on, if that is possible.
    pub(crate) fn tell_apart(
        &mut self,
        twice: &Twice,
        options: &Options,
    ) -> Result<bool, CaptureError> {
        self.apart = match twice {
            Twice::Unknown(_) => None,
            Twice::Vlans(_) => Some(Apart::Vlans),
            Twice::BothSides { by_tags, within_ns, .. } => {
                self.entered(*by_tags, *within_ns, options)?
            }
        };
        Ok(self.apart.is_some())
    }

    /// Packets that the captures have twice, and the captures with these told apart, if they have some.
    pub(crate) fn told_apart(&self, options: &Options) -> Option<(Twice, Self)> {
        let twice = self.there_twice(options).ok()??;
        let mut apart = self.clone();
        apart.tell_apart(&twice, options).ok()?.then_some((twice, apart))
    }

    fn entered(
        &self,
        by_tags: bool,
        within_ns: i64,
        options: &Options,
    ) -> Result<Option<Apart>, CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let (mut keys, mut copies) = (HashSet::new(), Copies::new(within_ns));
        each(ingress, HEADERS, terms.signer(), |_, record, link, head| {
            if copies.is_first(record) {
                keys.insert(Look::of(link, head).key(by_tags));
            }
            keys.len() <= MOST_LOOKS
        })?;
        let few = keys.len() <= MOST_LOOKS;
        Ok(few.then(|| Apart::Entered { keys: Arc::new(keys), by_tags }))
    }

    /// Adds to a summary that packets which did not enter are others that did, but for a masking, if that is so.
    pub(super) fn tell_hidden(&self, summary: &mut Summary, options: &Options) -> bool {
        let found = maskings(summary, options).into_iter().find_map(|(rewrites, agree, typed)| {
            let options = Options { rewrites, ..options.clone() };
            // Another flow may have the same payload, of other addresses, but no smaller TTL.
            let found = self.looked_at(&options, FIRST, Look::of_ttl).ok()??;
            let is_hidden = matches!(found, Twice::BothSides { .. });
            is_hidden.then(|| told_hidden(summary, agree, typed))
        });
        let is_told = found.is_some();
        summary.warnings.extend(found);
        is_told
    }
}
