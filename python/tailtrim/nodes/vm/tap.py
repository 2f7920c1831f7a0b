"""Taps: interfaces of this host whose other end is a descriptor, such as that of a guest's port."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from tailtrim.nodes.namespace import Namespace

_TUN = Path("/dev/net/tun")
# <linux/if_tun.h>
_TUNSETIFF = 0x400454CA
_TAP, _NO_INFORMATION, _OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000
_INTERFACE = "16sH22x"


def opened(namespace: Namespace, name: str) -> int:
    """Make a tap in a namespace; it goes when the last copy of the descriptor is closed.

    Raises:
        HostError: this host cannot.

    """

    def make() -> int:
        descriptor = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
        flags = _TAP | _NO_INFORMATION | _OFFLOAD_HEADER
        try:
            fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack(_INTERFACE, name.encode(), flags))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    try:
        return namespace.inside(make)
    except OSError as error:
        raise HostError(f"{_TUN}: no tap can be made: {error.strerror}") from error
