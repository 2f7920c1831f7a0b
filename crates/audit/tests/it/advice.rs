//! Advice that was wrong: each test names the check and what it said.

use super::hosts::{changed, untuned};
use super::{report, wish};
use std::collections::BTreeMap;
use tailtrim_audit::{self as audit, CheckStatus, Wish, Workload};

use CheckStatus::{Fail, NotApplicable, Ok as Good, Warn};

/// The answer of a check about the server with lines changed.
fn answer(id: &str, lines: &str, workload: Workload) -> (CheckStatus, String) {
    let report = report(&changed(&format!("cpus 0-7\n{lines}\n")), wish("2-3", workload));
    let found = report.answer(id).unwrap();
    (found.verdict, found.said.clone())
}

/// resctrl as its documentation describes it: groups, their masks by cache, and their modes.
struct Resctrl {
    groups: BTreeMap<String, (BTreeMap<u32, u32>, bool)>,
}

impl Resctrl {
    /// Two caches of 11 ways, all of them the default group's.
    fn new() -> Self {
        let all = BTreeMap::from([(0, 0x7ff), (1, 0x7ff)]);
        Self { groups: BTreeMap::from([(String::new(), (all, false))]) }
    }

    /// Whether masks have a way that another group has; of exclusive groups only, if so asked.
    fn overlaps(&self, group: &str, masks: &BTreeMap<u32, u32>, exclusive: bool) -> bool {
        let others = self.groups.iter().filter(|(name, _)| name.as_str() != group);
        let mut others = others.filter(|(_, (_, alone))| *alone || !exclusive);
        others.any(|(_, (other, _))| masks.iter().any(|(cache, mask)| mask & other[cache] != 0))
    }

    /// Write to a file of a group; what last_cmd_status says where that fails.
    fn write(&mut self, path: &str, text: &str) -> Result<(), String> {
        let (group, file) = path.rsplit_once('/').unwrap_or(("", path));
        let (mut masks, alone) = self.groups.get(group).ok_or("no such group")?.clone();
        match file {
            "schemata" => {
                for part in text.strip_prefix("L3:").ok_or("unknown resource")?.split(';') {
                    let (cache, mask) = part.split_once('=').ok_or("missing =")?;
                    let mask = u32::from_str_radix(mask, 16).map_err(|_| "not a mask")?;
                    let ones = mask >> mask.trailing_zeros().min(31);
                    if mask == 0 || mask > 0x7ff || ones & (ones + 1) != 0 {
                        return Err(format!("mask {mask:x} out of range or not contiguous"));
                    }
                    masks.insert(cache.parse().map_err(|_| "not a cache")?, mask);
                }
                if alone && self.overlaps(group, &masks, false) {
                    return Err("overlaps with other group".to_owned());
                }
                if self.overlaps(group, &masks, true) {
                    return Err("overlaps with exclusive group".to_owned());
                }
                self.groups.insert(group.to_owned(), (masks, alone));
            }
            "mode" if text == "exclusive" => {
                if self.overlaps(group, &masks, false) {
                    return Err("schemata overlaps".to_owned());
                }
                self.groups.insert(group.to_owned(), (masks, true));
            }
            "cpus_list" => {}
            other => return Err(format!("no file {other}")),
        }
        Ok(())
    }

    /// Run commands as a shell would, up to the first that fails.
    fn run(&mut self, commands: &str) -> Result<(), String> {
        for command in commands.split("; ").map(str::trim) {
            if let Some(name) = command.strip_prefix("mkdir ") {
                let name = name.trim_start_matches("/sys/fs/resctrl/");
                let all = self.groups[""].0.keys().map(|cache| (*cache, 0x7ff)).collect();
                self.groups.insert(name.to_owned(), (all, false));
            } else if let Some(rest) = command.strip_prefix("echo ") {
                let (text, path) = rest.rsplit_once(" > ").ok_or("no file")?;
                self.write(path.trim_start_matches("/sys/fs/resctrl/"), text.trim_matches('\''))
                    .map_err(|why| format!("{command}: {why}"))?;
            } else if command != "cd /sys/fs/resctrl" {
                return Err(format!("{command}: not understood"));
            }
        }
        Ok(())
    }
}

#[test]
fn cat_002_the_default_group_gives_up_ways_first() {
    let old = "mkdir /sys/fs/resctrl/packets; echo 2-3 > packets/cpus_list; echo L3:0=f > packets/schemata; \
               echo exclusive > packets/mode";
    let refused = Resctrl::new().run(old).unwrap_err();
    assert!(refused.contains("schemata overlaps"), "{refused}");
    let set = audit::find("CAT-002").unwrap().set_now;
    let commands = set.split(" (").next().unwrap().replace("{iso}", "2-3");
    let mut resctrl = Resctrl::new();
    resctrl.run(&commands).unwrap();
    assert!(resctrl.groups["packets"].1, "the group is exclusive");
}

#[test]
fn net_017_the_root_stays_mq() {
    let set = audit::find("NET-017").unwrap().set_now;
    assert!(set.contains("net.core.default_qdisc=pfifo_fast"), "{set}");
    assert!(set.contains("root mq"), "{set}");
    assert!(!set.contains("replace dev {nic} root pfifo_fast"), "{set}");
}

