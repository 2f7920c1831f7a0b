//! The boot-line linter through its public interface: boot lines that papers and guides print, with what they
//! really do; lines of known-good words; and lines of anything.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use proptest::prelude::*;
use tailtrim_lint::{Context, Finding, Kind, LintReport, Severity, lint};

fn on(line: &str, kernel: &str, cpus: &str) -> LintReport {
    let kernel = Some(kernel.parse().unwrap());
    lint(line, &Context { kernel, cpus: Some(cpus.parse().unwrap()) })
}

fn about<'a>(report: &'a LintReport, word: &str) -> Vec<&'a Finding> {
    report.findings.iter().filter(|finding| finding.word == word).collect()
}

/// Table I of "Ducked Tails" (HiPNet 2021), on four cores; its kernel was 4.19.
const DUCKED_TAILS: &str = "nosmt isolcpus=1-3 nohz_full=1-3 rcu_nocbs=1-3 rcu_nocbs_poll irqaffinity=0 idle=poll \
    intel_idle.max_cstate=0 intel_pstate=disable tsc=reliable mce=ignore_ce audit=0 nmi_watchdog=0 skew_tick=1 \
    nosoftlookup";

/// Host and guest of Intel's guide to hosts of network functions, word for word.
const NFVI_HOST: &str = "isolcpus=11-15,31-35 nohz_full=11-15,31-35 rcu_nocbs=11-15,31-35 iommu=pt intel_iommu=on \
    default_hugepagesz=1G hugepagesz=1G mce=off idle=poll intel_pstate=disable processor.max_cstate=1 pcie_asmp=off \
    tsc=reliable";
const NFVI_GUEST: &str = "isolcpus=1 nohz_full=1 rcu_nocbs=1 mce=off idle=poll default_hugepagesz=1G hugepagesz=1G tsc=reliable";

#[test]
fn the_table_of_ducked_tails() {
    let report = on(DUCKED_TAILS, "6.1", "0-3");
    let words: Vec<&str> = report.findings.iter().map(|finding| finding.word.as_str()).collect();
    assert_eq!(words, ["rcu_nocbs_poll", "nosoftlookup"]);
    let poll = &report.findings[0];
    assert_eq!((poll.kind, poll.severity), (Kind::SwallowedPrefix, Severity::Error));
    assert_eq!(poll.right.as_deref(), Some("rcu_nocb_poll"));
    assert!(poll.effect.contains("throws away the list 1-3"), "{}", poll.effect);
    assert!(poll.effect.contains("nohz_full= hides"), "{}", poll.effect);
    assert_eq!(report.prediction.rcu_offloaded.to_string(), "1-3");
    assert!(!report.prediction.rcu_poll);
    let lockup = &report.findings[1];
    assert_eq!(lockup.right.as_deref(), Some("nosoftlockup"));
    assert!(lockup.effect.contains("detector stays on"), "{}", lockup.effect);
    assert_eq!(report.prediction.to_init, ["nosoftlookup"]);
}

#[test]
fn without_nohz_full_the_mistyped_flag_loses_everything() {
    let report = on("isolcpus=1-3 rcu_nocbs=1-3 rcu_nocbs_poll", "6.1", "0-3");
    assert!(report.prediction.rcu_offloaded.is_empty());
    let poll = about(&report, "rcu_nocbs_poll")[0];
    assert!(poll.effect.contains("no CPU's callbacks"), "{}", poll.effect);
}

#[test]
fn on_the_kernel_of_the_paper_the_same_word_is_only_unknown() {
    let report = on(DUCKED_TAILS, "4.19", "0-3");
    let poll = about(&report, "rcu_nocbs_poll")[0];
    assert_eq!((poll.kind, poll.right.as_deref()), (Kind::NearMiss, Some("rcu_nocb_poll")));
    assert!(poll.effect.contains("logs nothing"), "{}", poll.effect);
    assert_eq!(report.prediction.rcu_offloaded.to_string(), "1-3");
    assert_eq!(report.prediction.to_init, ["rcu_nocbs_poll", "nosoftlookup"]);
}

