"""An XDP program that redirects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, Literal

from tailtrim.laboratory.devices.device import InlineDevice
from tailtrim.laboratory.nodes.xdp import redirecting

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.testbed import Ability, Forwarding


class Xdp(InlineDevice):
    """An XDP program of a few instructions that redirects every frame; it needs root."""

    preset: Literal["xdp"]

    loads_bpf: ClassVar[bool] = True
    # A virtual interface takes an XDP program while frames fit into a page, next to the program's
    # room and the kernel's own (drivers/net/veth.c): MTUs up to 3,506 with pages of 4 KiB.
    largest_frame: ClassVar[int | None] = 3_524

    @property
    def needs(self) -> tuple[Ability, ...]:
        """An XDP program that this process attaches."""
        return ("xdp",)

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> None:
        """Attach it to where frames come in."""
        told = at.dut.run("ip", "-json", "link", "show", "dev", at.dut_out.name)
        program = redirecting(int(json.loads(told)[0]["ifindex"]))
        stack.enter_context(at.dut.attach_xdp(at.dut_in.name, program))
        stack.enter_context(at.takes_redirected())
