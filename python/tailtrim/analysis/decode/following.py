"""From captures that are being written to a decoded directory: :func:`follow`.

Each file becomes a part. With the part goes a note of where the decoding stands: the files may be
gone when it goes on. The notes stay in ``DIR/.decode``, so that following can be taken up again.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.decode.dataset import INDEX, Captured, Decoded, Signing, index_text
from tailtrim.analysis.decode.parts import Part, read_rows
from tailtrim.analysis.decode.rotating import File, Rotation
from tailtrim.analysis.decode.work import Work, checked, occupied
from tailtrim.errors import CaptureError, DecodedError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    #: Told of each file: the capture's source, the file, its packets.
    Tell = Callable[[str, str, int], object]

#: Buckets for a quarter of a billion packets: the number that will come is not known.
BUCKETS = 64
_LOOK_S = 0.5


def follow(  # noqa: PLR0913 - keyword-only options, each with a default
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    stop: threading.Event,
    signature: str | None = None,
    masks: str | Sequence[str] = (),
    x552_trailer: bool = False,
    nanoseconds: bool = False,
    salvage: bool = False,
    buckets: int | None = None,
    tell: Tell | None = None,
) -> Decoded:
    """Decode captures that are written to files one after the other, while they are.

    A file is decoded when no process has it open for writing, or, where the kernel does not tell
    that, when there is a newer one. It is known by its first packet: under another name, or
    compressed, it is not decoded again. Files that exist when ``stop`` is set are still decoded,
    except one that is being written to: following the same directory again takes it up. A capture
    that cannot be decoded ends the others, too; files decoded until then are kept.

    Args:
        sources: for each capture its folder, or a pattern for its files; ingress, then egress.
        out: the directory; one that was followed before is taken up.
        stop: ends the work once it is set.
        signature: see :func:`tailtrim.analyze`.
        masks: see :func:`tailtrim.analyze`.
        x552_trailer: see :func:`tailtrim.analyze`.
        nanoseconds: see :func:`tailtrim.analyze`.
        salvage: see :func:`tailtrim.analyze`.
        buckets: how many, a power of two up to 512; 64 by default.
        tell: called with source, file name and packets of each file that was decoded.

    Returns:
        The decoded directory.

    Raises:
        CaptureError: a file cannot be read, or a ring took it away too soon.
        DecodedError: ``out`` holds something else.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    """
    rotations = [Rotation(os.fspath(source)) for source in sources]
    buckets = BUCKETS if buckets is None else buckets
    options = checked(
        sources,
        buckets=buckets,
        signature=signature,
        masks=masks,
        x552_trailer=x552_trailer,
        nanoseconds=nanoseconds,
        salvage=salvage,
    )
    with occupied(out) as place:
        return _Follower(place, rotations, options, buckets, stop, tell).run()


@dataclass(frozen=True, slots=True)
class _Note:
    """Facts of a file that is decoded."""

    file: str
    rows: int
    checkpoint: str
    facts: str
    #: Its first packet, device and inode, and bytes; notes of earlier versions do not have them.
    first: list[int] | None = None
    place: Sequence[int] = ()
    bytes: int = 0


class _Follower:
    """The following of some captures into one directory."""

    def __init__(  # noqa: PLR0913, PLR0917 - what following is of
        self,
        place: Path,
        rotations: list[Rotation],
        options: dict[str, Any],
        buckets: int,
        stop: threading.Event,
        tell: Tell | None,
    ) -> None:
        self._work = Work(place)
        self._place = place
        self._rotations = rotations
        self._options = options
        self._buckets = buckets
        self._stop = stop
        self._tell = tell

    def run(self) -> Decoded:
        if (self._place / INDEX).exists() and not self._work.path.exists():
            raise DecodedError(f"{self._place}: is decoded already, and was not followed")
        signing = self._signing()
        settings = {
            "follow": [rotation.source for rotation in self._rotations],
            "options": self._options,
            "signing": asdict(signing) | {"masks": list(signing.masks)},
            "buckets": self._buckets,
        }
        identity = self._work.begin(settings, besides=(INDEX,))
        (self._place / INDEX).unlink(missing_ok=True)
        cpus = os.cpu_count() or 1
        with (
            # The last to end: captures that are still decoded write by them.
            ThreadPoolExecutor(cpus) as writers,
            ThreadPoolExecutor(len(self._rotations)) as pool,
        ):
            following = [
                pool.submit(self._capture, number, rotation, signing, writers)
                for number, rotation in enumerate(self._rotations)
            ]
            try:
                wait(following, return_when=FIRST_EXCEPTION)
            finally:
                # One that fails ends all: to go on without it would be for nothing.
                self._stop.set()
        failures = [failure for one in following if (failure := one.exception())]
        captures = [
            self._captured(number, rotation) for number, rotation in enumerate(self._rotations)
        ]
        decoded = [captured for captured in captures if captured is not None]
        if len(decoded) == len(captures):
            text = index_text(
                identity=identity, buckets=self._buckets, signing=signing, captures=decoded
            )
            self._work.write(self._place / INDEX, text)
        elif not failures:
            (source, *_) = (
                rotation.source
                for rotation, captured in zip(self._rotations, captures, strict=True)
                if captured is None
            )
            failures = [CaptureError(f"{source}: no file was complete, nothing is decoded")]
        if failures:
            failures[0].add_note("what was decoded is kept: run the same command again to continue")
            raise failures[0]
        return Decoded(self._place)

    def _signing(self) -> Signing:
        """Settle what is signed, by the first file of each capture, or as it was settled before."""
        chosen = (self._options["signature"], tuple(self._options["masks"]))
        before = self._work.settings()
        if before is not None and "follow" in before:
            return Signing(*chosen, before["signing"]["signature_bytes"])
        signable = []
        for rotation in self._rotations:
            for file in self._coming(rotation, set()):
                signable.append(self._open(file, None).signable)
                break
            else:
                raise CaptureError(f"{rotation.source}: no file was complete, nothing is decoded")
        return Signing(*chosen, min(signable))

    def _coming(self, rotation: Rotation, done: set[str]) -> Iterator[File]:
        """Yield files as they are complete, and when it is time to stop those that are then."""
        while True:
            stopping = self._stop.is_set()
            for file in rotation.complete():
                if file.key not in done:
                    done.add(file.key)
                    yield file
            if stopping:
                return
            self._stop.wait(_LOOK_S)

    def _open(self, file: File, checkpoint: str | None) -> _native.NativeDecoder:
        if ".mscap" in file.path.suffixes:
            message = f"{file.path}: mscap files cannot be ordered by their time stamps"
            raise CaptureError(message)
        return _native.NativeDecoder(file.path, **self._options, checkpoint=checkpoint)

    def _capture(
        self, number: int, rotation: Rotation, signing: Signing, writers: Executor
    ) -> None:
        """Decode the files of one capture until it is time to stop."""
        folder = self._place / "packet" / f"capture={number}"
        notes = self._notes(number)
        for file in self._coming(rotation, {note.file for note in notes}):
            try:
                decoder = self._open(file, notes[-1].checkpoint if notes else None)
            except CaptureError:
                if file.was_compressed():
                    continue
                raise
            first = None if decoder.first is None else list(decoder.first)
            if first is not None and self._was_decoded(file, first, notes):
                continue
            decoder.start(signing.signature_bytes, self._buckets)
            with Part(folder, len(notes), self._buckets, writers) as part:
                rows = read_rows(decoder, part, self._buckets, sys.maxsize, int)
                self._check(file)
                part.commit()
            note = _Note(
                file.key,
                rows,
                decoder.checkpoint_json(),
                decoder.facts_json(),
                first,
                list(file.place),
                file.bytes,
            )
            self._work.note(number, len(notes), json.dumps(asdict(note)))
            notes.append(note)
            if self._tell is not None:
                self._tell(rotation.source, file.path.name, rows)

    def _notes(self, number: int) -> list[_Note]:
        return [_Note(**json.loads(text)) for text in self._work.notes(number)]

    def _captured(self, number: int, rotation: Rotation) -> Captured | None:
        """Return what is known of a capture, ``None`` where no file of it is decoded."""
        notes = self._notes(number)
        if not notes:
            return None
        facts = json.loads(notes[-1].facts)
        facts["tap"]["capture"] = rotation.source
        rows = sum(note.rows for note in notes)
        return Captured(number, rotation.source, json.dumps(facts), rows)

    @staticmethod
    def _was_decoded(file: File, first: list[int], notes: list[_Note]) -> bool:
        """Whether a file was decoded before, perhaps under another name or before compression."""
        for note in notes:
            if note.first != first:
                continue
            if tuple(note.place) == file.place and note.bytes < file.bytes:
                failure = CaptureError(
                    f"{file.path}: had {note.bytes:,} bytes when it was decoded, found"
                    f" {file.bytes:,}"
                )
                failure.add_note(
                    "it was decoded before it was complete: run as the user that writes the files,"
                    " so that the kernel tells when they are closed"
                )
                raise failure
            return True
        return False

    @staticmethod
    def _check(file: File) -> None:
        """See that the file is still what it was, since a ring writes where it wrote before."""
        try:
            unchanged = File.at(file.path) == file
        except FileNotFoundError:
            unchanged = True  # removed, while its pages are still ours
        if not unchanged:
            failure = CaptureError(f"{file.path}: was written to again while it was decoded")
            failure.add_note(
                "the ring of files is too short for this packet rate: use more or larger files"
            )
            raise failure
