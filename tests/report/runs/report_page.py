"""Parser for a report's page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Page(HTMLParser):
    """The tags of a page and the text outside of scripts and styles, and the data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._cell = False
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self.rows: list[list[str]] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = "data" if dict(attrs).get("id") == "data" else tag
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data += data
        elif self._inside not in ("script", "style"):
            data = data.replace("\N{NO-BREAK SPACE}", " ")
            self.text += data
            if self._cell:
                self.rows[-1][-1] += data


def page_of(out: Path) -> Page:
    return Page((out / "report.html").read_text("utf-8"))
