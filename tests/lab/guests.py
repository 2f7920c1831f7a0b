"""Images for guests of tests: kept below target, or a loud skip where none can be made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tools import CPIO, MMDEBSTRAP, QEMU, need

from tailtrim.errors import HostError
from tailtrim.nodes.vm import image
from tailtrim.nodes.vm.kernel import DEPMOD
from tailtrim.nodes.vm.root import SQFSTAR

KERNEL = "bookworm/cloud"
_PROJECT = Path(__file__).parents[2]
CACHE = _PROJECT / os.environ.get("CARGO_TARGET_DIR", "target") / "cache"


def made(monkeypatch: pytest.MonkeyPatch) -> image.Image:
    """Return the image, of the cache that the command line uses then, too."""
    if os.geteuid() != 0:
        pytest.skip("taps of guests need root here")
    need(QEMU, MMDEBSTRAP, SQFSTAR, CPIO, DEPMOD)
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    try:
        return image.built(image.Recipe(KERNEL))
    except HostError as error:
        pytest.skip(f"no image for guests can be made: {error}")
