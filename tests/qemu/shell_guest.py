"""A guest with a shell on a serial port, which is a node."""

from __future__ import annotations

import base64
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fetched import KERNELS
from tools import BUSYBOX, CPIO, MMDEBSTRAP, QEMU, need

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.host import Facts, Shell
from tailtrim.laboratory.nodes.vm import image
from tailtrim.laboratory.nodes.vm.kernel import DEPMOD
from tailtrim.laboratory.nodes.vm.root import SQFSTAR

if TYPE_CHECKING:
    from collections.abc import Iterator

# QEMU without hardware help boots a kernel in a quarter of a minute, if nothing else runs.
ANSWER_S = 120
CONSOLE = "console=ttyS0 panic=-1"


class Guest(Shell):
    """A guest with a shell on a serial port."""

    def __init__(self, port: socket.socket) -> None:
        self.role, self.facts = "dut", Facts("guest", "x86_64", 1, root=True)
        self._port = port
        self._number, self._heard = 0, b""

    @contextmanager
    def reach(self) -> Iterator[Guest]:
        self.run("true")
        yield self

    def hears_up(self) -> None:
        while self._line() != "up":
            pass

    def call(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        assert given is None
        self._number += 1
        script = base64.b64encode(shlex.join(command).encode()).decode()
        self._port.sendall(f"{self._number} {script}\n".encode())
        while True:
            number, *told = self._line().split(" ")
            if number == "up":
                raise RunError("dut: it started again")
            if number == str(self._number):
                code, output, errors = told
                said = [base64.b64decode(text[1:]).decode() for text in (output, errors)]
                return subprocess.CompletedProcess(command, int(code), *said)

    def _line(self) -> str:
        ends = time.monotonic() + ANSWER_S
        while b"\n" not in self._heard:
            if not select.select([self._port], [], [], max(ends - time.monotonic(), 0))[0]:
                raise RunError(f"dut: no answer within {ANSWER_S} s")
            self._heard += self._port.recv(65_536)
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode(errors="replace").strip()


@contextmanager
def booted(
    folder: Path, *options: str, program: tuple[str, ...] = (QEMU.program,)
) -> Iterator[Guest]:
    """Boot one with these options of QEMU, that of this host or another one."""
    place, console = folder / "serial", folder / "console"
    command = [
        *(*program, "-accel", "tcg,thread=single", "-cpu", "max"),
        *("-smp", "2", "-m", "1024", "-nographic"),
        *("-no-reboot", "-monitor", "none", "-serial", f"file:{console}"),
        *("-serial", f"unix:{place},server=on,wait=on", *options),
    ]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process, ExitStack() as stack:
        stack.callback(process.kill)
        port = stack.enter_context(socket.socket(socket.AF_UNIX))
        while not place.exists() and process.poll() is None:
            time.sleep(0.05)
        port.connect(str(place))
        guest = Guest(port)
        try:
            guest.hears_up()
            yield guest
        except BaseException as error:
            error.add_note(console.read_text(errors="replace")[-3_000:])
            raise


def shell() -> dict[str, Path]:
    """Return the files of a guest's shell."""
    busybox = local_host.find(BUSYBOX)
    assert busybox
    return {"init": Path(__file__).with_name("shell.sh"), "bin/busybox": Path(busybox)}


def with_libraries(program: str) -> dict[str, Path]:
    """Return the files of a program of this host."""
    told = subprocess.run(
        ["/usr/bin/env", "ldd", program], capture_output=True, text=True, check=True
    )
    libraries = [Path(path) for path in re.findall(r"(/\S+) \(0x", told.stdout)]
    files = {f"lib/{path.name}": path for path in libraries}
    files |= {str(path)[1:]: path for path in libraries if path.name.startswith("ld-")}
    return {f"bin/{Path(program).name}": Path(program)} | files


def kernels(*flavours: str) -> list[Path]:
    """Return Debian's kernels, or skip loudly."""
    need(QEMU, BUSYBOX, CPIO)
    found = [KERNELS / flavour / "vmlinuz" for flavour in flavours]
    for kernel in found:
        if not kernel.is_file():
            pytest.skip(f"no guests here: no {kernel} (packaging/kernels.sh gets it)")
    return found


def archive(root: Path, files: dict[str, Path]) -> Path:
    """Return an archive of these files, by their names in it."""
    for name, path in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / name)
        (root / name).chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    made = root.with_suffix(".cpio")
    with made.open("wb") as out:
        subprocess.run(
            ["/usr/bin/env", "cpio", "--quiet", "-o", "-H", "newc"],
            input=names.encode(),
            stdout=out,
            cwd=root,
            check=True,
        )
    return made


def release(kernel: Path) -> str:
    """Return what a kernel calls itself: in its header is where that text is."""
    image = kernel.read_bytes()
    start = int.from_bytes(image[0x20E:0x210], "little") + 0x200
    return image[start : image.index(b"\0", start)].decode().split()[0]


def imaged(folder: Path, recipe: image.Recipe, files: dict[str, Path], line: str) -> list[str]:
    """Return QEMU's options for a kernel with its drivers and these files, or skip loudly."""
    if os.geteuid() != 0:
        pytest.skip("mmdebstrap makes images as root here")
    need(QEMU, BUSYBOX, CPIO, MMDEBSTRAP, SQFSTAR, DEPMOD)
    try:
        made = image.built(recipe)
    except HostError as error:
        pytest.skip(f"no kernel with {', '.join(recipe.drivers)} can be had: {error}")
    initrd = folder / "initrd"
    more = archive(folder / "more", files).read_bytes()
    with initrd.open("wb") as out, (made.folder / "initramfs").open("rb") as own:
        shutil.copyfileobj(own, out)
        # The kernel skips zeros between archives, which begin at multiples of four bytes.
        out.write(bytes(-out.tell() % 4))
        out.write(more)
    kernel = str(made.folder / "vmlinuz")
    return ["-kernel", kernel, "-initrd", str(initrd), "-append", line]
