"""Request of an experiment: the script of a folder, its nodes, and how its runs are done."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim_pos.layout import Published

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim_pos.provider import Provider

#: The image that every node has: the files of its host.
HOST_IMAGE = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class PosExperiment:
    """An experiment as a user asks for it.

    Args:
        name: of its folder.
        script: of the experiment.
        arguments: those of the script.
        nodes: makes them.
        published: the layout of the result folder.
        images: names, or patterns of names, for which the files of the nodes' hosts stand in.
        deadline_s: of each command, and of each run of a repeated one.
        seed: of the order of the runs; without it they are done in the order of their numbers.
        skip_s: time that is left out at the beginning of each capture.

    """

    name: str
    script: Path
    arguments: Sequence[str]
    nodes: Provider
    published: Published = Published.NEW
    images: Sequence[str] = ()
    deadline_s: float | None = None
    seed: int | None = None
    skip_s: str = "1s"

    def has_image(self, image: str) -> bool:
        """Whether nodes can have an image; a time behind ``@`` does not matter."""
        plain = image.partition("@")[0]
        known = (HOST_IMAGE, *self.images)
        return any(fnmatch.fnmatchcase(one, name) for one in (image, plain) for name in known)
