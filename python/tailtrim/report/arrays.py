"""Types of the arrays that figures are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
