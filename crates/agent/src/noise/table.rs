//! Result of `noise`, for people.

use super::report::{NoiseReport, OfCpu};
use std::fmt::Write as _;
use tailtrim_tail::summary::{counted, grouped};
use tailtrim_tail::times::{self, Times};
use tailtrim_trace::Kind;
use tailtrim_trace::blame::GapCause;
use tailtrim_trace::lines::Source;
use tailtrim_trace::noise::Distribution;
use tailtrim_tracer::trace::Counts;

/// Causes that are shown; the others are summed up.
const SHOWN: usize = 16;

/// Write the table.
pub(super) fn text(report: &NoiseReport) -> String {
    let mut text = String::new();
    for cpu in &report.cpus {
        of_cpu(&mut text, report, cpu);
    }
    match (report.kept_awake, &report.not_kept_awake) {
        (_, Some(why)) => {
            let _ =
                writeln!(text, "waking up is part of the lateness: /dev/cpu_dma_latency: {why}");
        }
        (Some(true), None) => {
            text.push_str(
                "CPUs were kept awake, as by cyclictest; --default-system lets them sleep\n",
            );
        }
        (Some(false), None) => text.push_str("waking up is part of the lateness\n"),
        (None, None) => {}
    }
    if let Some(trace) = &report.trace {
        for why in &trace.counts.sources_refused {
            let _ = writeln!(text, "not traced by {why}");
        }
        if trace.source == Source::Counters {
            text.push_str(
                "counters only: likely causes follow from the counts of interrupts; single gaps have no cause\n",
            );
            return text;
        }
        let _ = writeln!(
            text,
            "trace by {}: times ± {}, {}",
            trace.source.name(),
            times::text(trace.error_ns),
            not_recorded(&trace.counts)
        );
        if !trace.missing.is_empty() {
            let _ = writeln!(text, "this kernel lacks: {}", trace.missing.join(", "));
        }
    }
    if let Some(why) = &report.no_trace {
        let _ = writeln!(text, "no causes, counters only: no trace: {why}");
    }
    text
}

fn of_cpu(text: &mut String, report: &NoiseReport, cpu: &OfCpu) {
    let what = if report.mode == "poll" {
        format!("gaps from {}", times::text(report.threshold_ns.unwrap_or(0)))
    } else {
        format!("timers every {}, late by", times::text(report.interval_ns.unwrap_or(0)))
    };
    let share = 100.0 * cpu.total_ns as f64 / (report.seconds * 1e9).max(1.0);
    let _ = writeln!(
        text,
        "CPU {}: {what}: {}; {share:.2} % of the time",
        cpu.cpu,
        numbers(&cpu.distribution, Some(report.seconds), ""),
    );
    steps(text, &cpu.distribution, Some(report.seconds));
    causes(text, cpu);
    let mut counted: Vec<_> = cpu.counters.interrupts.iter().collect();
    counted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    let list: Vec<String> = counted
        .iter()
        .take(6)
        .map(|(name, count)| format!("{name} {}", grouped(**count)))
        .collect();
    let _ = writeln!(text, "  interrupts: {}", list.join(", "));
    let waited = cpu
        .waited_ns
        .map_or_else(String::new, |ns| format!(", waited {}", times::text(ns.cast_signed())));
    let counted = |number: Option<u64>, unit: &str| {
        number.map_or_else(|| "unknown".to_owned(), |n| grouped(n) + unit)
    };
    let _ = writeln!(
        text,
        "  preempted {} times{waited}; steal {}; SMI {}; throttled {}",
        grouped(cpu.context_switches_involuntary),
        counted(cpu.counters.steal_ms, " ms"),
        counted(cpu.counters.smi, ""),
        counted(cpu.counters.throttled, " times"),
    );
    for (what, why) in &cpu.counters.unread {
        let _ = writeln!(text, "  {what} unknown: {why}");
    }
    if cpu.gaps_not_kept > 0 {
        let _ = writeln!(
            text,
            "  {} gaps were only counted; raise --threshold",
            grouped(cpu.gaps_not_kept)
        );
    }
    for refused in &cpu.refused {
        let _ = writeln!(text, "  refused: {refused}");
    }
}

