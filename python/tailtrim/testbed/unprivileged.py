"""Without root: the same command again, as root of a user namespace of its own."""

from __future__ import annotations

import os
import shutil
import sys

from tailtrim.errors import HostError

_MARK = "TAILTRIM_USER_NAMESPACE"


def enter() -> None:
    """Return as somebody who may make network namespaces: root, or root of a user namespace.

    In the latter case the process image is replaced, and the command line runs from its start.

    Raises:
        HostError: this host allows no user namespaces.

    """
    if os.geteuid() == 0:
        return
    unshare = shutil.which("unshare")
    if os.environ.get(_MARK) or unshare is None:
        message = "no permission to make network namespaces: neither root nor a user namespace"
        error = HostError(message)
        error.add_note(
            "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
        )
        raise error
    os.environ[_MARK] = "1"
    command = [unshare, "--user", "--map-root-user", "--", sys.executable, "-m", "tailtrim.cli"]
    sys.stdout.flush()
    os.execv(unshare, [*command, *sys.argv[1:]])  # noqa: S606 - the same program again
