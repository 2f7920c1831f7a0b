"""Processes that scripts on nodes leave in the background: ``pos_run``, ``pos_wait``, ``pos_kill``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.pos.allocation import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.pos.layout import Layout
    from tailtrim.pos.machines import Machine
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


async def begin(
    machine: Machine,
    name: str,
    command: Sequence[str],
    where: tuple[str, Mapping[str, str]],
    *,
    of_run: bool,
) -> None:
    """Start a command in the background.

    Args:
        machine: the node.
        name: what it is called.
        command: program and arguments.
        where: working directory and environment.
        of_run: whether its files are those of the current run.

    Raises:
        RunError: one of this name runs, or the node has died.

    """
    run = machine.run if of_run else None
    key = (name, run[0] if run else None)
    known = machine.background.get(key)
    if known is not None and known.process.running:
        raise RunError(f"{name}: runs already")
    layout = machine.allocated().layout
    folder = layout.scripts(machine.name)
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"{now()}_{name}{run[2] if run else ''}"
    base.with_name(f"{base.name}.command").write_text(f"{list(command)!r}\n", "utf-8")
    if machine.node is None:
        raise RunError(f"{machine.name}: the node has died")
    outputs = [base.with_name(f"{base.name}.{kind}") for kind in ("stdout", "stderr")]
    with outputs[0].open("wb") as output, outputs[1].open("wb") as errors:
        folder_there, environment = where
        process = await machine.node.start(
            command, output, errors, folder=folder_there, environment=environment
        )
    machine.background[key] = Background(layout, base, process)


def found(machine: Machine, name: str, *, of_run: bool) -> Background | None:
    """Return the process of a name: first that of the current run, or first the other one."""
    number = machine.run[0] if machine.run else None
    keys = [(name, number), (name, None)]
    for key in keys if of_run else reversed(keys):
        known = machine.background.get(key)
        if known is not None:
            return known
    return None
