"""Asks the controller: a program that prints the answer, and functions for the Python API.

It runs with nothing but Python's own library, on nodes too.
"""

from __future__ import annotations

import json
import os
import socket
import sys

# Nothing is imported that this needs for its types only: it starts hundreds of times.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# On a node its controller's socket is always here; elsewhere the environment names it.
_ON_NODE = "/run/tailtrim/pos.sock"
SOCKET = "TAILTRIM_POS_SOCKET"


def call(
    program: str, words: Iterable[object], files: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Any]:
    """Ask the controller, and return its answer: stdout, stderr, code and data."""
    asked = {
        "program": program,
        "words": [str(word) for word in words],
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib takes longer to import than this runs
        "environment": dict(os.environ),
        "files": files or {},
    }
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.environ.get(SOCKET, _ON_NODE))
        link.sendall(json.dumps(asked).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = link.recv(65536)
            if not part:
                raise ConnectionError("the controller has ended")
            answer += part
    told: dict[str, Any] = json.loads(answer)
    return told


def main() -> None:
    """Ask what the arguments say."""
    program, *words = sys.argv[1:]
    try:
        answer = call(program, words)
    except OSError as error:
        sys.stderr.write(f"{program}: no controller of tailtrim pos: {error}\n")
        sys.exit(1)
    sys.stdout.write(answer["stdout"])
    sys.stderr.write(answer["stderr"])
    sys.stdout.flush()
    sys.exit(answer["code"])


if __name__ == "__main__":
    main()
