//! Audits of hosts that are a few lines of text each.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod advice;
mod checks;
mod evidence;
mod hosts;
mod page_of_checks;
mod verdicts;

use tailtrim_audit::{self as audit, AuditReport, Check, CheckStatus, Intent, Wish, Workload};
use tailtrim_host::Memory;

fn wish(isolate: &str, workload: Workload) -> Wish {
    let nics = Some(vec!["eth1".to_owned()]);
    Wish {
        isolate: Some(isolate.parse().unwrap()),
        nics,
        workload: Some(workload),
        housekeeping: None,
    }
}

fn report(tree: &Memory, wish: Wish) -> AuditReport {
    let intent = Intent::complete(wish, tree).unwrap();
    let checks: Vec<&Check> = audit::all().collect();
    audit::run(tree, &intent, &checks)
}

/// Compare with lines of an id and a verdict; other checks are of no concern.
fn expect(report: &AuditReport, wanted: &[(&str, CheckStatus)]) {
    let differ: Vec<String> = wanted
        .iter()
        .filter_map(|(id, verdict)| {
            let found = report.answer(id).unwrap();
            (found.verdict != *verdict).then(|| {
                format!(
                    "{id}: {} instead of {}: {}",
                    found.verdict.word(),
                    verdict.word(),
                    found.said
                )
            })
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
