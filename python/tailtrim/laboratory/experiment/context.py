"""The context of a run, and the listener to the events of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tailtrim.laboratory.devices import InlineDevice
    from tailtrim.laboratory.devices.running_device import RunningDevice
    from tailtrim.laboratory.experiment.by_minute import ByMinute
    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.results.experiments import Outcome


class Listener:
    """Listener to the events of an experiment; by itself it ignores them."""

    def preparation(self, what: str) -> None:
        """Hear of a preparation that takes time."""

    def warning(self, what: str) -> None:
        """Hear of what may be wrong with a plan."""

    def progress(self, run: Run, what: str) -> None:
        """Hear what a run is doing."""

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        """Hear that a run has ended, and its outcome."""


#: A listener that ignores all events.
SILENT = Listener()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """A run of an experiment, the temporary folder of its files, and the listener to it."""

    experiment: Experiment
    run: Run
    folder: Path
    listener: Listener

    @property
    def plan(self) -> Plan:
        """The plan of the experiment."""
        return self.experiment.plan

    @property
    def dut(self) -> InlineDevice:
        """The device of the run, which packets pass: there is none with a reflector."""
        return cast("InlineDevice", self.run.dut)

    def on(
        self,
        at: Forwarding,
        *,
        container: Callable[[dict[str, int]], dict[str, Any]],
        device: RunningDevice | None = None,
        by_minute: ByMinute | None = None,
    ) -> InlineRunContext:
        """Return the run on nodes that are wired for it; see :class:`InlineRunContext`."""
        return InlineRunContext(
            experiment=self.experiment,
            run=self.run,
            folder=self.folder,
            listener=self.listener,
            at=at,
            container=container,
            device=device,
            by_minute=by_minute,
        )

    def progress(self, what: str) -> None:
        """Tell the listener what the run is doing."""
        self.listener.progress(self.run, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineRunContext(RunContext):
    """A run whose packets pass a device, on nodes that are wired for it.

    ``device`` is the device where it runs already and goes on afterwards, ``by_minute`` matches
    packets while they come where the plan says so. ``container`` makes the record of the device's
    container from what its control group counted.
    """

    at: Forwarding
    container: Callable[[dict[str, int]], dict[str, Any]]
    device: RunningDevice | None = None
    by_minute: ByMinute | None = None