#[test]
fn clk_003_says_what_the_kernel_does_with_the_counter() {
    let flags = |flags: &str| {
        format!("/proc/cpuinfo <<\nvendor_id\t: GenuineIntel\nflags\t\t: tsc {flags}\n>>")
    };
    let ask = |features: &str, kernel: &str, line: &str| {
        let release = format!("/proc/sys/kernel/osrelease: {kernel}\n/proc/cmdline: quiet {line}");
        answer("CLK-003", &format!("{}\n{release}", flags(features)), Workload::Poll)
    };
    let all = "constant_tsc nonstop_tsc tsc_adjust";
    for (features, kernel, line, verdict, part) in [
        (all, "6.1.0-28-amd64", "", Warn, "leaves the counter out"),
        (all, "6.12.9", "", Warn, "leaves the counter out"),
        (all, "5.9.0", "", Warn, "twice a second"),
        (all, "5.10.0-32-amd64", "", Warn, "patch level"),
        ("constant_tsc nonstop_tsc", "6.1.0", "", Warn, "twice a second"),
        (all, "7.2.13", "tsc=watchdog", Warn, "twice a second"),
        (all, "6.1.0", "tsc=nowatchdog", Warn, "every 10 min"),
        ("constant_tsc nonstop_tsc", "6.1.0", "tsc=nowatchdog", Good, "no TSC_ADJUST"),
        (all, "6.1.0", "tsc=reliable", Good, "tsc=reliable"),
    ] {
        let (found, said) = ask(features, kernel, line);
        assert_eq!(found, verdict, "{features} {kernel} {line}: {said}");
        assert!(said.contains(part), "{features} {kernel} {line}: {said}");
    }
}

#[test]
fn sch_009_names_the_word_that_the_kernel_offers() {
    let ask = |offered: &str, kernel: &str| {
        let lines = format!(
            "/sys/kernel/debug/sched/preempt: {offered}\n/proc/sys/kernel/osrelease: {kernel}"
        );
        answer("SCH-009", &lines, Workload::Poll)
    };
    assert_eq!(ask("none (voluntary) full", "6.1.0").0, Good);
    let (verdict, said) = ask("none voluntary (full)", "6.1.0");
    assert!(verdict == Warn && said.ends_with("preempt=none"), "{said}");
    let (verdict, said) = ask("(full) lazy", "7.2.13+deb14-amd64");
    assert!(verdict == Warn && said.ends_with("preempt=lazy"), "{said}");
    assert_eq!(ask("full (lazy)", "7.2.13+deb14-amd64").0, Good);
}

#[test]
fn boot_002_and_the_linter_name_the_same_version() {
    let check = audit::find("BOOT-002").unwrap();
    let line = "rcu_nocbs=1-3 rcu_nocbs_poll";
    let kind = |kernel: &str| {
        let context = tailtrim_lint::Context {
            kernel: Some(kernel.parse().unwrap()),
            cpus: Some("0-3".parse().unwrap()),
        };
        tailtrim_lint::lint(line, &context).findings[0].kind
    };
    assert_eq!(kind("5.17"), tailtrim_lint::Kind::SwallowedPrefix);
    assert_eq!(kind("5.16"), tailtrim_lint::Kind::NearMiss);
    let all = format!("{} {}", check.why, check.source);
    assert!(all.contains("5.17") && !all.contains("5.19"), "{all}");
}

#[test]
fn vm_003_names_the_parameter_of_amd() {
    let check = audit::find("VM-003").unwrap();
    for word in ["kvm_intel.ple_gap=0", "kvm_amd.pause_filter_count=0"] {
        assert!(check.set_boot.contains(word), "{}", check.set_boot);
    }
    let count = "/sys/module/kvm_amd/parameters/pause_filter_count";
    assert_eq!(answer("VM-003", &format!("{count}: 3000"), Workload::Vm).0, Warn);
    assert_eq!(answer("VM-003", &format!("{count}: 0"), Workload::Vm).0, Good);
}

#[test]
fn sch_001_a_daemon_that_sleeps_is_not_throttled() {
    let asleep = "task 700 0-7 2 user 2:99 multipathd";
    let (verdict, said) = answer("SCH-001", asleep, Workload::Interrupt);
    assert!(verdict == Good && said.contains("multipathd (700) sleep"), "{said}");
    let polls = "task 700 2 2 busy 1:50 poller";
    let (verdict, said) = answer("SCH-001", polls, Workload::Interrupt);
    assert!(verdict == Fail && said.contains("poller (700)"), "{said}");
}

#[test]
fn sch_001_since_6_12_only_groups_are_throttled() {
    let host = |config: &str| {
        format!(
            "task 700 2 2 busy 1:50 poller\n/proc/sys/kernel/osrelease: 6.12.9\n\
             /tailtrim/kernel_config <<\n{config}\n>>"
        )
    };
    let without = host("# CONFIG_RT_GROUP_SCHED is not set");
    assert_eq!(answer("SCH-001", &without, Workload::Poll).0, NotApplicable);
    assert_eq!(answer("SCH-001", &host("CONFIG_RT_GROUP_SCHED=y"), Workload::Poll).0, Fail);
}

#[test]
fn pwr_013_does_not_arise_in_a_guest() {
    let report = report(&changed(super::hosts::GUEST), wish("2-3", Workload::Guest));
    assert_eq!(report.answer("PWR-013").unwrap().verdict, NotApplicable);
}

#[test]
fn isolation_that_is_only_assumed_is_called_so() {
    let whole = report(&untuned(), Wish::default());
    assert!(whole.intent.isolate_assumed);
    let affinity = &whole.answer("IRQ-001").unwrap().said;
    assert!(affinity.contains("assumed to be isolated 1-3,5-7"), "{affinity}");
    for one in &whole.results {
        let said = &one.finding.said;
        assert!(!said.contains("isolated CPU"), "{}: {said}", one.check.id);
    }
    assert!(!report(&untuned(), wish("2-3", Workload::Poll)).intent.isolate_assumed);
}
