"""What a line of a script uses."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Use:
    """A line that uses something: what is wrong, and what else has to be looked at."""

    line: int
    problems: list[str] = field(default_factory=list)
    image: str | None = None
    script: str | None = None
    variables: str | None = None
    loop: bool = False
    #: Programs that have to be installed where the line runs.
    programs: list[str] = field(default_factory=list)
    #: The node that gets boot parameters; empty where that is known only when the script runs.
    boots: str | None = None
