//! The boot-line linter: what a kernel really makes of its boot line.
//!
//! A kernel says little about words that it does not know, and nothing about many that it takes
//! otherwise than they are meant. [`lint()`] knows the parameters (`parameters.json`, `names.json`), models how
//! the words are taken apart and what becomes of the lists of CPUs, and returns a [`Finding`] for each word
//! that does not do what it says. [`Running`] holds what a running kernel shows, and [`LintReport::compare`] puts
//! both side by side.

#![forbid(unsafe_code)]

mod cpu_list;
mod finding;
mod huge_pages;
mod init_arguments;
mod list_findings;
mod nearest;
mod pair_findings;
mod prediction;
mod running;
mod table;
mod value_check;
mod version;
mod word_findings;
mod word_kinds;

pub use finding::{Context, Finding, Kind, Severity};
pub use huge_pages::HugePages;
pub use prediction::Prediction;
pub use running::Running;

use prediction::ListEvent;
use serde::Serialize;
use tailtrim_host::{BootLine, Cpus, KernelVersion};
use word_kinds::WordKind;

/// Findings about a line, with the kernel's predicted state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintReport {
    /// The line.
    pub line: String,
    /// The kernel that it was read for, if one was named.
    pub kernel: Option<KernelVersion>,
    /// The CPUs of the machine that it was read for, if they were named.
    pub cpus: Option<Cpus>,
    /// In the order of the line.
    pub findings: Vec<Finding>,
    /// Predicted state of the kernel; where the machine is not known, on a very large one.
    pub prediction: Prediction,
    /// State of the running kernel; `None` where none was asked.
    pub running: Option<Running>,
}

impl LintReport {
    /// Severity of the worst finding; `None` without any.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Read a line for a kernel and a machine.
#[must_use]
pub fn lint(line: &str, context: &Context) -> LintReport {
    let words = BootLine::parse(line);
    let kinds: Vec<WordKind> =
        words.words().iter().map(|word| word_kinds::classify(word, context.kernel)).collect();
    let run = prediction::simulate(&words, context);
    let mut findings = Vec::new();
    for (place, (word, kind)) in words.words().iter().zip(&kinds).enumerate() {
        let lost = run.events.iter().find_map(|event| match event {
            (at, ListEvent::ForgetsRcu(_, lost)) if *at == place => {
                Some((lost, &run.prediction.rcu_offloaded))
            }
            _ => None,
        });
        findings.extend(word_findings::finding(word, kind, context, lost));
    }
    findings.extend(list_findings::events(&words, &run, context));
    findings.extend(list_findings::disagreements(&words, &run));
    findings.extend(pair_findings::findings(&words, &run, context));
    findings.sort_by_key(|finding| (finding.at, std::cmp::Reverse(finding.severity)));
    let (to_init, to_environment) = init_arguments::passed_on(&words, &kinds, &run, context);
    let prediction = Prediction { to_init, to_environment, ..run.prediction };
    LintReport {
        line: line.to_owned(),
        kernel: context.kernel,
        cpus: context.cpus.clone(),
        findings,
        prediction,
        running: None,
    }
}
