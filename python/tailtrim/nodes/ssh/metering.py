"""What reads the meter of a host: a command there that ends with the connection."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tailtrim.nodes.node import allowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.nodes.meters import Start
    from tailtrim.nodes.ssh.session import Session
    from tailtrim.nodes.testbed_file import NodeEntry


def starting(session: Session, entry: NodeEntry) -> Start:
    """Return what starts commands on the host's CPUs for what only waits: by default the first."""
    cpus = [0] if entry.spared is None else entry.spared

    def start(command: Sequence[str]) -> subprocess.Popen[str]:
        words = (*(allowed(cpus) if cpus else ()), *command)
        return session.connection.open(
            *session.held(words), output=subprocess.PIPE, errors=subprocess.DEVNULL
        )

    return start
