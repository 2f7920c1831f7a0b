//! The answers for programs: everything as JSON, and SARIF.

use serde::Serialize;
use std::io::{self, Write};
use tailtrim_audit::{
    AuditReport, CheckResult, CheckStatus, Counts, Evidence, Intent, Reference, Waiver,
};

#[derive(Serialize)]
struct Whole<'a> {
    schema: &'static str,
    host: Host<'a>,
    intent: &'a Intent,
    observed_ms: Option<u64>,
    counts: Counts,
    notes: Vec<String>,
    checks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Host<'a> {
    kernel: &'a str,
    cpu: &'a str,
    online: &'a str,
    guest: Option<bool>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    title: &'a str,
    importance: &'a str,
    verdict: CheckStatus,
    level: Option<&'a str>,
    said: &'a str,
    evidence: &'a [Evidence],
    wanted: String,
    set_now: String,
    set_boot: String,
    source: &'a str,
    references: &'a [Reference],
    unconfirmed: &'a [&'a str],
    waived: Option<&'a Waiver>,
}

/// Prints everything.
pub(super) fn write(report: &AuditReport, out: &mut dyn Write) -> io::Result<()> {
    let row = |one: &'_ CheckResult| {
        let fill = |text: &str| report.intent.fill(text);
        (fill(one.check.wanted), fill(one.check.set_now), fill(one.check.set_boot))
    };
    let checks = report.results.iter().map(|one| {
        let (wanted, set_now, set_boot) = row(one);
        Row {
            id: one.check.id,
            title: one.check.title,
            importance: one.check.importance.word(),
            verdict: one.finding.verdict,
            level: one.finding.level.map(|level| level.word()),
            said: &one.finding.said,
            evidence: &one.finding.evidence,
            wanted,
            set_now,
            set_boot,
            source: one.check.source,
            references: one.check.references(),
            unconfirmed: one.check.unconfirmed(),
            waived: one.waived.as_ref(),
        }
    });
    let whole = Whole {
        schema: "tailtrim.audit/1",
        host: Host {
            kernel: &report.kernel,
            cpu: &report.cpu,
            online: &report.online,
            guest: report.guest,
        },
        intent: &report.intent,
        observed_ms: report.observed_ms,
        counts: report.counts(),
        notes: report.waivers.iter().map(ToString::to_string).collect(),
        checks: checks.collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}
