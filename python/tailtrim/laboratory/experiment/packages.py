"""The packages of the nodes, in the folder of the experiment: a file for each list that there is.

What a node is set up as names its list by a sum (``packages``), and so nodes and runs with the same
packages have one file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.nodes.environment import package_list, sum_of
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tailtrim.laboratory.nodes.node import Node

#: Below the experiment.
FOLDER = "packages"
_SUM = re.compile(r"sha256:([0-9a-f]{64})")


def file_of(environment: Mapping[str, Any]) -> str | None:
    """Return where the list of a node is below the experiment; ``None`` if it has none.

    >>> file_of({"packages": "sha256:" + 64 * "0"})
    'packages/0000000000000000.txt'

    """
    found = _SUM.fullmatch(str(environment.get("packages")))
    return f"{FOLDER}/{found[1][:16]}.txt" if found else None


def keep(experiment: Path, told: Iterable[tuple[Node, Mapping[str, Any]]]) -> None:
    """Write the lists that are not there yet, of nodes with what each is set up as.

    Raises:
        OutputError: one cannot be written.

    """
    for node, environment in told:
        name = file_of(environment)
        if name is None or (experiment / name).exists():
            continue
        packages = package_list(node)
        if sum_of(packages) != environment["packages"]:
            # Installed just now. The environment of the next run tells it.
            continue
        with replacing(experiment / name) as file:
            file.write(packages.encode())
