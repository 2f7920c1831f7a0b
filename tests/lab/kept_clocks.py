"""Hosts whose clocks are kept, as they believe: ptp4l and chronyd really run, and set no clock.

All hosts have this machine's clock, so they are 0 ns apart.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hosts import CACHE
from releases import entering

from tailtrim.laboratory.nodes.clocks import ASK, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hosts import Hosts

    from tailtrim.laboratory.nodes.clocks import ClockBound

SERVER, CLIENT = "198.51.100.1", "198.51.100.2"
#: The port of each host towards the other.
_PORT = "time"
_USER = "_chrony:x:65531:65531::/:/bin/false"
_WITHIN_S = 30
_PTP = """[global]
free_running 1
time_stamping software
network_transport L2
logAnnounceInterval -3
logSyncInterval -4
logMinDelayReqInterval -4
"""


def cabled(hosts: Hosts, server: str, client: str) -> None:
    """Join two hosts for their clocks."""
    hosts.cable(server, _PORT, client, _PORT, ("02:00:00:00:0a:01", "02:00:00:00:0a:02"))
    for name, address in ((server, SERVER), (client, CLIENT)):
        hosts.hosts[name].run("ip", "address", "add", f"{address}/24", "dev", _PORT)
        hosts.hosts[name].run("ip", "link", "set", "lo", "up")


def by_ptp(hosts: Hosts, server: str, client: str) -> None:
    """Have a host follow another one by PTP, and wait until it has measured."""
    roles = {server: "priority1 1\n", client: ""}
    for name, more in roles.items():
        words = f"ptp4l -f /run/ptp4l.conf -i {_PORT} -m"
        _start(hosts, name, {"/run/ptp4l.conf": _PTP + more}, words, "pmc")
    _until_bound(hosts, client, "PTP")


def by_ntp(hosts: Hosts, server: str, client: str, offset_s: float) -> None:
    """Have a host follow another one by NTP, which it takes for ``offset_s`` away."""
    polls = f"iburst minpoll -4 maxpoll -2 offset {offset_s}"
    roles = {server: "local\nallow all\n", client: f"server {SERVER} {polls}\n"}
    for name, said in roles.items():
        hosts.hosts[name].run("sh", "-c", 'echo "$1" >>/etc/passwd', "sh", _USER)
        hosts.hosts[name].run(
            "install", "-d", "-o", "65531", "-g", "65531", "-m", "750", "/run/chrony"
        )
        words = "chronyd -x -d -f /run/chrony.conf"
        _start(hosts, name, {"/run/chrony.conf": said}, words, "chronyc")
    _until_bound(hosts, client, "NTP")


def _start(hosts: Hosts, name: str, files: Mapping[str, str], words: str, asked: str) -> None:
    """Start a program of another release on a host, and have there what asks it."""
    host, inside = hosts.hosts[name], " ".join(entering("sid-peers"))
    host.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/usr/local/sbin")
    cache = f"XDG_CACHE_HOME={CACHE}"
    starter = f'#!/bin/sh\n{cache} exec {inside} {asked} "$@"\n'
    for path, text in {**files, f"/usr/local/sbin/{asked}": starter}.items():
        host.run("sh", "-c", 'printf %s "$1" >"$2" && chmod 755 "$2"', "sh", text, path)
    host.run("sh", "-c", f"{cache} {inside} {words} >/run/{asked}.log 2>&1 &")


def _until_bound(hosts: Hosts, name: str, by: str) -> None:
    ends = time.monotonic() + _WITHIN_S
    while not any(bound.by == by and bound.ns for bound in _bounds(hosts, name)):
        told = hosts.hosts[name].run("sh", "-c", "cat /run/*.log")
        assert time.monotonic() < ends, told
        time.sleep(0.2)


def _bounds(hosts: Hosts, name: str) -> tuple[ClockBound, ...]:
    return parsed(hosts.hosts[name].run("sh", "-c", ASK)).bounds
