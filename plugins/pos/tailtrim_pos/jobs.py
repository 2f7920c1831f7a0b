"""Commands that a script launches on nodes: once, or for each run of the loop variables."""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunError
from tailtrim_pos.naming import ERROR, FINISHED, now, run_suffix
from tailtrim_pos.variables import grid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim_pos.allocation import Allocation
    from tailtrim_pos.experiment import PosExperiment
    from tailtrim_pos.journal import Journal
    from tailtrim_pos.node import PosNode
    from tailtrim_pos.node_registry import Machine, NodeRegistry
    from tailtrim_pos.revival import Revival

#: Status of a command that was ended from outside.
ABORTED = "aborted"
_LAST_LINES, _LAST_BYTES = 10, 4_000
#: Time within which the end of a node is seen after that of its command, and between two looks.
_SEEN_S, _LOOK_S = 1.0, 0.01
#: Exit codes of a command whose node died: killed here, 137 through ssh, 255 from ssh itself.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL, 255)


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run that all commands have passed: how many are left of how many, and how long it took."""

    number: int
    runs: int
    left: int
    loop: dict[str, Any]
    failed: tuple[str, ...]
    repeated: tuple[str, ...]
    duration_s: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Commands that go on after the end of the script."""

    commands: tuple[str, ...]


@dataclass(slots=True)
class Launch:
    """A command to launch: a script, or program and arguments."""

    name: str
    script: str | None = None
    command: list[str] = field(default_factory=list)
    looped: bool = False
    #: Numbers of runs to do; all if none are given.
    only: range | None = None


class Job:
    """A command on a node, from when it is launched."""

    def __init__(
        self, number: int, machine: Machine, launch: Launch, stamp: str, key: str = ""
    ) -> None:
        """Keep the script or the command in the folder of its output.

        Args:
            number: its ID.
            machine: the node.
            launch: the command and its options.
            stamp: the time in the names of its files.
            key: by which a repeated one is known when the experiment is resumed.

        """
        self.number, self.machine, self.launch = number, machine, launch
        self.stamp, self.key = stamp, key
        # The machine may be freed before its output is asked for.
        self.layout = machine.allocated().layout
        self.status = "queued"
        self.code: int | None = None
        #: The files of what it printed, without their suffix; of a repeated one, of its last run.
        self.base = self.layout.scripts(machine.name) / f"{stamp}_{launch.name}"
        self.task: asyncio.Task[None] | None = None
        #: Reason why it could not run, or not to its end.
        self.problem = ""
        self.base.parent.mkdir(parents=True, exist_ok=True)
        kind = "command" if launch.script is None else "file"
        text = f"{launch.command!r}\n" if launch.script is None else launch.script
        self.base.with_name(f"{self.base.name}.{kind}").write_text(text, "utf-8")

    @property
    def failed(self) -> bool:
        """Whether it did not end as it should."""
        return self.status == ERROR

    def printed(self, kind: str = "stdout") -> str:
        """Return what it printed."""
        return self.layout.read_printed(self.base.with_name(f"{self.base.name}.{kind}"))

    def last_lines(self) -> str:
        """Return the end of what it printed, or why it printed nothing, in one line."""
        text = (self.printed() + self.printed("stderr"))[-_LAST_BYTES:] or self.problem
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-_LAST_LINES:])

    def described(self) -> dict[str, Any]:
        """Return what ``pos commands show`` prints."""
        own = {"id": self.number, "node": self.machine.name, "name": self.launch.name}
        return own | {"status": self.status, "return_code": self.code, "loop": self.launch.looped}


