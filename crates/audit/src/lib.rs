//! Is a host fit for a promise in microseconds, and what has to change?
//!
//! [`Intent`] says what the host is for. Each [`Check`] is data and a small function that looks at
//! [`Facts`]: files of a tree (running host, captured host, test), nothing else. [`run`] asks all of
//! them and hands over a [`AuditReport`].
//!
//! A check never guesses. It may answer "ok" only if it read something and was refused nothing; the
//! runner holds every evaluator to that.

#![forbid(unsafe_code)]

pub mod advice;
mod answer;
mod check;
mod checks;
mod counters;
mod facts;
mod intent;
mod irqbalance;
mod log;
mod questions;
mod report;
mod select;
mod tasks;
mod waiver;

pub use answer::{Answer, CheckStatus, Evidence, EvidenceLevel, Finding};
pub use check::{Check, Evaluate, Importance, Need, Reference};
pub use checks::{all, find};
pub use facts::{Facts, is_guest};
pub use intent::{Intent, IntentError, Wish};
pub use report::{AuditReport, CheckResult, Counts};
pub use select::{Selection, SelectionError};
pub use tailtrim_host::Workload;
pub use waiver::{Waived, Waiver};

use tailtrim_host::{Tree, Unread, paths};

/// Ask checks about a host.
#[must_use]
pub fn run(tree: &dyn Tree, intent: &Intent, checks: &[&'static Check]) -> AuditReport {
    let facts = Facts::new(tree, intent);
    let results = checks.iter().map(|check| CheckResult::new(check, ask(check, &facts))).collect();
    AuditReport::new(&facts, results)
}

/// Ask one check.
#[must_use]
pub fn ask(check: &Check, facts: &Facts<'_>) -> Finding {
    facts.take_trail();
    let answer = match inapplicable(check, facts) {
        Ok(None) => {
            facts.take_trail();
            (check.evaluate)(facts)
        }
        Ok(Some(reason)) => Ok(Finding::not_applicable(reason)),
        Err(unread) => Err(unread),
    };
    let trail = facts.take_trail();
    let mut finding = answer.unwrap_or_else(|unread| Finding::unknown(reason(facts, &unread)));
    // Whatever the evaluator thinks: without a file nothing is known, and with one refused not enough.
    if finding.verdict == CheckStatus::Ok {
        let refused = trail.failed.iter().find(|why| !matches!(why, Unread::Missing { .. }));
        if let Some(why) = refused {
            finding = Finding::unknown(reason(facts, why));
        } else if trail.read.is_empty() {
            finding = Finding::unknown("none of its files could be read");
        }
    }
    if finding.evidence.is_empty() && finding.verdict != CheckStatus::Unknown {
        finding.evidence = first_files(trail.read);
    }
    finding
}

/// The first few files that were read, each once.
fn first_files(read: Vec<Evidence>) -> Vec<Evidence> {
    const KEPT: usize = 6;
    let mut kept: Vec<Evidence> = Vec::new();
    for one in read {
        if kept.len() < KEPT && !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// Why the question does not arise; `None` where it does.
fn inapplicable(check: &Check, facts: &Facts<'_>) -> Result<Option<String>, Unread> {
    let intent = facts.intent();
    for need in &check.needs {
        let reason = match need {
            Need::Isolated if intent.isolate.is_empty() => "no CPU is to be isolated".to_owned(),
            Need::Nic if intent.nics.is_empty() => "no interface is named (--interface)".to_owned(),
            Need::Work(kinds) if !kinds.contains(&intent.workload) => {
                format!("does not matter for the workload {}", intent.workload)
            }
            Need::Metal if facts.is_guest()? => {
                "this is a guest: run the audit on its host".to_owned()
            }
            Need::Guest if !facts.is_guest()? => "this is not a guest".to_owned(),
            _ => continue,
        };
        return Ok(Some(reason));
    }
    if let Some(since) = check.since {
        let kernel = facts.kernel()?;
        if kernel < since {
            return Ok(Some(format!("came with Linux {since}, this is {kernel}")));
        }
    }
    Ok(None)
}

/// Why nothing is known, in words that say what to do.
fn reason(facts: &Facts<'_>, unread: &Unread) -> String {
    match unread {
        Unread::Missing { path } | Unread::NotCaptured { path }
            if path.starts_with("/tailtrim/observation/") =>
        {
            "nothing was observed (--duration 10s)".to_owned()
        }
        Unread::Missing { path } | Unread::NotCaptured { path }
            if path.starts_with("/tailtrim/") =>
        {
            format!("{} could not be obtained on this host", path_in_words(path))
        }
        Unread::Missing { path } if path.starts_with("/sys/kernel/debug/") => {
            format!("{path}: debugfs is not mounted, or this kernel lacks it")
        }
        Unread::Denied { path } if locked_down(facts) => {
            format!("{}: refused, the kernel is locked down", path_in_words(path))
        }
        Unread::Denied { path } => format!("{}: no permission (run as root)", path_in_words(path)),
        other => other.to_string(),
    }
}

/// Only of what stays closed to root is a lock-down the reason.
fn locked_down(facts: &Facts<'_>) -> bool {
    let state = facts.text("/sys/kernel/security/lockdown").unwrap_or_default();
    ["[integrity]", "[confidentiality]"].iter().any(|level| state.contains(level))
}

/// Name for people of a path that is not a file on a host.
fn path_in_words(path: &str) -> String {
    let known = match path {
        paths::LOG => "the kernel's log",
        paths::CONFIG => "the kernel's configuration (/proc/config.gz, /boot/config-*)",
        paths::TIMERS => "systemd's list of timers",
        paths::DMA_LATENCY => "/dev/cpu_dma_latency",
        paths::RULES => "the number of nftables rules",
        paths::QDISCS => "the queueing disciplines",
        _ => match path.strip_prefix(paths::ETHTOOL) {
            Some(rest) => {
                return format!("ethtool {}", rest.trim_start_matches('/').replace('/', " "));
            }
            None => return path.to_owned(),
        },
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_host::Memory;

    /// Evaluators that take what they cannot read for good.
    fn sloppy(f: &Facts<'_>) -> Answer {
        let _ = f.text("/proc/cmdline");
        let _ = f.text("/proc/swaps");
        answer::judge(EvidenceLevel::Set, true, CheckStatus::Fail, "all is well")
    }

    #[test]
    fn the_runner_holds_evaluators_to_what_they_read() {
        let blank = Check { since: None, needs: Vec::new(), ..all().next().unwrap().clone() };
        let check = Check { evaluate: sloppy, ..blank };
        let whole = Memory::new(true).with("/proc/cmdline", "quiet").with("/proc/swaps", "");
        let intent = Intent::complete(Wish::default(), &whole).unwrap();
        let verdict = |tree: &Memory| ask(&check, &Facts::new(tree, &intent)).verdict;
        assert_eq!(verdict(&whole), CheckStatus::Ok);
        let denied = Unread::Denied { path: "/proc/swaps".to_owned() };
        let mut partly = whole.clone();
        partly.insert_unread("/proc/swaps", denied);
        assert_eq!(verdict(&partly), CheckStatus::Unknown);
        assert_eq!(
            verdict(&Memory::new(false).with("/proc/cmdline", "quiet")),
            CheckStatus::Unknown
        );
        assert_eq!(verdict(&Memory::new(true)), CheckStatus::Unknown);
        let silent = Check {
            evaluate: |_| answer::judge(EvidenceLevel::Set, true, CheckStatus::Fail, "as ever"),
            ..check
        };
        assert_eq!(ask(&silent, &Facts::new(&whole, &intent)).verdict, CheckStatus::Unknown);
    }
}
