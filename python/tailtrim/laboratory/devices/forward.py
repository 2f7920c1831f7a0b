"""The reference forwarder: the agent's verb ``forward``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tailtrim.laboratory.devices.device import DECIMAL, TIME
from tailtrim.laboratory.devices.disturbed import DisturbedDevice
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.results import DISTURBED, STALLS

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.testbed import Forwarding

#: File with the delay that each packet was given, where it is known.
TRUTH = "truth.bin"


def _known(value: str | None) -> str | None:
    models = (
        rf"constant:{TIME}|bimodal:{TIME},{TIME},{DECIMAL}"
        rf"|heavy:{TIME},{DECIMAL}|stall:{TIME},{TIME},{TIME}"
    )
    if value is not None and not re.fullmatch(models, value):
        raise ValueError(
            "expected constant:T, bimodal:USUAL,RARE,SHARE, heavy:LEAST,EXPONENT or"
            " stall:USUAL,STALL,PERIOD,"
            " each T such as 20us"
        )
    return value


class Forward(DisturbedDevice):
    """The reference forwarder: it can delay packets, do busy work and disturb itself."""

    preset: Literal["forward"]
    mode: Literal["poll", "wait"] = Field(
        default="poll", description="Busy-poll, or sleep until a frame arrives."
    )
    batch: int = Field(default=32, ge=1, le=64, description="Most frames in one batch.")
    work_ns: int = Field(
        default=0, ge=0, le=10_000_000, description="Busy work for each frame, in ns."
    )
    delay: Annotated[str | None, AfterValidator(_known)] = Field(
        default=None, description="A known delay, such as bimodal:20us,100us,0.01."
    )

    largest_frame: ClassVar[int | None] = 1_518
    leaves: ClassVar[tuple[str, ...]] = (TRUTH, DISTURBED, STALLS)
    disturbs_itself: ClassVar[bool] = True

    @model_validator(mode="after")
    def _logs_a_run(self) -> Self:
        if self.delay is not None and self.lifetime != "run":
            raise ValueError("delay: only with lifetime: run, since its log is that of a run")
        return self

    @property
    def named(self) -> tuple[str, ...]:
        """The delay and the disturbance."""
        return ((self.delay,) if self.delay else ()) + super().named

    @property
    def polls(self) -> bool:
        """Whether it polls instead of waiting."""
        return self.mode == "poll"

    def serving(self, at: Forwarding) -> list[int]:
        """Return the CPU on which it polls."""
        return [at.dut.cpus[-1]]

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> Agent:
        """Start the verb."""
        arguments = ["--ingress", at.dut_in.name, "--egress", at.dut_out.name]
        arguments += ["--mode", self.mode, "--batch", str(self.batch)]
        if self.work_ns:
            arguments += ["--work", str(self.work_ns), "--stall-log", at.dut.path(STALLS)]
        if self.delay is not None:
            arguments += ["--delay", self.delay, "--delay-log", at.dut.path(TRUTH)]
        if self.disturbed_from_within and self.disturb is not None:
            arguments += ["--disturb", self.disturb, "--disturb-log", at.dut.path(DISTURBED)]
        arguments += ["--cpu", str(at.dut.cpus[-1])]
        agent = stack.enter_context(Agent(at.dut, "forward", *arguments))
        agent.ready()
        return agent
