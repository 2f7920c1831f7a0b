//! Known causes, recognised by name and rhythm, with the checks of the audit that concern them.

use super::absence;
use super::groups::common_detail;
use serde::Serialize;
use std::borrow::Cow;
use tailtrim_trace::{Event, Kind};

/// A cause that is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownCause {
    /// A short name; of a thread of which no more is known, its own.
    pub name: Cow<'static, str>,
    /// Its description, in a sentence.
    pub what: &'static str,
    /// Checks of the audit that say what to change.
    pub checks: &'static [&'static str],
}

const fn signature(
    name: &'static str,
    what: &'static str,
    checks: &'static [&'static str],
) -> KnownCause {
    KnownCause { name: Cow::Borrowed(name), what, checks }
}

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

/// Period at which the kernel polls for corrected machine checks: `INITIAL_CHECK_INTERVAL`, five minutes
/// (arch/x86/kernel/cpu/mce).
const MCE_POLL_NS: i64 = 300 * S;

/// Period at which the kernel compares the counters of CPUs: `SYNC_CHECK_INTERVAL`, ten minutes
/// (arch/x86/kernel/tsc_sync.c).
const TSC_ADJUST_NS: i64 = 600 * S;

/// Time that real-time throttling and the fair server leave to other threads: 50 ms of each second
/// (`sysctl_sched_rt_runtime` in kernel/sched/rt.c, `dl_runtime` of the fair server in kernel/sched/deadline.c), give
/// or take a tick of 10 ms, at which time is accounted for.
const LEFT_TO_OTHERS_NS: std::ops::Range<i64> = 40 * MS..60 * MS;

/// Shootdowns are those of the start when all of them fall into the first of so many parts of a run. Of two that are
/// independent of each other, both do in one run in a hundred; more of them do so less often.
const START: i64 = 10;

/// A rhythm: occurrences this far apart, but for a tenth. The nearest rhythms that mean different things are five and
/// ten minutes, which any tolerance below a third tells apart.
fn every(median_gap_ns: Option<i64>, period_ns: i64) -> bool {
    median_gap_ns.is_some_and(|gap_ns| (gap_ns - period_ns).abs() * 10 <= period_ns)
}

/// Frequencies that kernels tick at (kernel/Kconfig.hz).
const TICKS_HZ: [i64; 4] = [100, 250, 300, 1000];

/// By words that occur in a cause's name or function, most specific first.
static BY_WORD: [(&str, KnownCause); 20] = [
    (
        "flush_tlb",
        signature(
            "TLB shootdown",
            "another thread changed a mapping that this CPU had loaded",
            &["MEM-013"],
        ),
    ),
    (
        "tlb_flush",
        signature(
            "TLB shootdown",
            "another thread changed a mapping that this CPU had loaded",
            &["MEM-013"],
        ),
    ),
    (
        "ipi_mb",
        signature("membarrier", "another thread asked all CPUs for a memory barrier", &["IRQ-008"]),
    ),
    (
        "sync_core",
        signature(
            "code patching",
            "tracing, BPF or a module changed the kernel's code",
            &["MEM-014", "SVC-003"],
        ),
    ),
    (
        "tsc_sync_check",
        signature(
            "TSC_ADJUST timer",
            "the kernel compares the counters of its CPUs every ten minutes",
            &["CLK-003"],
        ),
    ),
    ("vmstat", signature("vmstat", "the kernel sums its memory counters", &["MEM-006"])),
    (
        "mce_timer",
        signature("MCE poll", "the kernel asks for corrected machine checks", &["AUD-004"]),
    ),
    (
        "machine_check_poll",
        signature("MCE poll", "the kernel asks for corrected machine checks", &["AUD-004"]),
    ),
    (
        "rps_trigger_softirq",
        signature(
            "packet steering",
            "another CPU handed packets over to this one (receive packet steering)",
            &["NET-006"],
        ),
    ),
    (
        "irq_work",
        signature(
            "IRQ work",
            "work queued for interrupt context, often by the tick, perf or RCU",
            &["ISO-003", "IRQ-008"],
        ),
    ),
    (
        "thermal",
        signature(
            "thermal interrupt",
            "the processor crossed a temperature or power limit",
            &["PWR-016", "IRQ-009"],
        ),
    ),
    (
        "threshold",
        signature(
            "threshold interrupt",
            "corrected memory errors crossed a threshold",
            &["IRQ-009", "AUD-003"],
        ),
    ),
    (
        "local_timer",
        signature(
            "timer interrupt",
            "a timer expired on this CPU",
            &["ISO-003", "ISO-004", "ISO-024"],
        ),
    ),
    (
        "reschedule",
        signature(
            "reschedule interrupt",
            "another CPU woke a thread up here",
            &["IRQ-008", "ISO-016"],
        ),
    ),
    (
        "call_function",
        signature("function call interrupt", "another CPU had a function run here", &["IRQ-008"]),
    ),
    ("watchdog", signature("watchdog", "the lockup watchdog", &["WD-001", "WD-002", "WD-003"])),
    ("rcu", signature("RCU", "callbacks or grace periods of RCU on this CPU", &["ISO-006"])),
    ("kworker", signature("kworker", "work of a bound workqueue", &["ISO-012", "ISO-014"])),
    ("ksoftirqd", signature("ksoftirqd", "softirqs that were deferred to a thread", &["IRQ-010"])),
    (
        "migration",
        signature(
            "stopper",
            "the kernel stopped this CPU to move a task or patch code",
            &["ISO-016"],
        ),
    ),
];

