//! Groups of ingress packets by a field, each analysed like a capture of its own.

use crate::capture::{CaptureError, CaptureReader, Choice};
use crate::signature::{Rewrites, Signer};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tailtrim_wire::flow::{Field, Value};
use tailtrim_wire::frame::Link;

/// Values that are told apart when the largest groups are looked for. Packets of more are in no group of their own.
const MOST_VALUES: usize = 1 << 20;

/// The values of a field that most packets of a capture have, largest group first.
///
/// # Errors
/// The errors of [`CaptureReader::read`].
pub fn largest(
    capture: &mut CaptureReader,
    field: Field,
    groups: usize,
) -> Result<Vec<Value>, CaptureError> {
    let (signer, mut batch) = (Signer::new(Rewrites::default()), Vec::new());
    let mut packets: HashMap<Value, u64> = HashMap::new();
    while capture.read_frames(&signer, &mut batch, |link, frame| {
        let value = Value::of_frame(field, link, frame);
        if let Some(count) = packets.get_mut(&value) {
            *count += 1;
        } else if packets.len() < MOST_VALUES {
            packets.insert(value, 1);
        }
    })? {}
    let mut values: Vec<(Value, u64)> = packets.into_iter().collect();
    values.sort_unstable_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
    values.truncate(groups);
    Ok(values.into_iter().map(|(value, _)| value).collect())
}

/// Packets of an ingress capture whose field has a value that is one of `groups`; `None` stands for those with another
/// value, and those without a stamp.
#[must_use]
pub fn group(
    capture: CaptureReader,
    field: Field,
    groups: &[Value],
    of: Option<Value>,
) -> CaptureReader {
    let groups: Arc<HashSet<Value>> = Arc::new(groups.iter().copied().collect());
    capture.choosing(move |frame: Option<(Link, &[u8])>| {
        let value = frame.map(|(link, frame)| Value::of_frame(field, link, frame));
        if value.filter(|value| groups.contains(value)) == of {
            Choice::Take
        } else {
            Choice::Leave
        }
    })
}
