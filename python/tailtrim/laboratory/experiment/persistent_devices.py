"""Devices that are kept up between runs: each is started once, and warmed up until it is steady."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import OutputError, RunError, TailtrimError
from tailtrim.laboratory.devices.program import LOG
from tailtrim.laboratory.devices.running_device import DeviceUnderTest
from tailtrim.laboratory.experiment import failed_runs
from tailtrim.laboratory.experiment.by_minute import ByMinute
from tailtrim.laboratory.experiment.record import HALF, write_json
from tailtrim.laboratory.experiment.warm_up import warm_up
from tailtrim.laboratory.nodes.container.node import Container
from tailtrim.laboratory.nodes.container.root import prepared
from tailtrim.laboratory.plan import device_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from tailtrim.laboratory.devices import InlineDevice
    from tailtrim.laboratory.experiment.boots import Boots
    from tailtrim.laboratory.experiment.context import InlineRunContext, RunContext
    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: From what the control group of a container counted to what the record of a run says.
ContainerRecord = Callable[[dict[str, int]], dict[str, Any]]

#: Below the experiment: a folder for each device that was kept.
_DEVICES = "devices"
_RECORD = "device.json"


class PersistentDevice:
    """A device that is up, for as long as the context lasts; its runs may not stop it.

    Args:
        context: its first run.
        boots: the boots of its node.

    Raises:
        HostError: this host cannot have it.
        RunError: it died, or nothing passes it.

    """

    def __init__(self, context: RunContext, boots: Boots) -> None:
        """Start it and warm it up."""
        experiment, run, dut = context.experiment, context.run, context.dut
        #: Its place below the experiment, with its output and the record of its warm-up.
        self.place = _new_folder(experiment.path / _DEVICES)
        began = datetime.now(UTC).isoformat(timespec="seconds")
        self._record: dict[str, Any] = {"dut": dut.model_dump(mode="json"), "began": began}
        self._began_s, self._printed, self._runs = time.monotonic(), 0, 0
        with ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix=f"{HALF}device-", dir=experiment.path))
            stack.callback(self._leave)
            try:
                context.progress("starting the device")
                own = replace(context, folder=self.folder)
                self.at = stack.enter_context(boots.forwarding(own))
                #: Makes the record of its container.
                self.container = stack.enter_context(_placed(self.at, dut))
                ready_s = context.plan.limits.ready_s
                with self.at.aside():
                    started = DeviceUnderTest(dut, self.at, ip=run.traffic.ip, ready_s=ready_s)
                    self._device = stack.enter_context(started)
                self._warmed = warm_up(own.on(self.at, container=self.container, device=self))
                self._save(warm_up=self._warmed)
            except RunError as error:
                self.failed(str(error))
                raise
            self._own_logs = failed_runs.log_names(self.folder)
            self._stack = stack.pop_all()

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
        failed_runs.move_logs(self.folder, folder, but=self._own_logs)
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
        failed_runs.move_logs(self.folder, self.place)
        shutil.rmtree(self.folder, ignore_errors=True)


class PersistentDevices:
    """Nodes that are wired for each run, or for all runs of a device that is kept up.

    Args:
        experiment: whose runs.
        boots: the boots of the device's node.

    """

    def __init__(self, experiment: Experiment, boots: Boots) -> None:
        """Start nothing yet."""
        self._experiment, self.boots = experiment, boots
        self._key: Hashable = None
        #: The device that is up.
        self.kept: PersistentDevice | None = None
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
        kept, self.kept, self._key, self._failed = self.kept, None, None, None
        if kept is not None:
            kept.__exit__()

    @contextmanager
    def wired(self, context: RunContext) -> Iterator[InlineRunContext]:
        """Wire nodes for a run, with its device if that is kept, and its container if it has one.

        Args:
            context: the run; its folder is for what its programs leave, but those of a device that
                is kept have another one.

        Raises:
            HostError: this host cannot.
            RunError: a device that is kept died, or nothing passes it.

        """
        run, folder = context.run, context.folder
        if device_of(run) is None:
            self.end()
            with self.boots.forwarding(context) as at, _placed(at, context.dut) as container:
                try:
                    by_minute = _by_minute(context, at)
                    yield context.on(at, container=container, by_minute=by_minute)
                finally:
                    self.boots.hand_over(folder)
            return
        kept = self._up(context)
        try:
            try:
                by_minute = _by_minute(context, kept.at)
                yield context.on(
                    kept.at, container=kept.container, device=kept, by_minute=by_minute
                )
            finally:
                kept.hand_over(folder)
        except RunError as error:
            self._gone(f"{run.folder} failed: {error}")
            raise
        finally:
            self.boots.hand_over(folder)

    def _up(self, context: RunContext) -> PersistentDevice:
        """Return the device of a run: the one that is up, or one that is started now."""
        if device_of(context.run) != self._key:
            self.end()
        self._is_there()
        if self._failed is not None:
            raise RunError(self._failed)
        if self.kept is None:
            self._key = device_of(context.run)
            try:
                self.kept = PersistentDevice(context, self.boots)
            except RunError as error:
                # Its other runs would wait as long, for the same.
                self._failed = "; ".join([str(error), *getattr(error, "__notes__", ())])
                raise
        return self.kept

    def _is_there(self) -> None:
        """Give a device up that has died since its last run."""
        if self.kept is None:
            return
        try:
            self.kept.check()
        except RunError as error:
            self._gone(str(error))

    def _gone(self, why: str) -> None:
        key, kept = self._key, self.kept
        if kept is not None:
            kept.failed(why)
            self._experiment.notices.append(f"{kept.place.name} was started again: {why}")
        self.end()
        self._key = key


@contextmanager
def _placed(at: Forwarding, dut: InlineDevice) -> Iterator[ContainerRecord]:
    """Put the device's node into the container that the plan asks for, if it does.

    The result makes the record of the container from what its control group counted.

    Raises:
        HostError: the node cannot have it.

    """
    if dut.node != "container":
        yield lambda _: {}
        return
    settings = dut.container
    root = prepared(settings.root, tuple(settings.packages))
    with Container(at.dut, root, settings) as container:
        at.dut = container
        yield lambda counted: {"container": container.record | {"counted": counted}}


def _by_minute(context: RunContext, at: Forwarding) -> ByMinute | None:
    """Return what matches the packets of a run by minute, where its plan says so."""
    if not context.plan.by_minute:
        return None
    quantiles = context.experiment.quantiles
    return ByMinute(at, context.plan.skip_s, quantiles, run=context.run.folder)


def _new_folder(devices: Path) -> Path:
    try:
        devices.mkdir(exist_ok=True)
        place = devices / f"device-{len(list(devices.iterdir())):03d}"
        place.mkdir()
    except OSError as error:
        raise OutputError(f"{devices}: cannot be written: {error.strerror}") from error
    return place
