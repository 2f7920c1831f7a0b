"""Delays of the path around a device that logs when each packet came and how long it was kept.

From the first tap to the device, and from the device to the second tap: the part that the path adds
to the known delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.devices.forward import TRUTH

if TYPE_CHECKING:
    from tailtrim.results import RunDirectory

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

#: Sequence number, arrival and delay of a packet, see ``tailtrim forward --delay-log``.
_FIELDS = 3


@dataclass(frozen=True, slots=True)
class PathDelays:
    """The parts of the latency of each packet, in the order in which they came, in ns.

    ``to_device_ns`` is from the first tap's stamp to the device's own, ``kept_ns`` from there until
    the device began to send, ``from_device_ns`` from then to the second tap's stamp.
    """

    to_device_ns: Integers
    kept_ns: Integers
    from_device_ns: Integers

    @property
    def latency_ns(self) -> Integers:
        """Latency between the taps."""
        return self.kept_ns + self.added_ns

    @property
    def added_ns(self) -> Integers:
        """Part of the latency in addition to the known delay."""
        return self.to_device_ns + self.from_device_ns


def path_delays(run: RunDirectory) -> PathDelays:
    """Return the parts of each packet's latency.

    Raises:
        RunDirectoryError: the device left no log, or it does not fit the packets.

    """
    log = run.path / TRUTH
    try:
        kept = np.fromfile(log, dtype="<i8").reshape(-1, _FIELDS).astype(np.int64)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{log}: not a log of delays ({error})") from error
    samples = run.table("sample", columns=["ingress_ns", "egress_ns"])
    came, left = (column.to_numpy().astype(np.int64) for column in samples.columns)
    order = np.argsort(came, kind="stable")
    came, left = came[order], left[order]
    # Packets stay in their order, and one is with the device before the next one is sent. The log
    # also has those that were set aside behind a stall of the generator.
    at = np.searchsorted(kept[:, 1], came)
    if not at.size or at[-1] >= len(kept) or np.unique(at).size != at.size:
        raise RunDirectoryError(f"{log}: does not fit the packets of the run")
    arrived, delay = kept[at, 1], kept[at, 2]
    return PathDelays(arrived - came, delay, left - arrived - delay)
