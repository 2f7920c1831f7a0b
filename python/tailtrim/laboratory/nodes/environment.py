"""The environment of a node, on which numbers that are measured there depend: kernel, packages."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port

#: Told, but different after each boot: no change of the environment.
PASSING = ("boot_id",)

#: A shell function that prints a line for each package, name and version, sorted by bytes.
#: Debian's first: a host of Debian may have rpm, without any package of it.
_LIST = r"""
packages() {
    found=$(dpkg-query --show --showformat \
        '${db:Status-Abbrev}${binary:Package} ${Version}\n' 2>/dev/null | sed -n 's/^.i.//p')
    [ -n "$found" ] || found=$(rpm --query --all --queryformat '%{NAME}.%{ARCH} %{EVR}\n' \
        2>/dev/null)
    [ -z "$found" ] || printf '%s\n' "$found" | LC_ALL=C sort -u
}
"""
# A line for each: its name, a tab, what it is. What a kernel does not have is left out.
_SCRIPT = r"""
told() { [ -z "$2" ] || printf '%s\t%s\n' "$1" "$2"; }
of() { [ ! -r "$2" ] || told "$1" "$(cat "$2" 2>/dev/null)"; }
told kernel "$(uname -r)"
told build "$(uname -v)"
told machine "$(uname -m)"
of boot_line /proc/cmdline
of boot_id /proc/sys/kernel/random/boot_id
told model "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
told microcode "$(sed -n 's/^microcode[^:]*: *//p' /proc/cpuinfo | sort -u | tr '\n' ' ')"
installed=$(packages)
[ -z "$installed" ] || told packages "sha256:$(printf '%s\n' "$installed" | sha256sum | cut -c -64)"
cd /sys/devices/system || exit
of clocksource clocksource/clocksource0/current_clocksource
of cpus_online cpu/online
of cpus_isolated cpu/isolated
of cpus_nohz_full cpu/nohz_full
of smt cpu/smt/control
told governor "$(cat cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u | tr '\n' ' ')"
of idle_driver cpu/cpuidle/current_driver
of transparent_hugepages /sys/kernel/mm/transparent_hugepage/enabled
of rt_runtime_us /proc/sys/kernel/sched_rt_runtime_us
of preemption /sys/kernel/debug/sched/preempt
told irqbalance "$(pgrep -x irqbalance >/dev/null 2>&1 && echo runs)"
"""
_PORT = r"""
keys='driver\|version\|firmware-version\|bus-info'
ethtool -i "$1" 2>/dev/null | sed -n "s/^\($keys\): \(..*\)/\1=\2/p"
ethtool "$1" 2>/dev/null | sed -n 's/^[[:space:]]*Speed: /speed=/p'
"""


def environment(node: Node) -> dict[str, str]:
    """Return what a node is set up as, by name.

    Raises:
        RunError: the node does not say.

    """
    ended = node.outside.call("sh", "-c", _LIST + _SCRIPT)
    lines = [line.partition("\t") for line in ended.stdout.splitlines() if "\t" in line]
    found = {name: " ".join(value.split()) for name, _, value in lines}
    if "kernel" not in found:
        raise RunError(f"{node.role}: does not say how it is set up: {ended.stderr.strip()}")
    return found


def port(port: Port) -> dict[str, str]:
    """Return what a port is: interface, MAC address, driver, speed, and the clock of its NIC."""
    node = port.node.outside
    ended = node.call("sh", "-c", _PORT, "sh", port.name)
    lines = [line.partition("=") for line in ended.stdout.splitlines() if "=" in line]
    found = {name.replace("-", "_"): value for name, _, value in lines}
    clock = clock_of(node.call("ethtool", "-T", port.name).stdout)
    found |= {"hardware_clock": clock} if clock is not None else {}
    return {"interface": port.name, "mac": port.mac} | found


def clock_of(told: str) -> str | None:
    """Return the clock of a NIC by what ``ethtool -T`` says of a port; ``None`` without one."""
    found = re.search(
        r"^(?:PTP Hardware Clock|Hardware timestamp provider index): (\d+)$", told, re.MULTILINE
    )
    return f"/dev/ptp{found[1]}" if found else None


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what is different in the environments of nodes, in words.

    >>> changes({"dut": {"kernel": "6.1", "boot_id": "a"}}, {"dut": {"kernel": "6.12"}})
    ['dut: kernel was 6.1, is 6.12']

    """
    told = []
    for node in [*before, *(name for name in now if name not in before)]:
        was, became = before.get(node, {}), now.get(node, {})
        for key in [*was, *(key for key in became if key not in was)]:
            one, other = was.get(key), became.get(key)
            if key not in PASSING and one != other:
                told.append(f"{node}: {key} was {one or 'not told'}, is {other or 'not told'}")
    return told


def package_list(node: Node) -> str:
    """Return a line for each installed package of a node; nothing where none is known."""
    return node.outside.call("sh", "-c", f"{_LIST}\npackages").stdout


def sum_of(listed: str) -> str:
    """Return the sum of a list of packages, as :func:`environment` has it."""
    return f"sha256:{hashlib.sha256(listed.encode()).hexdigest()}"
