"""Round trips in one capture: requests matched with their replies, :func:`analyze_exchanges`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tailtrim import _native
from tailtrim.analysis.one_pass import leave
from tailtrim.analysis.options import native
from tailtrim.analysis.result import Analysis
from tailtrim.errors import CaptureError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tailtrim.analysis.options import MatchingOptions

#: Protocols whose replies say which request they answer.
PROTOCOLS = tuple(_native.protocols())


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Packets of a capture by what they are to an exchange; they add up to ``packets``.

    ``messages`` has requests and replies by protocol. ``repeated``: TCP segments whose timestamp
    was on one before. ``others``: of none of the protocols. ``commonest`` is the protocol of most
    exchanges, ``None`` where nothing has requests and replies.
    """

    packets: int
    messages: dict[str, tuple[int, int]]
    repeated: int
    others: int
    unstamped: int
    commonest: str | None

    def __str__(self) -> str:
        """Return the counts that are not 0 as text."""
        parts = [
            f"{name}: {requests} requests, {replies} replies"
            for name, (requests, replies) in self.messages.items()
            if requests or replies
        ]
        rest = {
            "repeated TCP timestamps": self.repeated,
            "other packets": self.others,
            "without a stamp": self.unstamped,
        }
        parts += [f"{count} {name}" for name, count in rest.items() if count]
        return "; ".join(parts) or "no packets"


def count_exchanges(
    capture: str | os.PathLike[str], **matching: Unpack[MatchingOptions]
) -> Exchanges:
    """Count the requests and replies of a capture.

    Raises:
        CaptureError: it cannot be read.

    """
    messages, commonest, counts = _native.count_exchanges(Path(capture), native(matching))
    packets, repeated, others, unstamped = counts
    of = {name: (requests, replies) for name, requests, replies in messages}
    return Exchanges(packets, of, repeated, others, unstamped, commonest)


def analyze_exchanges(
    capture: str | os.PathLike[str],
    *,
    protocol: str | None = None,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
    progress: Callable[[float | None], object] | None = None,
    **matching: Unpack[MatchingOptions],
) -> tuple[Analysis, Exchanges]:
    """Match the requests of a capture with their replies.

    A capture at the requester has round trips, one at the far host the time that it took to reply.
    A request of a TCP connection is a segment with data to the lower port, and its reply the first
    one that echoes its timestamp, with the delay of a delayed acknowledgement.

    Args:
        capture: a file (pcap, pcapng; ``.zst``, ``.gz``); it is read several times.
        protocol: one of :data:`PROTOCOLS`; ``None`` for that of most exchanges.
        out: where to leave a run directory.
        keep_samples: keep every sample (24 bytes each).
        progress: called now and then with the share done, ``None`` if unknown.
        matching: ``window_s``, ``skip_s``, ``quantiles``, ``confidence``, ``salvage``, as for
            :func:`tailtrim.analyze`.

    Returns:
        The result, whose ingress are the requests, and the packets by kind.

    Raises:
        CaptureError: the capture cannot be read, or has no exchange of the protocol.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    """
    if protocol is not None and protocol not in PROTOCOLS:
        message = f"unknown protocol {protocol!r}, expected one of {', '.join(PROTOCOLS)}"
        raise ValueError(message)
    path = Path(capture)
    if not path.is_file():
        raise CaptureError(f"{path}: is read several times, expected a file")
    found = count_exchanges(path, **matching)
    of = protocol or found.commonest
    if of is None or not all(found.messages[of]):
        wanted = "requests and their replies" if of is None else f"requests and replies of {of}"
        raise CaptureError(f"{path}: {found}; expected {wanted}")

    def run(directory: Path | None) -> _native.NativeAnalysis:
        kept: dict[str, Any] = {"directory": directory, "keep_samples": keep_samples}
        return _native.analyze_exchanges(path, of, native(matching), **kept, progress=progress)

    analysis = run(None) if out is None else leave(run, [path], out, round_trips=of)
    return Analysis(analysis), found
