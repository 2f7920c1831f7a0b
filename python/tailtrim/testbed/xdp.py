"""An XDP program that redirects as the device under test.

A few instructions, so neither compiler nor libbpf is needed; attached by a BPF link, which the
kernel takes away with the process that holds it. Native only: what act_mirred has redirected, as
the timestamper does with all frames, the kernel passes by generic XDP.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.testbed.local import DUT_IN, DUT_OUT, TAP_OUT

if TYPE_CHECKING:
    from tailtrim.testbed.local import Testbed
    from tailtrim.testbed.node import Node

# <linux/bpf.h> and <linux/if_link.h>
_SYSCALL = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_TYPE_XDP, _ATTACH_XDP = 6, 37
_NATIVE = 1 << 2  # XDP_FLAGS_DRV_MODE
_MOVE, _CALL, _EXIT = 0xB7, 0x85, 0x95
_REDIRECT = 23
_PASS = 2


class Redirect:
    """The program, for as long as the context lasts."""

    def __init__(self, testbed: Testbed) -> None:
        """Attach it to where frames come in.

        Args:
            testbed: where.

        Raises:
            HostError: this kernel, or this user, may not.

        """
        with ExitStack() as stack:
            target = testbed.dut.inside(lambda: socket.if_nametoindex(DUT_OUT))
            _attach(testbed.dut, DUT_IN, _redirect(target), stack)
            # A veth takes redirected frames only when its peer polls: a program makes it.
            _attach(testbed.timestamper, TAP_OUT, _pass(), stack)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the redirection itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Detach it."""
        self._stack.close()


def _instruction(code: int, register: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, register, 0, value)


def _redirect(interface: int) -> bytes:
    return (
        _instruction(_MOVE, 1, interface)
        + _instruction(_MOVE, 2, 0)
        + _instruction(_CALL, 0, _REDIRECT)
        + _instruction(_EXIT)
    )


def _pass() -> bytes:
    return _instruction(_MOVE, 0, _PASS) + _instruction(_EXIT)


def _attach(node: Node, interface: str, program: bytes, stack: ExitStack) -> None:
    try:
        loaded = _load(program)
        stack.callback(os.close, loaded)
        link = node.inside(lambda: _link(loaded, socket.if_nametoindex(interface)))
        stack.callback(os.close, link)
    except OSError as error:
        refused = HostError(f"xdp: the program cannot be attached: {error.strerror}")
        refused.add_note("loading an XDP program needs root, not only a user namespace")
        raise refused from error


def _load(program: bytes) -> int:
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"Dual MIT/GPL")
    count = len(program) // struct.calcsize("=BBhi")
    addresses = ctypes.addressof(code), ctypes.addressof(licence)
    return _bpf(_PROG_LOAD, struct.pack("=IIQQ", _TYPE_XDP, count, *addresses))


def _link(program: int, interface: int) -> int:
    return _bpf(_LINK_CREATE, struct.pack("=IIII", program, interface, _ATTACH_XDP, _NATIVE))


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise HostError(f"xdp: not written for {platform.machine()}, expected {list(_SYSCALL)}")
    # The kernel takes what is missing at the end as zeros, and refuses unknown lengths of its own.
    buffer = ctypes.create_string_buffer(attributes, 128)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.syscall(number, command, buffer, len(buffer))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor
