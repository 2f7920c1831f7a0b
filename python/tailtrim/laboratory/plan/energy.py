"""Which states of a device a plan has meters measure."""

from __future__ import annotations

from pydantic import Field

from tailtrim.laboratory.nodes.meters import AnyMeter
from tailtrim.laboratory.plan.fields import Number
from tailtrim.model_base import Strict


class Energy(Strict):
    """Power of nodes with a meter, in three states of the device, in each run.

    Idle: the device is not started. Ready: it waits for packets, none come. Loaded: the traffic of
    the run. The runs of a configuration (``repeat``) are the blocks of its uncertainty; every other
    one has ready behind loaded, so that a drift cancels.
    """

    idle_s: Number = Field(
        default=10.0, ge=0, le=3_600, description="Seconds of idle; 0 leaves it out."
    )
    ready_s: Number = Field(
        default=10.0, ge=0, le=3_600, description="Seconds of ready; 0 leaves it out."
    )
    settle_s: Number = Field(
        default=2.0,
        ge=0,
        le=600,
        description="So much of the begin of each state does not count: meters tell what was a"
        " second ago.",
    )
    meter: AnyMeter | None = Field(
        default=None,
        description="With testbed: local the meter of this machine; hosts have theirs in the"
        " testbed file.",
    )
