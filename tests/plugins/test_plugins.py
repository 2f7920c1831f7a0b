"""Packages that add a part by an entry point: loaded by name, told where one is broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from tailtrim import plugins
from tailtrim.errors import MissingPackageError, PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.plan import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Adds a package of this name, with entry points of devices and its module's text.
Package = Callable[[str, str, str], None]

VPP = """
from typing import Literal
from pydantic import Field
from tailtrim.laboratory.devices.device import InlineDevice

class Vpp(InlineDevice):
    '''Forward packets with VPP.'''

    preset: Literal["vpp"]
    workers: int = Field(default=1, ge=1, description="Number of workers.")

    def start(self, at, ip, stack):
        return None
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(tmp_path)
    plugins._installed.cache_clear()  # noqa: SLF001 - packages do not come and go in a process
    modules: list[str] = []

    def add(name: str, entries: str, text: str) -> None:
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[tailtrim.devices]\n{entries}\n")
        (tmp_path / f"{name}.py").write_text(text)
        modules.append(name)

    yield add
    plugins._installed.cache_clear()  # noqa: SLF001 - as above
    for name in modules:
        sys.modules.pop(name, None)


def load(folder: Path, dut: str) -> plans.Plan:
    path = folder / "plan.yml"
    path.write_text(f"name: a\ndut: {dut}\ntraffic: {{rate_pps: 1000, duration_s: 2}}\n")
    return plans.load(path)[0]


def test_a_device_of_another_package(package: Package, tmp_path: Path) -> None:
    package("others_vpp", "vpp = others_vpp:Vpp", VPP)
    plan = load(tmp_path, "{preset: vpp, workers: 2}")
    assert plan.dut.model_dump() == {"preset": "vpp", "workers": 2}
    with pytest.raises(PlanError, match=r"line 2: dut\.workers: .* 1, not 0"):
        load(tmp_path, "{preset: vpp, workers: 0}")
    with pytest.raises(PlanError, match=r"line 2: dut\.preset: .* 'vpp', not 'vp' .*vpp\?"):
        load(tmp_path, "{preset: vp}")
    assert json.loads(json_schema())["$defs"]["Vpp"]["properties"]["workers"]


def test_no_package_is_asked_for_what_is_our_own(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package("others_wire", "wire = others_wire:Wire", "raise SystemExit")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: pytest.fail("asked"))
    assert load(tmp_path, "{preset: wire}").dut.preset == "wire"


def test_a_broken_package_is_named(package: Package, tmp_path: Path) -> None:
    package("others_vpp", "vpp = others_vpp:Vpp", "import there_is_no_such_module")
    with pytest.raises(MissingPackageError, match=r"vpp .*others_vpp .*there_is_no_such") as told:
        load(tmp_path, "{preset: vpp}")
    assert "pip uninstall others_vpp" in told.value.__notes__[0]


def test_two_packages_with_one_name_are_refused(package: Package, tmp_path: Path) -> None:
    package("others_vpp", "vpp = others_vpp:Vpp", VPP)
    package("more_vpp", "vpp = more_vpp:Vpp", VPP)
    with pytest.raises(MissingPackageError, match="more_vpp") as told:
        load(tmp_path, "{preset: vpp}")
    assert "others_vpp" in str(told.value)
