"""Meters that are read beside a run.

``recorder`` reads them, ``series`` has what one of them said, ``record`` is what a run keeps of
it, ``pos_csv`` the form of pos_energy.
"""

from tailtrim.laboratory.energy.recorder import Recorder

__all__ = ["Recorder"]
