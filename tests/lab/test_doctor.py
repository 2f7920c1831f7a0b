"""Findings of ``tailtrim doctor`` agree with what commands can do; it leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.laboratory.nodes import local_host, namespace
from tailtrim.tool import Tool, installable

if TYPE_CHECKING:
    from laboratory import Lab


HIDE = 'mount --bind /dev/null "$(readlink -f "$0")" && exec "$@"'


def told(lab: Lab, *words: str, without: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``tailtrim doctor`` where a program is not to be seen."""
    command = lab.command("doctor", *words)
    if without is not None:
        place = local_host.which(without)
        if os.geteuid() != 0 or place is None:
            pytest.skip(f"needs root, and {without} to hide")
        command = ["unshare", "--mount", "sh", "-c", HIDE, place, *command]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=lab.environment
    )


def checks(ended: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], Any]:
    parsed = json.loads(ended.stdout)
    assert parsed["demo"] == (ended.returncode == 0), ended.stderr
    return {(check["command"], check["what"]): check for check in parsed["checks"]}


def traces() -> list[Path]:
    """Return the files that it may leave; those that others remove meanwhile are passed over."""
    places = ("/sys/fs/cgroup", "/sys/kernel/tracing/instances", tempfile.gettempdir())
    return sorted(
        Path(folder, name)
        for place in places
        for folder, folders, files in os.walk(place)
        for name in (*folders, *files)
        if name.startswith("tailtrim-doctor")
    )


def test_it_leaves_nothing(lab: Lab) -> None:
    before, interfaces = traces(), sorted(Path("/sys/class/net").iterdir())
    found = checks(told(lab, "--json"))
    assert found["run", "network namespaces"]["works"]
    assert found["reflect", "mode socket"]["works"]
    assert traces() == before
    assert sorted(Path("/sys/class/net").iterdir()) == interfaces
    assert lab.left() == []


def test_without_ethtool_the_demo_is_not_possible(lab: Lab) -> None:
    ended = told(lab, "--json", without="ethtool")
    assert ended.returncode == 3
    missing = checks(ended)["run", "network namespaces"]["missing"]
    assert "Debian package ethtool" in missing
    assert told(lab, "--missing-packages", "demo", without="ethtool").stdout == "ethtool\n"


def test_a_device_that_lacks_its_program_is_no_reason_to_fail(lab: Lab) -> None:
    ended = told(lab, "--json", without="nft")
    assert ended.returncode == 0
    found = checks(ended)
    for what in ("device nftables", "reflector, firewall: nftables"):
        assert found["run", what]["missing"] == "Debian package nftables"
    assert found["run", "device router"]["works"]
    assert not found["reflect", "mode nat"]["works"]
    assert told(lab, "--missing-packages", "demo", without="nft").stdout == ""
    assert "nftables" in told(lab, "--missing-packages", "all", without="nft").stdout.split()


def test_why_no_pci_device_can_be_passed_through_is_told(lab: Lab) -> None:
    found = checks(told(lab, "--json"))["run", "PCI device in a virtual machine"]
    if not any(Path("/sys/kernel/iommu_groups").glob("*")):
        assert not found["works"]
        assert "IOMMU" in found["missing"] or "needs root" in found["missing"]
    elif os.geteuid() == 0 and Path("/sys/bus/pci/drivers/vfio-pci").exists():
        assert found["works"], found["missing"]


def test_the_table_fits_80_columns(lab: Lab) -> None:
    lab.environment["COLUMNS"] = "80"
    table = told(lab).stdout
    assert "network namespaces" in table
    assert max(map(len, table.splitlines())) <= 80


def test_every_tool_of_a_testbed_is_in_a_package() -> None:
    assert all(tool.package for tool in namespace.TOOLS)


def test_a_package_that_starts_a_service_is_not_installed_by_the_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = [Tool("a", "first"), Tool("b", "second", service=True), Tool("c", "first")]
    monkeypatch.setattr("tailtrim.tool._SYSTEMD", tmp_path)
    assert installable(tools) == (["first"], ["second"])
    monkeypatch.setattr("tailtrim.tool._SYSTEMD", tmp_path / "none")
    assert installable(tools) == (["first", "second"], [])
