"""The controller: answers what the script and the nodes ask, by JSON lines on unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import socket
import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import PlanError, TailtrimError
from tailtrim.pos import tools, verbs
from tailtrim.pos.allocation import Allocation, now
from tailtrim.pos.jobs import Job, Jobs, RunEnded, Settings
from tailtrim.pos.layout import Layout, Published
from tailtrim.pos.machines import SOCKET, Machine, Machines
from tailtrim.pos.images import HOST_IMAGE, has_image
from tailtrim.pos.tools import Asked, Reply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tailtrim.pos.cabling import Cable
    from tailtrim.pos.journal import Journal

_LONGEST_LINE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Local:
    """What a user says of the nodes of this host, and of the results.

    ``images`` are the names, or patterns of names, for which the files of this host stand in.
    """

    published: Published = Published.NEW
    images: Sequence[str] = ()
    cables: Sequence[Cable] = ()
    runs: Settings = field(default_factory=Settings)


class Controller:
    """The allocations, nodes and commands of an experiment."""

    def __init__(
        self, folder: Path, journal: Journal, settings: Local, told: Callable[[RunEnded], None]
    ) -> None:
        """Take where its sockets are, what is remembered, and what is called for each run."""
        self.folder, self.journal, self.settings = folder, journal, settings
        self.machines = Machines(folder, settings.cables)
        self.jobs = Jobs(self.machines, journal, settings.runs, told)
        self.allocations: dict[int, Allocation] = {}
        #: All that there were, also after they were freed.
        self.results: list[Allocation] = []
        #: Why results are not to be trusted, as nodes could not be set up as asked.
        self.doubts: list[str] = []
        self._servers: list[asyncio.Server] = []
        self._answering: set[asyncio.Task[Any]] = set()

    async def listen(self) -> None:
        """Begin to answer the script."""
        await self._listen(self.folder / SOCKET, None)

    async def _listen(self, place: Path, machine: Machine | None) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await self._answer(reader, writer, machine)

        server = await asyncio.start_unix_server(answer, place, limit=_LONGEST_LINE)
        place.chmod(0o600)
        self._servers.append(server)

    async def _answer(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        machine: Machine | None,
    ) -> None:
        """Answer one program; it may go away before."""
        try:
            asked = Asked(**json.loads(await reader.readline()))
            asked.pid = _peer(writer)
            work = asyncio.ensure_future(self._reply(asked, machine))
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if not work.done():
                # Who waits at a barrier and is killed has not arrived.
                work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work
                return
            writer.write(json.dumps(asdict(work.result()), default=str).encode() + b"\n")
            await writer.drain()
        finally:
            writer.close()

    async def _reply(self, asked: Asked, machine: Machine | None) -> Reply:
        try:
            if machine is not None:
                return await tools.answer(machine, asked)
            if asked.program != "pos":
                return Reply(stderr=f"{asked.program}: only on nodes\n", code=2)
            reply = await verbs.answer(self, asked)
        except (TailtrimError, OSError) as error:
            return Reply(stderr=f"{asked.program}: {error}\n", code=1)
        for one in self.machines:
            if not (one.shared / SOCKET).exists():
                await self._listen(one.shared / SOCKET, one)
        return reply

    def allocate(self, machines: list[Machine]) -> Allocation:
        """Make an allocation; when resumed, with the result folder that it had."""
        number = len(self.results) + 1
        if number <= len(self.journal.folders):
            folder = Path(self.journal.folders[number - 1])
        else:
            way = self.journal.folder / "results" / getpass.getuser() / "default"
            folder = (way / now()).absolute()
            self.journal.add({"event": "allocation", "folder": str(folder)})
        names = [machine.name for machine in machines]
        layout = Layout(folder, self.settings.published)
        allocation = Allocation(number, names, layout, self.jobs.doing)
        self.allocations[number] = allocation
        self.results.append(allocation)
        for machine in machines:
            machine.allocation = allocation
        return allocation

    def known(self, name: str) -> Allocation | None:
        """Return the allocation of an ID or of a node; ``None`` where there is none."""
        if name.isdigit():
            return self.allocations.get(int(name))
        return next((a for a in self.allocations.values() if name in a.nodes), None)

    def allocation(self, name: str) -> Allocation:
        """Return the allocation of an ID or of a node.

        Raises:
            PlanError: there is none.

        """
        found = self.known(name)
        if found is None:
            raise PlanError(f"{name}: Resource is neither allocation nor node of one")
        return found

    def named(self, name: str) -> list[Machine]:
        """Return the node of a name, or the nodes of a role."""
        for allocation in self.allocations.values():
            if name in allocation.roles:
                return [self.machines.machine(node) for node in allocation.roles[name]]
        return [self.machines.machine(name)]

    def job(self, number: str) -> Job:
        """Return a command by its ID.

        Raises:
            PlanError: there is none.

        """
        found = self.jobs.all.get(int(number)) if number.isdigit() else None
        if found is None:
            raise PlanError(f"unknown command {number!r}, expected an ID that launch printed")
        return found

    def has_image(self, image: str) -> bool:
        """Whether nodes can have an image."""
        return has_image(image, self.settings.images)

    def about_images(self) -> str:
        """Say which images there are."""
        known = ", ".join((HOST_IMAGE, *self.settings.images))
        return f"expected one of {known} (--image NAME has this host's files stand in for one)"

    def later(self, machine: Machine, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Do something on a node after the commands that it was given."""

        async def queued() -> None:
            async with machine.queue:
                await work()

        task = asyncio.ensure_future(queued())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task

    def note(self, machine: Machine, doubt: str) -> None:
        """Remember why results are not to be trusted."""
        told = f"{machine.name}: {doubt}"
        if told not in self.doubts:
            self.doubts.append(told)

    async def free(self, allocation: Allocation) -> None:
        """End the commands and the nodes of an allocation."""
        for job in self.jobs.active():
            if job.machine.allocation is allocation:
                await self.jobs.abort(job)
        for machine in self.machines:
            if machine.allocation is allocation:
                for process in machine.background.values():
                    await process.stop()
                self.machines.off(machine)
        self.allocations.pop(allocation.number, None)

    async def finished(self) -> None:
        """Wait for commands that the script did not wait for."""
        while self.jobs.active():
            await asyncio.wait([job.task for job in self.jobs.active() if job.task])

    async def end(self) -> None:
        """End everything."""
        for allocation in list(self.allocations.values()):
            await self.free(allocation)
        for server in self._servers:
            server.close()
        self.machines.end()


def _peer(writer: asyncio.StreamWriter) -> int:
    """Return the process at the other end, by its number here."""
    link = writer.get_extra_info("socket")
    told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[0])
