"""Checks of this host's abilities: each is tried, and nothing of it is left behind."""

from tailtrim.laboratory.doctor.check import Check
from tailtrim.laboratory.doctor.examination import examine
from tailtrim.laboratory.doctor.installed import missing_tools

__all__ = ["Check", "examine", "missing_tools"]
