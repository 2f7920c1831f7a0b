"""Results of other orchestrators as experiments: :func:`import_pos`.

::

    results of pos ──▶ runs by number ──▶ captures, histograms, percentiles ──▶ experiment

Everything read here is of others: symbolic links are not followed, files have bounds, and a run
whose data cannot be used is in the record with the reason.
"""

from tailtrim_pos.results.pos_experiment import Imported, import_pos

__all__ = ["Imported", "import_pos"]
