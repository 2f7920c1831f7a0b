"""The wire: no device at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tailtrim.laboratory.devices.device import InlineDevice
from tailtrim.laboratory.nodes.ports import redirect

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.testbed import Forwarding


class Wire(InlineDevice):
    """The kernel passes every frame from port to port: the floor of a testbed."""

    preset: Literal["wire"]

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> None:
        """Join the device's ports."""
        redirect(at.dut_in, at.dut_out)