/// Number and lengths; `bound` marks lengths that are not exact.
pub(super) fn numbers(of: &Distribution, seconds: Option<f64>, bound: &str) -> String {
    let quantiles = [of.p50_ns, of.p99_ns, of.p999_ns, of.longest_ns];
    let style = Times::of(quantiles.map(|ns| [ns]), 1_000);
    let us = |ns: Option<i64>| {
        ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{bound}{}", style.text(ns)))
    };
    let quantile = |ns: Option<i64>| match of.beyond {
        Some(beyond) if ns > Some(beyond.from_ns) => format!("unknown ({})", us(ns)),
        _ => us(ns),
    };
    let time = seconds.map_or_else(String::new, |seconds| format!(" in {seconds:.1} s"));
    format!(
        "{}{time}; p50 {}, p99 {}, p99.9 {}, longest {}",
        grouped(of.gaps),
        quantile(of.p50_ns),
        quantile(of.p99_ns),
        quantile(of.p999_ns),
        us(of.longest_ns),
    )
}

/// Numbers from each length up, with a rate a second where the time is known.
pub(super) fn steps(text: &mut String, of: &Distribution, seconds: Option<f64>) {
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let mut list = Vec::new();
    for step in &of.at_least {
        let Some(gaps) = step.gaps else { continue };
        let number = match seconds {
            Some(seconds) => format!("{:.1}", gaps as f64 / seconds),
            None => grouped(gaps),
        };
        list.push(format!("{} µs: {number}", grouped((step.ns / 1_000).cast_unsigned())));
        if gaps == 0 {
            break;
        }
    }
    if !list.is_empty() {
        let unit = if seconds.is_some() { "a second" } else { "in all" };
        let _ = writeln!(text, "  {unit}, of at least {}", list.join(", "));
    }
}

fn causes(text: &mut String, cpu: &OfCpu) {
    if cpu.causes.is_empty() {
        return;
    }
    let total_ns = cpu.causes.iter().map(|cause| cause.total_ns).sum::<i64>().max(1);
    let _ = writeln!(
        text,
        "  {:>7}  {:>10}  {:>12}  {:>8}  cause",
        "share", "gaps", "longest", "traced"
    );
    let mut row = |gaps: u64, longest_ns: i64, of_ns: i64, covered_ns: i64, name: &str| {
        let share = 100.0 * of_ns as f64 / total_ns as f64;
        let covered = 100.0 * covered_ns as f64 / of_ns.max(1) as f64;
        let (gaps, longest) = (grouped(gaps), times::text(longest_ns));
        let _ =
            writeln!(text, "  {share:>5.1} %  {gaps:>10}  {longest:>12}  {covered:>6.0} %  {name}");
    };
    let (shown, rest) = cpu.causes.split_at(cpu.causes.len().min(SHOWN));
    for cause in shown {
        row(cause.gaps, cause.longest_ns, cause.total_ns, cause.covered_ns, &cause_named(cause));
    }
    if !rest.is_empty() {
        let sum = |of: &dyn Fn(&GapCause) -> i64| rest.iter().map(of).sum::<i64>();
        row(
            rest.iter().map(|cause| cause.gaps).sum(),
            rest.iter().map(|cause| cause.longest_ns).max().unwrap_or(0),
            sum(&|cause| cause.total_ns),
            sum(&|cause| cause.covered_ns),
            &format!("{} others", rest.len()),
        );
    }
}

fn cause_named(cause: &GapCause) -> String {
    let sender =
        cause.sender.as_ref().map(|sender| format!(", sent by {sender}")).unwrap_or_default();
    named(cause.kind, &cause.name, cause.detail.as_deref()) + &sender
}

/// The name of what had a CPU.
pub(crate) fn named(kind: Kind, name: &str, detail: Option<&str>) -> String {
    let kind = match kind {
        Kind::Nmi => "NMI ",
        Kind::Irq => "interrupt ",
        Kind::Softirq => "softirq ",
        Kind::Thread => "thread ",
        Kind::Fault => "fault ",
        Kind::Gap => {
            return "unknown: hypervisor, firmware or hardware (not visible to the kernel)"
                .to_owned();
        }
        Kind::Hole => {
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            return format!("not recorded (a hole in the trace{detail})");
        }
    };
    let detail = detail.map(|detail| format!("/{detail}")).unwrap_or_default();
    format!("{kind}{name}{detail}")
}

/// Text on what a trace lacks: events that the kernel's buffer had no room for, and holes, where it is unknown what ran.
pub(crate) fn not_recorded(counts: &Counts) -> String {
    let holes = counts.events.get("hole").copied().unwrap_or(0);
    format!("{} lost, {}", counted(counts.lost, "event"), counted(holes, "hole"))
}
