//! VM: hosts of virtual machines, and guests.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{few, file};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use crate::Workload;

const KVM: &str = "/sys/module/kvm/parameters";
const HOST: &[Need] = &[Need::Work(&[Workload::Vm])];
const GUEST: &[Need] = &[Need::Guest];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "VM-001",
        title: "No stolen time in the guest",
        importance: Importance::High,
        why: "Stolen time is a stall that no setting in the guest can remove. Inside the guest it looks like a \
            hardware stall.",
        read_from: &["/proc/cpuinfo", "/proc/stat"],
        wanted: "no steal while watched",
        set_boot: "on the host: virtual CPUs pinned one to one to isolated CPUs",
        undo: "",
        source: "Documentation/trace/osnoise-tracer.rst; proc(5)",
        needs: GUEST,
        evaluate: steal,
        ..Check::BLANK
    },
    Check {
        id: "VM-002",
        title: "KVM does not periodically synchronise guests' clocks",
        importance: Importance::Medium,
        why: "Each five minutes every virtual CPU is made to leave the guest. Linux 7.2 no longer has it.",
        read_from: &["/sys/module/kvm/parameters/kvmclock_periodic_sync"],
        wanted: "N",
        set_boot: "kvm.kvmclock_periodic_sync=0",
        undo: "remove the word and reboot",
        source: "tuned cpu-partitioning and realtime-virtual-host",
        needs: HOST,
        evaluate: |f| {
            file(
                f,
                "/sys/module/kvm/parameters/kvmclock_periodic_sync",
                CheckStatus::Warn,
                |text| text == "N",
            )
        },
        ..Check::BLANK
    },
    Check {
        id: "VM-003",
        title: "No pause-loop exits",
        importance: Importance::Medium,
        why: "Hardware that sees a loop of PAUSE leaves the guest so that another can run: with a CPU for each \
            virtual CPU that is useless.",
        read_from: &[
            "/sys/module/kvm_intel/parameters/ple_gap",
            "/sys/module/kvm_amd/parameters/pause_filter_count",
        ],
        wanted: "0",
        cost: "slower guests where they share CPUs",
        set_boot: "kvm_intel.ple_gap=0 (Intel) or kvm_amd.pause_filter_count=0 (AMD)",
        undo: "remove the word and reboot",
        source: "tuned realtime-virtual-host",
        needs: HOST,
        evaluate: pause_loops,
        ..Check::BLANK
    },
    Check {
        id: "VM-004",
        title: "Huge pages of guests stay huge",
        importance: Importance::Low,
        why: "A remedy for a flaw of some CPUs splits executable huge pages, and a worker joins them again.",
        read_from: &["/sys/module/kvm/parameters/nx_huge_pages"],
        wanted: "N (never where guests are trusted)",
        cost: "a guest can hang such a host",
        set_boot: "kvm.nx_huge_pages=never (5.10 knows off only)",
        undo: "remove the word and reboot",
        source: "tuned realtime-virtual-host; hw-vuln/multihit.rst",
        needs: HOST,
        evaluate: |f| {
            file(f, "/sys/module/kvm/parameters/nx_huge_pages", CheckStatus::Warn, |text| {
                matches!(text, "N" | "never" | "off")
            })
        },
        ..Check::BLANK
    },
    Check {
        id: "VM-005",
        title: "Halt polling is chosen on purpose",
        importance: Importance::Low,
        why: "Polling in the host is useless for a guest that never halts; polling in the guest saves the exit.",
        read_from: &[
            "/sys/module/kvm/parameters/halt_poll_ns",
            "/sys/devices/system/cpu/cpuidle/current_driver",
        ],
        wanted: "host: 0 for guests that poll; guest: the idle driver haltpoll",
        set_now: "echo 0 > /sys/module/kvm/parameters/halt_poll_ns",
        set_boot: "in the guest: cpuidle_haltpoll.force=1",
        undo: "echo 200000 > the same file",
        source: "Documentation/virt/kvm/halt-polling.rst; guest-halt-polling.rst",
        needs: &[Need::Work(&[Workload::Vm, Workload::Guest])],
        evaluate: halt_polling,
        ..Check::BLANK
    },
    Check {
        id: "VM-006",
        title: "Virtual CPUs one to one on isolated CPUs",
        importance: Importance::High,
        why: "Two virtual CPUs on one CPU stall each other; the emulator's threads on an isolated CPU stall the guest.",
        read_from: &["/proc/#/task/#/status"],
        wanted: "each thread \"CPU N/KVM\" alone on a CPU of {iso}, other threads of the program on {hk}",
        set_now: "virsh vcpupin GUEST N CPU; virsh emulatorpin GUEST {hk}",
        undo: "virsh vcpupin and emulatorpin with the old lists",
        source: "study of packet processing in virtual machines; tuned cpu-partitioning",
        needs: HOST,
        evaluate: pinning,
        ..Check::BLANK
    },
    Check {
        id: "VM-007",
        title: "Guests have huge pages that stay",
        importance: Importance::Medium,
        why: "Each miss of the TLB in a guest walks two tables; memory that can be swapped or moved stalls the guest.",
        read_from: &["/proc/#/status", "/sys/devices/system/node/node#/hugepages/*/nr_hugepages"],
        wanted: "huge pages in use, VmLck about VmRSS",
        set_boot: "<memoryBacking><hugepages/><locked/></memoryBacking> in the guest's XML",
        undo: "remove it",
        source: "NFV host guide",
        needs: HOST,
        evaluate: backing,
        ..Check::BLANK
    },
    Check {
        id: "VM-008",
        title: "The guest isolates its CPUs as well",
        importance: Importance::Medium,
        why: "The guest's kernel has ticks and moves threads like any other kernel.",
        read_from: &["/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full"],
        wanted: "isolcpus= and nohz_full= in the guest's boot line",
        set_boot: "isolcpus=domain,managed_irq,{iso} nohz_full={iso}",
        undo: "remove the words and reboot",
        source: "ducked-tails, Table I; tuned realtime-virtual-guest",
        needs: &[Need::Guest, Need::Isolated],
        evaluate: inside,
        ..Check::BLANK
    },
    Check {
        id: "VM-009",
        title: "The guest's timers need no exit",
        importance: Importance::Low,
        why: "Each access to an emulated HPET leaves the guest; hints tell the guest that its CPUs are dedicated to it.",
        read_from: &["/sys/devices/system/clocksource/clocksource0/available_clocksource"],
        wanted: "no hpet among the guest's clocks",
        set_boot: "<timer name='hpet' present='no'/> and <hint-dedicated state='on'/> in the guest's XML",
        undo: "remove it",
        source: "libvirt's domain format; Documentation/virt/kvm/x86/cpuid.rst",
        needs: GUEST,
        evaluate: timers,
        ..Check::BLANK
    },
    Check {
        id: "VM-010",
        title: "The interface is handed to the guest",
        importance: Importance::High,
        why: "Through virtio each packet crosses the host's kernel; a virtual function goes straight to the guest.",
        read_from: &[
            "/sys/class/net/*/device/sriov_numvfs",
            "/sys/class/net/*/device/virtfn#/driver",
        ],
        wanted: "virtual functions with the driver vfio-pci",
        cost: "no live migration",
        set_now: "echo 1 > /sys/class/net/{nic}/device/sriov_numvfs; driverctl set-override DEVICE vfio-pci",
        undo: "echo 0 > the same file",
        source: "ducked-tails; NFV host guide",
        needs: &[Need::Work(&[Workload::Vm]), Need::Nic],
        evaluate: functions,
        ..Check::BLANK
    },
    Check {
        id: "VM-011",
        title: "Devices of the host bypass the IOMMU",
        importance: Importance::Medium,
        why: "Translating every access of a device costs when its cache misses; iommu=pt keeps translation for what is handed to guests.",
        read_from: &["/sys/kernel/iommu_groups/#/type", "/proc/cmdline"],
        wanted: "iommu=pt (Intel: with intel_iommu=on)",
        cost: "the host's own devices can write anywhere",
        set_boot: "intel_iommu=on iommu=pt",
        undo: "remove the words and reboot",
        source: "DPDK's Linux guide; NFV host guide",
        needs: &[Need::Metal, Need::Work(&[Workload::Vm, Workload::Poll])],
        evaluate: iommu,
        ..Check::BLANK
    },
    Check {
        id: "VM-012",
        title: "Interrupts reach guests without an exit",
        importance: Importance::Medium,
        why: "With posted interrupts (Intel) or AVIC (AMD) the hardware delivers them.",
        read_from: &[
            "/sys/module/kvm_intel/parameters/enable_apicv",
            "/sys/module/kvm_amd/parameters/avic",
        ],
        wanted: "Y",
        set_boot: "kvm_intel.enable_apicv=1 or kvm_amd.avic=1",
        undo: "remove the word and reboot",
        source: "Documentation/virt/kvm",
        needs: HOST,
        evaluate: posted,
        ..Check::BLANK
    },
];

