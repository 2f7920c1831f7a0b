"""Two clocks: output of ptp4l and chronyd becomes a bound, or the reason why there is none."""

from __future__ import annotations

import pytest

from tailtrim.laboratory.nodes.clocks import difference, parsed

PTP = """\
sending: GET TIME_STATUS_NP
\t507c6f.fffe.1fb16d-1 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP
\t\tmaster_offset              -26
\t\tgmPresent                  {present}
\t\tgmIdentity                 {grandmaster}
sending: GET CURRENT_DATA_SET
\t507c6f.fffe.1fb16d-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET
\t\tstepsRemoved     {steps}
\t\toffsetFromMaster {offset}
\t\tmeanPathDelay    {delay}
sending: GET PORT_PROPERTIES_NP
\t507c6f.fffe.1fb16d-1 seq 0 RESPONSE MANAGEMENT PORT_PROPERTIES_NP
\t\tportIdentity            507c6f.fffe.1fb16d-1
\t\tportState               SLAVE
\t\ttimestamping            {stamping}
\t\tinterface               eth1
"""
NTP = (
    "C0000201,192.0.2.1,2,1790000000.1,{offset},0.0,0.0,1.5,0.0,0.1,"
    "0.001000000,0.000250000,64.2,{leap}\n"
)


def ptp(offset: str = "-26.0", **other: str) -> str:
    said = {"present": "true", "grandmaster": "00254b.fffe.0d6b59", "steps": "1"}
    said |= {"delay": "644.0", "stamping": "HARDWARE", "offset": offset}
    return f"{PTP.format(**(said | other))}---\n---\nptp4l\n"


def ntp(offset: str = "-0.000010000", leap: str = "Normal") -> str:
    return f"---\n{NTP.format(offset=offset, leap=leap)}---\nchronyd\n"


def test_ptp_bounds_the_clocks_of_nics_by_offset_and_path_delay() -> None:
    found = difference(parsed(ptp()), parsed(ptp("14.5", delay="600.25")), "hardware")
    assert found.ns == (26 + 644) + 615
    assert found.why == "PTP, source 00254b.fffe.0d6b59"


def test_the_grandmaster_is_not_away_from_itself() -> None:
    master = parsed(ptp("0.0", delay="0.0", steps="0", present="false"))
    assert difference(master, parsed(ptp()), "hardware").ns == 670


def test_ptp_of_a_nic_says_nothing_of_the_kernels_clock() -> None:
    found = difference(parsed(ptp()), parsed(ptp()), "kernel")
    assert found.ns is None
    assert found.why.endswith("ptp4l and ptp4l")


def test_software_ptp_bounds_the_kernels_clock_only() -> None:
    side = parsed(ptp(stamping="SOFTWARE"))
    assert difference(side, side, "kernel").ns == 1_340
    assert difference(side, side, "hardware").ns is None


@pytest.mark.parametrize(
    "other",
    [ptp(grandmaster="aabbcc.fffe.000000"), ptp(present="false"), "---\n---\n", "", "rubbish"],
)
def test_no_bound_without_one_grandmaster(other: str) -> None:
    assert difference(parsed(ptp()), parsed(other), "hardware").ns is None


def test_ntp_bounds_the_kernels_clock_by_root_delay_and_dispersion() -> None:
    """10 µs of offset, 250 µs of dispersion and half of 1 ms, on each side."""
    found = difference(parsed(ntp()), parsed(ntp("0.000020000")), "kernel")
    assert found.ns == 760_000 + 770_000


def test_ntp_that_is_not_synchronised_bounds_nothing() -> None:
    side = parsed(ntp(leap="Not synchronised"))
    assert difference(side, side, "kernel").ns is None


#: Output of chronyd 4.9 with ``local`` and without a source.
OWN_TIME = (
    "---\n7F7F0101,,3,1795393264.878739938,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,"
    "0.000000000,0.000000000,0.0,Normal\n---\nchronyd\n---\n"
    "2: eth0    inet {address}/24 scope global eth0\\       valid_lft forever\n"
)


def test_clocks_that_keep_their_own_time_have_no_bound() -> None:
    one, other = (parsed(OWN_TIME.format(address=f"192.0.2.{n}")) for n in (1, 2))
    assert difference(one, other, "kernel").ns is None
    assert difference(other, parsed(ntp()), "kernel").ns is None


def test_a_clock_with_its_own_time_has_a_bound_with_its_clients() -> None:
    server, client = parsed(OWN_TIME.format(address="192.0.2.1")), parsed(ntp())
    for found in (difference(server, client, "kernel"), difference(client, server, "kernel")):
        assert (found.ns, found.why) == (760_000, "NTP, source 192.0.2.1")


def test_ptp_bounds_nothing_before_it_has_measured_a_delay() -> None:
    """A port that has just found its grandmaster tells zeros."""
    begun = parsed(ptp("0.0", delay="0.0"))
    assert difference(begun, parsed(ptp()), "hardware").ns is None
