"""Redaction of an experiment: addresses, users, keys, passwords and paths stay with its owner.

A testbed keeps its nodes, ports, cables and roles. The addresses of nodes, their power switches
and meters are left out; a node's name with ``.invalid`` (RFC 2606) takes the place of its
address, in the testbed and in every text of the release.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim.publishing.release.layout import TESTBED

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Keys of a testbed's power and addresses whose values say where something is.
_PLACES = ("host", "jump", "key", "known_hosts", "url", "ca_file", "file")
#: Keys of a node that are left out.
_OUT = ("ssh", "power", "meter")


#: A path of a machine up to its name, alone or behind an option, a host or another path; no URL.
_PATH = re.compile(r"(^-\w|^|[=:,])/(?!/)(?:[^/=:,]*/)*")


class Redaction:
    """Texts and records of an experiment without what is withheld.

    Args:
        plan: as ``experiment.json`` has it.

    """

    def __init__(self, plan: dict[str, Any]) -> None:
        """Find what is to be replaced."""
        self._replaced: dict[str, str] = {}
        testbed = plan.get("testbed", LOCAL)
        for found in _places((plan.get("energy") or {}).get("meter")):
            scheme, separator, _ = found.rpartition("://")
            self._replaced[found] = f"{scheme}{separator}meter.invalid"
        #: The testbed as it is released; ``local`` stays that.
        self.testbed: Any = testbed
        if isinstance(testbed, dict):
            self._withhold(testbed)

    def _withhold(self, testbed: dict[str, Any]) -> None:
        nodes = {}
        for name, entry in testbed["nodes"].items():
            place = f"{name}.invalid"
            for found in (one for key in _OUT for one in _places(entry.get(key))):
                # Words of the plan itself are no secret, and are needed.
                if found not in testbed["nodes"] and found not in testbed["roles"]:
                    self._replaced[found] = place
            kept = {key: value for key, value in entry.items() if key not in _OUT}
            nodes[name] = kept | {"ssh": {"host": place}}
        described = TestbedDescription.model_validate(testbed | {"nodes": nodes})
        self.testbed = described.model_dump(mode="json")

    @property
    def local(self) -> bool:
        """True for a testbed of one machine, which no file describes."""
        return bool(self.testbed == LOCAL)

    def also(self, replaced: dict[str, str]) -> None:
        """Replace further words, whole ones alone."""
        self._replaced |= replaced
        self.testbed = json.loads(self.text(json.dumps(self.testbed)))

    def text(self, text: str) -> str:
        """Return a text without what is withheld."""
        if not self._replaced:
            return text
        longest_first = sorted(self._replaced, key=len, reverse=True)
        words = "|".join(map(re.escape, longest_first))
        whole = rf"(?<![\w.-])(?:{words})(?![\w-])"
        return re.sub(whole, lambda found: self._replaced[found[0]], text)

    def plan(self, text: str) -> str:
        """Return a plan that names the released testbed."""
        if self.local:
            return self.text(text)
        data = yaml.safe_load(text) | {"testbed": TESTBED}
        return self.text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))

    def testbed_file(self) -> str:
        """Return the testbed file."""
        described = TestbedDescription.model_validate(self.testbed)
        return yaml.safe_dump(described.model_dump(mode="json", exclude_none=True), sort_keys=False)

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return ``experiment.json`` or ``provenance.json`` without what is withheld."""
        kept = dict(record)
        if "plan" in kept:
            kept["plan"] = kept["plan"] | (
                {"testbed": self.testbed} if "testbed" in kept["plan"] else {}
            )
        if isinstance(kept.get("command"), list):
            kept["command"] = [_name(str(word)) for word in kept["command"]]
        if isinstance(kept.get("inputs"), list):
            kept["inputs"] = [one | {"path": name_of(str(one["path"]))} for one in kept["inputs"]]
        parsed: dict[str, Any] = json.loads(self.text(json.dumps(kept)))
        return parsed


def name_of(capture: str) -> str:
    """Return the name of a capture, which may be on another host: ``HOST:PATH``."""
    return PurePosixPath(capture.rpartition(":")[2] or capture).name


def _name(word: str) -> str:
    """Return a word of a command line; of a path of that machine only its name."""
    return _PATH.sub(r"\1", word)


def _places(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _places(inner)
        elif key in _PLACES and isinstance(inner, str) and inner:
            yield inner
