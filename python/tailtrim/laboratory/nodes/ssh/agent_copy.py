"""The agent on a node: copied there once, by the checksum of what it is."""

from __future__ import annotations

import gzip
import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import agent

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.ssh.connection import Connection

#: So much of the checksum is in the name of its folder.
_SHOWN = 16
_CACHE = "cache=${XDG_CACHE_HOME:-$HOME/.cache}/tailtrim; place=$cache/agent-$1/tailtrim-agent\n"
_LOOK = f"""{_CACHE}
printf '%s\\n' "$(uname -m)" "$place"
sha256sum <"$place" 2>/dev/null
"""
# A copy that was interrupted has another name.
_PUT = f"""{_CACHE}
draft=$place.$$
mkdir -p "${{place%/*}}" && gzip -dc >"$draft" && chmod 755 "$draft" && mv "$draft" "$place"
"""
_OTHERS = f'{_CACHE} ls -d "$cache"/agent-* 2>/dev/null | grep -v "/agent-$1$" | sed "s|.*/||"'
# Live images of virtual machines may lie beside them.
_REMOVE = f'{_CACHE} rm -rf "$cache"/agent-*; rmdir "$cache" 2>/dev/null || :'


def copied(connection: Connection) -> tuple[str, bool]:
    """Return the place of this host's agent on the node, and whether it had to be copied there.

    It is compared byte for byte.

    Raises:
        HostError: the node is of another machine type; it cannot be copied, or does not run there.
        RunError: the connection is lost.

    """
    name, local = connection.name, Path(agent.program())
    looked = connection.call("sh", "-c", _LOOK, "sh", _checksum(local)[:_SHOWN])
    machine, where, *found = looked.stdout.splitlines()
    if machine != platform.machine():
        told = f"its machine type is {machine}, and the agent here is for {platform.machine()}"
        raise HostError(f"{name}: {told}")
    missing = not found or found[0].split()[0] != _checksum(local)
    if missing:
        sent = connection.send(_packed(local), "sh", "-c", _PUT, "sh", _checksum(local)[:_SHOWN])
        if sent.returncode != 0:
            told = sent.stderr.decode(errors="replace").strip()
            raise HostError(f"{name}: the agent cannot be copied to {where}: {told}")
    tried = connection.call(where, "--version")
    if tried.returncode != 0:
        told = tried.stderr.strip() or f"ended with {tried.returncode}"
        raise HostError(f"{name}: {where} does not run: {told}")
    return where, missing


def others(connection: Connection) -> list[str]:
    """Return the names of the agents of other versions on the node.

    Raises:
        RunError: the connection is lost.

    """
    wanted = _checksum(Path(agent.program()))
    return connection.call("sh", "-c", _OTHERS, "sh", wanted[:_SHOWN]).stdout.split()


def remove(connection: Connection) -> None:
    """Remove all agents that were copied to the node.

    Raises:
        HostError: they cannot be removed.
        RunError: the connection is lost.

    """
    ended = connection.call("sh", "-c", _REMOVE, "sh", "")
    if ended.returncode != 0:
        raise HostError(f"{connection.name}: {ended.stderr.strip()}")


@cache
def _packed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6)


@cache
def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
