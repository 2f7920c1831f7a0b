"""Commands of root on a host by SSH, outside of network namespaces: its facts, its boots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.host import Facts, Shell

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tailtrim.laboratory.nodes.ssh.connection import Connection

_SUDO = ("sudo", "-n", "--")
# All CPUs that are online: of isolated ones nproc knows nothing.
_FACTS = """
uname -r; uname -m; getconf _NPROCESSORS_ONLN; cat /proc/self/uid_map
sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1
"""
_EVERY_USER = ["0", "0", "4294967295"]


def rights(connection: Connection) -> tuple[str, ...]:
    """Return what a command begins with so that root runs it.

    Raises:
        HostError: the user may not.

    """
    if connection.call("id", "-u").stdout.strip() == "0":
        return ()
    ended = connection.call(*_SUDO, "true")
    if ended.returncode != 0:
        told = (ended.stderr.strip().splitlines() or ["sudo is not installed"])[0]
        error = HostError(f"{connection.name}: the user is not root and may not become it: {told}")
        error.add_note("connect as root, or allow sudo without a password (NOPASSWD in sudoers)")
        raise error
    return _SUDO


def facts(connection: Connection) -> Facts:
    """Return what the node is.

    Raises:
        RunError: the connection is lost.
        HostError: it does not say.

    """
    ended = connection.call("sh", "-c", _FACTS)
    try:
        kernel, machine, cpus, users, *model = ended.stdout.splitlines()
        real = users.split() == _EVERY_USER
        return Facts(kernel, machine, int(cpus), real, model[0] if model else "")
    except ValueError as error:
        told = ended.stderr.strip() or ended.stdout.strip()
        raise HostError(f"{connection.name}: does not say what it is: {told}") from error


class HostShell(Shell):
    """Commands of root on a host that is connected.

    Raises:
        HostError: the user may not become root.
        RunError: the connection is lost.

    """

    def __init__(self, connection: Connection) -> None:
        """Ask the host what it is."""
        self.role, self._connection = connection.name, connection
        self._sudo = rights(connection)
        self.facts = facts(connection)

    def call(self, *command: str, given: str | None = None) -> CompletedProcess[str]:
        """Run a command there to its end.

        Raises:
            RunError: the connection is lost.

        """
        return self._connection.call(*self._sudo, *command, given=given)
