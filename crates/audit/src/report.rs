//! All answers about a host, in the order in which they matter.

use super::answer::{CheckStatus, Finding};
use super::check::Check;
use super::facts::Facts;
use super::intent::Intent;
use super::waiver::{Waived, Waiver};
use serde::Serialize;

/// A check and its answer.
#[derive(Debug)]
pub struct CheckResult {
    /// The check.
    pub check: &'static Check,
    /// Its answer.
    pub finding: Finding,
    /// Waiver that accepts it.
    pub waived: Option<Waiver>,
}

impl CheckResult {
    /// A check with its answer, not accepted.
    #[must_use]
    pub fn new(check: &'static Check, finding: Finding) -> Self {
        Self { check, finding, waived: None }
    }

    /// Whether it fails, and that is not accepted.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.finding.verdict == CheckStatus::Fail && self.waived.is_none()
    }
}

/// Number of answers by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Not as wanted.
    pub fail: usize,
    /// Not as wanted, it depends.
    pub warn: usize,
    /// Not found out.
    pub unknown: usize,
    /// As wanted.
    pub ok: usize,
    /// The question does not arise.
    #[serde(rename = "n/a")]
    pub not_applicable: usize,
    /// Of those that fail or warn, how many are accepted: they are not counted there.
    pub waived: usize,
}

impl Counts {
    /// All together: every check that was asked is in exactly one of them.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.fail + self.warn + self.unknown + self.ok + self.not_applicable + self.waived
    }
}

/// All answers about a host.
#[derive(Debug)]
pub struct AuditReport {
    /// Release of the kernel; empty where it is not known.
    pub kernel: String,
    /// Model of the CPU; empty where it is not known.
    pub cpu: String,
    /// CPUs that are online; empty where they are not known.
    pub online: String,
    /// Whether the host is a virtual machine; `None` where that is not known.
    pub guest: Option<bool>,
    /// Duration of the observation of counters, in ms; `None` without one.
    pub observed_ms: Option<u64>,
    /// Purpose of the host.
    pub intent: Intent,
    /// The answers: the worst first, of these what matters most first.
    pub results: Vec<CheckResult>,
    /// Waivers that had no effect, and why.
    pub waivers: Vec<Waived>,
}

impl AuditReport {
    pub(crate) fn new(facts: &Facts<'_>, mut results: Vec<CheckResult>) -> Self {
        results.sort_by_key(|one| (one.finding.verdict, one.check.importance, one.check.id));
        let report = Self {
            kernel: facts.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            cpu: facts.cpuinfo_field("model name").ok().flatten().unwrap_or_default(),
            online: facts.text("/sys/devices/system/cpu/online").unwrap_or_default(),
            guest: facts.is_guest().ok(),
            observed_ms: facts.observed_ms().ok(),
            intent: facts.intent().clone(),
            results,
            waivers: Vec::new(),
        };
        facts.take_trail();
        report
    }

    /// Whether nothing at all is known about the host: there is no such tree, or it is empty.
    #[must_use]
    pub fn unreadable(&self) -> bool {
        let known = |one: &CheckResult| {
            !matches!(one.finding.verdict, CheckStatus::Unknown | CheckStatus::NotApplicable)
        };
        self.kernel.is_empty() && !self.results.iter().any(known)
    }

    /// Accept what is waived. `today` is a date as `2026-11-21`.
    pub fn waive(&mut self, waivers: Vec<Waiver>, today: &str) {
        for waiver in waivers {
            let expired = waiver.until.as_str() < today;
            let Some(one) = self.results.iter_mut().find(|one| one.check.id == waiver.id) else {
                self.waivers.push(Waived::NotAsked(waiver));
                continue;
            };
            if !matches!(one.finding.verdict, CheckStatus::Fail | CheckStatus::Warn) {
                self.waivers.push(Waived::NotNeeded(waiver, one.finding.verdict));
            } else if expired {
                self.waivers.push(Waived::Expired(waiver));
            } else {
                one.waived = Some(waiver);
            }
        }
    }

    /// The answers of one kind that are not accepted.
    pub fn of(&self, verdict: CheckStatus) -> impl Iterator<Item = &CheckResult> {
        self.results
            .iter()
            .filter(move |one| one.finding.verdict == verdict && one.waived.is_none())
    }

    /// Number of answers by verdict.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |verdict| self.of(verdict).count();
        Counts {
            fail: of(CheckStatus::Fail),
            warn: of(CheckStatus::Warn),
            unknown: of(CheckStatus::Unknown),
            ok: of(CheckStatus::Ok),
            not_applicable: of(CheckStatus::NotApplicable),
            waived: self.results.iter().filter(|one| one.waived.is_some()).count(),
        }
    }

    /// The answer of a check by its id.
    #[must_use]
    pub fn answer(&self, id: &str) -> Option<&Finding> {
        self.results.iter().find(|one| one.check.id == id).map(|one| &one.finding)
    }
}
