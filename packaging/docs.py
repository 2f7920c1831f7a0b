"""Writes the pages of the documentation site: those of docs/, and the reference from the code.

    python packaging/docs.py PAGES

Links to files of the repository that are not pages become their paths, once it is seen that they
exist.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands import Command, of_agent, of_group

from tailtrim.cli.catalogue import CATALOGUE
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim.laboratory.plan.model import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def main() -> None:
    """Write all pages."""
    pages = Path(sys.argv[1])
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages)
    for page in pages.rglob("*.md"):
        source = DOCS / page.relative_to(pages)
        page.write_text(_within(page.read_text(encoding="utf-8"), source), encoding="utf-8")
    reference = pages / "reference"
    reference.mkdir()
    for group in dict.fromkeys(entry.group for entry in CATALOGUE.values()):
        text = "\n".join(map(_section, of_group(group)))
        place = reference / f"{group.lower().replace(' ', '-')}.md"
        place.write_text(f"# {group}: commands\n\n{text}", encoding="utf-8")
    (reference / "agent.md").write_text(_agent(), encoding="utf-8")
    (reference / "plan.md").write_text("\n".join(_plan()), encoding="utf-8")
    (reference / "testbed.md").write_text("\n".join(_testbed()), encoding="utf-8")


def _within(text: str, source: Path) -> str:
    """Return a page whose links stay within the site.

    Raises:
        SystemExit: a link goes nowhere.

    """

    def link(found: re.Match[str]) -> str:
        target = (source.parent / found[2]).resolve()
        if target.is_relative_to(DOCS):
            return found[0]  # mkdocs looks whether it is there
        if not target.exists():
            sys.exit(f"{source}: the link to {found[2]} goes nowhere")
        place = f"`{target.relative_to(ROOT)}`"
        return place if found[1].strip("`") in str(target) else f"{found[1]} ({place})"

    return _LINK.sub(link, text)


def _section(one: Command) -> str:
    return f"## {one.name}\n\n```text\n{one.help()}\n```\n"


def _agent() -> str:
    told = (
        "The static binary for hosts without Python. The commands that `tailtrim` passes on to it"
        " have the same options here; these are the others.\n"
    )
    return "\n".join(["# tailtrim-agent\n", told, *map(_section, of_agent())])


#: Parts of a testbed file, and their models.
_OF_TESTBED = {
    "nodes.NAME": "SshHost",
    "nodes.NAME.ssh": "Ssh",
    "nodes.NAME.boot": "NodeBoot",
    "nodes.NAME.power, kind: redfish": "Redfish",
    "nodes.NAME.power, kind: ipmi": "Ipmi",
    "nodes.NAME.power, kind: outlet": "Outlet",
    "nodes.NAME.power, kind: person": "Person",
    "nodes.NAME.power.password": "Secret",
    "nodes.NAME.meter, kind: powercap": "Powercap",
    "nodes.NAME.meter, kind: hwmon": "Hwmon",
    "nodes.NAME.meter, kind: outlet": "OutletMeter",
    "nodes.NAME.meter, kind: ipmi": "IpmiMeter",
    "nodes.NAME.meter, kind: redfish": "RedfishMeter",
    "nodes.NAME.meter, kind: snmp": "SnmpMeter",
    "nodes.NAME.ports.NAME": "PortEntry",
    "roles.loadgen": "LoadgenRole",
    "roles.timestamper": "TimestamperRole",
    "roles.dut": "DutRole",
}


#: Parts of a plan, and their models.
_OF_PLAN = {
    "traffic": "Traffic",
    "boot": "Boot",
    "vm": "VirtualMachine",
    "limits": "Limits",
    "energy": "Energy",
    "dut.container": "ContainerSettings",
    "trim": "Trimming",
    "trim.candidates.NAME": "PlannedChange",
    "trim.host": "HostChanges",
    "trim.limits": "TrimLimits",
}


def _plan() -> Iterator[str]:
    """Write the keys of a plan as tables."""
    schema = Plan.model_json_schema()
    known: dict[str, Any] = schema["$defs"]
    yield "# Keys of a plan\n"
    yield (
        "`tailtrim run PLAN.yml` reads these keys. Values of `dut`, `traffic` and `boot` may be"
        " loop variables (`$name`). `schema/plan.json` is the same as a JSON Schema, by which"
        " editors complete and check plans.\n"
    )
    yield from _keys(schema)
    for key, name in _OF_PLAN.items():
        yield f"## {key}\n\n{known[name]['description']}\n"
        yield from _keys(known[name])
    yield "## dut\n\nThe device under test: a `preset` and its options.\n"
    for preset, reference in schema["properties"]["dut"]["discriminator"]["mapping"].items():
        device = known[reference.rpartition("/")[2]]
        yield f"### preset: {preset}\n\n{device['description']}\n"
        yield from _keys(device, without="preset")


def _testbed() -> Iterator[str]:
    """Write the keys of a testbed file as tables."""
    schema = TestbedDescription.model_json_schema()
    known: dict[str, Any] = schema["$defs"]
    yield "# Keys of a testbed file\n"
    yield (
        "`tailtrim testbed check FILE.yml` reads these keys, and a plan with `testbed: FILE.yml`."
        " `nodes` has nodes by name, and `roles` says who does what. `schema/testbed.json` is the"
        " same as a JSON Schema.\n"
    )
    yield from _keys(schema)
    for title, name in _OF_TESTBED.items():
        yield f"## {title}\n\n{known[name]['description'].partition(chr(10))[0]}\n"
        yield from _keys(known[name])


def _keys(model: dict[str, Any], without: str = "") -> Iterator[str]:
    keys = {key: told for key, told in model["properties"].items() if key != without}
    if not keys:
        yield "No options.\n"
        return
    yield "| key | value | default | meaning |\n|---|---|---|---|"
    required = model.get("required", ())
    for key, told in keys.items():
        default = "required" if key in required else _literal(told.get("default"))
        meaning = told.get("description", "See below." if "$ref" in told or key == "dut" else "")
        cells = (f"`{key}`", _values(told), default, meaning)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _values(told: dict[str, Any]) -> str:
    """Say which values a key takes."""
    if "anyOf" in told:
        kinds = [_values(one) for one in told["anyOf"] if one.get("type") != "null"]
        return ", ".join(dict.fromkeys(kinds))
    if "enum" in told or "const" in told:
        return ", ".join(map(_literal, told.get("enum", [told.get("const")])))
    if form := re.match(r"[a-z]+:[A-Z]+", told.get("description", "")):
        return f"`{form[0]}`"
    bounds = _bounds(told)
    names = {"object": "mapping", "string": "text", "boolean": "`true`, `false`"}
    kind = str(told.get("type", "mapping"))
    return f"{names.get(kind, kind)}{bounds}"


def _bounds(told: dict[str, Any]) -> str:
    low, high = told.get("minimum", told.get("exclusiveMinimum")), told.get("maximum")
    if low is None:
        return ""
    above = "exclusiveMinimum" in told
    if high is None:
        return f" (above {low:,})" if above else f" ({low:,} or more)"
    return f" ({'above ' * above}{low:,} to {high:,})"


def _literal(value: Any) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    main()
