"""Names of the files and folders of a release."""

from __future__ import annotations

SCHEMA = "tailtrim.release/1"

RECORD = "release.json"
README, LICENSE, CITATION = "README.md", "LICENSE", "CITATION.cff"
CLAIMS = "claims.yml"
CRATE = "ro-crate-metadata.json"
SUMS, SIGNATURE, SIGNERS = "SHA256SUMS", "SHA256SUMS.sig", "allowed_signers"
#: Namespace of the signature: a signature for another purpose is not valid here.
NAMESPACE = "tailtrim-release"
#: The report, and its figures with their values.
REPORT = "report"
#: The website of releases that earlier versions made, and the report in it.
WEBSITE = ("index.html", "site")
EARLIER_REPORT = "site/report"
SOFTWARE = "software"

EXPERIMENT = "experiment"
PLAN, TESTBED, DRAWING = "plan.yml", "testbed.yml", "testbed.svg"
#: Records of searches (``tailtrim capacity``, ``tailtrim trim``), whose trials are the runs.
SEARCHES = ("capacity.json", "trim.json")

#: The captures of a run, in the order of matching, as ``summary.json`` has them.
TAPS = ("ingress", "egress")
#: Of a repository, not of the release.
IGNORED = ".git"
