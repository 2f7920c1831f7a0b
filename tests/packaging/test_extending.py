"""The package of docs/extending.md, as written: built, installed, and used by the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("tailtrim")
_BLOCK = re.compile(r"```\w+\n# (\S+)\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.packages


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the package is installed."""
    source, target = tmp_path_factory.mktemp("lab-parts"), tmp_path_factory.mktemp("installed")
    for name, text in _BLOCK.findall((ROOT / "docs/extending.md").read_text("utf-8")):
        with (source / name).open("a", encoding="utf-8") as file:
            file.write(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    words = [*pip, "--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(words, check=True, capture_output=True)
    return target


def tailtrim(
    installed: Path, *words: str | Path, around: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    command = [*around, PROGRAM, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_device(installed: Path, tmp_path: Path) -> None:
    plan = tmp_path / "shaper.yml"
    plan.write_text(
        "name: shaper\ndut: {preset: shaper, rate_mbit: $rate}\n"
        "traffic: {rate_pps: 1000, duration_s: 2}\nloop: {rate: [10, 50]}\n"
    )
    listed = tailtrim(installed, "run", plan, "--dry-run")
    assert listed.returncode == 0, listed.stderr
    assert "shaper rate=50" in listed.stdout
    dry = tailtrim(installed, "run", plan, "--dry-run")
    assert "root tbf rate 50mbit" in dry.stdout, dry.stderr
    plan.write_text(plan.read_text().replace("10, 50", "0"))
    refused = tailtrim(installed, "run", plan, "--dry-run")
    assert refused.returncode == 2
    assert "rate_mbit" in refused.stderr
    assert "device shaper" in tailtrim(installed, "doctor").stdout


def test_a_power_switch(installed: Path, tmp_path: Path) -> None:
    testbed = (ROOT / "examples/three-hosts/testbed.yml").read_text("utf-8")
    pin = tmp_path / "value"
    pin.write_text("0\n")
    power = f"    power: {{kind: relay, value_file: {pin}, off_s: 0}}\n"
    (tmp_path / "lab.yml").write_text(testbed.replace("    may: [tune]\n", power))
    asked = tailtrim(installed, "testbed", "power", tmp_path / "lab.yml", "dut", "on")
    assert asked.returncode == 0, asked.stderr
    assert pin.read_text() == "1"


def test_a_kind_of_node(installed: Path, tmp_path: Path) -> None:
    testbed = yaml.safe_load((ROOT / "examples/three-hosts/testbed.yml").read_text("utf-8"))
    cables = []
    for name, node in testbed["nodes"].items():
        ports = {key: port.get("cable") for key, port in node["ports"].items()}
        own = {key: {"interface": f"{name}-{key}", "cable": far} for key, far in ports.items()}
        testbed["nodes"][name] = {"kind": "here", "ports": own}
        cables += [(f"{name}-{key}", far.replace(".", "-")) for key, far in ports.items() if far]
    lab = tmp_path / "lab.yml"
    lab.write_text(yaml.safe_dump(testbed))
    # In a network namespace of its own, with which the cables go.
    links = [f"ip link add {one} type veth peer name {other}" for one, other in cables]
    script = " && ".join([*links, 'exec "$@"'])
    alone = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh")
    checked = tailtrim(installed, "testbed", "check", lab, around=alone)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "its frames arrive at dut.left" in checked.stdout
    lab.write_text(lab.read_text().replace("kind: here", "kind: hree", 1))
    refused = tailtrim(installed, "testbed", "check", lab)
    assert refused.returncode == 2
    assert "expected 'ssh' or 'here', not 'hree' (did you mean here?)" in refused.stderr


def test_a_command(installed: Path, testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    tailtrim(installed, "analyze", *testpmd, "--out", tmp_path / "run")
    told = tailtrim(installed, "worst", tmp_path / "run")
    assert re.fullmatch(r"\d+ ns\n", told.stdout), told.stderr
    missing = tailtrim(installed, "worst", tmp_path / "no")
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr
    assert re.search(
        r"^ +worst +Parts of our laboratory", tailtrim(installed, "--help").stdout, re.MULTILINE
    )
