"""Snort, an intrusion prevention system, inline on AF_PACKET.

Written after the README of its afpacket DAQ. Without rules it only forwards, as in the papers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tailtrim.laboratory.devices.program import ProgramDevice
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.testbed import Forwarding


class Snort(ProgramDevice):
    """Snort, version 2 or 3, inline on AF_PACKET."""

    preset: Literal["snort"]
    ruleset: str | None = Field(
        default=None, description="File with rules. Without one, packets are only forwarded."
    )

    tools: ClassVar[tuple[Tool, ...]] = (
        Tool("snort", elsewhere="the package of your distribution or snort.org"),
    )

    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it."""
        node = at.dut
        told = node.call("snort", "-V")
        version = re.search(r"Version (\d+)", told.stdout + told.stderr)
        ports = f"{at.dut_in.name}:{at.dut_out.name}"
        command = ["snort", "-Q", "--daq", "afpacket", "-i", ports, "-l", node.path()]
        if version is not None and int(version.group(1)) > 2:  # noqa: PLR2004 - Snort 3
            return [*command, *(("-R", self.ruleset) if self.ruleset else ())]
        lines = ["config policy_mode:inline"]
        lines += [f"include {self.ruleset}"] if self.ruleset else []
        return [*command, "-c", node.put("snort.conf", "\n".join(lines) + "\n")]