fn steal(f: &Facts<'_>) -> Answer {
    let (before, after) = f.twice("/proc/stat")?;
    let ms = f.observed_ms()?;
    // user nice system idle iowait irq softirq steal: in hundredths of a second.
    let total = |text: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        line.split_whitespace().nth(7)?.parse().ok()
    };
    let (Some(before), Some(after)) = (total(&before), total(&after)) else {
        return not_applicable("this kernel does not count stolen time");
    };
    let stolen = after.saturating_sub(before) * 10;
    judge(
        EvidenceLevel::Seen,
        stolen == 0,
        CheckStatus::Fail,
        format!("{stolen} ms stolen in {ms} ms, over all CPUs"),
    )
}

fn pause_loops(f: &Facts<'_>) -> Answer {
    let intel =
        file(f, "/sys/module/kvm_intel/parameters/ple_gap", CheckStatus::Warn, |text| text == "0")?;
    if intel.verdict != CheckStatus::NotApplicable {
        return Ok(intel);
    }
    file(f, "/sys/module/kvm_amd/parameters/pause_filter_count", CheckStatus::Warn, |text| {
        text == "0"
    })
}

fn halt_polling(f: &Facts<'_>) -> Answer {
    if f.intent().workload == Workload::Vm {
        return file(f, &format!("{KVM}/halt_poll_ns"), CheckStatus::Warn, |text| text == "0");
    }
    if f.boot()?.last("idle") == Some("poll") {
        return judge(EvidenceLevel::Asked, true, CheckStatus::Warn, "idle=poll");
    }
    let driver = f.text("/sys/devices/system/cpu/cpuidle/current_driver")?;
    judge(
        EvidenceLevel::Set,
        driver == "haltpoll",
        CheckStatus::Warn,
        format!("idle driver {driver}"),
    )
}

