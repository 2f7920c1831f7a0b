"""A run that tests of comparisons share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tailtrim

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def measured(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("compared") / "testpmd"
    tailtrim.analyze(*testpmd, skip_s=1, out=place)
    return place
