"""Points at which nodes wait for each other: barriers, and the steps of repeated commands."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    Tag = tuple[str, int | None]


@dataclass(slots=True)
class _Gathering:
    """One generation of a barrier."""

    members: frozenset[str]
    opened: asyncio.Future[None]
    arrived: dict[str, float] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        return sorted(self.members - self.arrived.keys())


class Barriers:
    """The barriers of an allocation.

    A barrier has a tag, and a run where it is of one. When all members have arrived it opens, and
    the same tag begins again.

    Args:
        record: is called with each barrier that opens.
        state: describes the work of a node.

    """

    def __init__(
        self, record: Callable[[dict[str, Any]], None], state: Callable[[str], str]
    ) -> None:
        """Begin without any."""
        self._record, self._state = record, state
        self._gatherings: dict[Tag, _Gathering] = {}
        #: Nodes that do not come any more, why, and for which others that is so.
        self._gone: dict[str, tuple[str, frozenset[str] | None]] = {}

    async def arrive(
        self, tag: Tag, members: frozenset[str], node: str, timeout_s: float | None
    ) -> None:
        """Return when all members have arrived.

        Raises:
            RunError: they do not in time, one cannot any more, or the nodes name different members.

        """
        gathering = self._gatherings.get(tag)
        if gathering is None:
            opened = asyncio.get_running_loop().create_future()
            gathering = self._gatherings[tag] = _Gathering(members, opened)
        self._check(gathering, tag, members, node)
        gathering.arrived[node] = time.monotonic()
        if not gathering.missing:
            del self._gatherings[tag]
            self._open(gathering, tag)
            return
        try:
            await asyncio.wait_for(asyncio.shield(gathering.opened), timeout_s)
        except TimeoutError:
            told = f"{_named(tag)}: not all arrived within {timeout_s:g} s"
            raise RunError(f"{told}: {self._told(gathering)}") from None
        finally:
            if not gathering.opened.done():
                self._leave(gathering, tag, node)

    def _check(self, gathering: _Gathering, tag: Tag, members: frozenset[str], node: str) -> None:
        problem = None
        if node not in members:
            problem = f"{node} is not among its members: {', '.join(sorted(members))}"
        elif members != gathering.members:
            problem = (
                f"{node} names other members ({', '.join(sorted(members))}) than"
                f" {', '.join(gathering.arrived)} ({', '.join(sorted(gathering.members))})"
            )
        elif node in gathering.arrived:
            problem = f"{node} waits there already"
        else:
            told = (self._gone_for(one, {node}) for one in gathering.missing if one != node)
            problem = next(filter(None, told), None)
        if problem is not None:
            if not gathering.arrived:
                del self._gatherings[tag]
            raise RunError(f"{_named(tag)}: {problem}")

    def _leave(self, gathering: _Gathering, tag: Tag, node: str) -> None:
        gathering.arrived.pop(node, None)
        if not gathering.arrived and self._gatherings.get(tag) is gathering:
            del self._gatherings[tag]

    def _open(self, gathering: _Gathering, tag: Tag) -> None:
        last = max(gathering.arrived.values())
        waited = {node: round(last - at, 3) for node, at in gathering.arrived.items()}
        self._record({"event": "barrier", "tag": tag[0], "run": tag[1], "waited_s": waited})
        gathering.opened.set_result(None)

    def ended(self, node: str, why: str, among: frozenset[str] | None = None) -> None:
        """Release the nodes that wait for one that does not come any more.

        ``among`` are the nodes for which that is so; by default all. It is so until the node is
        :meth:`back`.
        """
        self._gone[node] = (why, among)
        for tag, gathering in list(self._gatherings.items()):
            if node not in gathering.missing or gathering.opened.done():
                continue
            if self._gone_for(node, gathering.arrived.keys()):
                del self._gatherings[tag]
                told = f"{_named(tag)}: {', '.join(gathering.arrived)} waited for {node}: {why}"
                gathering.opened.set_exception(RunError(told))
                # Nothing takes the exception if all that waited are gone.
                gathering.opened.exception()

    def back(self, node: str) -> None:
        """Expect a node again."""
        self._gone.pop(node, None)

    def _gone_for(self, node: str, others: Collection[str]) -> str | None:
        """Return why a node does not come, if that is so for all these."""
        why, among = self._gone.get(node, (None, None))
        applies = why is not None and (among is None or set(others) <= among)
        return f"{node} does not come: {why}" if applies else None

    def waits(self, node: str) -> str:
        """Describe where a node waits, and for whom; empty where it does not."""
        for tag, gathering in self._gatherings.items():
            if node in gathering.arrived:
                for_s = time.monotonic() - gathering.arrived[node]
                return f"waits {for_s:.0f} s at {_named(tag)}: {self._told(gathering)}"
        return ""

    def _told(self, gathering: _Gathering) -> str:
        return "; ".join(f"{node} is missing: {self._state(node)}" for node in gathering.missing)


class Lockstep:
    """Commands that are repeated at the same time begin each step together.

    Each run has two steps, its first attempt and its second one, which most runs do without.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._passed: dict[str, int] = {}
        self._changed = asyncio.Condition()
        self._together: dict[str, set[str]] = {}
        self._decided: dict[int, asyncio.Task[bool]] = {}

    def join(self, key: str) -> None:
        """Add a command."""
        self._passed[key] = 0
        for one in self._passed:
            self._together.setdefault(one, set()).update(self._passed)

    def peers(self, key: str) -> list[str]:
        """Return the commands that were repeated at the same time."""
        return sorted(self._together.get(key, set()) - {key})

    async def turn(self, key: str, step: int) -> None:
        """Wait until all others have passed what is before this step."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: all(passed >= step for one, passed in self._passed.items() if one != key)
            )

    async def decided(
        self, key: str, step: int, decide: Callable[[], Coroutine[Any, Any, bool]]
    ) -> bool:
        """Wait for a step, and return the decision about it: one for all commands."""
        await self.turn(key, step)
        if step not in self._decided:
            self._decided[step] = asyncio.ensure_future(decide())
        return await asyncio.shield(self._decided[step])

    async def passed(self, key: str, step: int) -> bool:
        """Record that a command has passed a step; return whether it was the last to."""
        async with self._changed:
            self._passed[key] = step + 1
            self._changed.notify_all()
            last = all(passed > step for passed in self._passed.values())
        if last:
            self._decided.pop(step, None)
        return last

    async def leave(self, key: str) -> None:
        """Remove a command."""
        async with self._changed:
            self._passed.pop(key, None)
            if not self._passed:
                self._decided.clear()
            self._changed.notify_all()


def _named(tag: Tag) -> str:
    name, run = tag
    named = f"barrier {name!r}" if name else "barrier of all nodes"
    return named if run is None else f"{named} of run {run}"
