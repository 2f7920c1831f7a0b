"""A host itself by SSH, and not a network namespace of it: for what changes the whole host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.nodes.node import Shell
from tailtrim.nodes.ssh.session import facts, rights

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tailtrim.nodes.ssh.connection import Connection


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
