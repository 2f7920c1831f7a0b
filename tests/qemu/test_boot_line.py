"""Findings of the linter on a boot line agree with the behaviour of Debian's kernel."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from guest import COMMON, machine

if TYPE_CHECKING:
    from guest import Boot, Machine

SYSTEM = "/sys/devices/system/cpu"

RECOMMENDED = (
    "isolcpus=domain,managed_irq,1-3 nohz_full=1-3 rcu_nocbs=1-3 rcu_nocb_poll irqaffinity=0 "
    "nosoftlockup nmi_watchdog=0 audit=0 skew_tick=1 tsc=reliable mce=ignore_ce "
    "transparent_hugepage=never numa_balancing=disable pcie_aspm=off processor.max_cstate=1"
)
# Table I of "Ducked Tails" (HiPNet 2021) without idle=poll, which starves an emulated machine.
DUCKED_TAILS = (
    "nosmt isolcpus=1-3 nohz_full=1-3 rcu_nocbs=1-3 rcu_nocbs_poll irqaffinity=0 "
    "intel_idle.max_cstate=0 intel_pstate=disable tsc=reliable mce=ignore_ce audit=0 "
    "nmi_watchdog=0 skew_tick=1 nosoftlookup"
)

# Line, and the expected finding: word, kind, replacement.
LINES: dict[str, list[tuple[str, str, str | None]]] = {
    RECOMMENDED: [],
    DUCKED_TAILS: [
        ("rcu_nocbs_poll", "swallowed-prefix", "rcu_nocb_poll"),
        ("nosoftlookup", "near-miss", "nosoftlockup"),
        ("intel_idle.max_cstate=0", "misunderstood", "intel_idle.max_cstate=1"),
    ],
    "isolcpus=1-3 rcu_nocbs=1-3 rcu_nocbs_poll": [
        ("rcu_nocbs_poll", "swallowed-prefix", "rcu_nocb_poll"),
    ],
    "rcu_nocbs_poll rcu_nocbs=1-3 nosoftlockups": [
        ("rcu_nocbs_poll", "swallowed-prefix", "rcu_nocb_poll"),
        ("nosoftlockups", "swallowed-prefix", "nosoftlockup"),
    ],
    "isolcpu=1-3 pcie_asmp=off isolcpus=managed_irq,1-3 nosoftlockup=0": [
        ("isolcpu=1-3", "near-miss", "isolcpus=1-3"),
        ("pcie_asmp=off", "near-miss", "pcie_aspm=off"),
        ("isolcpus=managed_irq,1-3", "misunderstood", "isolcpus=domain,managed_irq,1-3"),
        ("nosoftlockup=0", "bad-value", None),
    ],
    "nohz_full=1-7 isolcpus=1-7 irqaffinity=0,9 kthread_cpus=0 rcu_nocbs=1-7": [
        ("nohz_full=1-7", "out-of-range", None),
        ("isolcpus=1-7", "out-of-range", None),
        ("irqaffinity=0,9", "out-of-range", None),
        ("kthread_cpus=0", "not-mainline", "nohz_full"),
        ("rcu_nocbs=1-7", "out-of-range", None),
    ],
    "isolcpus=manged_irq,domain,1-3 tsc=relaible intel_idle.max_cstat=0 mitigations=no "
    "mce=ignorece transparent_hugepage=nevr numa_balancing=off": [
        ("isolcpus=manged_irq,domain,1-3", "bad-value", "isolcpus=managed_irq,domain,1-3"),
        ("tsc=relaible", "bad-value", "tsc=reliable"),
        ("intel_idle.max_cstat=0", "near-miss", "intel_idle.max_cstate=0"),
        ("mitigations=no", "bad-value", "mitigations=off"),
        ("mce=ignorece", "bad-value", "mce=ignore_ce"),
        ("transparent_hugepage=nevr", "bad-value", "transparent_hugepage=never"),
        ("numa_balancing=off", "bad-value", "numa_balancing=disable"),
    ],
    "isolcpus=2-3 nohz_full=1-3 audit=no hugepages=3 hugepages=5 hugepagesz=2M": [
        ("nohz_full=1-3", "lists-disagree", "nohz_full=2-3"),
        ("audit=no", "bad-value", "audit=off"),
        ("hugepages=5", "contradiction", None),
    ],
    "isolcpus=nohz,2-3 nohz_full=1-3 isolcpus=1-3,domain": [
        ("isolcpus=nohz,2-3", "misunderstood", "isolcpus=domain,nohz,2-3"),
        ("nohz_full=1-3", "lists-disagree", None),
        ("isolcpus=1-3,domain", "bad-value", "isolcpus=domain,1-3"),
    ],
    "default_hugepagesz=1G hugepages=0 hugepages=40 hugepagesz=1G hugepagesz=2M lvm=vg0 dolvm": [
        ("hugepages=40", "contradiction", None),
    ],
    "hugepages=3 hugepagesz=1G hugepagesz=2M hugepages=7 evmm": [
        ("hugepages=3", "contradiction", "hugepagesz=1G hugepages=3"),
        ("evmm", "unknown-word", None),
    ],
    "nohz_full=0-2 isolcpus=domain,1-N:1/2 psi=disable splash": [
        ("nohz_full=0-2", "boot-cpu", None),
        ("psi=disable", "bad-value", "psi=0"),
    ],
}


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return machine("amd64", tmp_path_factory.mktemp("stock"))


@pytest.fixture(scope="session")
def realtime(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return machine("rt-amd64", tmp_path_factory.mktemp("realtime"))


def found(audit: dict[str, Any]) -> set[tuple[str, str, str | None]]:
    return {(one["word"], one["kind"], one["right"]) for one in audit["findings"]}


def cpus(mask: str) -> str:
    """Return a mask as the list that the kernel prints for it; four CPUs are one digit."""
    numbers = [cpu for cpu in range(4) if int(mask, 16) >> cpu & 1]
    return ",".join(map(str, numbers))


@pytest.fixture(params=LINES, ids=lambda line: line[:40])
def boot(request: pytest.FixtureRequest, stock: Machine) -> Boot:
    return stock.boot(request.param)


def test_lists_come_out_as_predicted(boot: Boot) -> None:
    made = boot.audit["prediction"]
    assert made["isolated"] == boot.file(f"{SYSTEM}/isolated")
    assert made["nohz_full"] == boot.file(f"{SYSTEM}/nohz_full")
    assert made["rcu_offloaded"] == boot.offloaded
    assert made["rcu_poll"] == ("Poll for callbacks" in boot.parts["log"])
    if made["irq_affinity"] is not None:
        assert made["irq_affinity"] == cpus(boot.file("/proc/irq/default_smp_affinity"))


def test_huge_pages_are_there_as_predicted(boot: Boot) -> None:
    for pages in boot.audit["prediction"]["huge_pages"]:
        name = f"hugepages-{pages['size_bytes'] >> 10}kB"
        there = boot.file(f"/sys/kernel/mm/hugepages/{name}/nr_hugepages")
        assert int(there) == pages["pages"], name


def test_words_go_to_init_as_predicted(boot: Boot) -> None:
    made = boot.audit["prediction"]
    assert {*made["to_init"], *made["to_environment"]} == boot.unknown
    assert set(made["to_init"]) <= set(boot.arguments)
    assert set(made["to_environment"]) <= set(boot.environment)


def test_mistakes_are_found_and_nothing_else_is_ineffective(boot: Boot) -> None:
    line = boot.line.partition(f"{COMMON} ")[2]
    audit = boot.audit
    assert set(LINES[line]) <= found(audit)
    kinds = {one["kind"] for one in audit["findings"]}
    # The kernel does what the line asks for, as the linter reads it.
    assert "not-effective" not in kinds
    if not LINES[line]:
        assert audit["findings"] == []
    serious = any(one["severity"] != "note" for one in audit["findings"])
    assert boot.parts["exit"] == ("1" if serious else "0")


def test_the_running_kernel_bears_findings_out(boot: Boot) -> None:
    for one in boot.audit["findings"]:
        if one["word"] in boot.unknown:
            assert "the log names it as unknown" in one["seen"], one
            place = "environment of" if "=" in one["word"] else "argument of"
            assert place in one["seen"], one


def test_a_line_reads_the_same_before_it_is_booted(boot: Boot, stock: Machine) -> None:
    release = boot.audit["running"]["release"]
    asked = subprocess.run(
        [
            *(stock.agent, "audit", "--json", "--kernel", release, "--cpus", "0-3"),
            *("--boot-line", boot.audit["line"]),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    before = json.loads(asked.stdout)
    assert found(before) == found(boot.audit)
    assert before["prediction"] == boot.audit["prediction"]


def test_true_effects_beyond_lists(stock: Machine) -> None:
    """The effects that the linter names in words."""
    right = stock.boot(RECOMMENDED)
    assert right.file("/proc/sys/kernel/soft_watchdog") == "0"
    assert "[never]" in right.file("/sys/kernel/mm/transparent_hugepage/enabled")
    assert right.file("/sys/devices/system/machinecheck/machinecheck0/ignore_ce") == "1"
    lines = list(LINES)
    typos = stock.boot(DUCKED_TAILS)
    assert typos.file("/proc/sys/kernel/soft_watchdog") == "1"
    values = stock.boot(next(line for line in lines if "relaible" in line))
    assert "[always]" in values.file("/sys/kernel/mm/transparent_hugepage/enabled")
    assert values.file("/sys/devices/system/machinecheck/machinecheck0/ignore_ce") == "0"
    assert "Unsupported mitigations=no" in values.parts["log"]
    assert "Skipped unknown flag manged_irq" in values.parts["log"]
    # A flag with a value, and a word that begins with a flag, are the flag.
    for line in lines:
        if "nosoftlockup=0" in line or "nosoftlockups" in line:
            assert stock.boot(line).file("/proc/sys/kernel/soft_watchdog") == "0"
    pages = stock.boot(next(line for line in lines if "hugepages=5" in line))
    assert pages.file("/proc/sys/vm/nr_hugepages") == "3"
    assert "audit: enabled" in pages.parts["log"]


def test_words_that_a_kernel_is_built_without_are_told_of(realtime: Machine) -> None:
    """The real-time kernel has neither transparent huge pages nor NUMA balancing."""
    boot = realtime.boot(RECOMMENDED)
    made = boot.audit["prediction"]
    assert made["isolated"] == boot.file(f"{SYSTEM}/isolated")
    assert made["rcu_offloaded"] == boot.offloaded
    assert made["to_init"] == made["to_environment"] == []
    told = {one["word"] for one in boot.audit["findings"] if one["kind"] == "not-effective"}
    assert told == boot.unknown == {"transparent_hugepage=never", "numa_balancing=disable"}


def test_the_real_time_kernel_swallows_prefixes_too(realtime: Machine) -> None:
    boot = realtime.boot("isolcpus=1-3 rcu_nocbs=1-3 rcu_nocbs_poll nosoftlookup")
    made = boot.audit["prediction"]
    assert made["rcu_offloaded"] == boot.offloaded == ""
    assert {*made["to_init"], *made["to_environment"]} == boot.unknown == {"nosoftlookup"}
