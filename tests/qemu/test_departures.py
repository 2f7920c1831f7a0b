"""Departures at their time by the kernel, and stamps of sent packets by a card of one register."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from fetched import ROOTS
from shell_guest import with_libraries
from test_cards import AGENT, NEWER, PROJECT, guest, listed

from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.vm import image

if TYPE_CHECKING:
    from pathlib import Path

    from shell_guest import Guest

MODULES = ("igb", "e1000e", "sch_etf", "sch_prio", "veth")
#: Generate, kill the agent when the queueing discipline is there, and wait until it is gone.
KILLED = f"""
{AGENT} generate --interface "$1" --departures kernel --rate 100pps --duration 60s \\
    >/dev/null 2>&1 & agent=$!
held() {{ {AGENT} ports "$1" --json | grep -q '"etf": "software"'; }}
until held "$1"; do sleep 0.1; done
kill -9 $agent
for _ in $(seq 100); do
    held "$1" || {{ sleep 1; exit 0; }}
    sleep 0.1
done
exit 1
"""


def generated(guest: Guest, interface: str, *words: str) -> dict[str, Any]:
    told = guest.call(AGENT, "generate", "--interface", interface, *words)
    assert told.returncode == 0, told.stderr
    result: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    # Each probe ended in one outcome.
    assert result["due"] == result["sent"] + result["refused"] + result["missed"], result
    for stamps in result["transmit_stamps"].values():
        assert stamps["stamped"] + stamps["unstamped"] == result["sent"], result
    return result


def test_a_kernel_sends_at_the_time_and_a_card_stamps_what_it_can(tmp_path: Path) -> None:
    if not (ROOTS / NEWER).is_dir():
        pytest.skip(f"no emulated igb here: no {ROOTS / NEWER} (packaging/roots.sh gets it)")
    program = (str(PROJECT / "packaging" / "in-root.sh"), NEWER, "qemu-system-x86_64")
    cards = [
        *("-netdev", "hubport,id=a,hubid=0", "-device", "igb,netdev=a"),
        *("-netdev", "hubport,id=b,hubid=0", "-device", "e1000e,netdev=b"),
    ]
    recipe = image.Recipe("trixie/amd64", drivers=MODULES)
    tc = with_libraries(local_host.which("tc") or "")
    with guest(tmp_path, recipe, list(MODULES), *cards, program=program, more=tc) as booted:
        booted.run("ip", "link", "add", "v0", "type", "veth")
        booted.run("sh", "-c", 'for at in /sys/class/net/*; do ip link set "${at##*/}" up; done')
        before = listed(booted)
        (card,) = (name for name, port in before.items() if port["driver"] == "igb")
        by_the_kernel(booted, "v0")
        by_the_card(booted, card)
        declined = booted.call(AGENT, "ports", card, "--departures", "hardware")
        assert declined.returncode == 2
        for lacks in (
            "launch time of AF_XDP: its driver claims none",
            "etf offload: its driver does not take it",
            "send on timestamp of DPDK: what drivers claim is not proven",
        ):
            assert lacks in declined.stderr
        # Stamps of the NIC and queueing disciplines are as before, also after a kill.
        assert booted.call("sh", "-c", KILLED, "sh", card).returncode == 0
        assert listed(booted)[card] == before[card]


def set_qdisc(guest: Guest, interface: str, what: str) -> None:
    # Not the tc of busybox, which does not know etf.
    guest.run("/bin/tc", "qdisc", "replace", "dev", interface, "root", *what.split())


def by_the_kernel(guest: Guest, interface: str) -> None:
    assert guest.run(AGENT, "ports", interface, "--departures", "kernel").endswith(
        "discipline etf\n"
    )
    load = ("--departures", "kernel", "--rate", "500pps", "--count", "300")
    # An emulated CPU on a busy host is late; within two seconds, nothing is dropped for that.
    result = generated(guest, interface, *load)
    assert (result["departures"], result["departures_by"]) == ("kernel", "etf")
    assert (result["sent"], result["missed"], result["etf_dropped"]) == (300, 0, 0), result
    # No packet left before its time.
    assert result["lateness_ns"]["quantiles"][0]["value"] > 0
    assert result["transmit_stamps"]["kernel"]["stamped"] == 300

    # A queueing discipline that is there is used as it is: a microsecond is less than the kernel
    # needs, and what it drops is told by itself and counted.
    set_qdisc(guest, interface, "etf clockid CLOCK_TAI delta 1000")
    result = generated(guest, interface, *load)
    assert result["missed"] > 0
    assert result["etf_dropped"] >= result["missed"] + result["refused"]
    assert listed(guest)[interface]["etf"] == "software"
    set_qdisc(guest, interface, "pfifo")
    declined = guest.call(AGENT, "generate", "--interface", interface, *load)
    assert (declined.returncode, declined.stdout) == (2, "")
    assert "would replace the queueing discipline pfifo" in declined.stderr


def by_the_card(guest: Guest, interface: str) -> None:
    result = generated(guest, interface, "--rate", "10pps", "--count", "20")
    assert (result["departures"], result["departures_by"]) == ("software", "busy-waiting")
    assert result["transmit_stamps"]["nic"]["stamped"] > 1
    # One register: of a burst, the first has a stamp, and those behind it have none.
    burst = "--rate 1kpps --schedule burst:64 --count 640"
    result = generated(guest, interface, *burst.split())
    stamps = result["transmit_stamps"]
    assert 0 < stamps["nic"]["stamped"] < stamps["nic"]["unstamped"]
    # A time at which a packet is to depart is not taken for its stamp.
    timed = "--departures kernel --rate 20pps --count 20"
    result = generated(guest, interface, *timed.split())
    assert result["transmit_stamps"]["nic"]["stamped"] > 1
    assert result["lateness_ns"]["max"] < 10**9
