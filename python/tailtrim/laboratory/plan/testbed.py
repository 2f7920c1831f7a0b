"""Testbeds as data: a file that describes one, or the part of a plan that does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tailtrim.laboratory.nodes import cable_delay
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim.laboratory.plan.plan_file import Source
from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.nodes.node_entry import NodeEntry
    from tailtrim.laboratory.plan.plan_file import Place

Part = TypeVar("Part", bound=Strict)
#: Keys of an address that are paths, those of power, and those of a password.
_PATHS = ("key", "known_hosts", "ca_file", "file")
#: Keys that say where a password is.
_SECRETS = ("password", "community")


def load_testbed(path: Path) -> TestbedDescription:
    """Read a testbed file.

    Raises:
        PlanError: it cannot be read, or does not describe a testbed; all mistakes are told.

    """
    source = Source(path, keys=("nodes", "roles", "ns_per_m", "captures"))
    return _described(source, source.data, (), path.parent)


def testbed_of(source: Source, folder: Path) -> Literal["local"] | TestbedDescription:
    """Return the testbed of a plan.

    Args:
        source: the plan.
        folder: where paths of the plan begin.

    Raises:
        PlanError: as of :func:`load_testbed`.

    """
    said = source.data.get("testbed", LOCAL)
    if said == LOCAL:
        return LOCAL
    if isinstance(said, dict):
        return _described(source, said, ("testbed",), folder)
    if not isinstance(said, str) or not said.endswith((".yml", ".yaml")):
        expected = "expected local, a testbed file such as testbed.yml, or nodes and roles"
        source.fail(("testbed",), f"{expected}, not {said!r}")
    return load_testbed(folder / said)


def _described(source: Source, data: Any, within: Place, folder: Path) -> TestbedDescription:
    found = source.validated(TestbedDescription, data, within)
    mistakes = list(found.mistakes()) or cable_delay.mistakes(found)
    source.refuse(((*within, *place), problem) for place, problem in mistakes)
    nodes = {name: _located(entry, folder) for name, entry in found.nodes.items()}
    return found.model_copy(update={"nodes": nodes})


def _located(entry: NodeEntry, folder: Path) -> NodeEntry:
    """Return a node with paths that are right from everywhere."""
    parts = {
        key: located(part, folder)
        for key in ("ssh", "power", "meter")
        if (part := getattr(entry, key, None)) is not None
    }
    return entry.model_copy(update=parts)


def located(part: Part, folder: Path) -> Part:
    """Return a part of a node, such as its power, with paths that are right from everywhere."""
    inner = {
        key: _absolute(secret, folder)
        for key in _SECRETS
        if (secret := getattr(part, key, None)) is not None
    }
    return _absolute(part, folder).model_copy(update=inner)


def _absolute(part: Part, folder: Path) -> Part:
    whole = {
        key: str((folder / path).absolute())
        for key in _PATHS
        if (path := getattr(part, key, None)) is not None and not path.startswith("~")
    }
    return part.model_copy(update=whole)
