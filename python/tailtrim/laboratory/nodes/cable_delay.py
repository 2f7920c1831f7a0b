"""Delay of the cables between the taps and the device, which is not the device's latency.

Inline, a packet is stamped when it comes in at each tap. Between the stamps are the cable from the
timestamper to ``dut_in``, the device, and the cable from ``dut_out`` to ``tap_out``: both cables
are taken off.

Where the taps get copies, a packet passes a splitter on its way to the device. The stamp is later
than that by the cable to ``tap_in``, and the device has the packet later by ``split_m`` of
``dut_in``: the one is added, the other taken off. Behind the device, ``split_m`` of ``dut_out`` and
the cable to ``tap_out`` are both taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.nodes.testbed_file import Mistake, Place, TestbedDescription


@dataclass(frozen=True, slots=True)
class Part:
    """A cable, or a part of one: its ends in words, which key says its length, and its sign."""

    between: str
    place: Place
    key: str
    length_m: float | None
    sign: int


@dataclass(frozen=True, slots=True)
class Correction:
    """Correction of each latency, in whole ns to take off, and the cables that it comes from."""

    ns: int
    ns_per_m: float
    parts: tuple[Part, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as the record of a run has it."""
        return {
            "ns": self.ns,
            "ns_per_m": self.ns_per_m,
            "source": "lengths in the testbed file",
            "cables": [
                {"between": part.between, "length_m": part.length_m, "sign": part.sign}
                for part in self.parts
            ],
        }


def correction(description: TestbedDescription) -> Correction | None:
    """Return what the cables of a testbed take; ``None`` where their lengths are not known."""
    parts = tuple(_parts(description))
    if any(part.length_m is None for part in parts):
        return None
    metres = sum(part.sign * Decimal(str(part.length_m)) for part in parts)
    return Correction(
        round(metres * Decimal(str(description.ns_per_m))), description.ns_per_m, parts
    )


def mistakes(description: TestbedDescription) -> Iterator[Mistake]:
    """Yield lengths that do not fit together: two of one cable, some but not all."""
    for one, other in description.cables:
        lengths = {description.port(end).cable_m for end in (one, other)} - {None}
        if len(lengths) > 1:
            either = " and ".join(sorted(f"{length:g}" for length in lengths))
            told = f"the cable to {_told(other)} has two lengths: {either} m"
            yield ("nodes", one[0], "ports", one[1], "cable_m"), told
    parts = list(_parts(description))
    if any(part.length_m is not None for part in parts):
        for part in parts:
            if part.length_m is None:
                told = f"expected the length of {part.between}: others have one, latencies need all"
                yield ("nodes", part.place[0], "ports", part.place[1], part.key), told
    used = {(part.place, part.key) for part in parts}
    for node, entry in description.nodes.items():
        for name, port in entry.ports.items():
            if port.split_m is not None and ((node, name), "split_m") not in used:
                told = "only for dut_in and dut_out, where the taps get copies"
                yield ("nodes", node, "ports", name, "split_m"), told


def _parts(description: TestbedDescription) -> Iterator[Part]:
    ports, inline = description.roles.ports, description.inline
    if inline is not None:
        yield _cable(description, inline.to_dut, ports["dut_in"])
        yield _cable(description, ports["dut_out"], ports["tap_out"])
        return
    for device, tap, sign in (("dut_in", "tap_in", -1), ("dut_out", "tap_out", 1)):
        place = ports[device]
        between = f"{_told(place)} to the splitter"
        yield Part(between, place, "split_m", description.port(place).split_m, 1)
        place = ports[tap]
        between = f"the splitter to {_told(place)}"
        yield Part(between, place, "cable_m", description.port(place).cable_m, sign)


def _cable(description: TestbedDescription, one: Place, other: Place) -> Part:
    lengths = [description.port(end).cable_m for end in (one, other)]
    length_m = next((length for length in lengths if length is not None), None)
    return Part(f"{_told(one)} to {_told(other)}", one, "cable_m", length_m, 1)


def _told(place: Place) -> str:
    return ".".join(place)
