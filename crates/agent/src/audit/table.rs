//! The answers for people: the most important ones first, each with findings and advice.

use crate::output::{Page, wrapped};
use std::collections::BTreeMap;
use std::io::{self, Write};
use tailtrim_audit::{AuditReport, CheckResult, CheckStatus};

/// Layout of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) width: usize,
    pub(super) all: bool,
}

/// Where the text of an answer begins.
const INDENT: usize = 12;

/// Longest value of a file that is shown whole.
const WHOLE: usize = 60;

impl Style {
    /// A text behind a label, wrapped, later lines below the first.
    fn row(self, label: &str, text: &str, out: &mut Page) -> io::Result<()> {
        let start = INDENT + label.chars().count();
        for (number, line) in
            wrapped(text, self.width.saturating_sub(start), "", "").lines().enumerate()
        {
            let lead =
                if number == 0 { label.to_owned() } else { " ".repeat(label.chars().count()) };
            write!(out, "{:INDENT$}", "")?;
            out.paint(&lead, "2");
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

fn colour(verdict: CheckStatus) -> &'static str {
    match verdict {
        CheckStatus::Fail => "1;31",
        CheckStatus::Warn => "1;33",
        CheckStatus::Unknown => "1;36",
        CheckStatus::Ok => "1;32",
        CheckStatus::NotApplicable => "2",
    }
}

/// A line above the answers of a kind.
fn title(text: &str, code: &str, out: &mut Page) -> io::Result<()> {
    writeln!(out)?;
    out.paint(text, code);
    writeln!(out)
}

/// Prints the answers.
pub(super) fn write(
    report: &AuditReport,
    from: Option<&str>,
    style: Style,
    out: &mut Page,
) -> io::Result<()> {
    head(report, from, style, out)?;
    for verdict in [CheckStatus::Fail, CheckStatus::Warn] {
        let all: Vec<&CheckResult> = report.of(verdict).collect();
        if all.is_empty() {
            continue;
        }
        let text = format!("{}  {}", verdict.word().to_uppercase(), all.len());
        title(&text, colour(verdict), out)?;
        for one in all {
            answer(report, one, style, out)?;
        }
    }
    unknown(report, style, out)?;
    waived(report, out)?;
    if style.all {
        for verdict in [CheckStatus::Ok, CheckStatus::NotApplicable] {
            brief(report, verdict, style, out)?;
        }
    }
    foot(report, style, out)
}

fn head(report: &AuditReport, from: Option<&str>, style: Style, out: &mut Page) -> io::Result<()> {
    let or = |text: &str, otherwise: &str| {
        if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
    };
    let kind = match report.guest {
        Some(true) => "virtual machine",
        Some(false) => "bare metal",
        None => "bare metal or virtual: not known",
    };
    let host = format!(
        "Linux {}, {}, CPUs {}, {kind}",
        or(&report.kernel, "?"),
        or(&report.cpu, "CPU not named"),
        or(&report.online, "?")
    );
    out.paint(&host, "1");
    writeln!(out)?;
    let intent = &report.intent;
    let nics = if intent.nics.is_empty() { "none".to_owned() } else { intent.nics.join(", ") };
    let isolate = or(&intent.isolate.to_string(), "none");
    let meant = format!(
        "isolate {isolate} · housekeeping {} · nics {nics} · workload {}",
        intent.housekeeping, intent.workload
    );
    labelled("intent", &meant, style, out)?;
    if let Some(file) = from {
        labelled("read from", file, style, out)?;
    }
    for (number, text) in intent.inferred.iter().enumerate() {
        labelled(if number == 0 { "inferred" } else { "" }, text, style, out)?;
    }
    match report.observed_ms {
        Some(ms) => writeln!(out, "observed    {:.1} s", ms as f64 / 1e3),
        None => {
            writeln!(out, "observed    nothing: counters were not watched (--duration 10s)")
        }
    }
}

/// A line of the head, wrapped.
fn labelled(label: &str, text: &str, style: Style, out: &mut Page) -> io::Result<()> {
    let (first, rest) = (format!("{label:<INDENT$}"), " ".repeat(INDENT));
    write!(out, "{}", wrapped(text, style.width, &first, &rest))
}

fn answer(report: &AuditReport, one: &CheckResult, style: Style, out: &mut Page) -> io::Result<()> {
    let check = one.check;
    let finding = &one.finding;
    let level = finding.level.map_or("", |level| level.word());
    let right = format!("{}, {level}", check.importance.word());
    let room = style.width.saturating_sub(INDENT + right.chars().count() + 1);
    write!(out, "\n  ")?;
    out.paint(&format!("{:<9}", check.id), colour(finding.verdict));
    write!(out, " ")?;
    out.paint(&format!("{:<room$}", check.title), "1");
    write!(out, " ")?;
    out.paint(&right, "2");
    writeln!(out)?;
    style.row("", &finding.said, out)?;
    // Tables, summaries of many files, and the whole boot line are not useful as evidence.
    let summary = [" lines", " threads", " entries"];
    let evidence = finding.evidence.iter().filter(|known| {
        !known.path.starts_with("/tailtrim/observation")
            && !summary.iter().any(|end| known.value.ends_with(end))
            && (known.path != "/proc/cmdline" || known.value.chars().count() <= WHOLE)
    });
    let evidence: Vec<String> = evidence
        .take(2)
        .map(|known| format!("{} = {}", known.path, clip(&known.value, WHOLE)))
        .collect();
    for text in &evidence {
        style.row("  ", text, out)?;
    }
    style.row("wanted  ", &report.intent.fill(check.wanted), out)?;
    if !check.set_now.is_empty() {
        style.row("now     ", &report.intent.fill(check.set_now), out)?;
    }
    if !check.set_boot.is_empty() {
        style.row("at boot ", &report.intent.fill(check.set_boot), out)?;
    }
    if !check.cost.is_empty() && finding.verdict == CheckStatus::Fail {
        style.row("cost    ", check.cost, out)?;
    }
    Ok(())
}

fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return if text.is_empty() { "(empty)".to_owned() } else { text.to_owned() };
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Checks without an answer, by reason: mostly few reasons apply to many checks.
fn unknown(report: &AuditReport, style: Style, out: &mut Page) -> io::Result<()> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in report.of(CheckStatus::Unknown) {
        reasons.entry(&one.finding.said).or_default().push(one.check.id);
    }
    if reasons.is_empty() {
        return Ok(());
    }
    let count = report.of(CheckStatus::Unknown).count();
    title(&format!("UNKNOWN  {count}"), colour(CheckStatus::Unknown), out)?;
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    for (reason, ids) in reasons {
        let first = ids.first().copied().unwrap_or_default();
        let lead = if ids.len() == 1 {
            format!("  {first:<9} ")
        } else {
            format!("  {:<9} ", format!("{} checks", ids.len()))
        };
        write!(out, "{}", wrapped(reason, style.width, &lead, &" ".repeat(INDENT)))?;
        if ids.len() > 1 {
            style.row("", &ids.join(" "), out)?;
        }
    }
    Ok(())
}

fn waived(report: &AuditReport, out: &mut Page) -> io::Result<()> {
    let waived: Vec<_> =
        report.results.iter().filter_map(|one| Some((one, one.waived.as_ref()?))).collect();
    if !waived.is_empty() {
        title(&format!("WAIVED  {}", waived.len()), "1", out)?;
    }
    for (one, waiver) in waived {
        writeln!(
            out,
            "  {:<9} {} ({}, until {})",
            one.check.id, one.finding.said, waiver.reason, waiver.until
        )?;
    }
    if !report.waivers.is_empty() {
        writeln!(out)?;
    }
    for waiver in &report.waivers {
        writeln!(out, "note: {waiver}")?;
    }
    Ok(())
}

fn brief(
    report: &AuditReport,
    verdict: CheckStatus,
    style: Style,
    out: &mut Page,
) -> io::Result<()> {
    let all: Vec<&CheckResult> = report.of(verdict).collect();
    title(&format!("{}  {}", verdict.word().to_uppercase(), all.len()), colour(verdict), out)?;
    for one in all {
        let level = one.finding.level.map_or("", |level| level.word());
        let text = format!("{}: {}", one.check.title, one.finding.said);
        let lead = format!("  {:<9} {level:<5} ", one.check.id);
        write!(out, "{}", wrapped(&text, style.width, &lead, &" ".repeat(18)))?;
    }
    Ok(())
}

fn foot(report: &AuditReport, style: Style, out: &mut Page) -> io::Result<()> {
    let counts = report.counts();
    write!(out, "\n{} checks", counts.total())?;
    for (verdict, count, name) in [
        (CheckStatus::Fail, counts.fail, "fail"),
        (CheckStatus::Warn, counts.warn, "warn"),
        (CheckStatus::Unknown, counts.unknown, "unknown"),
        (CheckStatus::Ok, counts.ok, "ok"),
        (CheckStatus::NotApplicable, counts.not_applicable, "n/a"),
    ] {
        write!(out, " · ")?;
        out.paint(&format!("{count} {name}"), colour(verdict));
    }
    if counts.waived > 0 {
        write!(out, " · {} waived", counts.waived)?;
    }
    writeln!(out)?;
    let mut hints = Vec::new();
    if let Some(one) = report.of(CheckStatus::Fail).next() {
        hints.push(format!(
            "--explain {} shows the reason, how to set it and how to undo it",
            one.check.id
        ));
    }
    if !style.all {
        hints.push("--all also lists checks that are ok or not applicable".to_owned());
    }
    for (number, hint) in hints.iter().enumerate() {
        writeln!(out, "{}{hint}", if number == 0 { "next: " } else { "      " })?;
    }
    Ok(())
}
