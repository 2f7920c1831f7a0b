"""``tailtrim reflect`` on a terminal, and into a pipe."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked(port: int) -> None:
    """Have one echo answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.sendto(b"a request that is long enough", ("127.0.0.1", port))
        client.recv(100)


def read_until(terminal: int, mark: bytes) -> bytes:
    seen = b""
    while mark not in seen:
        seen += os.read(terminal, 4096)
    return seen


def test_a_terminal_shows_one_line_that_is_written_again() -> None:
    port, (ours, theirs) = free_port(), pty.openpty()
    command = [str(BIN / "tailtrim"), "reflect", "--echo", str(port)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = read_until(ours, b"until Ctrl-C.")
    assert f"Answering UDP echo at 127.0.0.1:{port}, ".encode() in told
    asked(port)
    read_until(ours, b"s: 1 packets\x1b[K")
    process.send_signal(signal.SIGINT)
    read_until(ours, b"1 requests: 1 answered")
    assert process.wait(10) == 0
    os.close(ours)


def test_a_pipe_gets_json() -> None:
    port = free_port()
    command = [str(BIN / "tailtrim"), "reflect", "--echo", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"event": "ready"}
        asked(port)
        process.send_signal(signal.SIGINT)
        result = json.loads(process.stdout.readlines()[-1])
    assert (result["event"], result["reflected"]) == ("result", 1)
