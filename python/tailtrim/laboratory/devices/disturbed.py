"""Devices that are processes, and the disturbances that a plan may ask for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from tailtrim.laboratory.devices.device import TIME, InlineDevice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.testbed import Forwarding

#: Disturbances that take no time of their own, and those that last as long as is asked for; some
#: only a process can do to itself.
MOMENTS = ("munmap", "mprotect", "membarrier", "bpf")
LASTING = ("pause", "thread", "fifo", "timers", "softirqs", "quota", "stop")
WITHIN = ("munmap", "mprotect", "membarrier", "pause")


def _known(value: str | None) -> str | None:
    # For a loop over several.
    value = None if value == "none" else value
    moments, lasting = "|".join(MOMENTS), "|".join(LASTING)
    known = rf"({moments}):{TIME}|({lasting}):{TIME},{TIME}"
    if value is not None and not re.fullmatch(known, value):
        raise ValueError(
            f"expected none, {', '.join(MOMENTS)} with :EVERY, or {', '.join(LASTING)} with"
            " :TIME,EVERY, each time such as 20ms"
        )
    return value


class DisturbedDevice(InlineDevice):
    """A device that is a process; it may be disturbed at random times."""

    disturb: Annotated[str | None, AfterValidator(_known)] = Field(
        default=None,
        description="Disturbance at random times, logged in disturbed.csv of the run: thread,"
        " fifo, timers, softirqs, quota or stop, such as stop:2ms,100ms (for 2 ms, every 100 ms"
        " on average), or bpf:20ms; with preset forward also munmap:20ms, mprotect:20ms,"
        " membarrier:20ms or pause:2ms,100ms.",
    )

    #: Whether it implements the disturbances :data:`WITHIN`.
    disturbs_itself: ClassVar[bool] = False

    @model_validator(mode="after")
    def _can_be_disturbed(self) -> Self:
        if self.disturbed_from_within and not self.disturbs_itself:
            raise ValueError(f"disturb: only preset forward has {self.disturb}")
        if self.disturb is not None and self.lifetime != "run":
            raise ValueError("disturb: only with lifetime: run, since its log is that of a run")
        return self

    @property
    def disturbed_from_within(self) -> bool:
        """Whether the device disturbs itself."""
        return self.disturb is not None and self.disturb.partition(":")[0] in WITHIN

    @property
    def disturbance(self) -> str | None:
        """The disturbance that has to come from outside the device, if any."""
        return None if self.disturbed_from_within else self.disturb

    @property
    def named(self) -> tuple[str, ...]:
        """The disturbance."""
        return (self.disturb,) if self.disturb else ()

    def serving(self, at: Forwarding) -> Sequence[int]:
        """Return the CPUs on which it may run."""
        return at.dut.cpus
