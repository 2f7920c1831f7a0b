"""Console for tables, in which data is text and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from tailtrim.cli.console import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.text import Text


class Terminal(Console):
    """Standard output or standard error, for the layouts of ``rich``.

    Names and values come from files: brackets in them are not markup, colons not emoji, and control
    characters are escaped.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        """Write to standard output, in its columns, unless told otherwise."""
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape plain text before it is laid out, so that columns have room for it."""
        return super().render_str(escaped(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape all other text; rich's own control codes and colours are not text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escaped(segment.text), segment.style)
