"""XDP programs, loaded and attached by this process.

Without compiler or libbpf; attached by a BPF link, which the kernel takes away with the process
that holds it. Native only: what act_mirred has redirected, as the timestamper does with all frames,
the kernel passes by generic XDP.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

from tailtrim.errors import HostError

# <linux/bpf.h> and <linux/if_link.h>
_SYSCALL = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_TYPE_XDP, _ATTACH_XDP = 6, 37
_NATIVE = 1 << 2  # XDP_FLAGS_DRV_MODE
_MOVE, _CALL, _EXIT = 0xB7, 0x85, 0x95
_REDIRECT = 23
_PASS = 2
_INSTRUCTION = "=BBhi"


def redirecting(interface: int) -> bytes:
    """Return a program that redirects every frame out of the interface with this index."""
    return (
        _instruction(_MOVE, 1, interface)
        + _instruction(_MOVE, 2, 0)
        + _instruction(_CALL, 0, _REDIRECT)
        + _instruction(_EXIT)
    )


def passing() -> bytes:
    """Return a program that passes every frame to the kernel."""
    return _instruction(_MOVE, 0, _PASS) + _instruction(_EXIT)


def _instruction(code: int, register: int = 0, value: int = 0) -> bytes:
    return struct.pack(_INSTRUCTION, code, register, 0, value)


def load(program: bytes) -> int:
    """Load a program and return its descriptor.

    Raises:
        HostError: this machine's system call is not known.
        OSError: this kernel, or this user, may not.

    """
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"Dual MIT/GPL")
    count = len(program) // struct.calcsize(_INSTRUCTION)
    addresses = ctypes.addressof(code), ctypes.addressof(licence)
    return _bpf(_PROG_LOAD, struct.pack("=IIQQ", _TYPE_XDP, count, *addresses))


def attach(program: int, interface: int) -> int:
    """Attach a loaded program to the interface with this index; return the link's descriptor.

    Raises:
        OSError: this kernel, this user or the interface's driver may not.

    """
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
