//! ISO, second part: RCU.

use super::super::answer::{
    Answer, CheckStatus, EvidenceLevel, Finding, judge, not_applicable, unknown,
};
use super::super::ask::{few, file, or_none};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use super::super::intent::numbers;
use super::super::paths::LOG;
use crate::KernelVersion;

const ISOLATED: &[Need] = &[Need::Isolated];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "ISO-006",
        title: "RCU callbacks are offloaded",
        importance: Importance::High,
        why: "Otherwise the callbacks that a CPU queued run there in a softirq, in batches of tens of microseconds.",
        read_from: &["/tailtrim/dmesg", "/proc/cmdline"],
        wanted: "\"Offload RCU callbacks from CPUs\" names all of {iso}",
        cost: "the threads that run them need time on housekeeping CPUs",
        set_boot: "rcu_nocbs={iso} (nohz_full= implies it)",
        undo: "remove the word and reboot",
        source: "kernel-per-CPU-kthreads.rst; ducked-tails, Table I",
        needs: ISOLATED,
        evaluate: offloaded,
        ..Check::BLANK
    },
    Check {
        id: "ISO-007",
        title: "RCU's threads run on housekeeping CPUs",
        importance: Importance::High,
        why: "The offloaded callbacks run in rcuo threads. Where these run on the isolated CPU nothing was gained.",
        read_from: &["/proc/#/task/#/status"],
        wanted: "rcuo* and rcuog* may use {hk} only",
        set_now: "taskset -p -c {hk} PID of each rcuo and rcuog thread",
        undo: "taskset -p -c with the old list",
        source: "no_hz.rst; tuned realtime-virtual-host",
        needs: ISOLATED,
        evaluate: threads,
        ..Check::BLANK
    },
    Check {
        id: "ISO-008",
        title: "RCU's threads are not woken by isolated CPUs",
        importance: Importance::Low,
        why: "A CPU that queues a callback wakes the rcuo thread, which costs an interprocessor interrupt's work in the hot path.",
        read_from: &["/tailtrim/dmesg", "/proc/cmdline"],
        wanted: "rcu_nocb_poll where isolated CPUs often enter the kernel",
        cost: "a thread that polls on a housekeeping CPU",
        set_boot: "rcu_nocb_poll",
        undo: "remove the word and reboot",
        source: "kernel-parameters.txt; ducked-tails, Table I",
        needs: ISOLATED,
        evaluate: polling,
        ..Check::BLANK
    },
    Check {
        id: "ISO-009",
        title: "RCU waits longer for CPUs without a tick",
        importance: Importance::Low,
        why: "A grace period that waits for a CPU without tick soon sends it an interprocessor interrupt; most \
            would end by themselves later.",
        read_from: &["/sys/module/rcutree/parameters/nohz_full_patience_delay"],
        wanted: "1000 ms",
        cost: "memory is freed later",
        set_boot: "rcutree.nohz_full_patience_delay=1000",
        undo: "remove the word and reboot",
        source: "tuned network-latency (not yet in 2.25.1)",
        since: Some(KernelVersion::new(6, 11)),
        needs: ISOLATED,
        evaluate: |f| {
            file(
                f,
                "/sys/module/rcutree/parameters/nohz_full_patience_delay",
                CheckStatus::Warn,
                |text| text.parse::<i64>().is_ok_and(|delay| delay > 0),
            )
        },
        ..Check::BLANK
    },
    Check {
        id: "ISO-010",
        title: "No expedited grace periods after boot",
        importance: Importance::Medium,
        why: "An expedited grace period interrupts every CPU, isolated ones too.",
        read_from: &[
            "/sys/kernel/rcu_normal",
            "/sys/module/rcupdate/parameters/rcu_normal_after_boot",
        ],
        wanted: "1 in either file",
        cost: "operations that wait for grace periods take longer",
        set_now: "echo 1 > /sys/kernel/rcu_normal",
        set_boot: "rcupdate.rcu_normal_after_boot=1",
        undo: "echo 0 > /sys/kernel/rcu_normal",
        source: "tuned network-latency; kernel-parameters.txt",
        needs: ISOLATED,
        evaluate: normal_grace_periods,
        ..Check::BLANK
    },
    Check {
        id: "ISO-011",
        title: "Priority of RCU's callbacks",
        importance: Importance::Low,
        why: "On a real-time kernel a busy loop of high priority starves RCU's threads until memory runs out; elsewhere the defaults are right.",
        read_from: &[
            "/sys/module/rcutree/parameters/kthread_prio",
            "/sys/module/rcutree/parameters/use_softirq",
            "/sys/kernel/realtime",
        ],
        wanted: "kthread_prio=11 on a real-time kernel, 0 or 1 elsewhere",
        set_boot: "rcutree.kthread_prio=11",
        undo: "remove the word and reboot",
        source: "OpenShift's node tuning operator; kernel-parameters.txt",
        needs: ISOLATED,
        evaluate: priority,
        ..Check::BLANK
    },
];

