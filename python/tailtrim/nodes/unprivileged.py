"""Without root: the same command again, as root of a user namespace of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from tailtrim.errors import HostError
from tailtrim.nodes.host import USER_NAMESPACE, environment, unprivileged, which

_AS_ROOT = ("--user", "--map-root-user", "--")


def enter() -> None:
    """Return as a user who may make network namespaces: root, or root of a user namespace.

    In the latter case the process image is replaced: the same command runs again from its start, so
    only a command line may call this.

    Raises:
        HostError: this host allows no user namespaces.

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
        HostError: this host allows no user namespaces.

    """
    program = which("unshare")
    if unprivileged() or program is None or not _allowed(program):
        message = "no permission to make network namespaces: neither root nor a user namespace"
        error = HostError(message)
        error.add_note(
            "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
            " kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=10000"
        )
        raise error
    return [program, *_AS_ROOT, *command]


def _allowed(program: str) -> bool:
    """Try it: what forbids user namespaces differs among distributions."""
    tried = subprocess.run(
        [program, *_AS_ROOT, "unshare", "--net", "true"],
        check=False,
        capture_output=True,
        env=environment(),
    )
    return tried.returncode == 0