fn pinning(f: &Facts<'_>) -> Answer {
    let tasks = f.tasks()?;
    let virtual_cpus: Vec<_> = tasks
        .iter()
        .filter(|task| task.name.starts_with("CPU ") && task.name.ends_with("/KVM"))
        .collect();
    if virtual_cpus.is_empty() {
        return not_applicable("no guest runs");
    }
    let mut wrong = Vec::new();
    for task in &virtual_cpus {
        let alone = virtual_cpus.iter().filter(|other| other.allowed == task.allowed).count() == 1;
        if task.allowed.len() != 1 || !alone || !task.allowed.is_subset(f.iso()) {
            wrong.push(format!("{} of {} may use {}", task.name, task.pid, task.allowed));
        }
    }
    let pids: Vec<u32> = virtual_cpus.iter().map(|task| task.pid).collect();
    let others =
        tasks.iter().filter(|task| pids.contains(&task.pid) && !task.name.starts_with("CPU "));
    wrong.extend(
        others
            .filter(|task| !task.allowed.intersection(f.iso()).is_empty())
            .map(|task| format!("{} of {} may use {}", task.name, task.pid, task.allowed)),
    );
    let said = if wrong.is_empty() {
        format!("{} virtual CPUs, one to one", virtual_cpus.len())
    } else {
        few(&wrong)
    };
    judge(EvidenceLevel::Set, wrong.is_empty(), CheckStatus::Fail, said)
}

