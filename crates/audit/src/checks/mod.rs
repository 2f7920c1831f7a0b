//! All checks, by family.

mod audit;
mod boot;
mod cache;
mod clock;
mod dpdk;
mod firmware;
mod idle;
mod interrupts;
mod isolation;
mod kthreads;
mod memory;
mod network;
mod path;
mod power;
mod queues;
mod rcu;
mod scheduler;
mod security;
mod services;
mod tlb;
mod vectors;
mod virtualisation;
mod watchdog;

// The words in which all checks speak.
use crate::answer::CheckStatus::{self, Fail, Warn};
use crate::answer::EvidenceLevel::{Asked, Seen, Set};
use crate::answer::{Answer, Evidence, Finding, few, judge, none_of, not_applicable, ok, unknown};
use crate::check::{Check, Topic};
use crate::facts::{Facts, broken};
use crate::questions::*;
use std::sync::LazyLock;
use tailtrim_host::{BootLine, Cpus, KernelVersion, Unread, Workload};

const TOPICS: [Topic; 23] = [
    boot::CHECKS,
    isolation::CHECKS,
    rcu::CHECKS,
    kthreads::CHECKS,
    scheduler::CHECKS,
    watchdog::CHECKS,
    audit::CHECKS,
    interrupts::CHECKS,
    vectors::CHECKS,
    memory::CHECKS,
    tlb::CHECKS,
    idle::CHECKS,
    power::CHECKS,
    clock::CHECKS,
    firmware::CHECKS,
    security::CHECKS,
    network::CHECKS,
    queues::CHECKS,
    path::CHECKS,
    cache::CHECKS,
    virtualisation::CHECKS,
    dpdk::CHECKS,
    services::CHECKS,
];

static ALL: LazyLock<Vec<Check>> =
    LazyLock::new(|| TOPICS.iter().flat_map(Topic::checks).collect());

/// All checks, in the order of their families.
pub fn all() -> impl Iterator<Item = &'static Check> {
    ALL.iter()
}

/// A check by its id, in capital letters or small ones.
#[must_use]
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id.eq_ignore_ascii_case(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_id_has_one_text_one_method_and_a_document() {
        let coded = TOPICS.iter().flat_map(|topic| topic.evaluators).map(|(id, _)| *id);
        let told: BTreeSet<&str> = all().map(|check| check.id).collect();
        assert_eq!(told.len(), all().count(), "an id has two texts");
        assert_eq!(coded.clone().count(), told.len(), "an id has two methods");
        assert_eq!(coded.collect::<BTreeSet<_>>(), told);
        for topic in &TOPICS {
            let own: BTreeSet<&str> = topic.evaluators.iter().map(|(id, _)| *id).collect();
            assert!(topic.checks().iter().all(|check| own.contains(check.id)), "{own:?}");
        }
        for check in all() {
            let known = !check.references().is_empty() || !check.unconfirmed().is_empty();
            assert!(known, "{}", check.id);
            for reference in check.references() {
                assert!(
                    reference.version.contains(|sign: char| sign.is_ascii_digit()),
                    "{reference}"
                );
            }
        }
    }
}
