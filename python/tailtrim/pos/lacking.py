"""What nodes cannot do, by the program that a script asks it of."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: A host by its name: addresses may be those of other nodes.
_ELSEWHERE = r"(https?|ftp)://[A-Za-z][A-Za-z0-9-]*\..*"
_NO_NETWORK = "nodes reach no network but their cables, so nothing can be fetched"
_NO_LOGIN = "nodes are reached by pos only, not by SSH"
_ONE_KERNEL = "would change the kernel of the host, which nodes do not have for themselves"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a program does not work; ``behind`` is what one of its words has to be, if it matters."""

    programs: frozenset[str]
    why: str
    behind: str

    def applies(self, name: str, words: list[str]) -> bool:
        """Whether it is about this command."""
        plain = name.rpartition("/")[2]
        if plain not in self.programs:
            return False
        return not self.behind or any(re.fullmatch(self.behind, word) for word in words)


def _of(programs: str, why: str, behind: str = "") -> Reason:
    return Reason(frozenset(programs.split()), why, behind)


REASONS = (
    _of("apt apt-get aptitude dnf yum", _NO_NETWORK, "install|update|upgrade|build-dep"),
    _of("git", _NO_NETWORK, "clone|fetch|pull|submodule"),
    _of("pip pip3", _NO_NETWORK, "install|download"),
    _of("cargo go npm", _NO_NETWORK, "install|get|ci"),
    _of("wget curl", _NO_NETWORK, _ELSEWHERE),
    _of("ssh scp sftp ssh-copy-id", _NO_LOGIN),
    _of("modprobe insmod rmmod depmod kexec", _ONE_KERNEL),
    _of("reboot poweroff shutdown halt", "nodes cannot be switched (pos nodes reset boots one)"),
    _of("wrmsr rdmsr x86_energy_perf_policy tuned-adm", _ONE_KERNEL),
    _of("cpupower", _ONE_KERNEL, "frequency-set|idle-set|set"),
    _of("sysctl", _ONE_KERNEL, r"(kernel|vm|fs|dev)[./].*=.*"),
    _of(
        "dpdk-devbind.py dpdk-devbind dpdk-hugepages.py",
        "nodes have no PCI devices",
    ),
)

_PATHS = {
    "/sys/": "/sys of the host cannot be written by nodes",
    "/proc/irq/": "interrupts are those of the host, which nodes do not change",
    "/proc/sys/": "settings of the kernel are those of the host, but for /proc/sys/net",
    "/srv/testbed/": "is a folder of a pos server (pos allocations show tells result_folder)",
    "/boot/": "the kernel is that of the host",
}
_OF_KERNEL = (
    _ONE_KERNEL,
    *(why for path, why in _PATHS.items() if path.startswith(("/sys", "/proc"))),
)


def of_kernel(problem: str) -> bool:
    """Whether a problem is one only of nodes that share the kernel of their host.

    >>> of_kernel("/sys/x: /sys of the host cannot be written by nodes"), of_kernel("ssh: no")
    (True, False)

    """
    return problem.endswith(_OF_KERNEL)


def reason_of(path: str) -> str | None:
    """Say why a file cannot be written; ``None`` where it can.

    >>> reason_of("/sys/class/net/eth1/mtu")
    '/sys of the host cannot be written by nodes'
    >>> reason_of("/proc/sys/net/ipv4/ip_forward")

    """
    if path.startswith("/proc/sys/net/"):
        return None
    return next((why for start, why in _PATHS.items() if path.startswith(start)), None)