#[test]
fn the_host_and_the_guest_of_the_nfvi_guide() {
    let report = on(NFVI_HOST, "6.1", "0-39");
    let kinds: Vec<(&str, Kind)> =
        report.findings.iter().map(|finding| (finding.word.as_str(), finding.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("hugepagesz=1G", Kind::Misunderstood),
            ("mce=off", Kind::Misunderstood),
            ("pcie_asmp=off", Kind::NearMiss)
        ]
    );
    let aspm = about(&report, "pcie_asmp=off")[0];
    assert_eq!(aspm.right.as_deref(), Some("pcie_aspm=off"));
    assert!(aspm.effect.contains("firmware"), "{}", aspm.effect);
    assert_eq!(report.prediction.to_environment, ["pcie_asmp=off"]);
    assert_eq!(report.prediction.isolated.to_string(), "11-15,31-35");
    // Copied to a smaller machine, the lists are dropped whole.
    let small = on(NFVI_HOST, "6.1", "0-15");
    let dropped = small.findings.iter().filter(|finding| finding.kind == Kind::OutOfRange).count();
    assert_eq!(dropped, 3);
    assert!(small.prediction.isolated.is_empty());
    let guest = on(NFVI_GUEST, "6.1", "0-1");
    assert_eq!(guest.worst(), Some(Severity::Note));
    assert_eq!(guest.prediction.nohz_full.to_string(), "1");
}

/// The corrections of research into guides and papers: word, kind, right name, part of the true effect.
const CORRECTIONS: &[(&str, Kind, &str, &str)] = &[
    ("isolcpu=1-3", Kind::NearMiss, "isolcpus=1-3", "no CPU is taken out of the scheduler"),
    ("nosoftlookup", Kind::NearMiss, "nosoftlockup", "stays on"),
    ("pcie_asmp=off", Kind::NearMiss, "pcie_aspm=off", "environment of init"),
    ("rcu_nocbs_poll", Kind::SwallowedPrefix, "rcu_nocb_poll", "Nothing is logged"),
    ("rcu_nocb=1-3", Kind::NearMiss, "rcu_nocbs=1-3", "RCU callbacks run in softirq"),
    (
        "isolcpus=managed_irq,1-3",
        Kind::Misunderstood,
        "isolcpus=domain,managed_irq,1-3",
        "stays empty",
    ),
    (
        "isolcpus=manged_irq,domain,1-3",
        Kind::BadValue,
        "isolcpus=managed_irq,domain,1-3",
        "skipped",
    ),
    (
        "isolcpus=1-3,managed_irq",
        Kind::BadValue,
        "isolcpus=managed_irq,1-3",
        "whole list is dropped",
    ),
    ("isolcpus=nohz,1-3", Kind::Misunderstood, "isolcpus=domain,nohz,1-3", "watchdog"),
    ("nohz_full=1-7", Kind::OutOfRange, "", "whole list is dropped"),
    ("isolcpus=1-7", Kind::OutOfRange, "", "incorrect CPU range"),
    ("kthread_cpus=0", Kind::NotMainline, "nohz_full", "keeps kernel threads off"),
    ("tsc=relaible", Kind::BadValue, "tsc=reliable", "nothing is logged"),
    ("tsc=nowatchdog", Kind::Misunderstood, "tsc=reliable", "ten minutes"),
    ("intel_idle.max_cstat=0", Kind::NearMiss, "intel_idle.max_cstate=0", "nothing reports it"),
    (
        "intel_idle.max_cstate=0",
        Kind::Misunderstood,
        "intel_idle.max_cstate=1",
        "acpi_idle takes over",
    ),
    ("processor.max_cstate=0", Kind::Misunderstood, "processor.max_cstate=1", "0 is made 1"),
    ("mitigations=no", Kind::BadValue, "mitigations=off", "stay on"),
    ("mce=ignorece", Kind::BadValue, "mce=ignore_ce", "every five minutes"),
    ("mce=off", Kind::Misunderstood, "mce=ignore_ce", "not contained"),
    ("transparent_hugepage=nevr", Kind::BadValue, "transparent_hugepage=never", "khugepaged"),
    ("numa_balancing=off", Kind::BadValue, "numa_balancing=disable", "rejected"),
    ("CONFIG_RCU_NOCB_FULL", Kind::NearMiss, "rcu_nocbs=LIST", "CONFIG_RCU_NOCB_CPU"),
    ("sysctl.net.core.bus_poll=50", Kind::NearMiss, "sysctl.net.core.busy_poll=50", "sysctl"),
    ("net.core.busy_poll=50", Kind::NearMiss, "sysctl.net.core.busy_poll=50", "module"),
    ("audit=no", Kind::BadValue, "audit=off", "switched on"),
    ("nosoftlockup=0", Kind::BadValue, "", "in force all the same"),
    ("isolcpus", Kind::BadValue, "isolcpus=LIST", "argument"),
    ("nohz_full=1\u{2013}3", Kind::BadValue, "nohz_full=1-3", "text processor"),
    ("nohz_full=0-3", Kind::BootCpu, "", "boot CPU is left out"),
    ("nohz_full=0-2", Kind::BootCpu, "", "timekeeping"),
    ("rcu_nocb_poll", Kind::Contradiction, "", "there are none"),
    ("rcutree.nohz_full_patience_delay=1000", Kind::OtherVersion, "", "since 6.11"),
    ("amd_pstate=active", Kind::OtherVersion, "", "nothing is logged"),
    ("nodelayacct", Kind::OtherVersion, "", "until 5.13"),
    ("irqaffinity=0,9", Kind::OutOfRange, "", "boot CPU"),
];

