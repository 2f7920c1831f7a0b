//! Results of other tools, in the same words and numbers.

use super::table::{numbers, steps};
use super::{Noise, write_hgrm};
use crate::events;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tailtrim_stats::Histogram;
use tailtrim_tail::summary::grouped;
use tailtrim_tail::times;
use tailtrim_trace::noise::{self, Column, Distribution, Findings};

/// Larger than any of these files.
const MOST_BYTES: u64 = 1 << 26;

/// The parts of the result that other tools have, too.
#[derive(Serialize)]
struct HistogramReport<'a> {
    mode: &'static str,
    seconds: Option<f64>,
    /// Of a polling loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold_ns: Option<i64>,
    read: Source<'a>,
    cpus: Vec<OfCpu>,
}

/// Source of the numbers.
#[derive(Serialize)]
struct Source<'a> {
    file: &'a Path,
    tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<&'a str>,
    /// Quantiles are ends of buckets: the true ones are less than a bucket smaller.
    bounds: bool,
}

#[derive(Serialize)]
struct OfCpu {
    /// Nothing where the thread was not bound to one.
    cpu: Option<u32>,
    /// The tool's number of the thread, where its CPU is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip)]
    name: String,
    what: &'static str,
    /// From here up, since the tool's next bucket begins here.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_from_ns: Option<i64>,
    #[serde(flatten)]
    distribution: Distribution,
}

/// Reads the files and shows each.
pub(super) fn show(request: &Noise) -> Outcome {
    if request.hgrm.is_some() && request.read.len() > 1 {
        let message = "--hgrm: one distribution cannot combine several tools; expected one --read";
        return Err(Failure::usage(message));
    }
    let mut all = Vec::new();
    for path in &request.read {
        let wrong = |message| Failure::usage(format!("{}: {message}", path.display()));
        all.push((path, findings(path).map_err(wrong)?));
    }
    for (path, findings) in &all {
        // Timers are always a little late: there is no threshold.
        let threshold_ns = if findings.tool.polls() { request.threshold } else { 0 };
        if let Some(hgrm) = &request.hgrm {
            let mut histogram = Histogram::new();
            findings.felt().for_each(|column| histogram.merge(&column.bounds(threshold_ns).0));
            write_hgrm(hgrm, &histogram)?;
        }
        let report = HistogramReport::new(path, findings, threshold_ns);
        if request.json {
            events::result("tailtrim.noise/1", &report)?;
        } else {
            output::write(text(&report), Exit::Success)?;
        }
    }
    Ok(Exit::Success)
}

fn findings(path: &Path) -> Result<Findings, String> {
    let expected = "expected what cyclictest, oslat or rtla wrote";
    let size = fs::metadata(path).map_err(|error| format!("{error}; {expected}"))?.len();
    if size > MOST_BYTES {
        return Err(format!("{size} bytes is too large for a result of these tools; {expected}"));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("{error}; {expected}"))?;
    noise::read(&text).map_err(|error| error.to_string())
}

impl<'a> HistogramReport<'a> {
    fn new(path: &'a Path, findings: &'a Findings, threshold_ns: i64) -> Self {
        let polls = findings.tool.polls();
        let of_cpu = |column: &Column| OfCpu {
            cpu: column.cpu,
            thread: column.thread.filter(|_| column.cpu.is_none()),
            name: column.name(),
            what: column.what.name(),
            counted_from_ns: polls.then(|| column.bounds(threshold_ns).1),
            distribution: column.distribution(threshold_ns),
        };
        Self {
            mode: if polls { "poll" } else { "timer" },
            seconds: findings.seconds,
            threshold_ns: polls.then_some(threshold_ns),
            read: Source {
                file: path,
                tool: findings.tool.name(),
                version: findings.version.as_deref(),
                command: findings.command.as_deref(),
                assumed: findings.assumed,
                bounds: true,
            },
            cpus: findings.columns.iter().map(of_cpu).collect(),
        }
    }
}

fn text(report: &HistogramReport<'_>) -> String {
    let mut text = String::new();
    let tool = report.read.tool;
    if report.cpus.is_empty() {
        let _ = writeln!(text, "{tool}: the result has no CPU with values");
    }
    for of_cpu in &report.cpus {
        let what = match (of_cpu.counted_from_ns, of_cpu.what) {
            (Some(from_ns), _) => format!("gaps from {}", times::text(from_ns)),
            (None, "interrupt") => "timers, interrupt late by".to_owned(),
            (None, "program") => "timers, program late by".to_owned(),
            (None, _) => "timers, late by".to_owned(),
        };
        let numbers = numbers(&of_cpu.distribution, report.seconds, "≤ ");
        let _ = writeln!(text, "{}: {tool}: {what}: {numbers}", of_cpu.name);
        steps(&mut text, &of_cpu.distribution, report.seconds);
        if let (Some(beyond), Some(longest_ns)) =
            (of_cpu.distribution.beyond, of_cpu.distribution.longest_ns)
        {
            let _ = writeln!(
                text,
                "  {} of them beyond the table of {tool}: unknown, from {} to at most {}",
                grouped(beyond.gaps),
                times::text(beyond.from_ns),
                times::text(longest_ns)
            );
        }
    }
    if let Some(assumed) = report.read.assumed {
        let _ = writeln!(text, "{assumed}");
    }
    text
}