fn offloaded(f: &Facts<'_>) -> Answer {
    const TEXT: &str = "Offload RCU callbacks from CPUs:";
    let log = f.log()?;
    let Some(list) = log.after(TEXT) else {
        return match log.whole() {
            true => judge(
                EvidenceLevel::Set,
                false,
                CheckStatus::Fail,
                "no CPU's RCU callbacks are offloaded",
            ),
            false => unknown("the beginning of the kernel's log is gone, which would say it"),
        };
    };
    let set = numbers(list.trim_end_matches('.'));
    let missing = f.iso().minus(&set);
    let said = match missing.is_empty() {
        true => format!("RCU callbacks of CPUs {set} are offloaded"),
        false => {
            format!("CPUs {missing} run RCU callbacks themselves (offloaded: {})", or_none(&set))
        }
    };
    let verdict = if missing.is_empty() { CheckStatus::Ok } else { CheckStatus::Fail };
    Ok(Finding::new(verdict, EvidenceLevel::Set, said).because(LOG, &format!("{TEXT} {list}")))
}

fn threads(f: &Facts<'_>) -> Answer {
    let rcu = |name: &str| name.starts_with("rcuo");
    let all: Vec<_> = f.tasks()?.iter().filter(|task| task.kernel && rcu(&task.name)).collect();
    if all.is_empty() {
        return not_applicable("no rcuo thread: callbacks are not offloaded (ISO-006)");
    }
    let there = all.iter().filter(|task| !task.allowed.intersection(f.iso()).is_empty());
    let names: Vec<String> =
        there.map(|task| format!("{} may use {}", task.name, task.allowed)).collect();
    let said = match names.is_empty() {
        true => format!("{} threads keep to housekeeping CPUs", all.len()),
        false => few(&names),
    };
    judge(EvidenceLevel::Set, names.is_empty(), CheckStatus::Fail, said)
}

fn polling(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    if line.has("rcu_nocb_poll") {
        return judge(
            EvidenceLevel::Asked,
            true,
            CheckStatus::Warn,
            "rcu_nocb_poll is in the line",
        );
    }
    if line.words().iter().any(|word| word.name.starts_with("rcu_nocbs_")) {
        return judge(
            EvidenceLevel::Asked,
            false,
            CheckStatus::Warn,
            "the line has a mistyped rcu_nocb_poll (BOOT-002)",
        );
    }
    not_applicable("not asked for: only CPUs that often enter the kernel gain by it")
}

fn normal_grace_periods(f: &Facts<'_>) -> Answer {
    let files = ["/sys/kernel/rcu_normal", "/sys/module/rcupdate/parameters/rcu_normal_after_boot"];
    if f.optional("/sys/kernel/realtime")?.as_deref() == Some("1") {
        return judge(
            EvidenceLevel::Set,
            true,
            CheckStatus::Warn,
            "a real-time kernel expedites nothing after boot",
        );
    }
    let mut values = Vec::new();
    for path in files {
        values.extend(f.optional(path)?);
    }
    if values.is_empty() {
        return not_applicable("this kernel has neither file");
    }
    let good = values.iter().any(|value| value == "1");
    let said =
        if good { "grace periods are not expedited" } else { "grace periods may be expedited" };
    judge(EvidenceLevel::Set, good, CheckStatus::Warn, said)
}

fn priority(f: &Facts<'_>) -> Answer {
    let real_time = f.optional("/sys/kernel/realtime")?.as_deref() == Some("1");
    file(f, "/sys/module/rcutree/parameters/kthread_prio", CheckStatus::Warn, |text| {
        let priority = text.parse::<i64>().unwrap_or(-1);
        if real_time { priority >= 2 } else { (0..=1).contains(&priority) }
    })
}