#[test]
fn every_correction_is_made() {
    for (line, kind, right, effect) in CORRECTIONS.iter().copied() {
        let report = on(line, "6.1", "0-3");
        let found = report.findings.iter().find(|finding| finding.kind == kind);
        let found = found.unwrap_or_else(|| panic!("{line}: {:#?}", report.findings));
        assert_eq!(found.right.as_deref().unwrap_or_default(), right, "{line}");
        assert!(found.effect.contains(effect), "{line}: {}", found.effect);
        assert!(line.get(found.at..found.end).is_some_and(|part| !part.is_empty()), "{line}");
    }
}

#[test]
fn words_against_each_other() {
    for (line, kind, word) in [
        ("isolcpus=1-3 nohz_full=2-3", Kind::ListsDisagree, "nohz_full=2-3"),
        ("isolcpus=2-3 rcu_nocbs=1-3", Kind::ListsDisagree, "rcu_nocbs=1-3"),
        ("isolcpus=2 isolcpus=3", Kind::ListsDisagree, "isolcpus=3"),
        ("isolcpus=2-3 irqaffinity=0-2", Kind::ListsDisagree, "irqaffinity=0-2"),
        ("isolcpus=2-3 systemd.cpu_affinity=0-3", Kind::ListsDisagree, "systemd.cpu_affinity=0-3"),
        ("rcu_nocbs=1-3 rcu_nocbs=2", Kind::Contradiction, "rcu_nocbs=2"),
        ("audit=1 audit=0", Kind::Contradiction, "audit=1"),
        ("audit=0 audit=0", Kind::Duplicate, "audit=0"),
        (
            "default_hugepagesz=1G default_hugepagesz=2M hugepages=4",
            Kind::Contradiction,
            "default_hugepagesz=2M",
        ),
        ("hugepages=4 hugepagesz=1G", Kind::Contradiction, "hugepages=4"),
        ("hugepagesz=4M hugepages=4", Kind::Contradiction, "hugepages=4"),
        ("hugepagesz=1G hugepages=4 hugepages=512", Kind::Contradiction, "hugepages=512"),
        ("hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=2", Kind::Duplicate, "hugepagesz=1G"),
        ("nowatchdog nmi_watchdog=1", Kind::Contradiction, "nmi_watchdog=1"),
        ("nohz_full=1-3 nohz=off", Kind::Contradiction, "nohz=off"),
        ("nohz_full=1-3 tsc=unstable", Kind::Contradiction, "tsc=unstable"),
    ] {
        let report = on(line, "6.1", "0-3");
        let found =
            report.findings.iter().any(|found| (found.kind, found.word.as_str()) == (kind, word));
        assert!(found, "{line}: {:#?}", report.findings);
    }
}

/// Their readers are programs of the initial file system, of installers and of appliances.
#[test]
fn words_that_other_programs_read_are_no_findings() {
    let line = "BOOT_IMAGE=/vmlinuz lvm=vg0 rd.lvm.lv=vg/root systemd.unit=rescue.target boot=live dolvm iscsi_initiator=iqn \
        auto-install/enable=true plymouth:debug cryptdevice=UUID=1:root alpine_dev=sda1 RUNLEVEL=3 ip=dhcp hostname=a";
    assert_eq!(on(line, "6.1", "0-3").findings, []);
}

