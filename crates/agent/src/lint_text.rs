//! The linter's report for people: the line with marks below its words, then a paragraph a finding.

use crate::output::wrapped;
use std::collections::BTreeMap;
use std::fmt::Write;
use tailtrim_host::Cpus;
use tailtrim_lint::{Finding, LintReport, Severity};

const WIDTH: usize = 96;

/// Write a report.
pub(crate) fn text(report: &LintReport) -> String {
    let mut out = heading(report);
    out.push('\n');
    out += &marked(report);
    for (number, finding) in (1..).zip(&report.findings) {
        out.push('\n');
        out += &paragraph(number, finding);
    }
    out.push('\n');
    out += &outcome(report);
    out.push('\n');
    out += &count(report);
    out
}

fn heading(report: &LintReport) -> String {
    let kernel = match (&report.running, report.kernel) {
        (Some(running), Some(kernel)) => {
            format!(
                "running Linux {}",
                running.release.clone().unwrap_or_else(|| kernel.to_string())
            )
        }
        (_, Some(kernel)) => format!("Linux {kernel}"),
        (_, None) => "Linux of any version (--kernel says which)".to_owned(),
    };
    let cpus = match &report.cpus {
        Some(cpus) => cpus.named(),
        None => "any machine (--cpus says which)".to_owned(),
    };
    format!("Boot line for {kernel}, {cpus}\n")
}

/// The line, broken at words, with marks under the words of the findings.
fn marked(report: &LintReport) -> String {
    let line = report.line.trim_end();
    let mut out = String::new();
    for (from, to) in rows(line) {
        let row = &line[from..to];
        let _ = writeln!(out, "  {row}");
        let marks = marks(row, from, to, &report.findings);
        if !marks.trim().is_empty() {
            let _ = writeln!(out, "  {}", marks.trim_end());
        }
    }
    out
}

/// Where rows begin and end.
fn rows(line: &str) -> Vec<(usize, usize)> {
    let mut rows = Vec::new();
    let (mut from, mut to) = (0, 0);
    for (at, _) in line.match_indices(' ').chain([(line.len(), "")]) {
        if line[from..at].chars().count() > WIDTH && to > from {
            rows.push((from, to));
            from = to + 1;
        }
        to = at;
    }
    rows.push((from.min(line.len()), line.len()));
    rows
}

/// One sign a letter, and the number of the finding where its mark ends.
fn marks(row: &str, from: usize, to: usize, findings: &[Finding]) -> String {
    let column = |byte: usize| {
        let within = byte.saturating_sub(from).min(row.len());
        row.char_indices().take_while(|(at, _)| *at < within).count()
    };
    let mut signs = vec![' '; row.chars().count()];
    let mut numbers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (place, finding) in findings.iter().enumerate().rev() {
        if finding.end <= from || finding.at >= to {
            continue;
        }
        let (first, last) = (column(finding.at), column(finding.end));
        for sign in &mut signs[first..last] {
            *sign = match finding.severity {
                Severity::Error => '^',
                Severity::Warning => '~',
                Severity::Note => '-',
            };
        }
        numbers.entry(last).or_default().insert(0, (place + 1).to_string());
    }
    for (column, numbers) in numbers {
        let label: Vec<char> = numbers.join(",").chars().collect();
        let free = signs.iter().skip(column).take(label.len() + 1).all(|sign| *sign == ' ');
        let place = if free { column } else { column.saturating_sub(label.len()) };
        for (at, letter) in (place..).zip(label) {
            if at >= signs.len() {
                signs.resize(at + 1, ' ');
            }
            signs[at] = letter;
        }
    }
    signs.into_iter().collect()
}

fn paragraph(number: usize, finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let title = format!("{number} {severity}: {} [{}]", finding.title, finding.check);
    let mut out = wrapped(&title, WIDTH, "", "  ");
    out += &wrapped(&finding.effect, WIDTH, "    ", "    ");
    if let Some(right) = &finding.right {
        let _ = writeln!(out, "    Write:  {right}");
    }
    if let Some(seen) = &finding.seen {
        out += &wrapped(seen, WIDTH, "    Seen:   ", &" ".repeat(12));
    }
    let _ = writeln!(out, "    Source: {}", finding.source);
    out
}

/// Effects of the line, and next to them the state of the running kernel.
fn outcome(report: &LintReport) -> String {
    let mut out = String::from("What comes of it\n");
    let list = |cpus: &Cpus| if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() };
    let made = &report.prediction;
    let running = report.running.as_ref();
    let rows = [
        ("isolated CPUs", &made.isolated, running.map(|running| &running.isolated)),
        ("nohz_full CPUs", &made.nohz_full, running.map(|running| &running.nohz_full)),
        ("RCU offloaded", &made.rcu_offloaded, running.map(|running| &running.rcu_offloaded)),
    ];
    for (what, made, shown) in rows {
        let shown = match shown {
            Some(Some(shown)) => format!("  (running: {})", list(shown)),
            Some(None) => "  (running: not known)".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(out, "  {what:<16}{}{shown}", list(made));
    }
    if made.rcu_poll {
        let _ = writeln!(out, "  {:<16}by polling", "RCU threads");
    }
    if let Some(affinity) = &made.irq_affinity {
        let _ = writeln!(out, "  {:<16}{}", "interrupts on", list(affinity));
    }
    if !made.huge_pages.is_empty() {
        let pools: Vec<String> = made.huge_pages.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "  {:<16}{}", "huge pages", pools.join(", "));
    }
    let handed: Vec<&str> =
        made.to_init.iter().chain(&made.to_environment).map(String::as_str).collect();
    if !handed.is_empty() {
        let label = format!("{:<16}", "handed to init");
        out += &wrapped(&handed.join(" "), WIDTH, &format!("  {label}"), &" ".repeat(18));
    }
    for unread in running.iter().flat_map(|running| &running.unread) {
        let _ = writeln!(out, "  not known: {unread}");
    }
    out
}

fn count(report: &LintReport) -> String {
    let of =
        |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let told = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    };
    let counts =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let counts = counts.map(|(severity, name)| told(of(severity), name));
    format!("{}\n", counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_lint::{Context, lint};

    #[test]
    fn marks_stand_under_their_words() {
        let report = lint("quiet nosoftlookup mce=ignorece", &Context::default());
        let out = text(&report);
        let rows: Vec<&str> = out.lines().skip(2).take(2).collect();
        assert_eq!(
            rows,
            ["  quiet nosoftlookup mce=ignorece", "        ^^^^^^^^^^^^1    ^^^^^^^^2"]
        );
        assert!(out.ends_with("2 errors, 0 warnings, 0 notes\n"), "{out}");
    }

    #[test]
    fn long_lines_are_broken_at_words() {
        let line = format!("{} nosoftlookup", "systemd.unit=a".to_owned() + &" quiet".repeat(30));
        let out = text(&lint(&line, &Context::default()));
        assert!(out.lines().all(|row| row.chars().count() <= WIDTH + 4), "{out}");
        let row = out.lines().position(|row| row.contains("nosoftlookup")).unwrap();
        let marks = out.lines().nth(row + 1).unwrap();
        assert_eq!(marks.find('^'), out.lines().nth(row).unwrap().find("nosoftlookup"));
    }
}