class Jobs:
    """All commands of an experiment.

    Args:
        machines: the nodes on which they run.
        experiment: has their deadline, and the seed of the order of the runs.
        journal: of what was run.
        revival: of nodes that died.
        told: is called when a run has ended.

    """

    def __init__(
        self,
        machines: NodeRegistry,
        experiment: PosExperiment,
        journal: Journal,
        revival: Revival,
        told: Callable[[RunEnded], None],
    ) -> None:
        """Begin without any."""
        self._machines, self._journal, self._revival = machines, journal, revival
        self._told, self._experiment = told, experiment
        self._numbers = itertools.count(1)
        self._looped: Counter[str] = Counter()
        self._began: dict[int, float] = {}
        self.all: dict[int, Job] = {}

    def launch(self, machine: Machine, launch: Launch) -> Job:
        """Launch a command; it waits for the one before it on the node."""
        stamp, key = now(), ""
        if launch.looped:
            name = f"{machine.name}/{launch.name}"
            self._looped[name] += 1
            key = f"{name}/{self._looped[name]}"
            stamp = self._journal.stamp(key, stamp)
        job = Job(next(self._numbers), machine, launch, stamp, key)
        self.all[job.number] = job
        machine.allocated().barriers.back(machine.name)
        job.task = asyncio.get_running_loop().create_task(self._queued(job))
        return job

    def active(self) -> list[Job]:
        """Return the commands that have not ended."""
        return [job for job in self.all.values() if job.task and not job.task.done()]

    def doing(self, node: str) -> str:
        """Describe the work of a node, for those who wait for it."""
        mine = [job for job in self.active() if job.machine.name == node]
        if not mine:
            return "no command runs there"
        job = next((job for job in mine if job.status == "running"), mine[0])
        last = job.last_lines()
        return f"{job.launch.name} {job.status}" + (f", which printed last: {last}" if last else "")

    async def abort(self, job: Job) -> None:
        """End a command."""
        if job.task is not None:
            job.task.cancel()
            await asyncio.wait([job.task])

    async def _queued(self, job: Job) -> None:
        machine = job.machine
        try:
            async with machine.queue:
                job.status = "running"
                await (self._runs(job) if job.launch.looped else self._alone(job))
        except asyncio.CancelledError:
            job.status = ABORTED
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the command failed by it
            job.status = ERROR
            job.problem = str(error) or type(error).__name__
            # On a full disk that cannot be written either.
            with suppress(OSError):
                _say(job.base, job.problem)
                if not job.launch.looped:
                    _status(job.base, job.status)
        finally:
            if job.launch.looped:
                machine.run = None
            if job.failed and machine.allocation is not None:
                why = f"its command {job.launch.name} ended with an error"
                machine.allocation.barriers.ended(machine.name, why)

    async def _alone(self, job: Job) -> None:
        job.status = await self._once(job, job.base)
        _status(job.base, job.status)
        job.machine.done.append(partial(self._once_more, job))

    async def _once_more(self, job: Job) -> None:
        """Repeat a command on a node that was booted again.

        Raises:
            RunError: it does not end as it did before.

        """
        base = job.machine.allocated().aside(job.machine.name) / f"{job.stamp}_{job.launch.name}"
        base.parent.mkdir(parents=True, exist_ok=True)
        code, status = job.code, await self._once(job, base)
        job.code, again = code, job.code
        if status != job.status:
            told = f"its command {job.launch.name} ended with {again} when it was repeated"
            raise RunError(f"{told}, with {code} before ({base}.stderr)")

    async def _runs(self, job: Job) -> None:
        """Repeat a command for each run, in step with those that are repeated meanwhile."""
        machine, allocation = job.machine, job.machine.allocated()
        runs = grid(allocation.variables["loop"])
        wanted = [n for n in range(len(runs)) if job.launch.only is None or n in job.launch.only]
        if self._experiment.seed is not None:
            random.Random(self._experiment.seed).shuffle(wanted)  # noqa: S311 - no secret
        key, statuses = job.key, set()
        folder, start = allocation.layout.scripts(machine.name), f"{job.stamp}_{job.launch.name}"
        lockstep = allocation.lockstep
        lockstep.join(key)
        try:
            for position, number in enumerate(wanted):
                first, second = 2 * position, 2 * position + 1
                await lockstep.turn(key, first)
                await self._revival.revived(allocation)
                if self._journal.complete(key, number):
                    await lockstep.passed(key, second)
                    continue
                suffix = run_suffix(number, len(runs))
                machine.run = (number, runs[number], suffix)
                job.base = folder / f"{start}{suffix}"
                began = self._began.setdefault(number, time.monotonic())
                status = await self._run(job, allocation)
                await lockstep.passed(key, first)
                due = partial(self._revival.due, allocation, number)
                if await lockstep.decided(key, second, due):
                    status = await self._run(job, allocation)
                statuses.add(status)
                machine.run = None
                if await lockstep.passed(key, second):
                    self._tell(allocation, number, (len(runs), len(wanted) - position - 1), began)
        finally:
            await lockstep.leave(key)
        job.status = ERROR if statuses == {ERROR} else FINISHED

    async def _run(self, job: Job, allocation: Allocation) -> str:
        """Do one run; return its status."""
        machine, key = job.machine, job.key
        if machine.run is None:
            return ERROR
        number, loop, _ = machine.run
        allocation.barriers.back(machine.name)
        for (_, of_run), process in list(machine.background.items()):
            if of_run == number:
                # Of an attempt that ended before.
                await process.stop()
        self._journal.set_aside(key, number, allocation.aside(machine.name))
        machine.left = partial(self._journal.left, key, number)
        for kind in ("loop", "status", "stdout", "stderr"):
            machine.left(job.base.with_name(f"{job.base.name}.{kind}"))
        text = allocation.layout.loop(loop)
        job.base.with_name(f"{job.base.name}.loop").write_text(text, "utf-8")
        event: dict[str, Any] = {
            "event": "run",
            "allocation": allocation.number,
            "key": key,
            "run": number,
        }
        event |= {"loop": loop, "peers": allocation.lockstep.peers(key)}
        status = ERROR
        try:
            status = await self._once(job, job.base)
        except RunError as error:
            _say(job.base, str(error))
        finally:
            _status(job.base, status)
            event["peers"] = allocation.lockstep.peers(key)
            self._journal.add({**event, "status": status})
        # Others may go on from run to run, and wait for one that is still to come.
        peers = frozenset(one.partition("/")[0] for one in event["peers"])
        allocation.barriers.ended(machine.name, f"its run {number} ended ({status})", peers)
        return status

    async def _once(self, job: Job, base: Path) -> str:
        """Run a command on its node to its end; return its status.

        Raises:
            RunError: it could not run, or not to its end.

        """
        machine, layout = job.machine, job.machine.allocated().layout
        node = await self._machines.booted(machine)
        command = job.launch.command
        if job.launch.script is not None:
            if not job.launch.script.startswith("#!"):
                raise RunError("[Errno 8] Exec format error: the script has no #! line")
            put = 'cat >"$1" && chmod 755 "$1"'
            place = f"/tmp/{job.number}"  # noqa: S108 - on the node, as pos does
            given = job.launch.script.encode()
            await asyncio.to_thread(node.call, "sh", "-c", put, "sh", place, given=given)
            command = [place]
        outputs = [base.with_name(f"{base.name}.{kind}") for kind in ("stdout", "stderr")]
        with outputs[0].open("wb") as output, outputs[1].open("wb") as errors:
            process = await node.start(command, output, errors)
        try:
            job.code = await asyncio.wait_for(process.wait(), self._experiment.deadline_s)
        except TimeoutError:
            waits = machine.allocated().barriers.waits(machine.name)
            raise RunError(
                f"deadline of {self._experiment.deadline_s:g} s passed"
                + (f": {machine.name} {waits}" if waits else "")
            ) from None
        finally:
            await process.stop()
            layout.store_printed(base)
        if await _died(node, job.code):
            machine.allocated().dead[machine.name] = "the node has died"
            raise RunError(f"{machine.name}: the node has died")
        return FINISHED if job.code == 0 else ERROR

    def _tell(
        self, allocation: Allocation, number: int, runs: tuple[int, int], began: float
    ) -> None:
        known = self._journal.runs.get((allocation.number, number), {})
        statuses = known.get("status", {})
        failed = tuple(key for key, status in statuses.items() if status != FINISHED)
        took_s, repeated = time.monotonic() - began, known.get("repeated", ())
        self._told(RunEnded(number, *runs, dict(known.get("loop", {})), failed, repeated, took_s))


async def _died(node: PosNode, code: int) -> bool:
    """Whether a node died: its programs are killed just before that is seen."""
    until_s = time.monotonic() + _SEEN_S
    # The kernel tells no event.
    while node.alive and code in _KILLED and time.monotonic() < until_s:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    return not node.alive


def _status(base: Path, status: str) -> None:
    base.with_name(f"{base.name}.status").write_text(status, "utf-8")


def _say(base: Path, what: str) -> None:
    """Add a line to what a command printed to standard error."""
    with base.with_name(f"{base.name}.stderr").open("a", encoding="utf-8") as errors:
        errors.write(f"tailtrim: {what}\n")
