//! The answers for continuous integration and monitoring.

use std::fmt::Write as _;
use std::io::{self, Write};
use tailtrim_audit::{AuditReport, CheckResult, CheckStatus};

fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML 1.0 has no place for other control characters.
            control if control < ' ' && !matches!(control, '\n' | '\t') => safe.push('?'),
            other => safe.push(other),
        }
    }
    safe
}

/// JUnit: a case for each check. A warning passes with a message; unknown and not applicable checks are skipped.
pub(super) fn junit(report: &AuditReport, out: &mut dyn Write) -> io::Result<()> {
    let counts = report.counts();
    let skipped = counts.unknown + counts.not_applicable + counts.waived;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuites><testsuite name=\"tailtrim audit\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{skipped}\">",
        counts.total(),
        counts.fail
    )?;
    for one in &report.results {
        writeln!(out, "{}", case(report, one))?;
    }
    writeln!(out, "</testsuite></testsuites>")
}

fn case(report: &AuditReport, one: &CheckResult) -> String {
    let (check, finding) = (one.check, &one.finding);
    let mut text = format!(
        "  <testcase classname=\"audit.{}\" name=\"{} {}\">",
        check.family(),
        check.id,
        xml(check.title)
    );
    let said = xml(&finding.said);
    // Writing to a string cannot fail.
    let _ = match (finding.verdict, &one.waived) {
        (_, Some(waiver)) => write!(
            text,
            "<skipped message=\"waived until {}: {}\"/>",
            xml(&waiver.until),
            xml(&waiver.reason)
        ),
        (CheckStatus::Fail, None) => {
            let evidence: String = finding
                .evidence
                .iter()
                .map(|known| format!("{} = {}\n", known.path, known.value))
                .collect();
            let help = format!(
                "{evidence}wanted: {}\nnow: {}\nat boot: {}",
                check.wanted, check.set_now, check.set_boot
            );
            write!(
                text,
                "<failure message=\"{said}\">{}</failure>",
                xml(&report.intent.fill(&help))
            )
        }
        (CheckStatus::Warn, None) => write!(text, "<system-out>warning: {said}</system-out>"),
        (CheckStatus::Unknown, None) => write!(text, "<skipped message=\"unknown: {said}\"/>"),
        (CheckStatus::NotApplicable, None) => write!(text, "<skipped message=\"n/a: {said}\"/>"),
        (CheckStatus::Ok, None) => write!(text, "<system-out>{said}</system-out>"),
    };
    text + "</testcase>"
}

/// Prometheus: the number of checks by answer, and the answer of each check.
pub(super) fn prometheus(report: &AuditReport, out: &mut dyn Write) -> io::Result<()> {
    let counts = report.counts();
    writeln!(
        out,
        "# HELP tailtrim_audit_checks Checks by their answer.\n# TYPE tailtrim_audit_checks gauge"
    )?;
    for (verdict, count) in [
        ("fail", counts.fail),
        ("warn", counts.warn),
        ("unknown", counts.unknown),
        ("ok", counts.ok),
        ("n/a", counts.not_applicable),
        ("waived", counts.waived),
    ] {
        writeln!(out, "tailtrim_audit_checks{{verdict=\"{verdict}\"}} {count}")?;
    }
    writeln!(
        out,
        "# HELP tailtrim_audit_check 0 ok, 1 warn, 2 fail, -1 unknown, -2 n/a.\n# TYPE tailtrim_audit_check gauge"
    )?;
    let mut results: Vec<&CheckResult> = report.results.iter().collect();
    results.sort_by_key(|one| one.check.id);
    for one in results {
        let value = match one.finding.verdict {
            CheckStatus::Ok => 0,
            CheckStatus::Warn => 1,
            CheckStatus::Fail => 2,
            CheckStatus::Unknown => -1,
            CheckStatus::NotApplicable => -2,
        };
        let check = one.check;
        writeln!(
            out,
            "tailtrim_audit_check{{id=\"{}\",family=\"{}\",importance=\"{}\",waived=\"{}\"}} {value}",
            check.id,
            check.family(),
            check.importance.word(),
            one.waived.is_some()
        )?;
    }
    Ok(())
}
