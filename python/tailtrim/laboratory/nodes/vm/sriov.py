"""Virtual functions (SR-IOV): settings that their physical function has, before a guest has them.

Everything is read, nothing is changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from pathlib import Path

IP = Tool("ip", "iproute2")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a virtual function that a guest needs, and its value before.

    Args:
        interface: that of the physical function, which has the setting.
        function: number of the virtual function.
        name: of the setting, as in ``ip link set … vf``.
        value: what it is to be.
        before: what it is.

    """

    interface: str
    function: int
    name: str
    value: str
    before: str

    @property
    def words(self) -> str:
        """Words of ``ip link set``, with slashes between them, and the value before."""
        return f"{self.interface}/vf/{self.function}/{self.name}/{self.value}={self.before}"


def settings(where: str, device: Path, mac: str) -> tuple[Setting, ...]:
    """Return the settings that a guest needs of a virtual function; none for another device.

    Its address is fixed, and stays so: the one that is told may be the function's own choice, and
    the next reset would change it. A device forwards frames of other senders and for other
    receivers: ``spoofchk`` would drop the former, and only a trusted function may ask for the
    latter. Its link is that of the card. A setting that the driver does not tell is left alone.

    Args:
        where: the port in the plan, for errors.
        device: its folder in sysfs.
        mac: the address that it has on this host.

    Raises:
        HostError: its physical function has no interface to set it by, or is down.

    """
    physical = device / "physfn"
    if not physical.is_symlink():
        return ()
    for link in _interfaces(physical):
        for told in link.get("vfinfo_list", ()):
            if (physical / f"virtfn{told['vf']}").resolve() != device.resolve():
                continue
            name = link["ifname"]
            if "UP" not in link["flags"]:
                raise HostError(
                    f"{where}: {device.name} is a virtual function of {name}, which is down; its"
                    f" link is up after: ip link set {name} up"
                )
            wanted = {"mac": mac, "spoofchk": "off", "trust": "on", "state": "auto"}
            before = _before(told)
            return tuple(
                Setting(name, told["vf"], key, value, before[key])
                for key, value in wanted.items()
                if before[key] and (key == "mac" or before[key] != value)
            )
    raise HostError(
        f"{where}: {device.name} is a virtual function of {physical.resolve().name}, which has no"
        " interface that tells of it, expected its network driver"
    )


def function_count(device: Path) -> int:
    """Return how many virtual functions a device has."""
    try:
        return int((device / "sriov_numvfs").read_text())
    except (OSError, ValueError):
        return 0


def ip(*words: str) -> list[dict[str, Any]]:
    """Return what ``ip -json`` tells.

    Raises:
        HostError: it fails, or is not installed.

    """
    local_host.require(IP)
    asked = local_host.run(["ip", "-json", *words])
    try:
        found: list[dict[str, Any]] = json.loads(asked.stdout or "[]")
    except ValueError:
        found = []
    if asked.returncode != 0:
        raise HostError(f"ip {' '.join(words)}: {asked.stderr.strip()}")
    return found


def _interfaces(device: Path) -> list[dict[str, Any]]:
    """Return what is told of those of a device: beside its own, it may have some of functions."""
    try:
        names = sorted(path.name for path in (device / "net").iterdir())
    except OSError:
        return []
    return [link for name in names for link in ip("link", "show", "dev", name)]


def _before(told: dict[str, Any]) -> dict[str, str]:
    """Return the settings of a function; one that is not told is empty."""
    switched = {True: "on", False: "off", None: ""}
    return {
        "mac": told.get("address", ""),
        "spoofchk": switched[told.get("spoofchk")],
        "trust": switched[told.get("trust")],
        "state": told.get("link_state", ""),
    }
