"""Intrusion prevention systems inline: Suricata and Snort, both on AF_PACKET.

Written after their documentation: docs.suricata.io, "Setting up IPS/inline for Linux", and the
README of Snort's afpacket DAQ. Without rules both only forward, as in the papers.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from tailtrim.testbed.local import DUT_IN, DUT_OUT
from tailtrim.testbed.node import check, environment

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.plan import Dut

_SURICATA = """\
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


def suricata(dut: Dut, folder: Path) -> list[str]:
    """Return how to start Suricata.

    Raises:
        HostError: it is not installed.

    """
    check({"suricata": "the package of your distribution or suricata.io"})
    configuration = folder / "suricata.yaml"
    text = _SURICATA.format(
        folder=folder,
        entry=DUT_IN,
        exit=DUT_OUT,
        inline=_INLINE,
        rule_path=folder,
        rules=dut.ruleset or "",
    )
    configuration.write_text(text, encoding="utf-8")
    return ["suricata", "-c", str(configuration), "--af-packet", "-l", str(folder)]


def snort(dut: Dut, folder: Path) -> list[str]:
    """Return how to start Snort, version 2 or 3.

    Raises:
        HostError: it is not installed.

    """
    check({"snort": "the package of your distribution or snort.org"})
    told = subprocess.run(
        ["snort", "-V"], capture_output=True, text=True, check=False, env=environment()
    )
    version = re.search(r"Version (\d+)", told.stdout + told.stderr)
    command = ["snort", "-Q", "--daq", "afpacket", "-i", f"{DUT_IN}:{DUT_OUT}", "-l", str(folder)]
    if version is not None and int(version.group(1)) > 2:  # noqa: PLR2004 - Snort 3
        return [*command, *(("-R", dut.ruleset) if dut.ruleset else ())]
    configuration = folder / "snort.conf"
    lines = ["config policy_mode:inline", *([f"include {dut.ruleset}"] if dut.ruleset else [])]
    configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*command, "-c", str(configuration)]
