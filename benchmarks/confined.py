"""Limits the memory of commands: :func:`confined`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where control groups are made, and the file that limits one: version 2, then version 1.
KINDS = (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
JOIN = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@contextmanager
def confined(memory: int) -> Iterator[list[str]]:
    """Yield the words that go before a command which is to have so many bytes of memory.

    In a control group, as root: what is resident counts, the page cache of its files with it; who
    needs more is killed. Elsewhere RLIMIT_DATA: also what is reserved counts and never touched.
    """
    for root, limit in KINDS:
        group = Path(root) / f"tailtrim-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            # Not so in a hierarchy without this controller, nor in a folder that holds hierarchies.
            if (group / limit).exists():
                (group / limit).write_text(str(memory))
                yield ["sh", "-c", JOIN, str(group)]
                return
        finally:
            group.rmdir()
    yield ["prlimit", f"--data={memory}"]
