"""A virtual machine: QEMU with an image, ports on taps, and a serial port to reach the guest."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.vm.pci import PassedPort
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tailtrim.laboratory.nodes.namespace import Namespace
    from tailtrim.laboratory.nodes.vm.image import Image

QEMU = Tool("qemu-system-x86_64", "qemu-system-x86")
Accelerator = Literal["kvm", "tcg"]

#: Begin of the boot line of each guest: a kernel that panics ends the machine, and so does
#: one of which a part has crashed: nothing that it does afterwards is worth a measurement. Emulated
#: CPUs that wait for those of the host fail the check of the timer.
COMMON = "console=ttyS0 panic=-1 oops=panic no_timer_check"
#: The abstract socket that leads to the guest's sshd: it has no file that could be left behind.
CONTROL = "tailtrim-control"
#: With TCG: how long a boot takes with its audit, and what a run takes beside its traffic, on two
#: cores of an EPYC (cloud and rt kernels of bookworm and trixie: 10 to 21 s, 5 to 14 s).
EMULATED_BOOT_S, EMULATED_RUN_S = 15.0, 8.0
_KVM, _VHOST = Path("/dev/kvm"), Path("/dev/vhost-net")
#: Frames pass as they are: checksums and segments are what the load generator made them.
_OFFLOADS = ("csum", "guest_csum", "gso", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo")
_LAST_LINES = 8
_PANIC = "Kernel panic - not syncing"
_LOOK_S = 0.01
# In several threads, TCG before QEMU 8.1 lets one CPU run an instruction that another one is
# patching: kernels end by "Oops: int3" (https://bugs.launchpad.net/bugs/2051965).
_ACCELERATORS = {"kvm": "kvm", "tcg": "tcg,thread=single"}
# The thread of one CPU (KVM), or of all (TCG in one thread).
_CPU_THREAD = re.compile(r"(?:CPU (\d+)|ALL CPUs)/\w+\s*")

_TUN = Path("/dev/net/tun")
# <linux/if_tun.h>
_TUNSETIFF = 0x400454CA
_TAP, _NO_INFORMATION, _OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000
_INTERFACE = "16sH22x"


@dataclass(frozen=True, slots=True)
class Hardware:
    """Hardware of a guest: its CPUs, the CPUs of this host for them, memory, accelerator."""

    cpus: int
    on: Sequence[int]
    memory_mib: int
    accelerator: Accelerator


@dataclass(frozen=True, slots=True)
class Wired:
    """A port of a guest by virtio-net: its tap on this host, and its address in the guest."""

    tap: str
    mac: str

    @property
    def record(self) -> dict[str, Any]:
        """Its record in run directories."""
        return {"kind": "virtio-net", "mac": self.mac}


#: A port of a guest, whatever it is on this host.
GuestPort = Wired | PassedPort


def accelerator(asked: str = "auto") -> Accelerator:
    """Return what runs the guest's instructions: the CPU (KVM), or QEMU (TCG).

    ``auto`` is KVM only where this host is not a guest itself: nested KVM hangs on some hosts.

    Raises:
        HostError: KVM is asked for and this host has none.

    """
    usable = os.access(_KVM, os.R_OK | os.W_OK)
    if asked == "kvm" and not usable:
        raise HostError(f"{_KVM}: missing, or no permission to use it; without it: accelerator tcg")
    if asked == "auto":
        return "kvm" if usable and not _is_guest() else "tcg"
    return "kvm" if asked == "kvm" else "tcg"


class Machine:
    """A machine that boots, for as long as the context lasts.

    It ends with this process, whatever ends that, and so do its taps. The image is not written to:
    what the guest changes is in its memory.
    """

    def __init__(  # noqa: PLR0913 - each is named
        self,
        namespace: Namespace,
        image: Image,
        hardware: Hardware,
        *,
        cmdline: str,
        ports: Sequence[GuestPort],
        console: Path,
    ) -> None:
        """Start it.

        Args:
            namespace: where its taps are; QEMU sees no other network.
            image: what it boots.
            hardware: what on.
            cmdline: its whole boot line.
            ports: in the order in which the guest finds them.
            console: file for what its first serial port prints.

        Raises:
            HostError: this host cannot.

        """
        local_host.require(QEMU)
        self._console = console
        with ExitStack() as stack:
            taps = {}
            for port in ports:
                if isinstance(port, Wired):
                    taps[port.tap] = _tap(namespace, port.tap)
                    stack.callback(os.close, taps[port.tap])
            self._process = subprocess.Popen(
                [
                    *(*namespace.prefix, *_command(image, hardware, cmdline, console)),
                    *(*_serial(), *network(ports, taps)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                pass_fds=list(taps.values()),
                env=local_host.environment(),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """Return the machine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()

    def kill(self) -> None:
        """End it from another thread: the one that waits for it learns that it has ended."""
        self._process.kill()

    @property
    def pid(self) -> int:
        """The process of QEMU."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def ended(self, within_s: float) -> bool:
        """Whether it has ended, or does so in time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return not self.alive

    def until_listening(self, until_s: float) -> None:
        """Wait until the socket that leads to the guest is there.

        Args:
            until_s: how long, by the monotonic clock.

        Raises:
            RunError: QEMU ended, or takes longer; says what it printed.

        """
        while f"@{CONTROL}" not in _text(f"/proc/{self.pid}/net/unix"):
            if not self.alive or time.monotonic() > until_s:
                raise RunError(f"{QEMU.program} does not start: {self.last_words()}")
            time.sleep(_LOOK_S)

    def pin(self, cpus: Sequence[int]) -> list[int]:
        """Keep each CPU of the guest on one of this host, in turn, and the rest of QEMU to these.

        Returns:
            The CPU of this host for each thread that runs the guest's CPUs: one each with KVM, one
            for all with TCG.

        Raises:
            HostError: this host does not let it have one of them.

        """
        placed: dict[int, int] = {}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            thread = _CPU_THREAD.fullmatch(_text(str(task / "comm")))
            on = list(cpus)
            if thread is not None:
                number = int(thread.group(1) or 0)
                placed[number] = cpus[number % len(cpus)]
                on = [placed[number]]
            try:
                os.sched_setaffinity(int(task.name), on)
            except ProcessLookupError:
                # A thread for a moment only.
                continue
            except OSError as error:
                told = ", ".join(map(str, on))
                raise HostError(f"vm.pinned: CPU {told} of this host: {error.strerror}") from error
        return [placed[number] for number in sorted(placed)]

    def last_words(self) -> str:
        """Return the end of what its console, or QEMU itself, printed, in one line."""
        text = ""
        if not self.alive and self._process.stderr:
            text = self._process.stderr.read()
        with suppress(OSError):
            text = self._console.read_text("utf-8", "replace") + text
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # The stack that a kernel prints is longer than these.
        panics = [line for line in lines[:-_LAST_LINES] if _PANIC in line]
        return " | ".join([*panics[:1], *lines[-_LAST_LINES:]])


