//! Verdicts about servers, guests and a laptop.

use super::hosts::{changed, reference, untuned};
use super::{expect, report, wish};
use tailtrim_audit::{self as audit, CheckStatus, Wish, Workload};

use CheckStatus::{Fail, NotApplicable, Ok as Good, Unknown, Warn};

#[test]
fn a_server_as_it_comes() {
    let report = report(&untuned(), wish("2-3,6-7", Workload::Poll));
    expect(
        &report,
        &[
            ("BOOT-001", Good),
            ("BOOT-003", NotApplicable),
            ("ISO-001", Fail),
            ("ISO-003", Fail),
            ("ISO-006", Fail),
            ("ISO-012", Fail),
            ("ISO-018", Warn),
            ("ISO-021", Warn),
            ("ISO-022", Good),
            ("ISO-024", Unknown),
            ("SCH-001", Warn),
            ("SCH-002", NotApplicable),
            ("WD-001", Fail),
            ("WD-002", Fail),
            ("WD-003", Fail),
            ("AUD-003", Warn),
            ("AUD-004", Warn),
            ("AUD-005", Warn),
            ("IRQ-001", Fail),
            ("IRQ-002", Warn),
            ("IRQ-003", Fail),
            ("IRQ-004", Unknown),
            ("IRQ-005", Unknown),
            ("IRQ-006", Fail),
            ("MEM-001", Warn),
            ("MEM-002", Unknown),
            ("MEM-003", Good),
            ("MEM-005", Fail),
            ("MEM-006", Warn),
            ("MEM-007", Warn),
            ("MEM-009", Warn),
            ("MEM-010", Warn),
            ("MEM-015", Warn),
            ("PWR-003", Fail),
            ("PWR-004", Warn),
            ("PWR-008", Fail),
            ("PWR-009", Warn),
            ("PWR-010", Warn),
            ("PWR-013", Warn),
            ("PWR-016", Unknown),
            ("CLK-001", Good),
            ("CLK-003", Warn),
            ("SEC-001", Good),
            ("NET-001", Fail),
            ("NET-002", Warn),
            ("NET-003", Warn),
            ("NET-007", Good),
            ("NET-012", Good),
            ("NET-015", Warn),
            ("NET-019", Good),
            ("CAT-001", Warn),
            ("VM-001", NotApplicable),
            ("DPK-001", Warn),
            ("SVC-001", Warn),
            ("SVC-006", Good),
            ("SVC-007", Good),
        ],
    );
    let said = &report.answer("PWR-003").unwrap().said;
    assert!(said.contains("C6 (170 µs) on CPUs 2-3,6-7") && !said.contains("C1E"), "{said}");
    assert!(report.answer("IRQ-003").unwrap().said.contains("40 (nvme0q3) to 3"));
}

