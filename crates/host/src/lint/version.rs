//! Versions of the kernel, as far as they decide which parameters there are.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A version of the kernel: 6.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

/// A text that begins with no version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no kernel version, expected one such as 6.1 or 6.1.0-56-amd64")]
pub struct VersionError(String);

impl Version {
    /// A version by its numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

/// What follows the second number is not looked at: `uname -r` has the distribution's there.
impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.to_owned());
        let (major, rest) = text.trim().split_once('.').ok_or_else(wrong)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = |digits: &str| digits.parse().map_err(|_| wrong());
        Ok(Self { major: number(major)?, minor: number(&rest[..end])? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// In which versions something exists. A bound is a pair where it is known only to lie between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Versions {
    /// The first version that has it.
    pub(super) since: Option<(Version, Version)>,
    /// The last version that has it.
    pub(super) last: Option<(Version, Version)>,
}

impl Versions {
    /// Whether a kernel has it; `None` where that is not known.
    #[must_use]
    pub(super) fn has(&self, kernel: Version) -> Option<bool> {
        let early = self.since.map_or(Some(true), |(from, to)| known(kernel >= to, kernel < from));
        let late = self.last.map_or(Some(true), |(from, to)| known(kernel <= from, kernel > to));
        match (early, late) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }
}

fn known(yes: bool, no: bool) -> Option<bool> {
    if yes {
        Some(true)
    } else if no {
        Some(false)
    } else {
        None
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = |(from, to): (Version, Version)| {
            if from == to { format!("{from}") } else { format!("some version from {from} to {to}") }
        };
        match (self.since, self.last) {
            (Some(since), Some(last)) => {
                write!(out, "since {} and until {}", between(since), between(last))
            }
            (Some(since), None) => write!(out, "since {}", between(since)),
            (None, Some(last)) => write!(out, "until {}", between(last)),
            (None, None) => write!(out, "in all versions"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_people_write_them() {
        for text in ["6.1", "6.1.0-56-amd64", "6.1-rc3", " 6.1\n"] {
            assert_eq!(text.parse(), Ok(Version::new(6, 1)), "{text}");
        }
        assert!(Version::new(6, 9) < Version::new(6, 10));
        for wrong in ["6", "", "six.one", "6.", "99999.1", ".1"] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn between_two_bounds_nothing_is_known() {
        let late = Versions { since: Some((Version::new(6, 2), Version::new(6, 12))), last: None };
        assert_eq!(late.has(Version::new(6, 1)), Some(false));
        assert_eq!(late.has(Version::new(6, 5)), None);
        assert_eq!(late.has(Version::new(6, 12)), Some(true));
        let gone = Versions { since: None, last: Some((Version::new(5, 13), Version::new(5, 13))) };
        assert_eq!(gone.has(Version::new(5, 13)), Some(true));
        assert_eq!(gone.has(Version::new(5, 14)), Some(false));
    }
}
