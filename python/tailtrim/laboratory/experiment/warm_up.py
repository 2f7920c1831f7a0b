"""A device is warmed up: packets pass it, as in its first run, until it is steady."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.analysis import analyze
from tailtrim.errors import RunError
from tailtrim.laboratory.experiment.context import SILENT
from tailtrim.laboratory.experiment.measure import measure
from tailtrim.laboratory.experiment.steady_state import WINDOW_S, Window
from tailtrim.laboratory.nodes.memory_events import Activity, activity

if TYPE_CHECKING:
    from tailtrim.analysis import Analysis
    from tailtrim.laboratory.devices.running_device import RunningDevice
    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.nodes.node import Node

#: Counters are read so often at most: the device's node has to read them.
_LOOK_S = 0.25


class _WatchedDevice:
    """A device that is kept, whose counters are read whenever it is looked at."""

    def __init__(self, device: RunningDevice, context: InlineRunContext) -> None:
        """Take a device that runs."""
        self._device, self._node = device, context.at.dut.outside
        self._cpus = context.dut.serving(context.at)
        self.readings: list[Activity] = []
        self._next_s = 0.0
        self._process: int | None = None
        # Where the kernel is the device there is nothing to count.
        with suppress(RunError):
            self._process = device.pid

    @property
    def pid(self) -> int:
        """The process of a device that is one."""
        return self._device.pid

    def check(self) -> None:
        """Make sure that it runs."""
        self._device.check()
        if self._process is not None and time.monotonic() >= self._next_s:
            self.readings.append(activity(self._node, self._process, self._cpus))
            self._next_s = time.monotonic() + _LOOK_S

    def stop(self) -> None:
        """Leave it alone."""


def warm_up(context: InlineRunContext) -> dict[str, Any]:
    """Have packets pass a device until it is steady, or for as long as the plan allows.

    Args:
        context: the first run of the device, which runs already: its traffic is that of the
            warm-up.

    Returns:
        The result, as ``device.json`` has it: ``steady``, ``took_s``, ``limit_s``, and of each
        window its counts, its latencies and the quantities that still changed.

    Raises:
        HostError: a node cannot do it.
        RunError: the device or a part of the meter died.

    """
    limit_s, began_s = context.plan.limits.warm_up_s, time.monotonic()
    run = context.run
    short = run.traffic.model_copy(update={"duration_s": WINDOW_S})
    repeated = run.model_copy(update={"traffic": short, "traced": False})
    quiet = replace(context, run=repeated, listener=SILENT)
    # Earlier work of this process must not interrupt the device now.
    context.at.stand_off()
    windows: list[dict[str, Any]] = []
    while not windows or windows[-1]["changes"]:
        took_s = time.monotonic() - began_s
        if windows and took_s + WINDOW_S > limit_s:
            break
        context.progress(f"warming up, {took_s:.0f} s")
        windows.append(_window(quiet))
    return {
        "steady": not windows[-1]["changes"],
        "took_s": round(time.monotonic() - began_s, 3),
        "limit_s": limit_s,
        "window_s": WINDOW_S,
        "windows": windows,
    }


def _window(context: InlineRunContext) -> dict[str, Any]:
    assert context.device is not None  # noqa: S101 - warm_up is for devices that run
    watched, at = _WatchedDevice(context.device, context), context.at
    measured = measure(replace(context, device=watched), with_meters=False)
    taps = measured.capture["taps"]
    ends = {"ingress": at.tap_in.node, "egress": at.tap_out.node}
    captures = [_fetched(node, Path(taps[side]["file"]).name) for side, node in ends.items()]
    result = analyze(*captures, skip_s=0, allow_negative=True, keep_samples=True)
    for capture in captures:
        capture.unlink()
    return _record(result, watched.readings)


def _fetched(node: Node, name: str) -> Path:
    path = node.get(name)
    if path is None:
        raise RunError(f"{node.named}: {name} is missing")
    return path


def _record(result: Analysis, readings: list[Activity]) -> dict[str, Any]:
    """Return a window as the record has it."""
    faults = _each([one.page_faults for one in readings])
    shootdowns = _each([one.shootdowns for one in readings])
    window = Window(result.latencies_ns(), faults, shootdowns)
    values = {quantile.p: quantile.value for quantile in result.summary.latency_ns.quantiles}
    return {
        "samples": result.summary.samples,
        "p50_ns": values.get("0.5"),
        "p99_ns": values.get("0.99"),
        "page_faults": None if faults is None else sum(faults),
        "shootdowns": None if shootdowns is None else sum(shootdowns),
        "changes": window.unsteady(),
    }


def _each(counters: list[int | None]) -> list[int] | None:
    """Return what was counted between two readings each; ``None`` where nothing is counted."""
    known = [one for one in counters if one is not None]
    if len(known) < len(counters) or not known:
        return None
    return [after - before for before, after in pairwise(known)]
