"""From captures to a decoded directory: :func:`decode`.

A capture is written in parts. The files of a part get their names when all of them are whole, and
then the part is noted in ``DIR/.decode``: a decoder that was killed goes on behind the last noted
part. ``decode.json`` comes last and makes the directory one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis import MASKS
from tailtrim.decode.dataset import INDEX, Captured, Decoded, Signing, index_text
from tailtrim.decode.parts import Part
from tailtrim.errors import DecodedError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    Progress = Callable[[float | None], object]

#: Rows that a decoder holds for each bucket before it writes them.
_ROWS_OF_BUCKET = 1 << 13
_FEWEST_ROWS = 1 << 18
#: A decoder that was killed loses at most so many rows of each capture.
_ROWS_OF_PART = 1 << 27
#: Packets of a bucket that an engine is to match at once.
_PACKETS_OF_BUCKET = 1 << 22
_MOST_BUCKETS = 256
#: Bytes of a packet in a capture, guessed, and what compression makes of it.
_PACKET_BYTES = 76
_COMPRESSION = 6


def decode(  # noqa: PLR0913 - keyword-only options, each with a default
    captures: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    signature: str | None = None,
    masks: Sequence[str] = (),
    x552_trailer: bool = False,
    salvage: bool = False,
    buckets: int | None = None,
    progress: Progress | None = None,
) -> Decoded:
    """Write the packets of captures as Parquet: a thread reads each, all CPUs write.

    Captures that are to be matched with each other must be decoded together: when a snap length cut
    some of them, all sign only what all have.

    Args:
        captures: what to decode, see :func:`tailtrim.analyze`; ingress and egress in this order.
        out: the directory; one whose decoding was interrupted is completed, a whole one returned.
        signature: see :func:`tailtrim.analyze`.
        masks: see :func:`tailtrim.analyze`.
        x552_trailer: see :func:`tailtrim.analyze`.
        salvage: see :func:`tailtrim.analyze`.
        buckets: how many, a power of two; by default enough that each holds about 4 million packets
            of a capture, at most 256.
        progress: called now and then with the share done, ``None`` if unknown.

    Returns:
        The decoded directory.

    Raises:
        CaptureError: a capture cannot be read.
        DecodedError: ``out`` holds something else, or another decoder works on it.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    """
    unknown = [mask for mask in masks if mask not in MASKS]
    if unknown:
        raise ValueError(f"mask {unknown[0]!r} is unknown, expected one of {', '.join(MASKS)}")
    paths = [Path(capture) for capture in captures]
    if not paths:
        raise ValueError("no capture is given, expected at least one")
    buckets = _buckets(paths) if buckets is None else buckets
    if not 1 <= buckets <= _MOST_BUCKETS or buckets & (buckets - 1):
        raise ValueError(
            f"{buckets} buckets make no sense, expected a power of two up to {_MOST_BUCKETS}"
        )
    options: dict[str, Any] = {
        "signature": signature,
        "masks": [mask for mask in MASKS if mask in masks],
        "x552_trailer": x552_trailer,
        "salvage": salvage,
    }
    place = Path(out)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DecodedError(f"{place}: another decoder is at work here") from error
        return _Decoder(place, paths, options, buckets, progress).run()
    except OSError as error:
        failure = OutputError(f"{place}: cannot be written: {error.strerror or error}")
        failure.add_note("what was written stays: the same command once more goes on from there")
        raise failure from error
    finally:
        os.close(lock)


def _buckets(paths: Sequence[Path]) -> int:
    largest = 0
    for path in paths:
        if path.is_file():
            factor = _COMPRESSION if path.suffix in {".zst", ".gz"} else 1
            largest = max(largest, path.stat().st_size * factor // _PACKET_BYTES)
    wanted = max(1, largest // _PACKETS_OF_BUCKET)
    return min(_MOST_BUCKETS, 1 << (wanted - 1).bit_length())


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
        self._work = place / ".decode"
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
        identity = self._begin(signing)
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
        self._check_unchanged()
        text = index_text(
            identity=identity, buckets=self._buckets, signing=signing, captures=captures
        )
        _write(self._place / INDEX, text)
        shutil.rmtree(self._work, ignore_errors=True)
        return Decoded(self._place)

    def _whole(self) -> Decoded:
        """Return the directory that is there, if it is what is asked for."""
        decoded = Decoded(self._place)
        asked = (self._options["signature"], tuple(self._options["masks"]))
        if [captured.name for captured in decoded.captures] != [str(p) for p in self._paths] or (
            (decoded.signing.signature, decoded.signing.masks) != asked
        ):
            raise DecodedError(f"{self._place}: holds other captures, or with other signatures")
        shutil.rmtree(self._work, ignore_errors=True)
        return decoded

    def _identity(self) -> list[list[int | str]]:
        """Return what shows that the captures are still the same."""
        return [
            [str(path), *((s.st_size, s.st_mtime_ns) if path.is_file() else (0, 0))]
            for path in self._paths
            for s in [path.stat() if path.exists() else os.stat_result([0] * 10)]
        ]

    def _check_unchanged(self) -> None:
        if json.loads((self._work / "settings.json").read_text())["inputs"] != self._identity():
            shutil.rmtree(self._work, ignore_errors=True)
            raise DecodedError(f"{self._place}: a capture changed while it was decoded")

    def _begin(self, signing: Signing) -> str:
        """Note what is decoded, or see that an interrupted decoding was of the same."""
        settings = {
            "inputs": self._identity(),
            "options": self._options,
            "signing": asdict(signing) | {"masks": list(signing.masks)},
            "buckets": self._buckets,
        }
        note = self._work / "settings.json"
        if note.exists():
            before = json.loads(note.read_text())
            identity = str(before.pop("id"))
            if before == settings:
                return identity
            failure = DecodedError(
                f"{self._place}: holds an interrupted decoding of something else"
            )
            failure.add_note("name another directory, or remove this one")
            raise failure
        if any(entry.name != ".decode" for entry in self._place.iterdir()):
            raise DecodedError(f"{self._place}: is not empty, and nothing in it is replaced")
        self._work.mkdir(exist_ok=True)
        identity = uuid.uuid4().hex
        _write(note, json.dumps(settings | {"id": identity}))
        return identity

    def _capture(
        self, number: int, decoder: _native.NativeDecoder, signed: int, writers: Executor
    ) -> Captured:
        """Write the packets of one capture, from where an interrupted decoder came to."""
        decoder.start(signed, self._buckets)
        rows = max(_FEWEST_ROWS, self._buckets * _ROWS_OF_BUCKET)
        folder = self._place / "packet" / f"capture={number}"
        notes = self._work / f"capture-{number}"
        notes.mkdir(exist_ok=True)
        done = 0
        ended = False
        for part in range(1 << 30):
            note = notes / f"part-{part:05}"
            # The rows of parts that are there are read all the same: what follows depends on them.
            writing = None if note.exists() else Part(folder, part, self._buckets, writers)
            of_part = 0
            try:
                while of_part < _ROWS_OF_PART and not ended:
                    read = decoder.read(min(rows, _ROWS_OF_PART - of_part))
                    ended = read == 0
                    if writing is not None:
                        writing.add(decoder)
                    of_part += read
                    self._tell(number, decoder)
                if writing is not None and of_part:
                    writing.commit()
                    _write(note, "")
            finally:
                if writing is not None:
                    writing.close()
            done += of_part
            if ended:
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


def _write(path: Path, text: str) -> None:
    """Write a file that is whole or not there, also after the power fails."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