#[test]
fn the_papers_host_done_right_fails_nothing() {
    let report = report(&changed(super::hosts::TUNED), wish("2-3", Workload::Poll));
    let failed: Vec<String> =
        report.of(Fail).map(|one| format!("{} {}", one.check.id, one.finding.said)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    expect(
        &report,
        &[
            ("BOOT-001", Good),
            ("BOOT-002", Good),
            ("BOOT-003", Good),
            ("BOOT-004", Good),
            ("BOOT-005", Good),
            ("ISO-001", Good),
            ("ISO-002", Good),
            ("ISO-003", Good),
            ("ISO-006", Good),
            ("ISO-007", Good),
            ("ISO-014", Good),
            ("ISO-016", Good),
            ("ISO-018", Good),
            ("ISO-021", Good),
            ("ISO-024", Good),
            ("IRQ-005", Good),
            ("IRQ-008", Good),
            ("IRQ-010", Good),
            ("MEM-013", Good),
            ("MEM-008", Warn),
            ("PWR-003", Good),
            ("PWR-016", Good),
            ("NET-013", Good),
            ("DPK-002", Good),
            ("DPK-003", Good),
            ("SCH-003", Good),
            ("WD-002", Good),
        ],
    );
    let level = report.answer("ISO-024").unwrap().level.unwrap();
    assert_eq!(level.word(), "seen");
}

#[test]
fn the_papers_boot_line_as_printed() {
    let report = report(&changed(super::hosts::TYPOS), wish("1-3", Workload::Poll));
    expect(
        &report,
        &[
            ("BOOT-001", Fail),
            ("BOOT-002", Fail),
            ("BOOT-003", Good),
            ("ISO-001", Good),
            ("ISO-002", Warn),
            ("ISO-003", Fail),
            ("ISO-006", Fail),
            ("ISO-008", Warn),
            ("WD-002", Fail),
            ("PWR-001", Warn),
            ("PWR-006", Warn),
            ("CLK-003", Good),
            ("IRQ-001", Good),
        ],
    );
    let words = &report.answer("BOOT-001").unwrap().said;
    assert!(
        words.contains("nosoftlookup (write nosoftlockup)")
            && words.contains("pcie_asmp=off (write pcie_aspm=off)"),
        "{words}"
    );
    let swallowed = report.answer("BOOT-002").unwrap();
    assert!(swallowed.said.contains("write rcu_nocb_poll"));
    assert!(swallowed.evidence.iter().any(|known| known.value.contains("(none)")));
    assert!(
        report.answer("ISO-006").unwrap().said.contains("CPUs 1-3 run RCU callbacks themselves")
    );
}

#[test]
fn a_guest() {
    let report = report(&changed(super::hosts::GUEST), wish("2-3", Workload::Guest));
    expect(
        &report,
        &[
            ("VM-001", Fail),
            ("VM-005", Good),
            ("VM-008", Warn),
            ("VM-009", Warn),
            ("CLK-001", Good),
            ("CLK-002", Warn),
            ("FW-002", NotApplicable),
            ("AUD-003", NotApplicable),
            ("CAT-001", NotApplicable),
            ("NET-009", Warn),
            ("ISO-021", Good),
            ("PWR-011", NotApplicable),
        ],
    );
    assert!(report.answer("VM-001").unwrap().said.contains("40 ms stolen"));
}

#[test]
fn a_server_of_amd_with_the_interface_at_the_other_socket() {
    let report = report(&changed(super::hosts::AMD), wish("2-3", Workload::Poll));
    expect(
        &report,
        &[
            ("BOOT-003", Fail),
            ("ISO-003", Fail),
            ("ISO-004", Warn),
            ("NET-012", Fail),
            ("MEM-009", Warn),
            ("SCH-001", NotApplicable),
            ("SCH-002", Fail),
            ("PWR-007", Good),
            ("PWR-011", Warn),
            ("VM-011", Good),
            ("NET-020", Warn),
            ("ISO-021", Fail),
        ],
    );
    assert!(report.answer("BOOT-003").unwrap().said.contains("nohz_full=2-3,16 gives none"));
}

#[test]
fn a_laptop_of_which_nothing_is_said() {
    let tree = changed(super::hosts::LAPTOP);
    let report = report(&tree, Wish::default());
    assert_eq!(report.intent.isolate.to_string(), "1");
    assert_eq!(report.intent.workload, Workload::Interrupt);
    assert_eq!(report.intent.inferred.len(), 3);
    expect(
        &report,
        &[
            ("CLK-001", Fail),
            ("SEC-002", Warn),
            ("PWR-015", Warn),
            ("NET-009", Warn),
            ("VM-002", NotApplicable),
            ("SCH-003", NotApplicable),
        ],
    );
}

#[test]
fn the_reference_machine() {
    let report = report(&reference(), Wish::default());
    expect(
        &report,
        &[
            ("ISO-001", Fail),
            ("ISO-003", Fail),
            ("SVC-007", Fail),
            ("IRQ-001", Fail),
            ("MEM-005", Good),
            ("CLK-001", Good),
            ("FW-002", NotApplicable),
            ("BOOT-001", Warn),
            ("VM-001", Good),
            ("SCH-007", Warn),
        ],
    );
    assert_eq!(report.guest, Some(true));
    assert_eq!(report.counts().total(), audit::all().count());
}

fn said(host: &str, id: &str) -> (CheckStatus, String) {
    let report = report(&changed(host), wish("2-3", Workload::Poll));
    let found = report.answer(id).unwrap();
    (found.verdict, found.said.clone())
}

#[test]
fn a_loaded_bpf_scheduler_is_told() {
    let kernel = "/proc/sys/kernel/osrelease: 6.12.48-amd64\n".to_owned();
    assert_eq!(said(&kernel, "SCH-010").0, NotApplicable);
    let state = |state: &str| format!("{kernel}/sys/kernel/sched_ext/state: {state}\n");
    assert_eq!(said(&state("disabled"), "SCH-010").0, Good);
    let loaded = state("enabled") + "/sys/kernel/sched_ext/root/ops: lavd\n";
    assert_eq!(said(&loaded, "SCH-010"), (Warn, "lavd is enabled".to_owned()));
}

#[test]
fn slices_longer_than_the_kernels_own_are_told() {
    let slice = |ns: u32| format!("/sys/kernel/debug/sched/base_slice_ns: {ns}\n");
    assert_eq!(said(&slice(2_800_000), "SCH-008").0, Good);
    let (status, words) = said(&slice(10_000_000), "SCH-008");
    assert!(status == Warn && words.contains("base_slice_ns is 10000000"), "{words}");
}

#[test]
fn a_partition_that_the_kernel_refuses_says_why() {
    let why = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
    let host = format!("/sys/fs/cgroup/packets/cpuset.cpus.partition: {why}\n");
    let (status, words) = said(&host, "ISO-001");
    assert!(status == Fail && words.contains(&format!("packets: {why}")), "{words}");
}

/// Pods with whole CPUs have them for themselves, as far as the kubelet goes.
#[test]
fn cpus_of_the_static_cpu_manager_are_those_of_the_packets() {
    let state = |pods: &str| {
        let kept = format!("{{\"policyName\":\"static\",\"defaultCpuSet\":\"0-1\"{pods}}}");
        report(
            &changed(&format!("/var/lib/kubelet/cpu_manager_state <<\n{kept}\n>>\n")),
            Wish::default(),
        )
        .intent
    };
    let given = state(r#","entries":{"pod-1":{"router":"2-3"},"pod-2":{"a":"6","b":"7"}}"#);
    assert_eq!(given.isolate.to_string(), "2-3,6-7");
    assert!(!given.isolate_assumed && given.inferred[0].contains("kubelet"), "{given:?}");
    assert!(state("").isolate_assumed);
}

#[test]
fn what_is_seen_from_a_container_is_told_apart() {
    let inferred = |namespaces: &str| report(&changed(namespaces), Wish::default()).intent.inferred;
    let host = "/proc/1/ns/pid -> pid:[4026531836]\n/proc/1/ns/cgroup -> cgroup:[4026531835]\n";
    assert!(!inferred(host)[0].contains("container"));
    let pod = "/proc/1/ns/pid -> pid:[4026532301]\n/proc/1/ns/cgroup -> cgroup:[4026532302]\n";
    let told = inferred(pod);
    assert!(told[0].contains("container: processes and control groups are its own"), "{told:?}");
}

/// As irqbalance 1.9.2 reads them: see the table in the crate's irqbalance.rs.
#[test]
fn irqbalance_leaves_out_isolated_cpus_unless_others_are_banned() {
    let isolated = "/sys/devices/system/cpu/isolated: 2-3\n";
    let file = |setting: &str| format!("{isolated}/etc/default/irqbalance: {setting}\n");
    let (status, said_of_it) = said(isolated, "IRQ-006");
    assert_eq!(status, Good, "{said_of_it}");
    for (setting, status, words) in [
        ("IRQBALANCE_BANNED_CPULIST=\"2-3\"", Good, "CPUs 2-3"),
        ("IRQBALANCE_BANNED_CPULIST=", Good, "what is isolated"),
        ("#IRQBALANCE_BANNED_CPULIST=0", Good, "what is isolated"),
        ("IRQBALANCE_BANNED_CPULIST=3-2", Fail, "up to a mistake and leaves out no CPU"),
        ("IRQBALANCE_BANNED_CPULIST=-", Fail, "up to a mistake"),
        ("IRQBALANCE_BANNED_CPULIST=2", Fail, "no isolated CPUs beside"),
        ("IRQBALANCE_ARGS=--banirq=30", Good, "does not move interrupts of --banirq=30"),
    ] {
        let found = said(&file(setting), "IRQ-006");
        assert!(found.0 == status && found.1.contains(words), "{setting}: {found:?}");
    }
}

/// A busy thread on its own CPU is stopped by a quota of one whole CPU as soon as its group does anything beside.
#[test]
fn a_quota_that_stops_its_group_fails_at_any_depth() {
    let group = "/sys/fs/cgroup/kubepods.slice/burstable.slice/pod1.slice/cri-1.scope";
    let limited = format!("{group}/cpu.max: 100000 100000\n");
    assert_eq!(said(&limited, "SVC-005").0, Warn);
    let counts = |place: &str, times: u32, us: u32| {
        format!(
            "/tailtrim/observation/{place}{group}/cpu.stat <<\nnr_periods 9\nnr_throttled {times}\nthrottled_usec {us}\n>>\n"
        )
    };
    let watched = "/tailtrim/observation/milliseconds: 1000\n";
    let stopped = limited + watched + &counts("before", 7, 900) + &counts("after", 9, 1_900);
    let (status, words) = said(&stopped, "SVC-005");
    assert_eq!(status, Fail);
    assert!(words.contains("cri-1.scope (100000 100000) 2 times, 1000 µs in all"), "{words}");
}
