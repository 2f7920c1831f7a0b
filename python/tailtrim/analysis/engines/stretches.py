"""Captures that a Spark cluster matches stretch by stretch: :func:`analyze_captures`.

Its tasks run the native matcher on files that all its hosts read at the same paths. Spark schedules
them, and repeats tasks lost with a worker. Results are some kilobytes a stretch, or a megabyte
where its packets decide how those of the next one are matched; pairs are not moved. Where the
number of earlier samples is not known, a stretch is matched a second time instead (``remote.rs``).
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

from tailtrim import _native
from tailtrim.analysis import Analysis
from tailtrim.analysis.engines.spark import Spark
from tailtrim.analysis.options import MatchingOptions, native
from tailtrim.errors import EngineError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from tailtrim.analysis.engines.engine import Engine

#: Packets of a stretch: a task takes some tenths of a second, and Spark a hundredth for each.
PACKETS = 1 << 23
#: Name that workers give the folder with the native module of this version.
_ARCHIVE = f"tailtrim-{_native.VERSION}"


def analyze_captures(  # noqa: PLR0913 - keyword-only options, each with a default
    spark: Engine,
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str],
    *,
    allow_negative: bool = False,
    packets: int = PACKETS,
    progress: Callable[[float | None], object] | None = None,
    **matching: Unpack[MatchingOptions],
) -> Analysis | None:
    """Match two captures on a Spark cluster.

    Args:
        spark: the session.
        ingress: capture of what enters, which all hosts read at this path.
        egress: capture of what leaves.
        allow_negative: see :func:`tailtrim.analyze`.
        packets: of the ingress capture in a stretch.
        progress: see there.
        matching: see there.

    Returns:
        The same as :func:`tailtrim.analyze` without samples: to send them takes longer than to
        match them here. ``None`` where one host has to do it: the captures are short, or no plain
        pcap files, or packets come again much later.

    Raises:
        CaptureError: a capture cannot be read; or many packets left before they entered.
        EngineError: the cluster does not answer, or has no captures at these paths.

    """
    if not isinstance(spark, Spark):
        raise EngineError(f"engine {spark.name} has no hosts that match captures, expected spark")
    paths = (Path(ingress).resolve(), Path(egress).resolve())
    # A pipe can be read only once.
    if not all(path.is_file() for path in paths):
        return None
    options = native(matching)
    analysis = _native.analyze_stretches(
        list(paths),
        options,
        _Hosts(spark, paths, options),
        packets=packets,
        progress=progress,
    )
    if analysis is None:
        return None
    if not allow_negative:
        analysis.check_order()
    return Analysis(analysis)


class _Hosts:
    """The workers of a cluster."""

    def __init__(self, spark: Spark, paths: tuple[Path, Path], options: dict[str, Any]) -> None:
        self._spark, self._options = spark, options
        self._paths = [str(path) for path in paths]
        self._ready = False

    def outlines(self, tasks: list[bytes]) -> Iterator[tuple[int, bytes | None]]:
        load, captures, options = loading(), self._paths, self._options

        def outline(index: int) -> bytes | None:
            answer: bytes | None = load().outline_stretch(captures, tasks[index], options)
            return answer

        return self._asked(len(tasks), outline)

    def counts(self, ordered: list[tuple[int, bytes, bytes]]) -> Iterator[tuple[int, bytes | None]]:
        load, captures, options = loading(), self._paths, self._options

        def counted(place: int) -> bytes | None:
            _, task, order = ordered[place]
            answer: bytes | None = load().count_stretch(captures, task, order, options)
            return answer

        for place, answer in self._asked(len(ordered), counted):
            yield ordered[place][0], answer

    def _asked(
        self, count: int, work: Callable[[int], bytes | None]
    ) -> Iterator[tuple[int, bytes | None]]:
        if not self._ready:
            install(self._spark)
            self._ready = True
        yield from self._spark.mapped(count, work)


def install(spark: Spark) -> None:
    """Give the workers of a session the native module of this version.

    Raises:
        EngineError: the server takes no files.

    """
    module = Path(_native.__file__)
    with TemporaryDirectory(prefix="tailtrim-") as folder:
        archive = Path(folder, f"{_ARCHIVE}.zip")
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            packed.write(module, module.name)
        try:
            spark.send(archive)
        except EngineError as error:
            error.add_note(
                "decode the captures and analyze the directory: then the server needs SQL only"
            )
            raise


def loading() -> Callable[[], Any]:
    """Return what loads the matcher on a worker to which :func:`install` has sent it.

    It is sent with a task, as it is: workers need not have tailtrim.
    """
    archive = _ARCHIVE

    def load() -> Any:
        import importlib.util  # noqa: PLC0415 - on the worker
        from glob import glob  # noqa: PLC0415

        (module,) = glob(f"{archive}*/_native*.so")  # noqa: PTH207 - the worker's folder
        spec: Any = importlib.util.spec_from_file_location("_native", module)
        native = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(native)
        return native

    return load
