//! Table of those that had each CPU, and changes against them, for people.

use super::TraceReport;
use crate::called::{THREADS, name};
use crate::noise::table::{named, not_recorded};
use crate::output::wrapped;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tailtrim_cause::occupation::{Occupant, Occupation};
use tailtrim_host::Cpus;
use tailtrim_tail::summary::grouped;
use tailtrim_tail::times;
use tailtrim_tracer::trace::online;
use tailtrim_tune::When;

/// Rows of a CPU that are shown: of the largest shares, and of the others those with the longest times, since a spike
/// needs no share. What is left is summed up.
const LARGEST: usize = 9;
const LONGEST: usize = 3;

/// Write the table.
pub(super) fn text(report: &TraceReport<'_>, cpus: &Cpus) -> String {
    let mut text = String::new();
    for why in &report.counts.sources_refused {
        let _ = writeln!(text, "not traced by {why}");
    }
    for cpu in &report.cpus {
        of_cpu(&mut text, cpu);
    }
    changes(&mut text, report, cpus);
    if report.cpus.is_empty() {
        text.push_str("counters of interrupts only: who had the CPUs is not known\n");
    } else {
        let source = report.trace.source.name();
        let _ = writeln!(text, "trace by {source}: {}", not_recorded(report.counts));
    }
    if !report.trace.missing.is_empty() {
        let missing = report.trace.missing.join(", ");
        text.push_str(&wrapped(&missing, 80, "this kernel lacks: ", "  "));
    }
    for refused in &report.counts.refused {
        let _ = writeln!(text, "refused: {refused}");
    }
    if let Some(file) = report.file {
        let file = file.display();
        let _ = writeln!(
            text,
            "{file}: for tailtrim explain RUN --trace {file}, and tailtrim convert {file} --format perfetto"
        );
    }
    text
}

fn shown(cpu: &Occupation) -> (Vec<&Occupant>, Vec<&Occupant>) {
    let mut rest: Vec<&Occupant> = cpu.occupants.iter().collect();
    let mut shown: Vec<&Occupant> = rest.drain(..rest.len().min(LARGEST)).collect();
    rest.sort_by_key(|one| std::cmp::Reverse(one.longest_ns));
    shown.extend(rest.drain(..rest.len().min(LONGEST)));
    (shown, rest)
}

fn of_cpu(text: &mut String, cpu: &Occupation) {
    let percent = |ns: i64| 100.0 * ns as f64 / cpu.span_ns.max(1) as f64;
    let _ = writeln!(text, "CPU {}, {}: who had it", cpu.cpu, times::text(cpu.span_ns));
    let _ = writeln!(text, "{:>7}  {:>7}  {:>8}  who", "share", "times", "longest");
    let mut row = |ns: i64, times: &str, longest: &str, who: &str| {
        let _ = writeln!(text, "{:>5.1} %  {times:>7}  {longest:>8}  {who}", percent(ns));
    };
    let (shown, rest) = shown(cpu);
    for one in shown {
        row(one.total_ns, &grouped(one.times), &times::text(one.longest_ns), &who(one));
    }
    if !rest.is_empty() {
        let (count, all) = (rest.iter().map(|one| one.times).sum(), rest.iter());
        let longest_ns = all.clone().map(|one| one.longest_ns).max().unwrap_or(0);
        let of_all = all.map(|one| one.total_ns).sum();
        let who = format!("{} others", rest.len());
        row(of_all, &grouped(count), &times::text(longest_ns), &who);
    }
    row(cpu.idle_ns, "", "", "idle");
}

/// Its name, and the checks that say what to change.
fn who(one: &Occupant) -> String {
    let named = named(one.kind, &one.name, one.detail.as_deref());
    match &one.known {
        _ if one.own => format!("{named}: the application itself"),
        Some(known) if !known.checks.is_empty() => {
            format!("{named}  → {}", known.checks.join(" "))
        }
        _ => named,
    }
}

