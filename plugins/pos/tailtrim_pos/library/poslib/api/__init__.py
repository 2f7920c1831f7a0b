"""The groups of the API."""

from . import allocations, commands, nodes, results, roles

__all__ = ["allocations", "commands", "nodes", "results", "roles"]
