"""Results as HTML for notebooks, and experiments in a process of their own.

A notebook shows a result that is the last line of a cell: each has ``_repr_html_``, which calls
:func:`html`.
"""

from tailtrim.publishing.notebook.running import run
from tailtrim.publishing.notebook.shown import html

__all__ = ["html", "run"]
