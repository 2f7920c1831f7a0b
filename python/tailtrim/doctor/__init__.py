"""Checks of this host's abilities: each is tried, and nothing of it is left behind."""

from tailtrim.doctor.check import Check
from tailtrim.doctor.examination import examine
from tailtrim.doctor.installed import missing_tools

__all__ = ["Check", "examine", "missing_tools"]
