"""Programs that tests use: without one a test is skipped loudly, and its package is told.

``python tests/needed/tools.py`` prints the Debian packages that are missing here, those of
tailtrim's own tools included; packaging/prerequisites.sh installs them.
"""

from __future__ import annotations

import platform
import sys

import pytest

from tailtrim.laboratory.doctor import missing_tools
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.boot import methods
from tailtrim.laboratory.nodes.boot.methods import KEXEC
from tailtrim.laboratory.nodes.vm import image, machine, root
from tailtrim.tool import Tool, installable

#: Peers of the reflector and of ``ping``.
PING = Tool("ping", "iputils-ping")
SOCKPERF = Tool("sockperf", "sockperf")
#: Readers of the agent's exports. Debian's tuned imports the Python module of perf, and does not
#: depend on it.
PERF = Tool("perf", "linux-perf")
#: Checks units of systemd.
SYSTEMD_ANALYZE = Tool("systemd-analyze", "systemd")
#: Guests of tests of boot lines, with kernels of packaging/kernels.sh.
QEMU, CPIO, MMDEBSTRAP = machine.QEMU, image.CPIO, root.MMDEBSTRAP
BUSYBOX = Tool("busybox", "busybox-static")
CHROMIUM = Tool("chromium", "chromium")
TCPDUMP = Tool("tcpdump", "tcpdump")
#: Compile tailtrim-dpdk.
_DPDK = "libdpdk.pc"
_MULTIARCH = f"/usr/lib/{platform.machine()}-linux-gnu/pkgconfig"
LIBDPDK = Tool(_DPDK, "libdpdk-dev", places=(f"{_MULTIARCH}/{_DPDK}",))
PKG_CONFIG = Tool("pkg-config", "pkgconf")
#: Capabilities of files.
SETCAP = Tool("setcap", "libcap2-bin")
#: Reads runs as OpenMetrics.
PROMTOOL = Tool("promtool", "prometheus", service=True)
#: Make the Debian package.
DPKG = Tool("dpkg-buildpackage", "dpkg-dev")
DEBHELPER = Tool("dh", "debhelper")
HELP2MAN = Tool("help2man", "help2man")
#: Checks it.
LINTIAN = Tool("lintian", "lintian")
#: Builds the container image.
BUILDAH = Tool("buildah", "buildah")
#: Hosts that are reached by SSH.
SSHD = Tool("sshd", "openssh-server", service=True, places=("/usr/sbin/sshd",))
KEYGEN = Tool("ssh-keygen", "openssh-client")
SUDO = Tool("sudo", "sudo")
#: Tools of GRUB that run without a disk to boot from.
GRUB = (methods.EDITENV, methods.CHECK)
#: Makes a GRUB and a disk for a guest; its header lets QEMU start it.
GRUB_MKIMAGE = Tool("grub-mkimage", "grub-common")
_LNXBOOT = "lnxboot.img"
GRUB_BIOS = Tool(_LNXBOOT, "grub-pc-bin", places=(f"/usr/lib/grub/i386-pc/{_LNXBOOT}",))
MKFS = Tool("mkfs.ext2", "e2fsprogs")
#: Makes the certificate of an outlet.
OPENSSL = Tool("openssl", "openssl")
#: Engines: a server that the tests start as another user, and the runtime of Spark.
POSTGRESQL = Tool("pg_ctlcluster", "postgresql", service=True)
JAVA = Tool("java", "default-jre-headless")
#: Mounts a bucket of an S3 store.
S3FS = Tool("s3fs", "s3fs")

ALL = (
    *(PING, SOCKPERF, SYSTEMD_ANALYZE, QEMU, BUSYBOX, CPIO),
    *(CHROMIUM, TCPDUMP, SETCAP, MMDEBSTRAP, PROMTOOL, DPKG, DEBHELPER, HELP2MAN, LINTIAN),
    *(BUILDAH, SSHD, KEYGEN, SUDO, *GRUB, GRUB_MKIMAGE, GRUB_BIOS, MKFS, KEXEC, OPENSSL),
    *(POSTGRESQL, JAVA, PERF, S3FS, LIBDPDK, PKG_CONFIG),
)


def need(*tools: Tool) -> None:
    """Skip the calling test loudly where a tool is missing."""
    for tool in tools:
        if local_host.find(tool) is None:
            pytest.skip(str(tool.missing()))


if __name__ == "__main__":
    absent = [tool for tool in ALL if local_host.find(tool) is None]
    packages, services = installable([*missing_tools(everything=True), *absent])
    print(*packages, sep="\n")  # noqa: T201 - its output
    for service in services:
        told = f"not installed, since it brings a service, and its tests are skipped: {service}"
        print(told, file=sys.stderr)  # noqa: T201
