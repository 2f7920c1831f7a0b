"""README's first commands on a fresh machine: a minimal Debian with what README demands.

Real there: ``packaging/prerequisites.sh`` and the packages that it installs from Debian's mirror,
Python and the virtual environment with all of requirements.lock, ``make demo`` from then on, and
every program that anything of it starts. Shared: the kernel; and what takes minutes to compile, the
agent and the native module of the tests themselves, so that cargo does not run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tools
import yaml

from tailtrim import _native
from tailtrim.laboratory.nodes.agent import program

pytestmark = pytest.mark.packages

UNPACKED_NOWHERE = 77
PROJECT = Path(__file__).parents[2]
#: Files made by the step of ``make setup`` that is left out: the call of cargo.
COMPILED = """
mkdir -p target/release
cp /exchange/tailtrim-agent target/release/
cp /exchange/_native.abi3.so target/release/lib_native.so
touch target/release/built.stamp
"""
STEPS = f"""
set -eux
make .venv/requirements.stamp
{COMPILED}
# The compilers that prerequisites name link what they compile.
echo 'int main(void) {{ return 0; }}' >program.c
for compiler in cc clang; do $compiler program.c -o program && ./program; done
make setup
.venv/bin/tailtrim doctor && exit 1
make demo
.venv/bin/tailtrim doctor --json >/exchange/doctor.json
.venv/bin/tailtrim run /exchange/traced.yml --out traced
cp -r demo traced /exchange/
"""


def outcomes(experiment: Path) -> list[Any]:
    return [json.loads(path.read_text()) for path in experiment.glob("run-*/outcome.json")]


def test_what_is_declared_is_all_that_the_demo_needs(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a fresh machine")
    tools.need(tools.MMDEBSTRAP)
    shutil.copy(program(), tmp_path)
    shutil.copy(_native.__file__, tmp_path)
    demo = yaml.safe_load((PROJECT / "examples" / "demo.yml").read_text())
    traced = {"name": "traced", "dut": {"preset": "forward"}, "trace": True, "floor": False}
    traced["traffic"] = demo["traffic"] | {"rate_pps": 1_000, "duration_s": 1.5}
    (tmp_path / "traced.yml").write_text(yaml.safe_dump(traced))
    ended = subprocess.run(
        [PROJECT / "packaging" / "fresh-machine.sh", tmp_path, "sh", "-c", STEPS],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if ended.returncode == UNPACKED_NOWHERE:
        pytest.skip(ended.stderr.splitlines()[-1])
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    assert "installing: iproute2 ethtool" in ended.stdout
    demonstrated = outcomes(tmp_path / "demo")
    assert len(demonstrated) == 6
    assert [outcome["failed"] for outcome in demonstrated] == [None] * 6
    assert (tmp_path / "demo" / "report" / "report.html").is_file()
    doctor = json.loads((tmp_path / "doctor.json").read_text())
    works = {(check["command"], check["what"]): check["works"] for check in doctor["checks"]}
    assert doctor["demo"]
    assert works["run", "device forward"]
    assert not works["run", "device testpmd"]
    # It has no tracefs mounted.
    assert works["trace", "tracefs"]
    assert [outcome["failed"] for outcome in outcomes(tmp_path / "traced")] == [None]
    (events,) = (tmp_path / "traced").glob("run-*/events.jsonl.zst")
    assert events.stat().st_size > 0
