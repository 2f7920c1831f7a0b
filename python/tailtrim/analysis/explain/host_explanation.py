"""Explanations of late packets, typed and checked: ``explanation.json`` and ``worst.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tailtrim import units
from tailtrim.errors import RunDirectoryError
from tailtrim.results.layout import EXPLANATION, WORST_EXPLAINED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.explain import WorstPackets
    from tailtrim.results import RunDirectory

# Quantiles of explanations by versions that did not name them.
_QUANTILES = ("0.5", "0.99", "0.999", "0.9999")

_LARGEST = 2**63

# Times and counts go into arrays of 64 bits.
Whole = Annotated[int, Field(ge=-_LARGEST, lt=_LARGEST)]
Key = tuple[str, str, str | None]


class Data(BaseModel):
    """Of a file of JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")


FileT = TypeVar("FileT", bound=Data)


class CauseSignature(Data):
    """Signature of a recognised cause, and the checks of the audit that concern it."""

    name: str
    what: str
    checks: tuple[str, ...]


class AdvisedChange(Data):
    """Change by ``tailtrim tune plan``: ``when`` is now, next-boot or by-hand."""

    id: str
    title: str
    when: str


class Advice(Data):
    """A check that concerns a cause, and what is changed for it."""

    check: str
    title: str
    wanted: str
    changes: tuple[AdvisedChange, ...] = ()


class Sender(Data):
    """Sender of an interrupt."""

    pid: int
    comm: str
    function: str | None = None


class HostCause(Data):
    """A cause and what it cost; ``without_ns`` are the quantiles without it."""

    kind: str
    name: str
    detail: str | None = None
    events: Whole
    late_packets: Whole
    excess_ns: Whole
    share_ppm: Whole
    without_ns: tuple[Whole, ...]
    sender: tuple[Sender, int] | None = None
    signature: CauseSignature | None = None

    @property
    def key(self) -> Key:
        """Key that its events have in common."""
        return self.kind, self.name, self.detail


