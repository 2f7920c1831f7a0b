"""The packages that are installed on a node: all of them as a text, and a short sum of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.nodes.node import Node

#: A shell function that prints a line for each package, name and version, sorted by bytes.
#: Debian's first: a host of Debian may have rpm, without any package of it.
LIST = r"""
packages() {
    found=$(dpkg-query --show --showformat \
        '${db:Status-Abbrev}${binary:Package} ${Version}\n' 2>/dev/null | sed -n 's/^.i.//p')
    [ -n "$found" ] || found=$(rpm --query --all --queryformat '%{NAME}.%{ARCH} %{EVR}\n' \
        2>/dev/null)
    [ -z "$found" ] || printf '%s\n' "$found" | LC_ALL=C sort -u
}
"""


def listed(node: Node) -> str:
    """Return a line for each installed package of a node; nothing where none is known."""
    return node.outside.call("sh", "-c", f"{LIST}\npackages").stdout


def sum_of(packages: str) -> str:
    """Return what tells a list of packages from others, as :func:`.environment` has it."""
    return f"sha256:{hashlib.sha256(packages.encode()).hexdigest()}"
