"""Examples in docstrings: of the package in the environment, which has its native module."""

from importlib.util import find_spec

import tailtrim  # noqa: F401 - before files are looked at, which belong to another folder

#: Modules that import pyspark: their examples are tried only where it is.
OF_SPARK = ("checking", "spark", "stretches")
collect_ignore = (
    [] if find_spec("pyspark") else [f"tailtrim/analysis/engines/{name}.py" for name in OF_SPARK]
)
