//! All changes that are known, as data: what, why, at what price, from whom, in which profile.

mod boot;
mod by_hand;
mod cpus;
mod kernel;
mod memory;
mod network;

use super::change::{Step, When};
use super::form::Form;
use super::makers::Site;
use super::request::Profile::{self, LatencyKernel, LatencyPoll, MeasureOnly, NfvGuest, NfvHost};

/// A change before it met a host.
pub(crate) struct Item {
    pub(crate) id: &'static str,
    /// Checks of the audit that it answers.
    pub(crate) checks: &'static [&'static str],
    pub(crate) title: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) cost: &'static str,
    pub(crate) source: &'static str,
    pub(crate) how: How,
    /// The profiles that have it, with the value for each.
    pub(crate) values: &'static [(Profile, &'static str)],
}

/// What carries it out.
pub(crate) enum How {
    /// A file with one value.
    File(&'static str, Form),
    /// Steps that depend on the host; `Err` says why there are none, an empty list that none is asked for.
    Steps(fn(&Site<'_>) -> Result<Vec<Step>, String>),
    /// The same, for files that are read when the host starts.
    Drop(fn(&Site<'_>) -> Result<Vec<Step>, String>),
    /// Words for the boot line.
    Words(fn(&Site<'_>) -> Result<Vec<String>, String>),
    /// Told, not done.
    Told,
}

impl How {
    pub(crate) fn when(&self) -> When {
        match self {
            Self::File(..) | Self::Steps(_) => When::Now,
            Self::Drop(_) | Self::Words(_) => When::NextBoot,
            Self::Told => When::ByHand,
        }
    }
}

/// In the order in which they are carried out: what takes CPUs away first, since it changes what follows.
pub(crate) fn all() -> impl Iterator<Item = &'static Item> {
    [cpus::ITEMS, kernel::ITEMS, memory::ITEMS, network::ITEMS, boot::ITEMS, by_hand::ITEMS]
        .into_iter()
        .flatten()
}

impl Item {
    /// The value in a profile; `None` where the profile does not have it.
    pub(crate) fn value(&self, profile: Profile) -> Option<&'static str> {
        self.values.iter().find(|(known, _)| *known == profile).map(|(_, value)| *value)
    }
}

/// Profiles with nothing to say beyond that they have it.
const POLL: (Profile, &str) = (LatencyPoll, "");
const KERNEL: (Profile, &str) = (LatencyKernel, "");
const HOST: (Profile, &str) = (NfvHost, "");
const GUEST: (Profile, &str) = (NfvGuest, "");
const MEASURE: (Profile, &str) = (MeasureOnly, "");

const DUCKED: &str = "Ducked Tails (HiPNet 2021), Table I";
const REFLECTION: &str = "tuned network-latency; reflection servers, test A";
const NFVI: &str = "Intel NFV-I host configuration, §4.1";
const ISOLATION: &str = "Linux, admin-guide/cpu-isolation";
const KTHREADS: &str = "Linux, admin-guide/kernel-per-CPU-kthreads";
const PARTITIONING: &str = "tuned cpu-partitioning";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_says_what_why_and_at_what_price() {
        let mut known = BTreeSet::new();
        for item in all() {
            assert!(known.insert(item.id), "{} twice", item.id);
            for text in [item.title, item.reason, item.cost, item.source] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", item.id);
            }
            assert!(!item.values.is_empty(), "{}", item.id);
            for check in item.checks {
                let (group, number) = check.split_once('-').unwrap();
                assert!(group.chars().all(|letter| letter.is_ascii_uppercase()), "{check}");
                assert!(number.len() == 3 && number.parse::<u32>().is_ok(), "{check}");
            }
        }
        assert!(known.len() > 60, "{}", known.len());
    }
}
