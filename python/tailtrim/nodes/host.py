"""The host that this process runs on."""

from __future__ import annotations

import os
import platform
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.nodes.node import Facts, Host

if TYPE_CHECKING:
    from tailtrim.nodes.tool import Tool

#: Set where this is root of a user namespace only, see :mod:`.unprivileged`.
USER_NAMESPACE = "TAILTRIM_USER_NAMESPACE"


def environment() -> dict[str, str]:
    """Return the environment for programs: users without root have no /usr/sbin on their PATH."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [folder for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin") if folder not in path]
    return os.environ | {"PATH": os.pathsep.join(path)}


def which(program: str) -> str | None:
    """Return the path of a program, also where only root looks for it."""
    return shutil.which(program, path=environment()["PATH"])


def find(tool: Tool) -> str | None:
    """Return the path of a tool on this host; ``None`` where it is not installed."""
    return which(tool.program) or next(filter(os.path.isfile, tool.places), None)


def unprivileged() -> bool:
    """Whether this is root of a user namespace only, as :func:`.unprivileged.enter` makes one."""
    return USER_NAMESPACE in os.environ


class LocalHost(Host):
    """The host that this process runs on."""

    def __init__(self, known: Facts) -> None:
        """Take what is known of it."""
        self.facts = known

    def exists(self, path: str) -> bool:
        """Return whether it has a file."""
        return Path(path).exists()

    def find(self, tool: Tool) -> str | None:
        """Return the path of a tool, as namespaces find it."""
        return find(tool)


def facts() -> Facts:
    """Return what this host is; its CPUs are those that this process may use."""
    return Facts(
        kernel=platform.release(),
        machine=platform.machine(),
        cpus=len(os.sched_getaffinity(0)),
        root=not unprivileged(),
        model=_model(),
    )


def _model() -> str:
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return ""
