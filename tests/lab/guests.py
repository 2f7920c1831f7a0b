"""Images for guests of tests: in the user's cache, or a loud skip where none can be made."""

from __future__ import annotations

import os

import pytest
from tools import CPIO, MMDEBSTRAP, QEMU, need

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.vm import image
from tailtrim.laboratory.nodes.vm.kernel import DEPMOD
from tailtrim.laboratory.nodes.vm.root import SQFSTAR

KERNEL = "bookworm/cloud"


def made() -> image.Image:
    """Return the image, of the cache that the command line uses, too."""
    if os.geteuid() != 0:
        pytest.skip("taps of guests need root here")
    need(QEMU, MMDEBSTRAP, SQFSTAR, CPIO, DEPMOD)
    try:
        return image.built(image.Recipe(KERNEL))
    except HostError as error:
        pytest.skip(f"no image for guests can be made: {error}")
