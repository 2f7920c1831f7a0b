"""A decoded directory that exists: :class:`Decoded`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import DecodedError, Remedy

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

SCHEMA = "tailtrim.decode/3"
INDEX = "decode.json"
#: Numbers that a packet carries: null in packets without them, and no engine matches by them.
LABEL = ("flow", "sequence")
#: Columns of ``packet`` in a file, see ``schema/packet.toml``.
COLUMNS = (
    "packet_index",
    "stamp_ns",
    "order_ns",
    "gap_ns",
    "signature_high",
    "signature_low",
    "length",
    "burst_position",
    "misplaced",
    *LABEL,
)


@dataclass(frozen=True, slots=True)
class Signing:
    """Parameters of the signatures: only signatures with the same ones match."""

    signature: str | None
    masks: tuple[str, ...]
    signature_bytes: int


@dataclass(frozen=True, slots=True)
class Captured:
    """A decoded capture: its number, the name that the user gave, its facts (JSON), its rows."""

    number: int
    name: str
    facts: str
    rows: int

    def encapsulations(self) -> dict[str, int]:
        """Return how many packets have which encapsulation, the most frequent first."""
        counts: dict[str, int] = json.loads(self.facts).get("encapsulations", {})
        return dict(sorted(counts.items(), key=lambda one: -one[1]))

    def left_out(self) -> Iterator[str]:
        """Yield which packets of the capture are not among the rows, and why."""
        facts = json.loads(self.facts)
        if facts["unstamped"]:
            yield f"{facts['unstamped']:,} packets have no time stamp and are left out"
        for one in facts["tap"].get("unread", ()):
            link_type, interface = one["link_type"], one["interface"]
            yield f"not read: {one['packets']:,} packets of interface {interface} ({link_type})"


class Decoded:
    """A decoded directory.

    Args:
        path: where it is.

    Raises:
        DecodedError: when there is none, or not a whole one.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the directory and read what is in it."""
        self.path = Path(path)
        index = self.path / INDEX
        try:
            found: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))
            if found["schema"] != SCHEMA:
                message = f"{index}: this is {found['schema']!r}, expected {SCHEMA!r}"
                raise DecodedError(message)
            self.id = str(found["id"])
            self.buckets = int(found["buckets"])
            self.signing = Signing(
                **{**found["signing"], "masks": tuple(found["signing"]["masks"])}
            )
            self.captures = tuple(Captured(**captured) for captured in found["captures"])
        except FileNotFoundError as error:
            message = f"{self.path}: not a decoded directory, expected one with a {INDEX}"
            failure = DecodedError(message)
            if (self.path / ".decode").exists():
                failure.add_note(
                    "decoding was interrupted: run the same command again to complete it"
                )
            raise failure from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DecodedError(f"{index}: cannot be read: {error!r}") from error

    def files(self, number: int) -> Iterator[Path]:
        """Yield the Parquet files of a capture."""
        yield from sorted((self.path / "packet" / f"capture={number}").glob("bucket=*/*.parquet"))

    def pair(self) -> tuple[Captured, Captured]:
        """Return ingress and egress of a directory that holds just these.

        Raises:
            DecodedError: when it holds more or fewer.

        """
        if len(self.captures) != 2:  # noqa: PLR2004 - two sides
            names = ", ".join(f"{one.number} ({one.name})" for one in self.captures)
            failure = DecodedError(f"{self.path}: holds {len(self.captures)} captures: {names}")
            failure.add_note(Remedy("name {ingress} and {egress} by their numbers"))
            raise failure
        return self.captures[0], self.captures[1]

    def capture(self, number: int) -> Captured:
        """Return a capture by its number.

        Raises:
            DecodedError: when there is none of this number.

        """
        if not 0 <= number < len(self.captures):
            message = (
                f"{self.path}: has no capture {number}, expected 0 to {len(self.captures) - 1}"
            )
            raise DecodedError(message)
        return self.captures[number]


def index_text(*, identity: str, buckets: int, signing: Signing, captures: list[Captured]) -> str:
    """Return what ``decode.json`` says."""
    index = {
        "schema": SCHEMA,
        "id": identity,
        "buckets": buckets,
        "signing": asdict(signing),
        "captures": [asdict(captured) for captured in captures],
    }
    return json.dumps(index, indent=2) + "\n"