const TICK: KnownCause = signature(
    "tick",
    "the scheduler's tick, CONFIG_HZ times a second: it was not stopped on this CPU",
    &["ISO-003", "ISO-004", "ISO-024", "CLK-005"],
);
const RESIDUAL_TICK: KnownCause = signature(
    "residual tick",
    "once a second: the tick that full dynticks leave, or vmstat",
    &["ISO-024", "MEM-006"],
);
const THROTTLING: KnownCause = signature(
    "RT throttling",
    "50 ms of each second for other threads: real-time throttling or the fair server",
    &["SCH-001", "SCH-002"],
);
const MCE_POLL: KnownCause = signature(
    "MCE poll",
    "every five minutes: the kernel asks for corrected machine checks",
    &["AUD-004"],
);
const TSC_ADJUST: KnownCause = signature(
    "TSC_ADJUST timer",
    "every ten minutes: the kernel compares the counters of its CPUs",
    &["CLK-003"],
);
const HOST_TICK: KnownCause = signature(
    "host tick",
    "at the rate of a tick, but nothing ran in this system: the hypervisor's host took the CPU",
    &["VM-001", "VM-006", "VM-008"],
);
const STOLEN: KnownCause = signature(
    "stolen",
    "nothing in this system ran: the hypervisor, the firmware (SMI) or a slow memory access",
    &["VM-001", "FW-002"],
);
const STOPPED: KnownCause = signature(
    "device stopped",
    "a signal or a debugger stopped the device's thread (SIGSTOP, ptrace)",
    &[],
);
const ASLEEP: KnownCause = signature(
    "device asleep",
    "the device's thread gave up the CPU: it waited for packets, or paused",
    &["PWR-003", "PWR-004", "NET-018"],
);
const THROTTLED: KnownCause = signature(
    "device throttled",
    "the device's thread was runnable but did not run: its control group had used up its CPU quota",
    &["SVC-005"],
);
const IDLE_EXIT: KnownCause = signature(
    "idle exit",
    "the CPU was idle when the packet arrived, and had to leave a C-state",
    &["PWR-003", "PWR-004", "PWR-002"],
);
const START_UP: KnownCause = signature(
    "start-up TLB shootdowns",
    "mappings changed only in the first tenth of the run: memory was not touched before",
    &["MEM-008", "MEM-013"],
);

/// Of a thread of which no more is known than that the scheduler let it have the CPU: isolation, cpusets and affinity
/// keep it off.
const THREAD_CHECKS: &[&str] = &["ISO-001", "ISO-016", "ISO-018"];

/// Recognises the cause of events from their names, the gaps between them, and the time that each had the CPU itself.
#[must_use]
pub fn recognise(events: &[&Event], net_ns: &[i64]) -> Option<KnownCause> {
    let first = events.first()?;
    let mut starts: Vec<i64> = events.iter().map(|event| event.start_ns).collect();
    starts.sort_unstable();
    let mut gaps: Vec<i64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let gap_ns = gaps.get(gaps.len() / 2).copied();
    let mut lengths = net_ns.to_vec();
    lengths.sort_unstable();
    let length_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let ticks = TICKS_HZ.iter().any(|hz| every(gap_ns, S / hz));
    let text = format!("{} {}", first.name, first.detail.as_deref().unwrap_or(""));
    let text = text.to_lowercase();
    match first.detail.as_deref() {
        Some(absence::STOPPED) => return Some(STOPPED),
        Some(absence::ASLEEP) => return Some(ASLEEP),
        Some(absence::THROTTLED) => return Some(THROTTLED),
        _ => {}
    }
    let thread = first.kind == Kind::Thread;
    // The rhythm, too: slices of the scheduler may be as long.
    if thread && LEFT_TO_OTHERS_NS.contains(&length_ns) && every(gap_ns, S) {
        return Some(THROTTLING);
    }
    if text.contains("cpu_idle") || text.contains("swapper") || text.contains("idle exit") {
        return Some(IDLE_EXIT);
    }
    match first.kind {
        Kind::Gap if ticks => return Some(HOST_TICK),
        Kind::Gap => return Some(STOLEN),
        // Since the function is recorded; its rhythm tells on kernels without that event.
        Kind::Irq if text.contains("tick_") => {
            return Some(if every(gap_ns, S) { RESIDUAL_TICK } else { TICK });
        }
        Kind::Irq if text.contains("local_timer") && first.detail.is_none() => {
            let rhythm = [
                (ticks, TICK),
                (every(gap_ns, S), RESIDUAL_TICK),
                (every(gap_ns, MCE_POLL_NS), MCE_POLL),
                (every(gap_ns, TSC_ADJUST_NS), TSC_ADJUST),
            ];
            if let Some((_, found)) = rhythm.into_iter().find(|(holds, _)| *holds) {
                return Some(found);
            }
        }
        _ => {}
    }
    let by_word = BY_WORD.iter().find(|(word, _)| text.contains(word));
    by_word.map(|(_, found)| found.clone()).or_else(|| thread.then(|| other_thread(events)))
}

