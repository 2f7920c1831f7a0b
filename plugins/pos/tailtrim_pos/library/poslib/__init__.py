"""The Python API of pos, as far as published experiments use it: it asks tailtrim's controller."""

from . import api, restapi
from .api import allocations, commands, nodes, results, roles

__all__ = ["allocations", "api", "commands", "nodes", "restapi", "results", "roles"]
