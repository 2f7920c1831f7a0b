"""CPUs that cpusets isolate while a kernel runs, and why it refuses to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from shell_guest import CONSOLE, archive, booted, kernels, shell

from tailtrim.laboratory.nodes import agent

if TYPE_CHECKING:
    from shell_guest import Guest

GROUP = "/sys/fs/cgroup/packets"


def answer(guest: Guest) -> tuple[str, str]:
    words = ("audit", "--isolate", "1", "--only", "ISO-001", "--json")
    (result,) = json.loads(guest.call("tailtrim-agent", *words).stdout)["checks"]
    return result["verdict"], result["said"]


def test_an_isolated_partition_is_seen_and_a_refused_one_says_why(tmp_path: Path) -> None:
    (kernel,) = kernels("trixie-amd64")
    inside = archive(tmp_path / "root", shell() | {"bin/tailtrim-agent": Path(agent.program())})
    given = ("-kernel", str(kernel), "-initrd", str(inside), "-append", CONSOLE)
    with booted(tmp_path, *given) as guest:
        guest.run("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
        made = f"echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control; mkdir {GROUP}"
        guest.run("sh", "-c", f"{made}; echo 1 >{GROUP}/cpuset.cpus")
        assert answer(guest) == ("fail", "CPU 1 is not isolated (isolated: none)")
        guest.run("sh", "-c", f"echo isolated >{GROUP}/cpuset.cpus.partition")
        assert answer(guest) == ("ok", "CPU 1 is isolated")
        # No CPU would be left for the programs outside.
        guest.run("sh", "-c", f"echo 0-1 >{GROUP}/cpuset.cpus")
        verdict, said = answer(guest)
    assert verdict == "fail"
    assert "packets: isolated invalid (" in said
