"""Programs on the PATH of scripts: ``pos``, the tools of the nodes, and those that only refuse."""

from __future__ import annotations

import os
import shlex
import sys
from importlib import resources
from typing import TYPE_CHECKING

from tailtrim_pos.grammar import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: The folder of a node with its tools and the socket of the controller.
SHARED = "/run/tailtrim"
SOCKET = "pos.sock"
_CLIENT, _CLIENT_SOURCE = "client.py", "_client.py"

_NO_LOGIN = "nodes are reached by pos only, not by SSH"
_NO_SWITCH = "nodes cannot be switched (pos nodes reset boots one)"
_NO_KERNEL = "nodes have the kernel and the devices of their host, which they do not change"
#: Programs that do not work on nodes, and why. Those that fetch something, or write settings, get
#: a clear error of the kernel: nodes have no network but their cables, and read-only settings.
UNSUPPORTED = {
    **dict.fromkeys(("ssh", "scp", "sftp", "ssh-copy-id"), _NO_LOGIN),
    **dict.fromkeys(("reboot", "poweroff", "shutdown", "halt"), _NO_SWITCH),
}
#: The same for nodes without a kernel of their own.
UNSUPPORTED_BY_KERNEL = dict.fromkeys(
    (
        *("modprobe", "insmod", "rmmod", "depmod", "kexec", "wrmsr", "rdmsr"),
        *("x86_energy_perf_policy", "tuned-adm"),
        *("dpdk-devbind.py", "dpdk-devbind", "dpdk-hugepages.py"),
    ),
    _NO_KERNEL,
)


def write_pos(folder: Path) -> None:
    """Write ``pos`` to the folder ``bin`` of a folder."""
    _write_clients(folder, ("pos",), os.path.realpath(sys.executable), str(folder))


def write_tools(folder: Path, python: str, agent: str, *, own_kernel: bool = False) -> None:
    """Write what a node has at :data:`SHARED`.

    Args:
        folder: here.
        python: the path of Python on the node.
        agent: the path of ``tailtrim-agent`` on the node.
        own_kernel: whether the node has a kernel that scripts may change.

    """
    _write_clients(folder, TOOLS, python, SHARED)
    for name, why in (UNSUPPORTED | ({} if own_kernel else UNSUPPORTED_BY_KERNEL)).items():
        told = shlex.quote(f"{name}: not supported: {why}")
        _write(folder / "bin" / name, f"echo {told} >&2\nexit 2\n")
    linked = folder / "bin" / "tailtrim-agent"
    linked.unlink(missing_ok=True)
    linked.symlink_to(agent)


def _write_clients(folder: Path, names: Iterable[str], python: str, seen: str) -> None:
    """Write programs that ask the controller; ``seen`` is the folder where they run."""
    client = resources.files("tailtrim_pos.library.poslib").joinpath(_CLIENT_SOURCE)
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / _CLIENT).write_text(client.read_text("utf-8"), "utf-8")
    start = f"exec {shlex.quote(python)} -I -S {shlex.quote(f'{seen}/{_CLIENT}')}"
    for name in names:
        _write(folder / "bin" / name, f'{start} {name} "$@"\n')


def _write(place: Path, lines: str) -> None:
    place.write_text(f"#!/bin/sh\n{lines}", "utf-8")
    place.chmod(0o755)
