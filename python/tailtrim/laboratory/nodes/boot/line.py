"""Boot lines: as they are asked for, and as a node tells that of its boot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.host import Shell

#: Boot loaders put it before what they were told.
_OF_LOADERS = "BOOT_IMAGE="
_FILES = ("/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease", "/proc/cmdline")


def unchanged(words: Sequence[str]) -> Sequence[str]:
    """Return words that boot loaders pass on as they are.

    Raises:
        ValueError: one has white space or quotes in it.

    """
    for word in words:
        if not word or set(word) & set("'\"\\") or word.split() != [word]:
            raise ValueError(f"{word!r}: expected a word without white space, quotes and \\")
    return words


@dataclass(frozen=True, slots=True)
class BootLine:
    """A kernel and its boot line.

    Args:
        kernel: path of the kernel on the node.
        initrd: path of its initial RAM disk, if it has one.
        words: the boot line's words.
        release: what ``uname -r`` says when it runs.

    Raises:
        HostError: a word has white space in it, or quotes, which boot loaders change on the way.

    """

    kernel: str
    initrd: str | None
    words: tuple[str, ...]
    release: str

    def __post_init__(self) -> None:
        """Make sure that it arrives as it was given."""
        try:
            unchanged(self.words)
        except ValueError as error:
            raise HostError(f"boot line: {error}") from error

    @property
    def text(self) -> str:
        """The boot line."""
        return " ".join(self.words)

    def require(self, node: Shell) -> None:
        """Make sure that a node has the files.

        Raises:
            HostError: one is missing.

        """
        for path in filter(None, (self.kernel, self.initrd)):
            if not node.exists(path):
                raise HostError(f"{node.role}: {path} is missing, expected a file to boot")

    def difference(self, seen: BootSeen) -> str | None:
        """Say what of a boot is not as asked; ``None`` where all is."""
        if seen.release != self.release:
            return f"uname -r is {seen.release}, expected {self.release}"
        if seen.words == self.words:
            return None
        lacks = " ".join(word for word in self.words if word not in seen.words)
        more = " ".join(word for word in seen.words if word not in self.words)
        told = [f"lacks {lacks}"] if lacks else []
        told += [f"also has {more}"] if more else []
        return f"/proc/cmdline {' and '.join(told) or 'has the words in another order'}"


@dataclass(frozen=True, slots=True)
class BootSeen:
    """The boot that a node is in: its number, the kernel's release and the boot line's words."""

    boot_id: str
    release: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, node: Shell) -> Self:
        """Ask a node.

        Raises:
            HostError: it does not say.
            RunError: it cannot be reached.

        """
        told = node.run("cat", *_FILES).splitlines()
        if len(told) < len(_FILES):
            raise HostError(f"{node.role}: {' '.join(_FILES)}: expected a line each, not {told}")
        words = " ".join(told[2:]).split()
        if words and words[0].startswith(_OF_LOADERS):
            words = words[1:]
        return cls(told[0], told[1], tuple(words))