/// The checks of what is shown, with the changes that answer them.
fn changes(text: &mut String, report: &TraceReport<'_>, cpus: &Cpus) {
    let shown: Vec<&Occupant> = report.cpus.iter().flat_map(|cpu| shown(cpu).0).collect();
    let known = shown.iter().filter_map(|one| one.known.as_ref());
    let checks: BTreeSet<&str> = known.flat_map(|known| known.checks).copied().collect();
    if checks.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\nWhat to change; {0} audit --isolate {cpus} says what holds here,\n\
         {0} tune plan --isolate {cpus} shows each step:",
        name()
    );
    for one in report.advice.iter().filter(|one| checks.contains(one.check)) {
        let _ = writeln!(text, "  {:<8} {}", one.check, one.title);
        for change in &one.changes {
            let when = match change.when {
                When::Now => "at once",
                When::NextBoot => "at the next boot",
                When::ByHand => "by hand",
            };
            let _ = writeln!(text, "           {} ({}, {when})", change.title, change.id);
        }
    }
    let others = online().minus(cpus);
    if let Some(pid) = shown.iter().find_map(|one| of_scheduler(one)).filter(|_| !others.is_empty())
    {
        let _ =
            writeln!(text, "  A thread may move at once: taskset --cpu-list --pid {others} {pid}");
    }
    text.push('\n');
}

/// The number of a thread that the scheduler let run on the CPU, and that is not one of tailtrim's own (a ping, say).
fn of_scheduler(one: &Occupant) -> Option<&str> {
    let foreign = !one.name.starts_with(THREADS);
    let known = one.known.as_ref().filter(|known| foreign && known.checks.contains(&"ISO-016"));
    known.and(one.detail.as_deref())?.strip_prefix("pid ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tailtrim_audit::advice::advice;
    use tailtrim_cause::occupation::occupation;
    use tailtrim_trace::lines::Header;
    use tailtrim_trace::{Event, Kind};
    use tailtrim_tracer::trace::Counts;

    #[test]
    fn each_cause_has_what_to_change_beside_it() {
        let event = |name: &str, pid: u32, start_ns, end_ns| Event {
            cpu: 3,
            start_ns,
            end_ns,
            kind: Kind::Thread,
            name: name.to_owned(),
            detail: Some(format!("pid {pid}")),
            sender: None,
            left: None,
        };
        let events = [
            event("echo", 7, 0, 100_000),
            event("tt-ping", 9, 100_000, 600_000),
            event("backup", 812, 600_000, 980_000),
            Event { kind: Kind::Hole, ..event("switch", 0, 980_000, 990_000) },
        ];
        let header =
            r#"{"schema":"tailtrim.events/1","error_ns":0,"holes":0,"cpus":"3","missing":[]}"#;
        let report = TraceReport {
            file: None,
            interrupts: None,
            trace: &Header::parse(header).unwrap(),
            counter: "x86-tsc",
            counter_hz: 1,
            drift_ns: 0,
            counts: &Counts {
                events: BTreeMap::from([("hole".to_owned(), 1)]),
                ..Counts::default()
            },
            cpus: vec![occupation(&events, 3, (0, 1_000_000), &BTreeSet::from([7]))],
            advice: advice(["ISO-001", "ISO-016", "ISO-018"], [3]),
        };
        let cpus: Cpus = "3".parse().unwrap();
        let told = text(&report, &cpus);
        let rows = "CPU 3, 1.00 ms: who had it\n  \
            share    times   longest  who\n \
            10.0 %        1    100 µs  thread echo/pid 7: the application itself\n \
            50.0 %        1    500 µs  thread tt-ping/pid 9  → ISO-001 ISO-016 ISO-018\n \
            38.0 %        1    380 µs  thread backup/pid 812  → ISO-001 ISO-016 ISO-018\n  \
            1.0 %        1   10.0 µs  not recorded (a hole in the trace: pid 0)\n  \
            1.0 %                     idle\n";
        assert!(told.starts_with(rows), "{told}");
        let others = online().minus(&cpus);
        for expected in [
            "  ISO-001  The scheduler does not use the isolated CPUs\n",
            "(isolation.cpuset, at once)",
            "(boot.isolcpus, at the next boot)",
            "trace by tracefs: 0 events lost, 1 hole\n",
            &format!("taskset --cpu-list --pid {others} 812\n"),
        ] {
            assert!(told.contains(expected), "{told}");
        }
    }
}