def _command(image: Image, hardware: Hardware, cmdline: str, console: Path) -> list[str]:
    folder = image.folder
    root = "driver=raw,node-name=root,read-only=on,file.driver=file,"
    root += f"file.filename={_quoted(folder / 'root.squashfs')}"
    return [
        *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none"),
        *("-no-reboot", "-name", "tailtrim,debug-threads=on"),
        *("-machine", "pc", "-accel", _ACCELERATORS[hardware.accelerator]),
        *("-cpu", "host" if hardware.accelerator == "kvm" else "max"),
        *("-smp", str(hardware.cpus), "-m", str(hardware.memory_mib)),
        *("-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initramfs")),
        *("-append", cmdline),
        *("-blockdev", root, "-device", "virtio-blk-pci,drive=root"),
        *("-chardev", f"file,id=console,path={_quoted(console)}", "-serial", "chardev:console"),
        *("-device", "virtio-rng-pci"),
    ]


def _serial() -> list[str]:
    """Return a serial port to the guest, whose other end is a socket in QEMU's namespace."""
    return [
        *("-chardev", f"socket,id=control,path={CONTROL},abstract=on,server=on,wait=off"),
        *("-device", "virtio-serial-pci"),
        *("-device", "virtserialport,chardev=control,name=tailtrim"),
    ]


def network(ports: Sequence[GuestPort], taps: Mapping[str, int]) -> Iterator[str]:
    """Yield the options of QEMU for ports.

    Args:
        ports: in the order in which the guest finds them.
        taps: the descriptors of their taps by name.

    """
    vhost = ",vhost=on" if os.access(_VHOST, os.R_OK | os.W_OK) else ""
    off = "".join(f",{offload}=off" for offload in _OFFLOADS)
    for number, port in enumerate(ports):
        if isinstance(port, PassedPort):
            # Without what it would boot from.
            yield from ("-device", f"vfio-pci,host={port.pci},id=port{number},rombar=0")
            continue
        yield from ("-netdev", f"tap,id=port{number},fd={taps[port.tap]}{vhost}")
        yield from ("-device", f"virtio-net-pci,netdev=port{number},mac={port.mac},romfile={off}")


def _tap(namespace: Namespace, name: str) -> int:
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


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _quoted(path: Path) -> str:
    """Return a path as a value among options of QEMU."""
    return str(path.absolute()).replace(",", ",,")


def _is_guest() -> bool:
    lines = _text("/proc/cpuinfo").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return "hypervisor" in flags.split()
