"""Devices that are kept up between runs: each is started once, and warmed up until it is steady."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import OutputError, RunError, TailtrimError
from tailtrim.laboratory.devices import InlineDevice
from tailtrim.laboratory.devices.program import LOG
from tailtrim.laboratory.devices.started import Started
from tailtrim.laboratory.experiment import failed_runs, logs
from tailtrim.laboratory.experiment.containers import placed
from tailtrim.laboratory.experiment.record import HALF, write_json
from tailtrim.laboratory.experiment.warm_up import warm_up
from tailtrim.laboratory.plan import device_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from tailtrim.laboratory.experiment.booted import Booted
    from tailtrim.laboratory.experiment.containers import Recorded
    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Plan, Run

#: Below the experiment: a folder for each device that was kept.
_DEVICES = "devices"
_RECORD = "device.json"


class KeptDevice:
    """A device that is up, for as long as the context lasts; its runs may not stop it.

    Args:
        experiment: whose device.
        run: its first one.
        wired: wires nodes for it, with files in a folder.
        told: is called with what is being done.

    Raises:
        HostError: this host cannot have it.
        RunError: it died, or nothing passes it.

    """

    def __init__(
        self,
        experiment: Experiment,
        run: Run,
        wired: Callable[[Path], Forwarding],
        told: Callable[[str], None],
    ) -> None:
        """Start it and warm it up."""
        #: Its place below the experiment, with its output and the record of its warm-up.
        self.place = _new_folder(experiment.path / _DEVICES)
        began = datetime.now(UTC).isoformat(timespec="seconds")
        self._record: dict[str, Any] = {"dut": run.dut.model_dump(mode="json"), "began": began}
        self._began_s, self._printed, self._runs = time.monotonic(), 0, 0
        with ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix=f"{HALF}device-", dir=experiment.path))
            stack.callback(self._leave)
            try:
                self._start(experiment.plan, run, wired, told, stack)
            except RunError as error:
                self.failed(str(error))
                raise
            self._own_logs = logs.names(self.folder)
            self._stack = stack.pop_all()

    def _start(
        self,
        plan: Plan,
        run: Run,
        wired: Callable[[Path], Forwarding],
        told: Callable[[str], None],
        stack: ExitStack,
    ) -> None:
        dut, ready_s = run.dut, plan.limits.ready_s
        assert isinstance(dut, InlineDevice)  # noqa: S101 - no other is kept
        told("starting the device")
        self.at = stack.enter_context(wired(self.folder))
        #: Makes the record of its container.
        self.container: Recorded = stack.enter_context(placed(self.at, dut))
        with self.at.aside():
            started = Started(dut, self.at, ip=run.traffic.ip, ready_s=ready_s)
            self._device = stack.enter_context(started)
        self._warmed = warm_up(self.at, dut, self, plan, run, told=told)
        self._save(warm_up=self._warmed)

    def __enter__(self) -> Self:
        """Return the device itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        with suppress(TailtrimError):
            self._save(counted=self._device.stop())
        self._stack.close()

    @property
    def pid(self) -> int:
        """The process of a device that is one."""
        return self._device.pid

    def check(self) -> None:
        """Make sure that the device and its nodes are there.

        Raises:
            RunError: it has died, or a node cannot be reached.

        """
        for node in self.at.nodes.values():
            node.check()
        self._device.check()

    def stop(self) -> None:
        """Leave it alone: the next run needs it."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt all its runs."""
        if self._warmed["steady"]:
            return ()
        why = ", ".join(self._warmed["windows"][-1]["changes"])
        return (f"the device was not steady within {self._warmed['limit_s']:g} s: {why}",)

    def of_run(self) -> dict[str, Any]:
        """Return what ``device.json`` of the next run holds."""
        before, self._runs = self._runs, self._runs + 1
        return {
            "lifetime": "configuration",
            "device": self.place.name,
            "up_s": round(time.monotonic() - self._began_s, 3),
            "runs_before": before,
            "warm_up": self._warmed,
        }

    def hand_over(self, folder: Path) -> None:
        """Give a run what was printed and logged in it, and its minutes if it did not end."""
        failed_runs.move_minutes(self.folder, folder)
        logs.move(self.folder, folder, but=self._own_logs)
        with suppress(FileNotFoundError), (self.folder / LOG).open("rb") as log:
            log.seek(self._printed)
            text = log.read()
            self._printed = log.tell()
            (folder / LOG).write_bytes(text)

    def failed(self, why: str) -> None:
        """Record why it could not go on."""
        self._save(failed=why)

    def _save(self, **more: Any) -> None:
        self._record |= more
        write_json(self.place / _RECORD, self._record)

    def _leave(self) -> None:
        """Keep what it printed, of what is in its folder."""
        with suppress(FileNotFoundError):
            shutil.move(self.folder / LOG, self.place / LOG)
        logs.move(self.folder, self.place)
        shutil.rmtree(self.folder, ignore_errors=True)


