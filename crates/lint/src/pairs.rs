//! Findings about words that stand together: given twice, one against the other, or believed to do
//! something else.

use super::finding::{Context, Finding, Kind, Severity};
use super::predict::Simulation;
use super::table::{TABLE, Value, key};
use super::values::bytes;
use tailtrim_host::{BootLine, Word};

/// All of them.
pub(super) fn findings(line: &BootLine, run: &Simulation, context: &Context) -> Vec<Finding> {
    let mut found = duplicates(line, context);
    found.extend(idle(line));
    found.extend(clocks(line, run, context));
    found.extend(watchdogs(line));
    found.extend(huge_pages(line));
    found.extend(machine_checks(line));
    if let Some(word) = line.all("rcu_nocb_poll").next()
        && run.prediction.rcu_offloaded.is_empty()
    {
        let title = "rcu_nocb_poll has nothing to poll: no CPU is offloaded".to_owned();
        let finding = Finding::new(Severity::Warning, Kind::Contradiction, word, title);
        let effect = "It changes how the threads of offloaded CPUs wait. Without a list in rcu_nocbs= or nohz_full= \
                      that the kernel takes, there are none.";
        found.push(finding.effect(effect).check("ISO-008"));
    }
    found
}

fn duplicates(line: &BootLine, context: &Context) -> Vec<Finding> {
    let mut found = Vec::new();
    for (place, word) in line.words().iter().enumerate() {
        let Some(parameter) = TABLE.find(&word.name, context.kernel) else { continue };
        let earlier = line.words()[..place].iter().rev().find(|earlier| earlier.is(&word.name));
        let Some(earlier) = earlier.filter(|_| !parameter.repeats) else { continue };
        // Lists contradict each other in their own ways: the simulation tells.
        let is_list = matches!(parameter.value, Value::Cpus);
        if earlier.value == word.value {
            let title = format!("{} stands here for the second time", word.text());
            let finding = Finding::new(Severity::Note, Kind::Duplicate, word, title);
            found.push(finding.effect("Once is enough."));
        } else if !is_list || key(&word.name) == "irqaffinity" {
            let first = key(&word.name) == "default_hugepagesz";
            let (wins, loses) = if first { (earlier, word) } else { (word, earlier) };
            let title = format!("{} and {} contradict each other", earlier.text(), word.text());
            let finding = Finding::new(Severity::Warning, Kind::Contradiction, loses, title);
            let which = if first { "first" } else { "last" };
            found.push(finding.effect(format!("The {which} one counts: {}.", wins.text())));
        }
    }
    found
}

fn idle(line: &BootLine) -> Vec<Finding> {
    let mut found = Vec::new();
    let polls = line.last("idle") == Some("poll") || line.last("cpuidle.off") == Some("1");
    let shallow = matches!(line.last("processor.max_cstate"), Some("0" | "1"));
    for word in line.all("intel_idle.max_cstate").filter(|word| word.value.as_deref() == Some("0"))
    {
        if polls || shallow || line.last("idle") == Some("halt") {
            continue;
        }
        let title = "intel_idle.max_cstate=0 limits nothing: it switches intel_idle off".to_owned();
        let finding = Finding::new(Severity::Warning, Kind::Misunderstood, word, title);
        let effect = "acpi_idle takes over with the C-states of the firmware, deep ones too. It works in guides that \
                      also give idle=poll.";
        let finding = finding.effect(effect).right("intel_idle.max_cstate=1");
        found.push(finding.source("intel_idle_init(), drivers/idle/intel_idle.c").check("PWR-001"));
    }
    for word in line.all("processor.max_cstate").filter(|word| word.value.as_deref() == Some("0")) {
        let title = "processor.max_cstate=0 means 1".to_owned();
        let finding = Finding::new(Severity::Warning, Kind::Misunderstood, word, title);
        let effect =
            "0 is made 1: idle CPUs go into C1. It counts for acpi_idle only, not for intel_idle.";
        let finding = finding.effect(effect).right("processor.max_cstate=1");
        found.push(finding.source("drivers/acpi/processor_idle.c").check("PWR-006"));
    }
    found
}

fn clocks(line: &BootLine, run: &Simulation, context: &Context) -> Vec<Finding> {
    let mut found = Vec::new();
    let says = |value: &'static str| {
        line.all("tsc").find(move |word| word.value.as_deref() == Some(value))
    };
    if let Some(word) = says("nowatchdog")
        && says("reliable").is_none()
    {
        let title = "tsc=nowatchdog keeps a timer that tsc=reliable also stops".to_owned();
        let finding = Finding::new(Severity::Warning, Kind::Misunderstood, word, title);
        let effect = "The clock source watchdog stops, but every ten minutes a timer still goes round all CPUs to \
                      check TSC_ADJUST.";
        let finding = finding.effect(effect).right("tsc=reliable").check("CLK-003");
        found.push(finding.source("start_sync_check_timer(), arch/x86/kernel/tsc_sync.c"));
    }
    let against = says("unstable").or_else(|| line.all("notsc").next()).or_else(|| {
        line.all("nohz").find(|word| matches!(word.value.as_deref(), Some("off" | "0" | "n")))
    });
    if let Some(word) = against
        && line.has("nohz_full")
        && (!run.prediction.nohz_full.is_empty() || context.cpus.is_none())
    {
        let title = format!("with {}, nohz_full= stops no tick", word.text());
        let finding = Finding::new(Severity::Error, Kind::Contradiction, word, title);
        let effect = "A tick is stopped only where ticks may stop at all and the scheduler's clock is stable.";
        found.push(
            finding
                .effect(effect)
                .source("can_stop_full_tick(), kernel/time/tick-sched.c")
                .check("ISO-003"),
        );
    }
    found
}

