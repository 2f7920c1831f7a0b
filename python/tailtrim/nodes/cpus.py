"""Which CPUs of this host the parts of an experiment use."""

from __future__ import annotations

import mmap
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: So often Linux forgets which CPUs a process was on: it trims ``mm_cpumask``, since 6.14.
_FORGETS_S = 1.0


def placed(cpus: list[int] | None = None) -> tuple[int, list[int]]:
    """Choose a CPU for the generator, and those for the device: all others, if there are any.

    Args:
        cpus: to choose from; by default those that this process may use.

    """
    cpus = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    generating = cpus[-2] if len(cpus) > 1 else cpus[0]
    return generating, [cpu for cpu in cpus if cpu != generating] or cpus


@contextmanager
def keeping_to(cpus: list[int]) -> Iterator[None]:
    """Have this process, which looks at the others meanwhile, do so on these CPUs only.

    What it starts inherits that, unless it is told its own CPU.
    """
    before = {}
    for thread in [int(task.name) for task in Path("/proc/self/task").iterdir()]:
        with suppress(OSError):
            before[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, cpus)
    try:
        yield
    finally:
        for thread, allowed in before.items():
            with suppress(OSError):
                os.sched_setaffinity(thread, allowed)


def forgotten() -> None:
    """Have Linux forget that this process was on CPUs from which it keeps off now.

    Otherwise a thread that ends, whose stack goes, interrupts all of them. Of what goes after a
    second, the interrupt is the last one.
    """
    time.sleep(_FORGETS_S)
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        page[0] = 1