fn backing(f: &Facts<'_>) -> Answer {
    let runs = f.tasks()?.iter().any(|task| task.name.ends_with("/KVM"));
    if !runs {
        return not_applicable("no guest runs");
    }
    let total = |file: &str| -> Result<u64, crate::Unread> {
        let all = f.glob(&format!("/sys/devices/system/node/node#/hugepages/*/{file}"))?;
        Ok(all.iter().filter_map(|(_, text)| text.parse::<u64>().ok()).sum())
    };
    let (all, free) = (total("nr_hugepages")?, total("free_hugepages")?);
    let said = format!("{} of {all} huge pages are in use", all.saturating_sub(free));
    judge(EvidenceLevel::Set, all > free, CheckStatus::Warn, said)
}

fn inside(f: &Facts<'_>) -> Answer {
    let isolated = super::isolation::isolated(f)?;
    let left = f.iso().minus(&isolated);
    let said = match left.is_empty() {
        true => format!("CPUs {isolated} are isolated in the guest"),
        false => format!("CPUs {left} are not isolated in the guest"),
    };
    judge(EvidenceLevel::Set, left.is_empty(), CheckStatus::Warn, said)
}

fn timers(f: &Facts<'_>) -> Answer {
    let clocks = f.text("/sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    let hpet = clocks.split_whitespace().any(|name| name == "hpet");
    judge(EvidenceLevel::Set, !hpet, CheckStatus::Warn, format!("clocks: {clocks}"))
}

fn functions(f: &Facts<'_>) -> Answer {
    let mut bound = Vec::new();
    let mut known = false;
    for nic in &f.intent().nics {
        let folder = format!("/sys/class/net/{nic}/device");
        let Some(count) = f.optional(&format!("{folder}/sriov_numvfs"))? else { continue };
        known = true;
        for number in 0..count.parse::<u32>().unwrap_or(0) {
            if f.link_name(&format!("{folder}/virtfn{number}/driver"))?.as_deref()
                == Some("vfio-pci")
            {
                bound.push(format!("{nic} function {number}"));
            }
        }
    }
    if !known {
        return not_applicable("the interface has no virtual functions");
    }
    let said =
        if bound.is_empty() { "no function is handed to a guest".to_owned() } else { few(&bound) };
    judge(EvidenceLevel::Set, !bound.is_empty(), CheckStatus::Warn, said)
}

fn iommu(f: &Facts<'_>) -> Answer {
    let groups = f.glob("/sys/kernel/iommu_groups/#/type")?;
    let line = f.boot()?;
    if groups.is_empty() {
        return judge(
            EvidenceLevel::Set,
            false,
            CheckStatus::Warn,
            "the IOMMU is off: VFIO needs it (intel_iommu=on iommu=pt)",
        );
    }
    let translated = groups.iter().filter(|(_, kind)| kind.starts_with("DMA")).count();
    let passed = line.last("iommu") == Some("pt") || translated == 0;
    let said = format!(
        "{translated} of {} groups are translated, iommu={}",
        groups.len(),
        line.last("iommu").unwrap_or("(default)")
    );
    judge(EvidenceLevel::Set, passed, CheckStatus::Warn, said)
}

fn posted(f: &Facts<'_>) -> Answer {
    let good = |text: &str| matches!(text, "Y" | "1");
    let intel = file(f, "/sys/module/kvm_intel/parameters/enable_apicv", CheckStatus::Warn, good)?;
    if intel.verdict != CheckStatus::NotApplicable {
        return Ok(intel);
    }
    file(f, "/sys/module/kvm_amd/parameters/avic", CheckStatus::Warn, good)
}