/// Three letters are within a slip of anything.
#[test]
fn a_short_name_is_proposed_only_where_it_matters_for_latency() {
    for (line, kind) in [("evmm=1", Kind::UnknownWord), ("tcs=reliable", Kind::NearMiss)] {
        assert_eq!(only(line, "6.1").map(|(kind, ..)| kind), Some(kind), "{line}");
    }
    let capitals = only("ISOLCPUS=1-3", "6.1").unwrap();
    assert_eq!((capitals.0, capitals.2.as_str()), (Kind::NearMiss, "isolcpus=1-3"));
}

/// Words that do what they say on Linux 6.1 with eight CPUs, whichever of them stand together.
const GOOD: &[&str] = &[
    "BOOT_IMAGE=/boot/vmlinuz-6.1.0-56-amd64",
    "root=UUID=1234",
    "ro",
    "quiet",
    "splash",
    "isolcpus=domain,managed_irq,2-7",
    "nohz_full=2-7",
    "rcu_nocbs=2-7",
    "irqaffinity=0-1",
    "idle=poll",
    "intel_pstate=disable",
    "tsc=reliable",
    "mce=ignore_ce",
    "audit=0",
    "nmi_watchdog=0",
    "skew_tick=1",
    "nosoftlockup",
    "nowatchdog",
    "transparent_hugepage=never",
    "numa_balancing=disable",
    "iommu=pt",
    "intel_iommu=on",
    "pcie_aspm=off",
    "processor.max_cstate=1",
    "psi=0",
    "mitigations=off",
    "nosmt",
    "rcupdate.rcu_normal_after_boot=1",
    "workqueue.power_efficient=1",
    "systemd.cpu_affinity=0-1",
    "rd.break",
    "mymodule.anything=1",
    "console=ttyS0,115200n8",
    "init_on_alloc=0",
    "preempt=none",
    "split_lock_detect=off",
    "clocksource=tsc",
    "hpet=disable",
    "highres=on",
    "nohz=on",
    "threadirqs",
    "rcutree.use_softirq=0",
    "rcutree.kthread_prio=11",
    "kvm.halt_poll_ns=0",
    "sysctl.vm.stat_interval=60",
    "net.ifnames=0",
    "crashkernel=256M",
    "selinux=0",
    "LANG=C",
    "acpi_osi=Linux",
    "delayacct",
];

proptest! {
    #[test]
    fn known_good_words_have_no_findings(words in proptest::sample::subsequence(GOOD, 0..GOOD.len())) {
        let report = on(&words.join(" "), "6.1", "0-7");
        prop_assert!(report.findings.is_empty(), "{:#?}", report.findings);
    }

    #[test]
    fn any_line_is_read(line in ".{0,200}", cpus in 1_u32..9) {
        let report = on(&line, "6.1", &format!("0-{cpus}"));
        for finding in &report.findings {
            prop_assert!(line.get(finding.at..finding.end).is_some(), "{finding:?}");
        }
        serde_json::to_string(&report).unwrap();
    }

    #[test]
    fn any_mixture_of_words_is_read(
        words in proptest::collection::vec(
            (proptest::sample::select(GOOD), "[-a-z_.=,0-9N:/\u{2013}\"]{0,6}", 0_usize..30),
            0..8,
        ),
        cpus in proptest::option::of(1_u32..70),
    ) {
        let cut = |(word, more, at): &(&str, String, usize)| {
            let at = (*at).min(word.len());
            format!("{}{more}{}", &word[..at], &word[at..])
        };
        let line = words.iter().map(cut).collect::<Vec<_>>().join(" ");
        let cpus = cpus.map(|last| format!("0-{last}").parse().unwrap());
        let report = lint(&line, &Context { kernel: None, cpus });
        for finding in &report.findings {
            prop_assert!(line.get(finding.at..finding.end).is_some(), "{line}: {finding:?}");
        }
    }
}

