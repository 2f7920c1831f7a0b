"""Images that nodes can have."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The image that every node has: the files of its host.
HOST_IMAGE = "host"


def has_image(image: str, images: Sequence[str]) -> bool:
    """Whether nodes can have an image.

    Args:
        image: its name; a time behind ``@`` does not matter.
        images: names, or patterns of names, for which the files of the host stand in.

    >>> has_image("debian-buster@2020-10-07", ["debian-*"]), has_image("alpine", ["debian-*"])
    (True, False)

    """
    plain = image.partition("@")[0]
    known = (HOST_IMAGE, *images)
    return any(fnmatch.fnmatchcase(one, name) for one in (image, plain) for name in known)
