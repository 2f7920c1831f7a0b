"""A node of this host: a network namespace, and this host's files with changes kept apart.

A process holds both, and ends with this process, whatever ends that: the kernel then removes all of
the node.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes import agent, wiring
from tailtrim.laboratory.nodes.holder import Holder
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim_pos.node import HOME, SCRIPT, TOOLS, UNSHARED, PosNode, inside, script
from tailtrim_pos.node_command import child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LocalNode(PosNode):
    """A node of this host.

    The thread that makes it has to stay: the kernel ends it with that thread.
    """

    def __init__(self, name: str, shared: Path) -> None:
        """Boot it.

        Args:
            name: its name.
            shared: the folder here with its tools and the controller's socket.

        Raises:
            HostError: this host cannot.

        """
        self.name = name
        self.network = Namespace(name)
        try:
            self.network.require(*TOOLS)
            wiring.without_ipv6(self.network)
            self._holder = self._held(shared)
            self._pid = child(self._holder.process.pid)
        except BaseException:
            self.network.__exit__()
            raise

    def _held(self, shared: Path) -> Holder:
        # As a file: among the processes of the node, its text would match what scripts look for.
        # Beside the folder that the node has: whatever is in there, the node may have put there.
        place = shared.with_name(f"{shared.name}.{SCRIPT}")
        place.write_text(script())
        wanted = (sys.base_prefix, str(Path(agent.program()).resolve()))
        start = partial(self.network.open, *UNSHARED, str(place), self.name, str(shared), *wanted)
        return Holder(start, f"{self.name}: no node", grace_s=0)

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._holder.process.poll() is None

    def end(self) -> None:
        """Remove it with everything that runs on it."""
        self._holder.end()
        self.network.__exit__()

    def words(
        self,
        command: Sequence[str],
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return what to start here so that a command runs on the node."""
        if not self.alive:
            raise RunError(f"{self.name}: the node has died")
        return [*self.network.prefix, *inside(self._pid, command, folder, environment)]