fn other_thread(events: &[&Event]) -> KnownCause {
    let name = [Some(events[0].name.as_str()), common_detail(events)].into_iter().flatten();
    KnownCause {
        name: Cow::Owned(name.collect::<Vec<_>>().join("/")),
        what: "another thread ran on this CPU",
        checks: THREAD_CHECKS,
    }
}

/// Of TLB shootdowns that were all over after the first tenth of a run.
#[must_use]
pub fn at_start(events: &[&Event], (from_ns, until_ns): (i64, i64)) -> Option<KnownCause> {
    let shootdowns = events
        .first()
        .is_some_and(|event| event.detail.as_deref().unwrap_or(&event.name).contains("flush_tlb"));
    let early_ns = from_ns + (until_ns - from_ns) / START;
    (shootdowns && events.len() > 1 && events.iter().all(|event| event.end_ns <= early_ns))
        .then_some(START_UP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_audit as audit;

    fn events(kind: Kind, name: &str, gap_ns: i64, long_ns: i64) -> Vec<Event> {
        (0..5)
            .map(|n| Event {
                cpu: 1,
                start_ns: n * gap_ns,
                end_ns: n * gap_ns + long_ns,
                kind,
                name: name.to_owned(),
                detail: None,
                sender: None,
                left: None,
            })
            .collect()
    }

    fn name(kind: Kind, name: &str, gap_ns: i64, long_ns: i64) -> Option<String> {
        let events = events(kind, name, gap_ns, long_ns);
        let references: Vec<&Event> = events.iter().collect();
        recognise(&references, &[long_ns; 5]).map(|signature| signature.name.into_owned())
    }

    #[test]
    fn rhythms_tell_timers_apart() {
        for (gap_ns, expected) in [
            (4_000_000, "tick"),
            (1_001_000, "tick"),
            (S, "residual tick"),
            (300 * S, "MCE poll"),
            (600 * S, "TSC_ADJUST timer"),
            (77_000_000, "timer interrupt"),
        ] {
            let found = name(Kind::Irq, "local_timer", gap_ns, 5_000);
            assert_eq!(found.as_deref(), Some(expected), "{gap_ns}");
        }
        for (kind, named, gap_ns, long_ns, expected) in [
            (Kind::Gap, "", 1_000_000, 8_000, "host tick"),
            (Kind::Gap, "", 1_234_567, 8_000, "stolen"),
            (Kind::Thread, "stress", S, 50_000_000, "RT throttling"),
            // Two threads that take turns of 50 ms are not throttled.
            (Kind::Thread, "stress", 100_000_000, 50_000_000, "stress"),
            (Kind::Irq, "flush_tlb_func", 77, 8, "TLB shootdown"),
            (Kind::Thread, "python3", 77, 8, "python3"),
        ] {
            assert_eq!(name(kind, named, gap_ns, long_ns).as_deref(), Some(expected), "{named}");
        }
        assert_eq!(name(Kind::Softirq, "unheard of", 77, 8), None);
    }

    #[test]
    fn shootdowns_of_the_start_are_recognised() {
        let events = events(Kind::Irq, "flush_tlb_func", 1_000, 100);
        let references: Vec<&Event> = events.iter().collect();
        assert_eq!(at_start(&references, (0, 1_000_000)), Some(START_UP));
        assert_eq!(at_start(&references, (0, 5_000)), None);
    }

    #[test]
    fn checks_exist() {
        let by_rhythm = [
            TICK,
            RESIDUAL_TICK,
            THROTTLING,
            MCE_POLL,
            TSC_ADJUST,
            HOST_TICK,
            STOLEN,
            IDLE_EXIT,
            START_UP,
            STOPPED,
            ASLEEP,
            THROTTLED,
        ];
        let all = BY_WORD.iter().map(|(_, signature)| signature).chain(&by_rhythm);
        for id in all.flat_map(|signature| signature.checks).chain(THREAD_CHECKS) {
            assert!(audit::find(id).is_some(), "no check {id}");
        }
    }
}
