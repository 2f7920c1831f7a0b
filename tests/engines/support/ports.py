"""Ports for servers of tests."""

from __future__ import annotations

import random
import socket
from functools import cache

#: Below those that the kernel gives to sockets that ask for any.
_PORTS = range(20_000, 32_000)


def reserved_port() -> int:
    """Return a port of 127.0.0.1 that no other test gets as long as this process runs."""
    for port in random.sample(_PORTS, len(_PORTS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0tailtrim-test-port-{port}")
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as tried:
                    tried.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims().append(claim)
        return port
    raise OSError("no free port")


@cache
def _claims() -> list[socket.socket]:
    return []
