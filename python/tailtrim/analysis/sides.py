"""One capture that holds both sides of the device: :func:`both_sides`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim import _native
from tailtrim.errors import CaptureError, Remedy

if TYPE_CHECKING:
    import os

#: Interface of ingress and of egress, as far as they are named.
Chosen = tuple[str | None, str | None]


def both_sides(
    ingress: str | os.PathLike[str], egress: str | os.PathLike[str] | None, chosen: Chosen
) -> tuple[Path, Path]:
    """Return the capture of each side, which may be the same one.

    Raises:
        CaptureError: one capture is given without interfaces; the error lists those that it has.
        ValueError: standard input is to be read twice.

    """
    if egress is not None:
        return Path(ingress), Path(egress)
    capture = Path(ingress)
    if str(capture) == "-":
        raise ValueError(
            "standard input cannot be read twice, for ingress and for egress: write it to a file"
        )
    if None in chosen:
        raise _listed(
            capture,
            "is one capture, expected a second one (INGRESS EGRESS), or --round-trip if it has"
            " requests and replies",
        )
    return capture, capture


def check_files(paths: tuple[Path, Path]) -> None:
    """Check that captures can be read twice.

    Raises:
        ValueError: one is not a file.

    """
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path}: is read twice, expected a file")


def check_found(analysis: _native.NativeAnalysis, paths: tuple[Path, Path], chosen: Chosen) -> None:
    """Check that there were packets of each interface that is named.

    Raises:
        CaptureError: there were none; the error lists the interfaces.

    """
    if not any(chosen):
        return
    summary = json.loads(analysis.summary_json())
    for side, path, interface in zip(("ingress", "egress"), paths, chosen, strict=True):
        if interface is not None and summary[side]["packets"] == 0 and path.is_file():
            raise _listed(path, f"no packets of interface {interface}")


def _listed(path: Path, message: str) -> CaptureError:
    """Return an error that lists what can be chosen in a capture."""
    seen = _native.survey(path)
    listed = ", ".join(
        f"{choice} (interface {interface}, {packets:,} packets)"
        for choice, interface, packets in seen
    )
    error = CaptureError(f"{path}: {message}; it has {listed or 'no packets'}")
    if len(seen) > 1:
        (first, *_), (second, *_) = seen[:2]
        error.add_note(
            Remedy(
                "choose with {ingress_interface} and {egress_interface}, such as"
                f" {_literal(first)} and {_literal(second)}"
            )
        )
    return error


def _literal(text: str) -> str:
    """Return text as it is written in a template of a remedy."""
    return text.replace("{", "{{").replace("}", "}}")
