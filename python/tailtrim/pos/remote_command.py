"""A command on a node that is reached through a session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tailtrim.pos.node import OnNode

if TYPE_CHECKING:
    import signal

    from tailtrim.nodes.ssh.session import Session


class RemoteCommand(OnNode):
    """A command that runs in a session.

    Args:
        session: with the host or the guest.
        pid_file: the file there that holds the number of its process.
        process: what waits here for its end.
        signalling: a script of a shell that sends a signal; it is given the file and the name.

    """

    def __init__(
        self,
        session: Session,
        pid_file: str,
        process: asyncio.subprocess.Process,
        signalling: str,
    ) -> None:
        """Take what is known of it."""
        super().__init__(process)
        self._session, self._pid_file, self._signalling = session, pid_file, signalling

    async def _signal(self, number: signal.Signals) -> None:
        name = number.name.removeprefix("SIG")
        words = ("sh", "-c", self._signalling, "sh", self._pid_file, name)
        await asyncio.to_thread(self._session.as_root, *words)