class LatePacket(Data):
    """A late packet; ``causes`` are places among the verdict's, each with its part in ns."""

    arrival_ns: Whole
    latency_ns: Whole
    excess_ns: Whole
    causes: tuple[tuple[int, Whole], ...]
    queue_ns: Whole
    unknown_ns: Whole

    def parts(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """Return the parts of the excess in ns, the largest first, by the names of the causes."""
        parts = [(part_ns, names[place]) for place, part_ns in self.causes]
        parts += [(self.queue_ns, "queueing behind packets"), (self.unknown_ns, "unknown")]
        return sorted(parts, key=lambda part: -part[0])


class Service(Data):
    """The device as the stamps show it."""

    base_ns: Whole
    service_ns: Whole


class HostVerdict(Data):
    """Causes of late packets, costliest first, and each late packet."""

    service: Service
    serving: str | None = None
    error_ns: Whole
    quantiles_ns: tuple[Whole, ...]
    late_from_ns: Whole
    excess_ns: Whole
    queue_ns: Whole
    unknown_ns: Whole
    null_ppm: Whole | None = None
    causes: tuple[HostCause, ...]
    advice: tuple[Advice, ...] = ()
    late: tuple[LatePacket, ...]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for late in self.late:
            for place, _ in late.causes:
                if not 0 <= place < len(self.causes):
                    raise ValueError(f"a packet names cause {place} of {len(self.causes)}")
        return self

    @property
    def rest(self) -> list[tuple[int, str]]:
        """Parts of the excess that no cause has, in ns, with their names."""
        return [(self.queue_ns, "queueing behind packets"), (self.unknown_ns, "unknown")]

    def ppm(self, part_ns: int) -> int:
        """Return which part of the excess a time is, in millionths."""
        return part_ns * 1_000_000 // max(self.excess_ns, 1)


class HostExplanation(Data):
    """Explanation of a run by a trace of the host."""

    cpu: Whole
    holes: Whole = 0
    missing: tuple[str, ...] = ()
    quantiles: tuple[str, ...] = _QUANTILES
    verdict: HostVerdict
    covered: Annotated[float, Field(gt=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _even(self) -> Self:
        told = [self.verdict.quantiles_ns, *(cause.without_ns for cause in self.verdict.causes)]
        for values in told:
            # Without samples there are none.
            if values and len(values) != len(self.quantiles):
                raise ValueError(f"{len(values)} values for {len(self.quantiles)} quantiles")
        for p in self.quantiles:
            if not 0 <= float(p) < 1:
                raise ValueError(f"invalid quantile {p!r}")
        return self

    def at(self, p: str, values_ns: tuple[int, ...]) -> int | None:
        """Return the value of quantile ``p`` among the values of all; ``None`` if not asked for."""
        return dict(zip(self.quantiles, values_ns, strict=False)).get(p)


class _ExplanationFile(Data):
    schema_: Literal["tailtrim.explanation/1"] = Field(alias="schema")
    host: HostExplanation | None = None


def read(directory: RunDirectory) -> HostExplanation | None:
    """Read the explanation of a run; ``None`` where it has none that rests on a trace.

    Raises:
        RunDirectoryError: the file cannot be read or is none of ours.

    """
    path = directory.path / EXPLANATION
    found = file_of(path, _ExplanationFile, "the explanation ", "; tailtrim explain makes it")
    return None if found is None else found.host


def file_of(path: Path, kind: type[FileT], what: str = "", hint: str = "") -> FileT | None:
    """Read a file of JSON; ``None`` where there is none.

    Raises:
        RunDirectoryError: the file cannot be read, or is invalid.

    """
    if not path.exists():
        return None
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = _first(error) if isinstance(error, ValidationError) else str(error)
        message = f"{path}: {what}cannot be read: {reason}{hint}"
        raise RunDirectoryError(message) from error


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, found["loc"]))
    return units.printable(f"{place}: {found['msg']}" if place else found["msg"])


def of_host(host: Any) -> HostExplanation:
    """Return the result of :func:`tailtrim.analysis.explain.explain`, typed."""
    return HostExplanation.model_validate(
        {
            "cpu": host.cpu,
            "holes": host.holes,
            "missing": host.missing,
            "quantiles": host.quantiles,
            "verdict": host.verdict,
            "covered": host.covered,
        }
    )


class RoundTripPart(Data):
    """A part of a late round trip, with its share of the delay."""

    name: Literal["own_host_before", "network", "residence", "own_host_behind"]
    ns: Whole
    usual_ns: Whole | None = None
    share_ppm: Whole


class WorstPacket(Data):
    """One of the worst packets; ``host`` is what the trace around it says, if there is one.

    Of a round trip that a watch has caught, ``parts`` says where it took longer, and ``host`` is
    about one of these.
    """

    ingress_ns: Whole
    latency_ns: Whole
    complete: bool
    parts: tuple[RoundTripPart, ...] = ()
    host_part: str | None = None
    host: HostExplanation | None = None


class WorstExplained(Data):
    """The worst packets of a run of hours, the slowest first.

    ``problem`` is why they are not explained, if they are not.
    """

    schema_: Literal["tailtrim.worst-packets/1"] = Field(alias="schema")
    packets: tuple[WorstPacket, ...]
    problem: str | None = None


def worst_packets_of(directory: RunDirectory) -> WorstExplained | None:
    """Read the worst packets of a run; ``None`` where it was not traced.

    Raises:
        RunDirectoryError: the file cannot be read, or is invalid.

    """
    return file_of(directory.path / WORST_EXPLAINED, WorstExplained)


def of_packets(found: WorstPackets) -> WorstExplained:
    """Return the result of :func:`tailtrim.analysis.explain.worst_packets`, typed."""
    return WorstExplained.model_validate(found.as_json())
