"""From captures to a decoded directory: :func:`decode`.

A capture is written in parts. The files of a part get their names when all of them are whole, and
then the part is noted in ``DIR/.decode``: a decoder that was killed goes on behind the last noted
part. ``decode.json`` comes last and makes the directory one.
"""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.decode.dataset import INDEX, Captured, Decoded, Signing, index_text
from tailtrim.analysis.decode.parts import Part, read_rows
from tailtrim.analysis.decode.work import MOST_BUCKETS, Work, checked, occupied
from tailtrim.errors import DecodedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    Progress = Callable[[float | None], object]

#: A decoder that was killed loses at most so many rows of each capture.
_ROWS_OF_PART = 1 << 27
#: Packets of a bucket that an engine is to match at once.
_PACKETS_OF_BUCKET = 1 << 21
#: Assumed bytes of a packet in a capture, and the factor of its compression.
_PACKET_BYTES = 76
_COMPRESSION = 6


def decode(  # noqa: PLR0913 - keyword-only options, each with a default
    captures: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    signature: str | None = None,
    masks: str | Sequence[str] = (),
    x552_trailer: bool = False,
    nanoseconds: bool = False,
    salvage: bool = False,
    buckets: int | None = None,
    progress: Progress | None = None,
) -> Decoded:
    """Write the packets of captures as Parquet: a thread reads each, all CPUs write.

    Captures that are to be matched with each other must be decoded together: when a snap length cut
    some of them, all sign only what all have.

    Args:
        captures: their files, see :func:`tailtrim.analyze`; ingress and egress in this order.
        out: the directory; one whose decoding was interrupted is completed, a whole one returned.
        signature: see :func:`tailtrim.analyze`.
        masks: see :func:`tailtrim.analyze`.
        x552_trailer: see :func:`tailtrim.analyze`.
        nanoseconds: see :func:`tailtrim.analyze`.
        salvage: see :func:`tailtrim.analyze`.
        buckets: how many, a power of two; by default enough that each holds about 2 million packets
            of a capture, at most 512.
        progress: called now and then with the share done, ``None`` if unknown.

    Returns:
        The decoded directory.

    Raises:
        CaptureError: a capture cannot be read.
        DecodedError: ``out`` holds something else.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    """
    paths = [Path(capture) for capture in captures]
    buckets = _buckets(paths) if buckets is None else buckets
    options = checked(
        paths,
        buckets=buckets,
        signature=signature,
        masks=masks,
        x552_trailer=x552_trailer,
        nanoseconds=nanoseconds,
        salvage=salvage,
    )
    with occupied(out) as place:
        return _Decoder(place, paths, options, buckets, progress).run()


def _buckets(paths: Sequence[Path]) -> int:
    largest = 0
    for path in paths:
        if path.is_file():
            factor = _COMPRESSION if path.suffix in {".zst", ".gz"} else 1
            largest = max(largest, path.stat().st_size * factor // _PACKET_BYTES)
    wanted = max(1, -(-largest // _PACKETS_OF_BUCKET))
    return min(MOST_BUCKETS, 1 << (wanted - 1).bit_length())


class _Decoder:
    """The decoding of some captures into one directory."""

    def __init__(
        self,
        place: Path,
        paths: Sequence[Path],
        options: dict[str, Any],
        buckets: int,
        progress: Progress | None,
    ) -> None:
        self._place = place
        self._work = Work(place)
        self._paths = paths
        self._options = options
        self._buckets = buckets
        self._progress = progress
        self._shares: list[float | None] = [0.0] * len(paths)
        self._stop = threading.Event()

    def run(self) -> Decoded:
        if (self._place / INDEX).exists():
            return self._whole()
        decoders = [_native.NativeDecoder(path, **self._options) for path in self._paths]
        signed = min(decoder.signable for decoder in decoders)
        signing = Signing(self._options["signature"], tuple(self._options["masks"]), signed)
        settings = {
            "inputs": self._identity(),
            "options": self._options,
            "signing": asdict(signing) | {"masks": list(signing.masks)},
            "buckets": self._buckets,
        }
        identity = self._work.begin(settings)
        cpus = os.cpu_count() or 1
        with (
            ThreadPoolExecutor(min(len(decoders), cpus)) as pool,
            ThreadPoolExecutor(cpus) as writers,
        ):
            works = [
                pool.submit(self._capture, number, decoder, signed, writers)
                for number, decoder in enumerate(decoders)
            ]
            try:
                captures = [work.result() for work in works]
            except BaseException:
                self._stop.set()
                raise
        if self._identity() != settings["inputs"]:
            shutil.rmtree(self._work.path, ignore_errors=True)
            raise DecodedError(f"{self._place}: a capture changed while it was decoded")
        text = index_text(
            identity=identity, buckets=self._buckets, signing=signing, captures=captures
        )
        self._work.write(self._place / INDEX, text)
        shutil.rmtree(self._work.path, ignore_errors=True)
        return Decoded(self._place)

    def _whole(self) -> Decoded:
        """Return the directory that is there, if it is what is asked for."""
        decoded = Decoded(self._place)
        asked = (self._options["signature"], tuple(self._options["masks"]))
        if [captured.name for captured in decoded.captures] != [str(p) for p in self._paths] or (
            (decoded.signing.signature, decoded.signing.masks) != asked
        ):
            raise DecodedError(f"{self._place}: holds other captures, or with other signatures")
        shutil.rmtree(self._work.path, ignore_errors=True)
        return decoded

    def _identity(self) -> list[list[int | str]]:
        """Return what shows that the captures are still the same."""
        return [
            [str(path), *((s.st_size, s.st_mtime_ns) if path.is_file() else (0, 0))]
            for path in self._paths
            for s in [path.stat() if path.exists() else os.stat_result([0] * 10)]
        ]

    def _capture(
        self, number: int, decoder: _native.NativeDecoder, signed: int, writers: Executor
    ) -> Captured:
        """Write the packets of one capture, from where an interrupted decoding came to."""
        decoder.start(signed, self._buckets)
        folder = self._place / "packet" / f"capture={number}"
        noted = len(self._work.notes(number))
        tell = partial(self._tell, number, decoder)
        done = part = 0
        while True:
            if part < noted:
                # The rows of parts that are there are read all the same: later parts depend on
                # them.
                rows = read_rows(decoder, None, self._buckets, _ROWS_OF_PART, tell)
            else:
                with Part(folder, part, self._buckets, writers) as writing:
                    rows = read_rows(decoder, writing, self._buckets, _ROWS_OF_PART, tell)
                    writing.commit()
                if rows:
                    self._work.note(number, part, "")
            done += rows
            part += 1
            if rows < _ROWS_OF_PART:
                break
        return Captured(number, str(self._paths[number]), decoder.facts_json(), done)

    def _tell(self, number: int, decoder: _native.NativeDecoder) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt
        self._shares[number] = decoder.done()
        if self._progress is not None:
            known = [share for share in self._shares if share is not None]
            whole = len(known) == len(self._shares)
            self._progress(sum(known) / len(known) if whole else None)
