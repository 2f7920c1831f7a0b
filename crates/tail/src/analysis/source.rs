//! Source of the packets of an analysis: a capture, or records that a program has at hand.

use super::Options;
use crate::capture::{CaptureError, CaptureReader, Record, Unread};
use crate::signature::{Selection, Signed, Signer};
use std::collections::VecDeque;
use tailtrim_wire::frame::Link;

/// A source that a thread reads.
pub type Opened = Box<dyn Source + Send>;

/// One side of the device under test, packet by packet in the order in which it was written down.
pub trait Source {
    /// Its name in errors and in the summary.
    fn name(&self) -> &str;

    /// The first records, without consuming them.
    ///
    /// # Errors
    /// That of a source that gives nothing; any other failure and damage are left for
    /// [`read`](Self::read) to report.
    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError>;

    /// In what the frames of the first records differ that is not signed, a value for each of them; nothing where no frames
    /// are at hand.
    fn peek_forms(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Clears `batch` and fills it with the next records, at most some hundred: they and those of the other
    /// side stay in the first-level cache. Returns `false` at the end. May wait for them.
    ///
    /// # Errors
    /// [`CaptureError::Damaged`] and [`CaptureError::Io`], once every record before them was handed out.
    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError>;

    /// Progress in this source, in a unit of its own.
    fn offset(&self) -> u64;

    /// No packet that was not read yet is stamped earlier than this: what is known of a tap that watches while nothing
    /// comes. [`read`](Self::read) may give an empty batch to tell it.
    fn quiet_until_ns(&self) -> i64 {
        i64::MIN
    }

    /// See [`CaptureReader::wraps`].
    fn wraps(&self) -> bool {
        false
    }

    /// See [`CaptureReader::tap_drops`].
    fn tap_drops(&self) -> Option<u64> {
        None
    }

    /// See [`CaptureReader::unread`].
    fn unread(&self) -> Vec<Unread> {
        Vec::new()
    }

    /// See [`CaptureReader::next_stamps`]. None where the source cannot know them.
    fn next_stamps(&mut self, _: &Signer) -> Vec<i64> {
        Vec::new()
    }

    /// See [`CaptureReader::damage`].
    fn damage(&self) -> Option<&CaptureError> {
        None
    }

    /// The unit of the stamps, in ps; known at the end.
    fn unit_ps(&self) -> u64 {
        1_000
    }
}

impl Source for CaptureReader {
    fn name(&self) -> &str {
        self.title()
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        self.peek(signer)
    }

    fn peek_forms(&mut self) -> Vec<u64> {
        // The method of the type, not this one.
        Self::peek_forms(self)
    }

    #[inline]
    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        self.read(signer, batch)
    }

    fn offset(&self) -> u64 {
        self.offset()
    }

    fn wraps(&self) -> bool {
        self.wraps()
    }

    fn tap_drops(&self) -> Option<u64> {
        self.tap_drops()
    }

    fn unread(&self) -> Vec<Unread> {
        self.unread()
    }

    fn next_stamps(&mut self, signer: &Signer) -> Vec<i64> {
        self.next_stamps(signer)
    }

    fn damage(&self) -> Option<&CaptureError> {
        self.damage()
    }

    fn unit_ps(&self) -> u64 {
        self.unit_ps()
    }
}

/// A packet that a program stamped itself. Ordered by stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Numbered {
    /// When it was sent or received, in ns.
    pub stamp_ns: i64,
    /// Number that no other packet of its side has.
    pub number: u64,
}

/// Bytes of a number.
const NUMBER_LEN: u32 = u64::BITS / 8;

/// Records in a batch, as in one of a capture.
const BATCH: usize = 256;

/// Records that [`Source::peek`] shows: as many as a capture of such frames would.
const PEEKED: usize = 10_922;

impl Options {
    /// These options for round trips as [`Numbers`]: the whole number identifies a probe, nothing is
    /// trimmed, and a probe without a reply is lost, since the program waited for each.
    #[must_use]
    pub fn for_round_trips(self) -> Self {
        let selection = Some(Selection::first(NUMBER_LEN as usize));
        Self { trim_ns: 0, watched_to_the_end: true, selection, ..self }
    }
}

/// Packets that a program stamped itself, in blocks. The number of each, in big-endian order, stands for its
/// frame.
#[derive(Debug)]
pub struct Numbers<I> {
    name: String,
    length: u32,
    blocks: I,
    ahead: VecDeque<Numbered>,
    done: u64,
}

impl<I: Iterator<Item = Vec<Numbered>>> Numbers<I> {
    /// `length` is that of each packet on the wire, in bytes without FCS. A block is asked for when the one
    /// before it is used up.
    pub fn new(name: impl Into<String>, length: u32, blocks: I) -> Self {
        Self { name: name.into(), length, blocks, ahead: VecDeque::new(), done: 0 }
    }

    /// Takes blocks until `count` packets are ahead, or all that are left.
    fn fill(&mut self, count: usize) {
        while self.ahead.len() < count
            && let Some(block) = self.blocks.next()
        {
            self.ahead.extend(block);
        }
    }

    fn record(&self, packet: Numbered, signer: &Signer) -> Record {
        let Signed { signature, signable, .. } =
            signer.sign(Link::Ethernet, &packet.number.to_be_bytes());
        Record {
            stamp_ns: packet.stamp_ns,
            signature,
            length: self.length.max(NUMBER_LEN),
            signable,
            cut: self.length > NUMBER_LEN,
            stamped: true,
        }
    }
}

impl<I: Iterator<Item = Vec<Numbered>>> Source for Numbers<I> {
    fn name(&self) -> &str {
        &self.name
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        self.fill(PEEKED);
        Ok(self.ahead.iter().take(PEEKED).map(|packet| self.record(*packet, signer)).collect())
    }

    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        self.fill(1);
        let count = self.ahead.len().min(BATCH);
        batch.clear();
        batch.extend(self.ahead.range(..count).map(|packet| self.record(*packet, signer)));
        self.ahead.drain(..count);
        self.done += count as u64;
        Ok(count > 0)
    }

    fn offset(&self) -> u64 {
        self.done
    }
}
