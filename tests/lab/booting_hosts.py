"""A host of :mod:`hosts` that boots: kernel, firmware and power are played, shell and sshd real.

Files that are mounted over the kernel's own describe its boot. A boot ends all processes
of the host, empties /run and has other files; without power no sshd answers.
"""

from __future__ import annotations

import platform
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hosts import CABLES, mac
from outlet_emulator import PASSWORD, USER, Emulator

if TYPE_CHECKING:
    from hosts import Hosts

RELEASE = platform.release()
#: Begin of each boot line, as the testbed file says it.
LINE = "root=/dev/sda1 ro"
OLD = f"BOOT_IMAGE=/boot/vmlinuz {LINE} old"
_SET_UP = """
for place in /boot /usr/local/sbin /sys/kernel /media; do mount -t tmpfs tmpfs "$place"; done
touch "/boot/vmlinuz-$1" "/boot/initrd.img-$1"
echo 0 >/sys/kernel/kexec_loaded
cat >/media/boots <<'END'
printf '%s\\n' "$1" >/media/cmdline
cat /proc/sys/kernel/random/uuid >/media/boot_id
echo 0 >/sys/kernel/kexec_loaded
rm -rf /run/tailtrim-* /var/tmp/*
END
sh /media/boots "$2"
mount --bind /media/cmdline /proc/cmdline
mount --bind /media/boot_id /proc/sys/kernel/random/boot_id
cat >/usr/local/sbin/kexec <<'END'
#!/bin/sh
case $1 in
--load)
    for word; do case $word in --command-line=*) echo "${word#*=}" >/media/loaded ;; esac; done
    echo 1 >/sys/kernel/kexec_loaded
    ;;
--unload) echo 0 >/sys/kernel/kexec_loaded ;;
--exec)
    [ ! -e /media/hangs ] || touch /run/off
    sh /media/boots "$(cat /media/loaded)"
    kill -9 -1
    ;;
esac
END
chmod 755 /usr/local/sbin/kexec
"""


class BootingHost:
    """One of three hosts, and its power."""

    def __init__(self, hosts: Hosts, name: str) -> None:
        self._hosts, self._name = hosts, name
        self._host = hosts.hosts[name]
        #: Number of times that its power was taken away.
        self.cycles = 0
        #: Whether it stays away when it has power again.
        self.broken = False
        self._host.run("sh", "-c", _SET_UP, "sh", RELEASE, OLD)

    @property
    def line(self) -> str:
        """Content of /proc/cmdline."""
        return self._host.run("cat", "/proc/cmdline").strip()

    def hangs_after_kexec(self) -> None:
        self._host.run("touch", "/media/hangs")

    def dies(self) -> None:
        """End all that runs there; no sshd answers any more."""
        self._host.run("touch", "/run/off")
        # It ends itself, too.
        with suppress(subprocess.CalledProcessError):
            self._host.run("sh", "-c", "kill -9 -1")

    def loses_power(self) -> None:
        self.cycles += 1
        self.dies()

    def has_power(self) -> None:
        """Boot what the firmware boots: the old line. Ports that went with a namespace are back."""
        self._host.run("sh", "-c", 'sh /media/boots "$1"; rm -f /media/hangs', "sh", OLD)
        for (one, port), (other, peer) in CABLES.items():
            if self._name in {one, other} and not self._cabled(one, port):
                self._hosts.cable(one, port, other, peer, (mac(one, port), mac(other, peer)))
        if not self.broken:
            self._host.run("rm", "-f", "/run/off")

    def _cabled(self, host: str, port: str) -> bool:
        return f" {port}@" in self._hosts.hosts[host].run("ip", "-oneline", "link")


class Plug(Emulator):
    """An outlet that a host is behind."""

    def __init__(self, host: BootingHost) -> None:
        super().__init__("netio")
        self._host = host

    @property
    def said(self) -> dict[str, Any]:
        """Entry of a testbed file for it."""
        login = {"user": USER, "password": {"environment": "OUTLET_PASSWORD"}}
        return {"kind": "outlet", "model": "netio", "url": self.url, "outlet": 1, **login} | {
            "off_s": 0.1
        }

    @property
    def environment(self) -> dict[str, str]:
        return {"OUTLET_PASSWORD": PASSWORD}

    def _turn(self, outlet: int, *, on: bool) -> None:
        if self.states[outlet] != on:
            (self._host.has_power if on else self._host.loses_power)()
        super()._turn(outlet, on=on)
