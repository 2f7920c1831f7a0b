//! Some packets of a capture as one side of an analysis.

use crate::analysis::Source;
use crate::capture::{CaptureError, CaptureReader, Record};
use crate::signature::{Signature, Signer};
use tailtrim_wire::frame::Link;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It is left out.
    Leave,
    /// It takes part.
    Take,
    /// It takes part with another signature than that of its bytes.
    TakeAs(Signature),
}

/// Those packets of a capture that a function chooses.
pub struct Filtered<F> {
    capture: CaptureReader,
    name: String,
    choose: F,
    takes_unstamped: bool,
    /// Choices of the batch being read, in the order of its stamped records.
    choices: Vec<Choice>,
}

impl<F: FnMut(Link, &[u8]) -> Choice> Filtered<F> {
    /// Packets of a capture of which nothing was read. The function is asked for each stamped frame, in their order, a copy
    /// of it for those that are looked at before; packets without a stamp take part if `takes_unstamped`.
    pub fn new(capture: CaptureReader, name: String, takes_unstamped: bool, choose: F) -> Self {
        Self { capture, name, choose, takes_unstamped, choices: Vec::new() }
    }
}

/// Leaves in a batch those records that are chosen.
fn retain(batch: &mut Vec<Record>, choices: &[Choice], takes_unstamped: bool) {
    let mut choices = choices.iter();
    batch.retain_mut(|record| {
        if !record.stamped {
            return takes_unstamped;
        }
        match choices.next() {
            None | Some(Choice::Leave) => false,
            Some(Choice::Take) => true,
            Some(Choice::TakeAs(signature)) => {
                // That of all its bytes, however many the capture has.
                (record.signature, record.cut) = (*signature, false);
                true
            }
        }
    });
}

impl<F: FnMut(Link, &[u8]) -> Choice + Clone> Source for Filtered<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        let (mut choose, mut choices) = (self.choose.clone(), Vec::new());
        let show = |link: Link, frame: &[u8]| choices.push(choose(link, frame));
        let mut records = self.capture.peek_frames(signer, show)?;
        retain(&mut records, &choices, self.takes_unstamped);
        Ok(records)
    }

    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        let Self { capture, choose, choices, takes_unstamped, .. } = self;
        loop {
            choices.clear();
            let show = |link: Link, frame: &[u8]| choices.push(choose(link, frame));
            let more = capture.read_frames(signer, batch, show)?;
            retain(batch, choices, *takes_unstamped);
            if !more || !batch.is_empty() {
                return Ok(more);
            }
        }
    }

    fn offset(&self) -> u64 {
        self.capture.offset()
    }

    fn tap_drops(&self) -> Option<u64> {
        self.capture.tap_drops()
    }

    fn damage(&self) -> Option<&CaptureError> {
        self.capture.damage()
    }
}
