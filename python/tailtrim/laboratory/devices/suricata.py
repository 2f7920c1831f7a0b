"""Suricata, an intrusion prevention system, inline on AF_PACKET.

Written after its documentation: docs.suricata.io, "Setting up IPS/inline for Linux". Without rules
it only forwards, as in the papers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tailtrim.laboratory.devices.program import ProgramDevice
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.testbed import Forwarding

_CONFIGURATION = """\
%YAML 1.1
---
vars:
  address-groups: {{HOME_NET: "any", EXTERNAL_NET: "any"}}
default-log-dir: {folder}
outputs:
  - stats: {{enabled: yes, filename: stats.log}}
af-packet:
  - {{interface: {entry}, cluster-id: 98, copy-iface: {exit}, {inline}}}
  - {{interface: {exit}, cluster-id: 97, copy-iface: {entry}, {inline}}}
unix-command: {{enabled: no}}
default-rule-path: {rule_path}
rule-files: [{rules}]
"""
_INLINE = "copy-mode: ips, threads: 1, cluster-type: cluster_flow, defrag: no, use-mmap: yes"


class Suricata(ProgramDevice):
    """Suricata inline on AF_PACKET, with one thread for each direction."""

    preset: Literal["suricata"]
    ruleset: str | None = Field(
        default=None, description="File with rules. Without one, packets are only forwarded."
    )

    tools: ClassVar[tuple[Tool, ...]] = (
        Tool("suricata", elsewhere="the package of your distribution or suricata.io"),
    )

    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it."""
        node = at.dut
        text = _CONFIGURATION.format(
            folder=node.path(),
            entry=at.dut_in.name,
            exit=at.dut_out.name,
            inline=_INLINE,
            rule_path=node.path(),
            rules=self.ruleset or "",
        )
        configuration = node.put("suricata.yaml", text)
        return ["suricata", "-c", configuration, "--af-packet", "-l", node.path()]
