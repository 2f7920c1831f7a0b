//! Requests and replies of one capture as the two sides of an analysis.

use crate::capture::{CaptureError, CaptureReader, Choice};
use crate::signature::{Rewrites, Signature, Signer};
use std::collections::HashMap;
use tailtrim_wire::exchange::{Message, Part, Protocol};
use tailtrim_wire::flow::Flow;
use tailtrim_wire::frame::Link;

/// Flows whose newest counter is remembered; messages of more are left out.
const MOST_FLOWS: usize = 1 << 20;

/// Packets of one capture by what they are to an exchange. They add up to `packets`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Packets in the capture.
    pub packets: u64,
    /// Requests and replies of each protocol, in the order of [`Protocol::ALL`].
    pub messages: [[u64; 2]; Protocol::ALL.len()],
    /// TCP segments whose timestamp was on one before.
    pub repeated: u64,
    /// Packets of no such protocol.
    pub others: u64,
    /// Packets without a stamp.
    pub unstamped: u64,
}

impl Found {
    /// Counts the messages of a capture, to its end.
    ///
    /// # Errors
    /// The errors of [`CaptureReader::read`].
    pub fn of(capture: &mut CaptureReader) -> Result<Self, CaptureError> {
        let (mut found, mut first) = (Self::default(), Firsts::default());
        let (signer, mut batch) = (Signer::new(Rewrites::default()), Vec::new());
        loop {
            let mut shown = 0;
            let more = capture.read_frames(&signer, &mut batch, |link, frame| {
                shown += 1;
                match Message::of_frame(link, frame) {
                    None => found.others += 1,
                    Some(message) if !first.is(&message) => found.repeated += 1,
                    Some(Message { protocol, part, .. }) => {
                        found.messages[protocol as usize][part as usize] += 1;
                    }
                }
            })?;
            if !more {
                return Ok(found);
            }
            let stamped = batch.iter().filter(|record| record.stamped).count() as u64;
            found.packets += batch.len() as u64;
            found.unstamped += batch.len() as u64 - stamped;
            // Formats without frames show none.
            found.others += stamped - shown;
        }
    }

    /// Requests and replies of a protocol.
    #[must_use]
    pub fn of_protocol(&self, protocol: Protocol) -> [u64; 2] {
        self.messages[protocol as usize]
    }

    /// The protocol of most exchanges; `None` where nothing has requests and replies.
    #[must_use]
    pub fn commonest(&self) -> Option<Protocol> {
        let exchanges = |protocol: &Protocol| self.of_protocol(*protocol).into_iter().min();
        Protocol::ALL.into_iter().max_by_key(exchanges).filter(|p| exchanges(p) > Some(0))
    }
}

/// The newest counter of each flow, by side.
#[derive(Debug, Clone, Default)]
struct Firsts(HashMap<(Flow, Part), u32>);

impl Firsts {
    /// Whether a message is the first with its counter. One without a counter always is.
    fn is(&mut self, message: &Message) -> bool {
        let Some(counter) = message.counter() else { return true };
        let place = (message.flow, message.part);
        let newest = self.0.get(&place).copied();
        // Modulo 2³², half of which is behind.
        let is_new = newest.is_none_or(|newest| counter.wrapping_sub(newest).cast_signed() > 0);
        let has_room = newest.is_some() || self.0.len() < MOST_FLOWS;
        if is_new && has_room {
            self.0.insert(place, counter);
        }
        is_new && has_room
    }
}

/// The requests, or the replies, of a protocol in a capture of which nothing was read.
#[must_use]
pub fn messages(capture: CaptureReader, protocol: Protocol, part: Part) -> CaptureReader {
    let side = if part == Part::Request { "requests" } else { "replies" };
    let (title, mut firsts) = (format!("{}, {side}", capture.name()), Firsts::default());
    let choose = move |frame: Option<(Link, &[u8])>| {
        let message = frame.and_then(|(link, frame)| Message::of_frame(link, frame));
        let wanted = message.filter(|one| one.protocol == protocol && one.part == part);
        let first = wanted.filter(|one| firsts.is(one));
        first.map_or(Choice::Leave, |one| Choice::TakeAs(Signature::of_bytes(&one.key())))
    };
    capture.titled(title).choosing(choose)
}
