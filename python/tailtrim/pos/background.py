"""Processes in the background of nodes: ``pos_run``, ``pos_wait``, ``pos_kill``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.pos.layout import Layout
    from tailtrim.pos.node import OnNode


class Background:
    """A process in the background, and the files of what it prints."""

    def __init__(self, layout: Layout, base: Path, process: OnNode) -> None:
        """Take the process, and the beginning of the names of its files."""
        self._layout, self._base, self.process = layout, base, process

    async def wait(self) -> None:
        """Wait for its end."""
        await self.process.wait()
        self._keep()

    async def stop(self) -> None:
        """End it."""
        await self.process.stop()
        self._keep()

    def _keep(self) -> None:
        store(self._layout, self._base)


def store(layout: Layout, base: Path) -> None:
    """Store what a command printed as the layout has it."""
    for kind in ("stdout", "stderr"):
        place = base.with_name(f"{base.name}.{kind}")
        with contextlib.suppress(OSError):
            printed = place.read_bytes()
            stored = layout.printed(printed)
            if stored != printed and not printed.startswith((b"b'", b'b"')):
                place.write_bytes(stored)
