"""Refusals of a plan that asks of its hosts what the testbed file does not allow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tailtrim.laboratory.nodes.boot.line import unchanged
from tailtrim.laboratory.nodes.testbed import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.plan.model import Plan
    from tailtrim.laboratory.plan.plan_file import Place

#: A kernel that a host has: its release, or its file.
_KERNEL = re.compile(r"(/boot/vmlinuz-)?[A-Za-z0-9][A-Za-z0-9.+~_-]*")


def refusals(plan: Plan) -> Iterator[tuple[Place, str]]:
    """Yield each refusal: its place in the plan, and the line to add to a file."""
    if plan.testbed == LOCAL:
        return
    node = plan.testbed.roles.dut.node
    if plan.dut.tunes:
        yield from ((("dut",), one) for one in plan.testbed.forbids(node, "tune"))
    if plan.boot is None or not plan.boots_node:
        return
    yield from ((("boot",), one) for one in plan.testbed.forbids(node, "reboot", "bootline"))
    if plan.testbed.nodes[node].boot is None:
        told = f"node {node} has no boot line to begin with, add nodes.{node}.boot.line"
        yield ("boot",), f"{told} to the testbed file, such as root=/dev/sda1 ro"
    if not _KERNEL.fullmatch(plan.boot.kernel):
        told = f"expected a kernel that {node} has, such as 6.12.48-rt-amd64, the release of"
        given = repr(plan.boot.kernel)
        yield ("boot", "kernel"), f"{told} /boot/vmlinuz-6.12.48-rt-amd64, not {given}"
    try:
        unchanged(plan.boot.cmdline.split())
    except ValueError as error:
        yield ("boot", "cmdline"), str(error)
