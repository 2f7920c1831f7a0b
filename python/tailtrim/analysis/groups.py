"""Ingress packets by a field, such as VLAN or flow: each group with its own tail, :func:`by`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tailtrim import _native
from tailtrim.analysis.options import cores, native
from tailtrim.errors import RunDirectoryError
from tailtrim.results import Summary
from tailtrim.results.layout import GROUPS

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tailtrim.analysis.options import MatchingOptions
    from tailtrim.results import RunDirectory

#: Fields of the outermost packet in a frame; ``port`` is that of the receiver.
FIELDS = tuple(_native.fields())
SCHEMA = "tailtrim.groups/1"


@dataclass(frozen=True, slots=True)
class Group:
    """Packets of a value of the field; ``None`` are those of no group of their own.

    Of the summary, all but the outcomes of the egress packets is of the group: the egress packets
    are those of all groups.
    """

    value: str | None
    summary: Summary


def by(
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str],
    field: str,
    *,
    jobs: int | None = None,
    interfaces: tuple[str | None, str | None] = (None, None),
    **matching: Unpack[MatchingOptions],
) -> list[Group]:
    """Match each of the largest groups of ingress packets, and the rest, with the egress capture.

    The groups are those of most packets, largest first; the ingress packets of all groups and the
    rest add up to those of the capture. The captures are read once for each group.

    Args:
        ingress: capture of what enters; a file.
        egress: capture of what leaves; a file.
        field: one of :data:`FIELDS`, with the largest number of groups behind a colon: ``flow:20``,
            by default 10. NAT or a tunnel may give the field another value behind the device: it is
            that of the ingress packet.
        interfaces: of ingress and of egress, where a capture has several.
        jobs: cores to use at most, ``None`` for all.
        matching: as for :func:`tailtrim.analyze`.

    Raises:
        CaptureError: a capture cannot be read.
        ValueError: an option makes no sense.

    """
    for path in (ingress, egress):
        if not Path(path).is_file():
            raise ValueError(f"{path}: is read once for each group, expected a file")
    name, count = split(field)
    found = _native.analyze_by(
        Path(ingress),
        Path(egress),
        name,
        count,
        native(matching),
        jobs=cores(jobs),
        interfaces=interfaces,
    )
    return [Group(value, Summary.from_json(text)) for value, text in found]


def split(by: str) -> tuple[str, int]:
    """Return field and number of groups of a text such as ``flow:20``.

    Raises:
        ValueError: it is another text.

    """
    name, _, count = by.partition(":")
    if name not in FIELDS or not re.fullmatch(r"|[1-9][0-9]{0,4}", count):
        message = f"invalid groups {by!r}, expected one of {', '.join(FIELDS)}, or such as flow:20"
        raise ValueError(message)
    return name, int(count or 10)


def to_json(by: str, groups: Sequence[Group]) -> dict[str, Any]:
    """Return groups as they are kept in ``groups.json`` and printed by ``--json``."""
    rows = [{"value": group.value, "summary": json.loads(group.summary.text)} for group in groups]
    return {"schema": SCHEMA, "field": split(by)[0], "groups": rows}


def keep(by: str, groups: Sequence[Group], directory: Path | None) -> None:
    """Write groups into the directory of a run, if there is one."""
    if directory is not None:
        text = json.dumps(to_json(by, groups)) + "\n"
        (directory / GROUPS).write_text(text, encoding="utf-8")


def kept_groups(run: RunDirectory) -> tuple[str, list[Group]] | None:
    """Read the field and the groups of a run directory; ``None`` where none were asked for.

    Raises:
        RunDirectoryError: its file is not what :func:`to_json` makes.

    """
    kept = run.groups()
    if not kept:
        return None
    source = f"{run.path}/{GROUPS}"
    try:
        if kept["schema"] != SCHEMA:
            raise RunDirectoryError(
                f"{source}: the schema is {kept['schema']!r}, expected {SCHEMA!r}"
            )
        rows = [(row["value"], json.dumps(row["summary"])) for row in kept["groups"]]
        field = str(kept["field"])
    except (KeyError, TypeError) as error:
        raise RunDirectoryError(f"{source}: not groups of packets: {error!r}") from error
    return field, [
        Group(None if value is None else str(value), Summary.from_json(text, source=source))
        for value, text in rows
    ]
