//! The version of a kernel.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A version of the kernel: 6.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

/// A text that begins with no version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid kernel version {0:?}, expected one such as 6.1 or 6.1.0-56-amd64")]
pub struct KernelVersionError(String);

impl KernelVersion {
    /// A version by its numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

/// Text after the second number is ignored: `uname -r` has the distribution's version there.
impl FromStr for KernelVersion {
    type Err = KernelVersionError;

    fn from_str(text: &str) -> Result<Self, KernelVersionError> {
        let wrong = || KernelVersionError(text.to_owned());
        let (major, rest) = text.trim().split_once('.').ok_or_else(wrong)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = |digits: &str| digits.parse().map_err(|_| wrong());
        Ok(Self { major: number(major)?, minor: number(&rest[..end])? })
    }
}

impl TryFrom<String> for KernelVersion {
    type Error = KernelVersionError;

    fn try_from(text: String) -> Result<Self, KernelVersionError> {
        text.parse()
    }
}

impl Serialize for KernelVersion {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_people_write_them() {
        for text in ["6.1", "6.1.0-56-amd64", "6.1-rc3", " 6.1\n"] {
            assert_eq!(text.parse(), Ok(KernelVersion::new(6, 1)), "{text}");
        }
        assert!(KernelVersion::new(6, 9) < KernelVersion::new(6, 10));
        for wrong in ["6", "", "six.one", "6.", "99999.1", ".1"] {
            assert!(wrong.parse::<KernelVersion>().is_err(), "{wrong}");
        }
    }
}
