//! Records of a buffer of `perf_event_open` (`linux/perf_event.h`), as `crates/tracer` asks for them: for each
//! tracepoint the time and the raw record, which has the layout of the tracefs `format` file.

/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// Type, flags and size.
const HEADER: usize = 8;

/// A record of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A tracepoint was passed.
    Sample {
        /// When, in ns of the clock that was asked for.
        stamp: u64,
        /// The record.
        record: &'a [u8],
    },
    /// Records found no room.
    Lost {
        /// Time of this record, after the loss.
        stamp: u64,
        /// Number of lost records.
        count: u64,
    },
    /// Something that was not requested.
    Other,
}

/// A buffer that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the record at byte {at} of perf's buffer goes beyond its {there} bytes; the trace is damaged, record it again"
)]
pub struct ItemError {
    at: usize,
    there: usize,
}

/// Its items, in order. After an error there are no more.
pub fn items(bytes: &[u8]) -> impl Iterator<Item = Result<Item<'_>, ItemError>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let there = bytes.len();
        let begin = std::mem::replace(&mut at, there);
        let Some((item, end)) = item(&bytes[begin..]) else {
            return Some(Err(ItemError { at: begin, there }));
        };
        at = begin + end;
        Some(Ok(item))
    })
}

/// The first item and where it ends.
fn item(bytes: &[u8]) -> Option<(Item<'_>, usize)> {
    let kind = u32::from_le_bytes(*bytes.first_chunk()?);
    let size = usize::from(u16::from_le_bytes(bytes.get(6..8)?.try_into().ok()?));
    let body = bytes.get(HEADER..size)?;
    let word = |place: usize| -> Option<u64> {
        Some(u64::from_le_bytes(body.get(place..place + 8)?.try_into().ok()?))
    };
    let item = match kind {
        SAMPLE => {
            let length = u32::from_le_bytes(body.get(8..12)?.try_into().ok()?) as usize;
            Item::Sample { stamp: word(0)?, record: body.get(12..)?.get(..length)? }
        }
        // The event's number, the count, and the time as in every record that is not a sample.
        LOST => Item::Lost { stamp: word(16)?, count: word(8)? },
        _ => Item::Other,
    };
    Some((item, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(((HEADER + body.len()) as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn sample(stamp: u64, raw: &[u8]) -> Vec<u8> {
        let mut body = stamp.to_le_bytes().to_vec();
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        record(SAMPLE, &body)
    }

    #[test]
    fn samples_and_what_was_lost() {
        let mut bytes = sample(7, b"four");
        bytes.extend(record(LOST, &[3_u64, 12, 9].map(u64::to_le_bytes).concat()));
        bytes.extend(record(5, &[0; 16]));
        bytes.extend(sample(11, b""));
        let all: Vec<_> = items(&bytes).map(Result::unwrap).collect();
        let expected = [
            Item::Sample { stamp: 7, record: b"four" },
            Item::Lost { stamp: 9, count: 12 },
            Item::Other,
            Item::Sample { stamp: 11, record: b"" },
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_cut_is_told_once() {
        let mut bytes = sample(7, b"four");
        bytes.extend(sample(8, b"five"));
        bytes.pop();
        let all: Vec<_> = items(&bytes).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Err(ItemError { at: 24, there: 47 }));
        // Items of size 0 would never end.
        assert_eq!(items(&[9, 0, 0, 0, 0, 0, 0, 0]).count(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(items(&bytes).count() <= bytes.len() / HEADER + 1);
        }
    }
}
