"""Files of a node, fetched whole: what was interrupted goes on where it stopped.

The node keeps what is being fetched for :data:`KEPT_S` seconds after the connection is lost: a mark
beside it says so. Each file is compared with its size and SHA-256 there.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.ssh.connection import OF_SSH
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.ssh.session import SshSession

#: The name of the mark.
MARK = ".fetching"
#: So long a node keeps what was being fetched when its connection was lost.
KEPT_S = 60
#: Files that are compressed already.
_PACKED = (".zst", ".gz", ".parquet")
#: Connections in a row by which nothing came.
_STUCK = 3
#: The script's, for a file that is not there.
_MISSING = 66
_BLOCK = 1 << 20
_GZIP = 31
#: Size and SHA-256 of a file, among what sudo and sshd may say beside.
_SUM = re.compile(r"^(\d+)\n([0-9a-f]{64}) ", re.MULTILINE)

# Whoever reads holds the mark's lock: the node keeps the files until then, too.
_READ = f"""
place=$1 mark=$2 offset=$3
[ -e "$place" ] || exit {_MISSING}
: >"$mark"; exec 9<"$mark"; flock -s 9
{{ stat -c %s "$place"; sha256sum <"$place"; }} >&2
tail -c "+$((offset + 1))" "$place" | $4
: >"$mark"
"""


class _MissingError(Exception):
    """The node does not have the file."""


def fetched(session: SshSession, place: str, mark: str, target: Path) -> bool:
    """Fetch a file; return whether the node has it.

    Args:
        session: with the node.
        place: the file there.
        mark: the mark there.
        target: where it goes here, whole or not at all; its folder is made.

    Raises:
        OutputError: it cannot be written here.
        RunError: it does not arrive whole, or the node cannot be reached any more.

    """
    packed = place.endswith(_PACKED)
    expected: tuple[str, ...] | None = None
    with suppress(_MissingError), replacing(target) as part:
        stuck = 0
        while True:
            began = part.tell()
            how = "cat" if packed else "gzip -1 -c"
            words = ("sh", "-c", _READ, "sh", place, mark, str(began), how)
            told, code = _read(session, words, part, unpacked=packed)
            if code == _MISSING:
                raise _MissingError
            if found := _SUM.search(told):
                expected = expected or found.groups()
                if found.groups() != expected:
                    raise RunError(f"{session.role}: {place} changed while it was fetched")
            stuck = stuck + 1 if part.tell() == began else 0
            whole = code == 0 and expected is not None and str(part.tell()) == expected[0]
            began_there = code == OF_SSH or expected is not None
            if whole or stuck == _STUCK or not began_there:
                break
            session.go_on()
        part.flush()
        if code != 0 or expected != (str(part.tell()), _sha256(Path(part.name))):
            raise RunError(
                f"{session.role}: {place} did not arrive whole: {part.tell():,} bytes came, and"
                f" what sent them ended with {code}: {' '.join(told.split())}"
            )
        return True
    return False


def _read(
    session: SshSession, words: tuple[str, ...], part: IO[bytes], *, unpacked: bool
) -> tuple[str, int]:
    """Add what comes to a part; return what was told and the exit code.

    A connection that is lost may end with any code: ssh returns that of the script, if it came
    before the last bytes were written.
    """
    with tempfile.TemporaryFile(dir=Path(part.name).parent) as raw:
        try:
            ended = session.reading.fetch(raw, *session.held(words))
        except RunError:
            told, code = "", OF_SSH
        else:
            told, code = ended.stderr.decode(errors="replace"), ended.returncode
        raw.seek(0)
        unzip = zlib.decompressobj(_GZIP)
        while block := raw.read(_BLOCK):
            part.write(block if unpacked else unzip.decompress(block))
    return told, code


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