fn watchdogs(line: &BootLine) -> Vec<Finding> {
    let on = |word: &&Word| word.value.as_deref().is_some_and(|value| value.ends_with('1'));
    let wanted = line.all("nmi_watchdog").find(on);
    let (Some(word), true) = (wanted, line.has("nowatchdog")) else { return Vec::new() };
    let title = "nowatchdog undoes nmi_watchdog=1".to_owned();
    let finding = Finding::new(Severity::Warning, Kind::Contradiction, word, title);
    let effect = "nowatchdog keeps both lockup detectors off, wherever it stands.";
    vec![finding.effect(effect).source("nowatchdog_setup(), kernel/watchdog.c").check("WD-001")]
}

fn machine_checks(line: &BootLine) -> Vec<Finding> {
    let off = |word: &&Word| word.value.as_deref() == Some("off");
    let note = |word: &Word| {
        let title = "mce=off switches machine checks off, not only corrected errors".to_owned();
        let effect = "An uncorrectable memory error is then not reported and not contained. mce=ignore_ce stops the \
                      polling for corrected errors, which is what costs time.";
        Finding::new(Severity::Note, Kind::Misunderstood, word, title)
            .effect(effect)
            .right("mce=ignore_ce")
            .source("mcheck_enable(), arch/x86/kernel/cpu/mce/core.c")
            .check("AUD-003")
    };
    line.all("mce").filter(off).map(note).collect()
}

/// Huge pages: each word refers to the size before it (hugepages_setup(), mm/hugetlb.c).
fn huge_pages(line: &BootLine) -> Vec<Finding> {
    const SOURCE: &str = "hugepages_setup(), mm/hugetlb.c";
    let mut found = Vec::new();
    // The size that the next count is for, and where it was named.
    let mut size: Option<(u64, &Word)> = None;
    let mut named = Vec::new();
    let mut counted: Vec<Option<u64>> = Vec::new();
    for word in line.words() {
        let value = word.value.as_deref().unwrap_or_default();
        match key(&word.name).as_str() {
            "hugepagesz" => {
                if let Some(bytes) = bytes(value) {
                    if named.contains(&bytes) {
                        let title = format!("hugepagesz={value} stands here for the second time");
                        let finding = Finding::new(Severity::Error, Kind::Duplicate, word, title);
                        let effect = "It is ignored, and so is the hugepages= behind it; the kernel log says so.";
                        found.push(finding.effect(effect).source(SOURCE).check("MEM-009"));
                    }
                    named.push(bytes);
                    size = Some((bytes, word));
                }
            }
            "default_hugepagesz" => size = bytes(value).map(|bytes| (bytes, word)).or(size),
            "hugepages" => {
                let which = size.map(|(bytes, _)| bytes);
                if counted.last() == Some(&which) {
                    let title = format!("hugepages={value} has no separate hugepagesz=");
                    let finding = Finding::new(Severity::Error, Kind::Contradiction, word, title);
                    let effect = "hugepages= refers to the hugepagesz= before it, which has its count already: it is \
                                  ignored, and the kernel log says so.";
                    found.push(finding.effect(effect).source(SOURCE).check("MEM-009"));
                } else if let (None, Some(later)) = (which, line.all("hugepagesz").next()) {
                    let title = format!("hugepages={value} stands before {}", later.text());
                    let finding = Finding::new(Severity::Warning, Kind::Contradiction, word, title);
                    let effect = "hugepages= refers to the hugepagesz= before it. Here these are pages of the default \
                                  size, 2 MiB unless default_hugepagesz= says otherwise.";
                    let finding = finding.effect(effect).source(SOURCE).check("MEM-009");
                    found.push(finding.right(format!("{} hugepages={value}", later.text())));
                }
                counted.push(which);
            }
            _ => {}
        }
    }
    if let Some((bytes, word)) = size
        && counted.is_empty()
    {
        let title = format!("no huge page of {} MiB is reserved", bytes >> 20);
        let finding = Finding::new(Severity::Note, Kind::Misunderstood, word, title);
        let effect = "The size is made known, without a hugepages= behind it. Pages of 1 GiB are found reliably only \
                      at boot.";
        let finding = finding.effect(effect).source(SOURCE).check("MEM-009");
        found.push(finding.right(format!("{} hugepages=N", word.text())));
    }
    found
}
