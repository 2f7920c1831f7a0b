"""Check of the workers of a Spark cluster, whether they can match captures: :func:`check`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim import _native
from tailtrim.analysis.engines.spark import Spark
from tailtrim.analysis.engines.stretches import install, loading
from tailtrim.errors import EngineError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tailtrim.analysis.engines.engine import Engine

#: Spark deals tasks out over its executors in turn: so many reach each of up to 64.
TASKS = 64
#: A task ends no earlier, or the first executor would take all of them.
_TASK_S = 0.1


@dataclass(frozen=True)
class Worker:
    """A host whose executors answered, as one of its tasks saw it."""

    #: Name of the host.
    host: str
    #: Version of Python.
    python: str
    #: Version of pyarrow.
    pyarrow: str
    #: Version of tailtrim that is installed there, if one is. It is not used.
    tailtrim: str | None
    #: Version of the matcher that the session sent; ``None``: it does not run there.
    matcher: str | None
    #: Why captures cannot be matched there; empty if they can.
    problems: tuple[str, ...]


def check(spark: Engine, captures: Sequence[str | os.PathLike[str]] = ()) -> list[Worker]:
    """Send the matcher to the workers of a session, and have each try it.

    Args:
        spark: the session.
        captures: files that the workers are to find as they are here.

    Returns:
        The hosts that answered, by name. One with several Pythons is there once for each.

    Raises:
        EngineError: the engine is another one; or the server does not answer, takes no files, or
            runs no Python.
        OSError: a capture is not here.

    """
    if not isinstance(spark, Spark):
        raise EngineError(f"engine {spark.name} has no hosts that match captures, expected spark")
    paths = [Path(capture).resolve() for capture in captures]
    sizes = {str(path): path.stat().st_size for path in paths}
    install(spark)
    answers = {answer for _, answer in spark.mapped(TASKS, _working(sizes, _native.VERSION))}
    found = [json.loads(answer) for answer in sorted(filter(None, answers))]
    return [Worker(**{**one, "problems": tuple(one["problems"])}) for one in found]


def _working(sizes: dict[str, int], expected: str) -> Callable[[int], bytes]:
    """Return what a task does."""
    load, least_s = loading(), _TASK_S

    def work(_: int) -> bytes:
        import contextlib  # noqa: PLC0415 - on the worker
        import json  # noqa: PLC0415
        import os  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import time  # noqa: PLC0415
        from importlib import metadata  # noqa: PLC0415

        import pyarrow  # noqa: ICN001, PLC0415

        problems, matcher, installed = [], None, None
        try:
            matcher = load().VERSION
        except Exception as error:  # noqa: BLE001 - whatever keeps it from running is told
            problems.append(f"the matcher does not run there: {error}")
        if matcher not in (None, expected):
            problems.append(f"the matcher is of version {matcher}, expected {expected}")
        for path, size in sizes.items():
            try:
                there = os.stat(path).st_size  # noqa: PTH116 - the worker's
                with open(path, "rb"):  # noqa: PTH123
                    pass
            except OSError as error:
                problems.append(f"{path}: cannot be read there: {error.strerror}")
            else:
                if there != size:
                    problems.append(f"{path}: has {there:,} bytes there, {size:,} here")
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed = metadata.version("tailtrim")
        answer = {
            "host": platform.node(),
            "python": platform.python_version(),
            "pyarrow": pyarrow.__version__,
            "tailtrim": installed,
            "matcher": matcher,
            "problems": problems,
        }
        time.sleep(least_s)
        return json.dumps(answer).encode()

    return work


def can_match(workers: Sequence[Worker]) -> bool:
    """Whether there are workers, and each of them can match captures."""
    return bool(workers) and not any(worker.problems for worker in workers)
