"""Why the worst packets of a run of hours were late, as ``worst.json`` says: typed and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tailtrim.report.inputs.host_explanation import Data, HostExplanation, Whole, file_of
from tailtrim.rundir.layout import WORST_EXPLAINED

if TYPE_CHECKING:
    from tailtrim.explain import WorstPackets
    from tailtrim.rundir import RunDirectory


class WorstPacket(Data):
    """One of them; ``host`` is what the trace around it says, if there is one."""

    ingress_ns: Whole
    latency_ns: Whole
    complete: bool
    host: HostExplanation | None = None


class WorstExplained(Data):
    """All of them, the slowest first, or the ``problem`` for which they are not explained."""

    schema_: Literal["tailtrim.worst-packets/1"] = Field(alias="schema")
    packets: tuple[WorstPacket, ...]
    problem: str | None = None


def read(directory: RunDirectory) -> WorstExplained | None:
    """Read what a run has; ``None`` where it was not traced.

    Raises:
        RunDirectoryError: the file cannot be read, or is invalid.

    """
    return file_of(directory.path / WORST_EXPLAINED, WorstExplained)


def of_packets(found: WorstPackets) -> WorstExplained:
    """Return what :func:`tailtrim.explain.worst_packets` found, typed."""
    return WorstExplained.model_validate(found.as_json())
