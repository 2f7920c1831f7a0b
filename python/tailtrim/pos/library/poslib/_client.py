"""Asks the controller: a program that prints the answer, and what the Python API calls.

It runs with nothing but Python's own library, on nodes too.
"""

import json
import os
import socket
import sys

# On a node its controller's socket is always here; elsewhere the environment names it.
_ON_NODE = "/run/tailtrim/pos.sock"
SOCKET = "TAILTRIM_POS_SOCKET"


def call(program, words, files=None):
    """Ask the controller, and return its answer: stdout, stderr, code and data."""
    asked = {
        "program": program,
        "words": [str(word) for word in words],
        "folder": os.getcwd(),
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
    return json.loads(answer)


def main():
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
