"""Programs, commands and CPUs of this machine, and user namespaces for users without root."""

from __future__ import annotations

import mmap
import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.host import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tailtrim.tool import Tool

#: Set where this is root of a user namespace only, see :func:`become_root`.
USER_NAMESPACE = "TAILTRIM_USER_NAMESPACE"
_AS_ROOT = ("--user", "--map-root-user", "--")
#: Time after which Linux forgets the CPUs of a process: it trims ``mm_cpumask``, since 6.14.
_FORGETS_S = 1.0


def environment() -> dict[str, str]:
    """Return the environment for programs: users without root have no /usr/sbin on their PATH."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [folder for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin") if folder not in path]
    return os.environ | {"PATH": os.pathsep.join(path)}


def which(program: str) -> str | None:
    """Return the path of a program, also where only root looks for it."""
    return shutil.which(program, path=environment()["PATH"])


def find(tool: Tool) -> str | None:
    """Return the path of a tool on this machine; ``None`` where it is not installed."""
    return which(tool.program) or next(filter(os.path.isfile, tool.places), None)


def require(*tools: Tool) -> None:
    """Make sure that tools are installed.

    Raises:
        HostError: one is not; says which package has it.

    """
    for tool in tools:
        if find(tool) is None:
            raise tool.missing()


def run(
    words: Sequence[str],
    *,
    given: str = "",
    within_s: float | None = None,
    more: Mapping[str, str] | None = None,
    apart: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever comes of it.

    Args:
        words: program and arguments.
        given: its standard input.
        within_s: seconds to end in.
        more: environment variables beside those of this process.
        apart: whether it has a session of its own, which Ctrl-C does not end.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
        OSError: it cannot be started.

    """
    return subprocess.run(
        words,
        input=given,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=within_s,
        env=environment() | dict(more or {}),
        start_new_session=apart,
    )


def start(
    words: Sequence[str],
    *,
    output: int | IO[str],
    errors: int | IO[str],
    more: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a command whose standard input stays open as long as this process holds it.

    It has a session of its own. Ctrl-C is for this process, which ends what it started; and the
    scheduler shares a CPU out among sessions first, so that only in its own the agent can be
    preferred.
    """
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=errors,
        text=True,
        env=environment() | dict(more or {}),
        start_new_session=True,
    )


def unprivileged() -> bool:
    """Whether this is root of a user namespace only, as :func:`become_root` makes one."""
    return USER_NAMESPACE in os.environ


def become_root() -> None:
    """Return as a user who may make network namespaces: root, or root of a user namespace.

    In the latter case the process image is replaced: the same command runs again from its start, so
    only a command line may call this.

    Raises:
        HostError: this machine allows no user namespaces.

    """
    if os.geteuid() == 0:
        return
    # As it was started, with the options of Python itself.
    command = as_root(sys.executable, *sys.orig_argv[1:])
    os.environ[USER_NAMESPACE] = "1"
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606 - the same program again


def as_root(*command: str) -> list[str]:
    """Return a command that runs this one as root of a user namespace.

    Raises:
        HostError: this machine allows no user namespaces.

    """
    program = which("unshare")
    # Tried out: distributions forbid user namespaces in different ways.
    trial = [program or "", *_AS_ROOT, "unshare", "--net", "true"]
    if unprivileged() or program is None or run(trial).returncode != 0:
        message = "no permission to make network namespaces: neither root nor a user namespace"
        error = HostError(message)
        error.add_note(
            "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
            " kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=10000"
        )
        raise error
    return [program, *_AS_ROOT, *command]


def share_cpus(cpus: list[int] | None = None) -> tuple[int, list[int]]:
    """Choose a CPU for the generator, and those for the device: all others, if there are any.

    Args:
        cpus: to choose from; by default those that this process may use.

    """
    cpus = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    generating = cpus[-2] if len(cpus) > 1 else cpus[0]
    return generating, [cpu for cpu in cpus if cpu != generating] or cpus


@contextmanager
def keeping_to(cpus: list[int]) -> Iterator[None]:
    """Keep this process, which looks at the others meanwhile, to these CPUs.

    What it starts inherits that, unless it is told its own CPU.
    """
    before = {}
    for thread in [int(task.name) for task in Path("/proc/self/task").iterdir()]:
        with suppress(OSError):
            before[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, cpus)
    try:
        yield
    finally:
        for thread, allowed in before.items():
            with suppress(OSError):
                os.sched_setaffinity(thread, allowed)


def leave_cpus() -> None:
    """Make Linux forget that this process was on CPUs from which it keeps off now.

    Otherwise a thread that ends, whose stack goes, interrupts all of them. Of what goes after a
    second, the interrupt is the last one.
    """
    time.sleep(_FORGETS_S)
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        page[0] = 1


def facts() -> Facts:
    """Return the facts of this machine; its CPUs are those that this process may use."""
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
