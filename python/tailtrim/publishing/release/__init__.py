"""A release: an experiment as a folder for a git repository and an archive, and its verification.

::

    README.md               front page: links to all else, how to install the version that made it,
                            how to verify it
    LICENSE, CITATION.cff   of the data, given by whoever releases it
    claims.yml              claims about the numbers, if there are any
    release.json            version, files left out, whether addresses are anonymised
    ro-crate-metadata.json  RO-Crate 1.2: a Workflow Run Crate with the entities of RISE 1.0.0
    SHA256SUMS              of every file; SHA256SUMS.sig and allowed_signers where it is signed
    report/                 the report: its page, its figures and their values
    software/               the wheel, if it was given
    experiment/             the experiment, see :mod:`tailtrim.laboratory.experiment`
        testbed.yml         its testbed without addresses, users, keys and power

:func:`release` makes one and verifies it before it appears; :func:`verify` derives its numbers
again. A release to verify comes from others: nothing in it is followed out of its folder, and
nothing of it runs, except with ``rerun``, which runs its plan.
"""

from tailtrim.publishing.release.checks import CheckResult, Verdict
from tailtrim.publishing.release.publishing import ReleaseOptions, release
from tailtrim.publishing.release.verifying import LEVELS, verify

__all__ = ["LEVELS", "CheckResult", "ReleaseOptions", "Verdict", "release", "verify"]
