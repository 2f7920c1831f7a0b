"""Claims of interfaces, and what a cable between them shows of it: in a network namespace."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = pytest.mark.fast
CABLE = "ip link add near type veth peer name far; ip link set near up;"
#: Flags of an interface, without those that say that there is a link.
STATE = "ip -o link show far | grep -o '[<,]UP[,>]' || echo down"


def inside(lab: Lab, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a network namespace that ends with it."""
    return subprocess.run(
        ["/usr/bin/env", "unshare", "--net", "sh", "-c", f"{CABLE} {script}", lab.agent],
        capture_output=True,
        text=True,
        check=False,
        env=lab.environment,
        timeout=120,
    )


def claims(told: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what was measured, by interface and claim."""
    document = json.loads(told.stdout)
    assert document["schema"] == "tailtrim.ports.proof/1"
    return {(claim["interface"], claim["claim"]): claim for claim in document["claims"]}


def test_interfaces_are_listed_with_what_they_claim(lab: Lab) -> None:
    told = inside(lab, '"$0" ports --json')
    document = json.loads(told.stdout)
    assert document["schema"] == "tailtrim.ports/1"
    near, far = sorted(document["ports"], key=lambda port: port["interface"], reverse=True)
    assert (near["interface"], far["interface"]) == ("near", "far")
    for port in (near, far):
        assert port["driver"] == "veth"
        assert port["receive_stamps"] == {"kernel": True, "nic": []}
        assert port["transmit_stamps"]["nic"] == []
        assert (port["phc"], port["etf"]) == (None, None)
        if port["af_xdp"] is not None:
            assert not port["af_xdp"]["zero_copy"]
            assert not port["af_xdp"]["launch_time"]
    table = inside(lab, '"$0" ports near').stdout
    assert max(map(len, table.splitlines())) <= 80
    assert "far" not in table
    assert "near       veth" in table


def test_interfaces_that_are_not_there_are_told_in_one_line(lab: Lab) -> None:
    told = inside(lab, '"$0" ports nowhere')
    assert told.returncode == 3
    assert told.stderr.startswith("error: nowhere: no such interface: ")
    assert told.stderr.count("\n") == 1
    assert lab.run("ports", "nowhere").stderr == told.stderr
    told = inside(lab, '"$0" ports --prove near nowhere')
    assert told.returncode == 3
    assert told.stderr.startswith("error: nowhere: no such interface: ")
    told = inside(lab, '"$0" ports --prove near near')
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "near twice" in told.stderr


def test_a_cable_proves_the_stamps_of_the_kernel_and_no_others(lab: Lab) -> None:
    told = inside(lab, f'"$0" ports --prove near far --json; echo $? >&2; {STATE} >&2')
    proof = claims(told)
    refuted = [key for key, claim in proof.items() if claim["verdict"] == "refuted"]
    # The far end is down again.
    assert told.stderr.split() == ["1" if refuted else "0", "down"], told
    for end, peer in (("near", "far"), ("far", "near")):
        for claim in ("receive-kernel", "transmit-kernel"):
            row = proof[end, claim]
            assert (row["claimed"], row["verdict"], row["why"]) == (True, "proven", None), row
            assert (row["packets"], row["stamped"], row["backward"]) == (1_000, 1_000, 0)
            assert row["resolution_ns"] == 1
            assert row["against"] == f"kernel of {peer}"
            rates = [at["rate_pps"] for at in row["by_rate"]]
            assert rates == [1_000, 10_000, 50_000, 100_000]
            for at in row["by_rate"]:
                for errors in (at["gap_error"], at["against"]):
                    assert 0 <= errors["p50_ns"] <= errors["p99_ns"] <= errors["max_ns"]
        for claim in ("receive-nic", "transmit-nic", "phc"):
            row = proof[end, claim]
            assert (row["claimed"], row["verdict"]) == (False, "absent"), row
        # Before Linux 6.3, the kernel does not tell what is claimed.
        assert proof[end, "zero-copy"]["verdict"] in {"absent", "untested"}
        # Where veth claims hints for XDP programs, it answers 0.
        row = proof[end, "xdp-hint"]
        if row["claimed"]:
            assert row["verdict"] == "refuted"
            assert (row["packets"], row["stamped"]) == (100, 0)
            # It is asked for the frames of the kernel itself, too, such as of neighbour discovery.
            answers = re.search(r": the driver answers 0 ([\d,]+) times$", row["why"])
            assert answers, row
            assert 100 <= int(answers[1]) < 110, row
    table = inside(lab, '"$0" ports --prove near far').stdout
    assert max(map(len, table.splitlines())) <= 80
    assert "near       receive kernel   proven   1,000 of 1,000 in 1 ns" in table


def test_interfaces_without_a_cable_prove_nothing(lab: Lab) -> None:
    other = (
        "ip link add other type veth peer name behind; ip link set far up; ip link set behind up"
    )
    told = inside(lab, f'{other}; "$0" ports --prove near other')
    assert told.returncode == 3
    expected = "error: no packet of near came to other, expected a cable between them\n"
    assert told.stderr == expected


def test_interfaces_are_put_back_after_a_kill(lab: Lab) -> None:
    script = f"""
        "$0" ports --prove near far >/dev/null & agent=$!
        until [ "$({STATE})" != down ]; do sleep 0.01; done
        kill -9 $agent
        for _ in $(seq 500); do [ "$({STATE})" = down ] && exit 0; sleep 0.02; done
        exit 1
    """
    assert inside(lab, script).returncode == 0
