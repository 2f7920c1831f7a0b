//! Bytes of a frame that a user chose.

use std::ops::Range;
use std::str::FromStr;
use std::{fmt, iter};

/// Bytes chosen by the user, as `OFFSET:LENGTH,…` from the first byte of the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(Vec<Range<usize>>);

/// A selection that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "signature {text:?}: {problem}, expected OFFSET:LENGTH[,OFFSET:LENGTH…] in bytes from the start of the frame, \
         for example 42:4"
)]
pub struct SelectionError {
    text: String,
    problem: String,
}

/// A selection reaches at most this far: captures that keep more of each frame are rare, and the limit
/// bounds the work per frame.
const SELECTION_END: usize = 2048;

impl Selection {
    /// The first bytes of the frame.
    pub(crate) fn first(bytes: usize) -> Self {
        Self(iter::once(0..bytes).collect())
    }

    /// These bytes, of which none may be empty.
    pub(crate) fn of(ranges: Vec<Range<usize>>) -> Self {
        Self(ranges)
    }

    pub(super) fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let error = |problem: String| SelectionError { text: text.to_owned(), problem };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (offset, length) =
                part.split_once(':').ok_or_else(|| error(format!("no colon in {part:?}")))?;
            let number = |digits: &str| {
                digits
                    .trim()
                    .parse::<usize>()
                    .map_err(|_| error(format!("invalid number {digits:?}")))
            };
            let (offset, length) = (number(offset)?, number(length)?);
            let end = offset.saturating_add(length);
            if length == 0 || end > SELECTION_END {
                return Err(error(format!(
                    "{part:?} must name 1 or more bytes before offset {SELECTION_END}"
                )));
            }
            ranges.push(offset..end);
        }
        Ok(Self(ranges))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{}", range.start, range.len())?;
        }
        Ok(())
    }
}
