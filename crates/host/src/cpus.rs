//! Sets of CPUs, as the kernel writes them: lists (`0-3,8`) and masks (`ff,ffffffff`).

use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// More than any kernel is built for (`CONFIG_NR_CPUS` is at most 8,192).
const MOST: u32 = 1 << 16;

/// A set of CPU numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cpus(BTreeSet<u32>);

/// A text that is not a list or mask of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid {expected}: {text:?}")]
pub struct CpusError {
    text: String,
    expected: &'static str,
}

impl Cpus {
    /// No CPU.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Parse a hexadecimal mask, in groups of 32 bits with commas between: `/proc/irq/*/smp_affinity`.
    ///
    /// # Errors
    ///
    /// The text is none.
    pub fn from_mask(text: &str) -> Result<Self, CpusError> {
        let wrong = || CpusError { text: text.to_owned(), expected: "hexadecimal mask of CPUs" };
        let text = text.trim();
        let digits: String = text.strip_prefix("0x").unwrap_or(text).split(',').collect();
        if digits.is_empty() || digits.len() * 4 > MOST as usize {
            return Err(wrong());
        }
        let mut cpus = BTreeSet::new();
        for (place, digit) in (0_u32..).zip(digits.chars().rev()) {
            let bits = digit.to_digit(16).ok_or_else(wrong)?;
            cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| place * 4 + bit));
        }
        Ok(Self(cpus))
    }

    /// Write as a mask, in groups of eight digits as the kernel does.
    #[must_use]
    pub fn to_mask(&self) -> String {
        let groups = self.0.last().map_or(1, |last| last / 32 + 1);
        let group = |number: u32| {
            let bits = self.0.range(number * 32..(number + 1) * 32);
            bits.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32))
        };
        let mut text = format!("{:x}", group(groups - 1));
        for number in (0..groups - 1).rev() {
            text += &format!(",{:08x}", group(number));
        }
        text
    }

    /// Their name in a sentence: `CPU 3`, `CPUs 2-5` or `no CPU`.
    #[must_use]
    pub fn named(&self) -> String {
        match self.len() {
            0 => "no CPU".to_owned(),
            1 => format!("CPU {self}"),
            _ => format!("CPUs {self}"),
        }
    }

    /// The same with its verb, for one CPU and for several: `CPU 3 is`, `CPUs 2-5 are`.
    #[must_use]
    pub fn does(&self, one: &str, several: &str) -> String {
        format!("{} {}", self.named(), if self.len() > 1 { several } else { one })
    }

    /// A text in which `CPUs {iso}` (of the placeholder `{iso}`) names them; `CPUs {iso} are` has its verb.
    #[must_use]
    pub fn fill(&self, text: &str, placeholder: &str) -> String {
        text.replace(&format!("CPUs {placeholder} are"), &self.does("is", "are"))
            .replace(&format!("CPUs {placeholder}"), &self.named())
            .replace(placeholder, &self.to_string())
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is one of them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether all of these are in another set.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// These and others.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// Those that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// These without others.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

/// A list as the kernel's files have it: numbers and ranges. Nothing is the empty set.
///
/// The words that only boot parameters know (`all`, `N`, `0-10:1/2`) are [`crate::boot`]'s.
impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let wrong = || CpusError { text: text.to_owned(), expected: "list of CPUs such as 0-3,8" };
        let number =
            |digits: &str| digits.parse::<u32>().ok().filter(|cpu| *cpu < MOST).ok_or_else(wrong);
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(out, "{separator}{first}")?,
                _ => write!(out, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// As a list.
impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_and_masks_come_back(cpus in proptest::collection::btree_set(0_u32..300, 0..40)) {
            let cpus: Cpus = cpus.into_iter().collect();
            prop_assert_eq!(&cpus.to_string().parse::<Cpus>().unwrap(), &cpus);
            prop_assert_eq!(&Cpus::from_mask(&cpus.to_mask()).unwrap(), &cpus);
        }
    }

    #[test]
    fn one_cpu_is_one_in_a_sentence() {
        let text = "CPUs {iso} are isolated: isolcpus={iso}, off CPUs {iso}";
        for (cpus, named, told) in [
            ("1", "CPU 1", "CPU 1 is isolated: isolcpus=1, off CPU 1"),
            ("1-3", "CPUs 1-3", "CPUs 1-3 are isolated: isolcpus=1-3, off CPUs 1-3"),
        ] {
            let cpus: Cpus = cpus.parse().unwrap();
            assert_eq!((cpus.named().as_str(), cpus.fill(text, "{iso}").as_str()), (named, told));
        }
    }

    #[test]
    fn as_the_kernel_writes_them() {
        let cpus: Cpus = "0-3,8,34\n".parse().unwrap();
        assert_eq!(cpus.to_string(), "0-3,8,34");
        assert_eq!(cpus.to_mask(), "4,0000010f");
        assert_eq!("".parse::<Cpus>().unwrap(), Cpus::none());
        for wrong in ["3-1", "a", "1-", "(null)", "0-99999999", "-1"] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
        assert!(Cpus::from_mask("xyz").is_err());
    }
}
