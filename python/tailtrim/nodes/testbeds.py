"""The testbed that a plan names, or describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tailtrim.nodes.testbed import Testbed
    from tailtrim.nodes.testbed_file import TestbedDescription

#: The testbed of this machine, as a plan names it.
LOCAL: Literal["local"] = "local"


def testbed_for(wanted: Literal["local"] | TestbedDescription, experiment: str) -> Testbed:
    """Return the testbed of an experiment.

    Args:
        wanted: as a plan has it.
        experiment: what its nodes are reserved for.

    """
    if wanted == LOCAL:
        from tailtrim.nodes.namespace_testbed import LocalTestbed  # noqa: PLC0415 - one of the two is needed

        return LocalTestbed()
    from tailtrim.nodes.ssh_testbed import HostsTestbed  # noqa: PLC0415 - as above

    return HostsTestbed(wanted, experiment)
