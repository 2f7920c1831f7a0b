//! AUD: what is written down about the system while it works: audit, machine checks, console.

use super::*;

const MACHINE_CHECKS: &str = "/sys/devices/system/machinecheck/machinecheck#";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("audit.json"),
    evaluators: &[
        ("AUD-001", auditing),
        ("AUD-002", avc),
        ("AUD-003", corrected_errors),
        ("AUD-004", polling),
        ("AUD-005", edac),
        ("AUD-006", console),
        ("AUD-007", split_locks),
    ],
};

fn auditing(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    if matches!(line.last("audit"), Some("0" | "off")) {
        return ok(Asked, "the boot line has audit=0");
    }
    if f.runs("auditd")? {
        return judge(Seen, false, Warn, "auditd runs: auditctl -l shows its rules");
    }
    if f.runs("kauditd")? {
        return ok(Seen, "the kernel could audit, but no daemon asks for it");
    }
    ok(Seen, "neither kauditd nor auditd runs")
}

fn avc(f: &Facts<'_>) -> Answer {
    file(f, "/sys/fs/selinux/avc/cache_threshold", Warn, at_least(8192)).map(|mut answer| {
        if answer.verdict == CheckStatus::NotApplicable {
            answer.said = "SELinux is off".to_owned();
        }
        answer
    })
}

fn corrected_errors(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("mce") == Some("off") {
        return judge(Asked, false, Warn, "mce=off also disables the report of uncorrected errors");
    }
    let all = f.glob(&format!("{MACHINE_CHECKS}/ignore_ce"))?;
    if all.is_empty() {
        return not_applicable("no machine check interface here");
    }
    let on = all.iter().filter(|(_, text)| text == "1").count();
    judge(Set, on == all.len(), Warn, format!("ignore_ce is set on {on} of {} CPUs", all.len()))
}

fn polling(f: &Facts<'_>) -> Answer {
    let all = f.glob(&format!("{MACHINE_CHECKS}/check_interval"))?;
    if all.is_empty() {
        return not_applicable("no machine check interface here");
    }
    let ignored = f.glob(&format!("{MACHINE_CHECKS}/ignore_ce"))?;
    if ignored.len() == all.len() && ignored.iter().all(|(_, text)| text == "1") {
        return ok(Set, "corrected errors are ignored, which stops the timer");
    }
    // Seconds since 6.x, hexadecimal without prefix before: only 0 is the same in both.
    let on: Vec<&str> =
        all.iter().filter(|(_, text)| text != "0").map(|(_, text)| text.as_str()).collect();
    let said = if on.is_empty() {
        "not polled".to_owned()
    } else {
        format!("{} CPUs are polled, check_interval {}", on.len(), on[0])
    };
    judge(Set, on.is_empty(), Warn, said)
}

fn edac(f: &Facts<'_>) -> Answer {
    let Some(modules) = f.optional("/proc/modules")? else {
        return unknown("this kernel has no modules: what is built in is not listed");
    };
    let names = modules.lines().filter_map(|line| line.split_whitespace().next());
    let edac: Vec<&str> = names.filter(|name| name.ends_with("_edac")).collect();
    none_of(Set, &edac, Warn, "no EDAC module")
}

fn console(f: &Facts<'_>) -> Answer {
    let serial =
        f.boot()?.all("console").filter_map(|word| word.value.clone()).find(|name| {
            ["ttyS", "ttyAMA", "hvc", "ttyUSB"].iter().any(|kind| name.starts_with(kind))
        });
    let Some(serial) = serial else {
        return ok(Asked, "no serial console");
    };
    sysctl(f, "kernel.printk", Warn, |text| {
        text.split_whitespace()
            .next()
            .and_then(|level| level.parse::<u32>().ok())
            .is_some_and(|level| level <= 4)
    })
    .map(|mut answer| {
        answer.said = format!("console={serial}, {}", answer.said);
        answer
    })
}

fn split_locks(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("split_lock_detect") == Some("off") {
        return ok(Asked, "split_lock_detect=off");
    }
    sysctl(f, "kernel.split_lock_mitigate", Warn, |text| text == "0")
}
