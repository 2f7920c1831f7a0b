"""Boot parameters that take away protection or CPUs: tried only if the plan names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PlanError

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.plan.trimming import PlannedChange

#: What ``mitigations=off`` stands for (Documentation/admin-guide/kernel-parameters.txt of Linux
#: 6.12, x86), that word itself, and those that leave out CPUs or what keeps programs apart.
RISKY = frozenset(
    {
        *("mitigations", "gather_data_sampling", "indirect_target_selection", "l1tf", "mds"),
        *("mmio_stale_data", "reg_file_data_sampling", "retbleed", "spec_rstack_overflow"),
        *("spec_store_bypass_disable", "spectre_bhi", "spectre_v2", "spectre_v2_user", "srbds"),
        *("ssbd", "tsx_async_abort", "kvm.nx_huge_pages", "nopti", "pti", "nobp", "tsx"),
        *("nospectre_bhb", "nospectre_v1", "nospectre_v2", "nospec_store_bypass_disable"),
        *("nosmt", "maxcpus", "nr_cpus", "nosmp", "nokaslr", "nosmap", "nosmep"),
        *("apparmor", "selinux", "lockdown", "module.sig_enforce"),
    }
)


def refuse(path: Path, name: str, change: PlannedChange) -> None:
    """Refuse a change of a boot line that has a risk which the plan does not name.

    Raises:
        PlanError: it has.

    """
    before = str(change.baseline).split()
    words = [word.partition("=")[0] for word in str(change.changed).split() if word not in before]
    unnamed = [word for word in words if word in RISKY and word not in change.risk]
    if unnamed:
        told = f"{path}: trim.candidates.{name}: {unnamed[0]} takes away CPUs or protection"
        raise PlanError(f"{told}, it is tried only with risk: [{', '.join(unnamed)}]")
