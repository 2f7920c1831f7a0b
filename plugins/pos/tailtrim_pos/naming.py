"""Names of the files in a result folder of pos.

None of it is documented: it is what published folders have in common (gallenmu/pos-artifacts of
2020, gallenmu/latency-limbo, the RISE demonstration of 2026). A command that is repeated for each
run has ``_runNNN`` behind its name, and so have the files that it uploads for a run: before the
first dot, with as many digits as the highest run number.
"""

from __future__ import annotations

import re
from datetime import datetime

#: Suffixes of what pos itself keeps of a command and of each of its runs; all else are uploads.
LOOP, STATUS = ".loop", ".status"
OWN = (LOOP, STATUS, ".stdout", ".stderr", ".command", ".file")
#: Contents of a ``.status`` file.
FINISHED, ERROR = "finished", "error"
#: Name of a command for which none is given.
UNNAMED = "unknown"

_TIME = re.compile(r"^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_")
_RUN = re.compile(r"_run([0-9]{1,9})(?=\.|$)")
_CAPTURE = re.compile(r"\.(pcap|pcapng|cap|mscap)(\.(zst|gz))?$")
_SIDES = {
    "ingress": frozenset({"pre", "ingress", "in", "before"}),
    "egress": frozenset({"post", "egress", "out", "after"}),
}


def now() -> str:
    """Return the time as names of files have it."""
    return stamp(datetime.now().astimezone())


def stamp(moment: datetime) -> str:
    """Return a time as names of files have it.

    >>> from datetime import datetime
    >>> stamp(datetime(2026, 6, 30, 16, 35, 26, 7))
    '2026-06-30_16-35-26_000007'

    """
    return f"{moment:%Y-%m-%d_%H-%M-%S_%f}"


def run_suffix(run: int, runs: int) -> str:
    """Return what names have of a run, of so many.

    >>> run_suffix(3, 4), run_suffix(3, 11), run_suffix(3, 138)
    ('_run3', '_run03', '_run003')

    """
    return f"_run{run:0{len(str(max(runs - 1, 0)))}d}"


def of_run(name: str, suffix: str) -> str:
    """Return the name of an upload of a run.

    >>> of_run("latencies-pre.pcap.zst", "_run007"), of_run("logs", "_run007")
    ('latencies-pre_run007.pcap.zst', 'logs_run007')

    """
    stem, dot, rest = name.partition(".")
    return f"{stem}{suffix}{dot}{rest}"


def run_of(name: str) -> tuple[int | None, str]:
    """Return the run that a file or folder belongs to, and its name without that.

    In folders of 2020 the number may be before the last dot instead of the first one.

    >>> run_of("latencies-pre_run007.pcap.zst")
    (7, 'latencies-pre.pcap.zst')
    >>> run_of("latencies-pre.pcap_run0.zst")
    (0, 'latencies-pre.pcap.zst')
    >>> run_of("setup.sh")
    (None, 'setup.sh')

    """
    found = list(_RUN.finditer(name))
    if not found:
        return None, name
    last = found[-1]
    return int(last[1]), name[: last.start()] + name[last.end() :]


def command_of(name: str) -> str:
    """Return which command one of pos's own files is of: the name without time and run.

    >>> command_of("2020-10-07_23-27-11_424401_measurement_run001.status")
    'measurement'

    """
    _, name = run_of(name)
    return _TIME.sub("", name.partition(".")[0])


def capture_suffix(name: str) -> str:
    """Return the end of a capture's name, its format and compression; nothing for other files.

    >>> capture_suffix("latencies-pre.pcap.zst"), capture_suffix("notes.txt")
    ('.pcap.zst', '')

    """
    found = _CAPTURE.search(name)
    return found[0] if found else ""


def side_of(name: str) -> tuple[str, str] | None:
    """Return on which side a capture was taken, and the name of the pair; else ``None``.

    The captures of a pair have the same name but for ``pre`` and ``post``, ``ingress`` and
    ``egress``, ``in`` and ``out`` or ``before`` and ``after``.

    >>> side_of("latencies-pre_run007.pcap.zst"), side_of("notes.txt")
    (('ingress', 'latencies'), None)

    """
    _, plain = run_of(name)
    if not capture_suffix(plain):
        return None
    words = re.split(r"([-_.])", _CAPTURE.sub("", plain))
    for side, known in _SIDES.items():
        for number, word in enumerate(words):
            if word.lower() in known:
                rest = words[: max(number - 1, 0)] + words[number + 1 :]
                return side, "".join(rest).strip("-_.")
    return None
