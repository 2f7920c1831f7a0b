"""The plans of ``examples/``, which are part of the package, by name."""

from __future__ import annotations

from pathlib import Path

from tailtrim.errors import PlanError

_FOLDER = Path(__file__).parent
_SUFFIX = ".yml"


def names() -> list[str]:
    """Return the names of the example plans."""
    return sorted(place.stem for place in _FOLDER.glob(f"*{_SUFFIX}"))


def located(plan: Path) -> Path:
    """Return where a plan is: a file that is there, or the example of this name.

    Raises:
        PlanError: a name without a folder and a suffix is neither.

    """
    is_file = plan.exists() and not plan.is_dir()
    if is_file or plan.suffix or plan.name != str(plan):
        return plan
    if plan.name not in names():
        known = ", ".join(names())
        raise PlanError(f"{plan}: no such file or example, expected a file or one of {known}")
    return _FOLDER / f"{plan.name}{_SUFFIX}"