class Devices:
    """Nodes that are wired for each run, or for all runs of a device that is kept.

    Args:
        experiment: whose runs.
        booted: the node of a run's boot, if it has one.

    """

    def __init__(self, experiment: Experiment, booted: Booted) -> None:
        """Start nothing yet."""
        self._experiment, self.booted = experiment, booted
        self._key: Hashable = None
        self._kept: KeptDevice | None = None
        #: Why no run of this device can be done.
        self._failed: str | None = None

    def __enter__(self) -> Self:
        """Return the devices themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what is up."""
        self.end()

    def end(self) -> None:
        """End the device that is up: others need its ports and CPUs."""
        kept, self._kept, self._key, self._failed = self._kept, None, None, None
        if kept is not None:
            kept.__exit__()

    @contextmanager
    def wired(
        self, run: Run, folder: Path, told: Callable[[str], None]
    ) -> Iterator[tuple[Forwarding, KeptDevice | None, Recorded]]:
        """Wire nodes for a run, with its device if that is kept, and its container if it has one.

        Args:
            run: which one; packets pass its device.
            folder: for what its programs leave; those of a device that is kept have another one.
            told: is called with what is being done.

        Raises:
            HostError: this host cannot.
            RunError: a device that is kept died, or nothing passes it.

        """
        if device_of(run) is None:
            self.end()
            dut = run.dut
            assert isinstance(dut, InlineDevice)  # noqa: S101 - as the caller promises
            with self._nodes(run, folder, told) as at, placed(at, dut) as container:
                try:
                    yield at, None, container
                finally:
                    self.booted.hand_over(folder)
            return
        kept = self._up(run, told)
        try:
            try:
                yield kept.at, kept, kept.container
            finally:
                kept.hand_over(folder)
        except RunError as error:
            self._gone(f"{run.folder} failed: {error}")
            raise
        finally:
            self.booted.hand_over(folder)

    def _nodes(self, run: Run, folder: Path, told: Callable[[str], None]) -> Forwarding:
        return self.booted.forwarding(run, folder, told)

    def _up(self, run: Run, told: Callable[[str], None]) -> KeptDevice:
        """Return the device of a run: the one that is up, or one that is started now."""
        if device_of(run) != self._key:
            self.end()
        self._is_there()
        if self._failed is not None:
            raise RunError(self._failed)
        if self._kept is None:
            self._key = device_of(run)
            try:
                self._kept = KeptDevice(
                    self._experiment, run, lambda folder: self._nodes(run, folder, told), told
                )
            except RunError as error:
                # Its other runs would wait as long, for the same.
                self._failed = "; ".join([str(error), *getattr(error, "__notes__", ())])
                raise
        return self._kept

    def _is_there(self) -> None:
        """Give a device up that has died since its last run."""
        if self._kept is None:
            return
        try:
            self._kept.check()
        except RunError as error:
            self._gone(str(error))

    def _gone(self, why: str) -> None:
        key, kept = self._key, self._kept
        if kept is not None:
            kept.failed(why)
            self._experiment.notices.append(f"{kept.place.name} was started again: {why}")
        self.end()
        self._key = key


def _new_folder(devices: Path) -> Path:
    try:
        devices.mkdir(exist_ok=True)
        place = devices / f"device-{len(list(devices.iterdir())):03d}"
        place.mkdir()
    except OSError as error:
        raise OutputError(f"{devices}: cannot be written: {error.strerror}") from error
    return place
