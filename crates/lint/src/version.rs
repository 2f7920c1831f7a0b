//! Which versions of the kernel have a parameter.

use serde::Deserialize;
use std::fmt;
use tailtrim_host::KernelVersion;

/// In which versions something exists. A bound is a pair where it is known only to lie between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Versions {
    /// The first version that has it.
    pub(super) since: Option<(KernelVersion, KernelVersion)>,
    /// The last version that has it.
    pub(super) last: Option<(KernelVersion, KernelVersion)>,
}

impl Versions {
    /// Whether a kernel has it; `None` where that is not known.
    #[must_use]
    pub(super) fn has(&self, kernel: KernelVersion) -> Option<bool> {
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
        let between = |(from, to): (KernelVersion, KernelVersion)| {
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
    fn between_two_bounds_nothing_is_known() {
        let late = Versions {
            since: Some((KernelVersion::new(6, 2), KernelVersion::new(6, 12))),
            last: None,
        };
        assert_eq!(late.has(KernelVersion::new(6, 1)), Some(false));
        assert_eq!(late.has(KernelVersion::new(6, 5)), None);
        assert_eq!(late.has(KernelVersion::new(6, 12)), Some(true));
        let gone = Versions {
            since: None,
            last: Some((KernelVersion::new(5, 13), KernelVersion::new(5, 13))),
        };
        assert_eq!(gone.has(KernelVersion::new(5, 13)), Some(true));
        assert_eq!(gone.has(KernelVersion::new(5, 14)), Some(false));
    }
}
