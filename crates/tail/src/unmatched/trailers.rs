//! Frames that are longer on one side by a frame check sequence.
//!
//! Bytes behind the end of an IP packet are not signed, but where other packets end only their frame tells.

use super::{Frame, Sides};
use crate::matching::Window;
use crate::summary::{Warning, grouped};

/// Bytes of a frame check sequence.
const FCS: usize = 4;

/// Says which side has it, if one has.
pub(super) fn warning(sides: Sides<'_>, window: Window) -> Option<Warning> {
    [(0, FCS, "egress", "ingress"), (FCS, 0, "ingress", "egress")].into_iter().find_map(
        |(entered, left, there, here)| {
            let lost = sides.lost.iter().enumerate();
            let lost = lost.map(|(at, frame)| without(frame, entered).ok_or((here, at)));
            let unmatched = sides.unmatched.iter().enumerate();
            let unmatched = unmatched.map(|(at, frame)| without(frame, left).ok_or((there, at)));
            let found = sides.pairs_of(lost, unmatched, window);
            if !sides.are_no_chance(&found) {
                return None;
            }
            let count = found.pairs.len();
            let packets = grouped(count as u64);
            let text = format!(
                "{packets} {there} packets that are not IP are {here} packets with {FCS} bytes more at the end (FCS): take them \
                 off with editcap -L -C -{FCS} IN OUT, or capture both sides with or without them"
            );
            Some(super::warning("trailer", count, text))
        },
    )
}

/// A whole frame that is no IP without its last bytes.
fn without(frame: &Frame, bytes: usize) -> Option<&[u8]> {
    let whole = frame.head.len() == frame.length as usize && frame.packet().is_none();
    let end = frame.head.len().checked_sub(bytes).filter(|_| whole)?;
    frame.head.get(..end)
}
