//! The boot-line linter: what a kernel really makes of its boot line.
//!
//! A kernel says little about words that it does not know, and nothing about many that it takes
//! otherwise than they are meant. [`lint()`] knows the parameters (`parameters.json`, `names.json`), models how
//! the words are taken apart and what becomes of the lists of CPUs, and returns a [`Finding`] for each word
//! that does not do what it says. [`Running`] holds what a running kernel shows, and [`LintReport::compare`] puts
//! both side by side.

#![forbid(unsafe_code)]

mod finding;
mod judge;
mod list;
mod lists;
mod nearest;
mod pairs;
mod passed;
mod predict;
mod seen;
mod table;
mod values;
mod version;
mod words;

pub use finding::{Context, Finding, Kind, Severity};
pub use predict::Prediction;
pub use seen::Running;

use predict::What;
use serde::Serialize;
use tailtrim_host::{BootLine, Cpus, KernelVersion};
use words::Sort;

/// What is to be said about a line.
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
    /// What the kernel makes of it; where the machine is not known, of a very large one.
    pub prediction: Prediction,
    /// What the running kernel shows; `None` where none was asked.
    pub running: Option<Running>,
}

impl LintReport {
    /// How bad the worst finding is; `None` where there is none.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Read a line for a kernel and a machine.
#[must_use]
pub fn lint(line: &str, context: &Context) -> LintReport {
    let words = BootLine::parse(line);
    let sorts: Vec<Sort> =
        words.words().iter().map(|word| words::sort(word, context.kernel)).collect();
    let run = predict::simulate(&words, context);
    let mut findings = Vec::new();
    for (place, (word, sort)) in words.words().iter().zip(&sorts).enumerate() {
        let lost = run.events.iter().find_map(|event| match event {
            (at, What::ForgetsRcu(_, lost)) if *at == place => {
                Some((lost, &run.prediction.rcu_offloaded))
            }
            _ => None,
        });
        findings.extend(judge::judge(word, sort, context, lost));
    }
    findings.extend(lists::events(&words, &run, context));
    findings.extend(lists::disagreements(&words, &run));
    findings.extend(pairs::findings(&words, &run, context));
    findings.sort_by_key(|finding| (finding.at, std::cmp::Reverse(finding.severity)));
    let (to_init, to_environment) = passed::on(&words, &sorts, &run, context);
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