/// The kind of the one finding about a line, and what should stand there instead.
fn only(line: &str, kernel: &str) -> Option<(Kind, Severity, String)> {
    let report = on(line, kernel, "0-3");
    assert!(report.findings.len() < 2, "{line}: {:#?}", report.findings);
    let found = report.findings.into_iter().next()?;
    Some((found.kind, found.severity, found.right.unwrap_or_default()))
}

#[test]
fn words_of_lists_that_5_10_does_not_know() {
    for line in ["isolcpus=2-N", "nohz_full=all"] {
        let report = on(line, "5.10", "0-3");
        assert_eq!(report.findings[0].kind, Kind::OtherVersion, "{line}");
        assert!(report.prediction.isolated.is_empty() && report.prediction.nohz_full.is_empty());
        assert_eq!(report.prediction.to_environment, [line]);
    }
    assert_eq!(only("isolcpus=2-N", "5.13"), None);
    assert_eq!(on("nohz_full=all", "5.14", "0-3").prediction.nohz_full.to_string(), "1-3");
    let offloaded = on("rcu_nocbs=all", "5.10", "0-3").prediction.rcu_offloaded;
    assert_eq!(offloaded.to_string(), "0-3");
}

#[test]
fn words_by_version() {
    for (line, kernel, known) in [
        ("nosmap", "5.10", true),
        ("nosmap", "6.1", false),
        ("nosmep", "5.10", true),
        ("nosmep", "7.2", false),
        ("sched_debug", "5.10", true),
        ("sched_debug", "6.1", false),
        ("sched_verbose", "5.10", false),
        ("sched_verbose", "6.1", true),
        ("preempt=none", "6.12", true),
        ("preempt=voluntary", "6.19", true),
        ("preempt=none", "7.0", false),
        ("preempt=voluntary", "7.2", false),
        ("preempt=lazy", "6.12", false),
        ("preempt=lazy", "6.13", true),
        ("preempt=lazy", "7.2", true),
    ] {
        let found = only(line, kernel);
        assert_eq!(found.is_none(), known, "{line} on {kernel}: {found:?}");
        if let Some((kind, ..)) = found {
            assert!(
                matches!(kind, Kind::OtherVersion | Kind::NearMiss),
                "{line} on {kernel}: {kind:?}"
            );
        }
    }
    let (.., right) = only("preempt=none", "7.0").unwrap();
    assert_eq!(right, "preempt=lazy");
}

#[test]
fn words_of_other_architectures() {
    for line in ["powersave=off", "nohlt", "arm64.nosve", "l2cr=1"] {
        let (kind, severity, _) = only(line, "6.1").unwrap();
        assert_eq!((kind, severity), (Kind::OtherArchitecture, Severity::Error), "{line}");
    }
    assert_eq!(on("powersave=off", "6.1", "0-3").prediction.to_environment, ["powersave=off"]);
}

#[test]
fn what_the_kernel_searches_for_in_the_whole_line_works_and_is_handed_on() {
    let line = "spectre_v2=off nopti split_lock_detect=off";
    let report = on(line, "6.1", "0-3");
    assert_eq!(report.findings, []);
    assert_eq!(report.prediction.to_init, ["nopti"]);
    assert_eq!(report.prediction.to_environment, ["spectre_v2=off", "split_lock_detect=off"]);
    assert!(on(line, "7.2", "0-3").prediction.to_environment.is_empty());
}

#[test]
fn parameters_under_the_name_of_another_module() {
    for (line, right) in [
        ("processor_idle.max_cstate=1", "processor.max_cstate=1"),
        ("intel.max_cstate=1", "intel_idle.max_cstate=1"),
        ("noht", "nosmt"),
    ] {
        let (kind, _, found) = only(line, "6.1").unwrap();
        assert_eq!((kind, found.as_str()), (Kind::NearMiss, right), "{line}");
    }
}

#[test]
fn isolation_as_openshift_asks_for_it_is_no_error() {
    let line = "nohz_full=1-3 isolcpus=managed_irq,1-3 systemd.cpu_affinity=0";
    let report = on(line, "5.14", "0-3");
    assert_eq!(report.worst(), Some(Severity::Note), "{:#?}", report.findings);
    assert_eq!(on("isolcpus=managed_irq,1-3", "5.14", "0-3").worst(), Some(Severity::Warning));
}
