"""A testbed as text and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.testbed_file import Place, TestbedDescription

_BOX, _GAP, _ROW, _HEAD, _MARGIN = 220, 140, 26, 54, 20
_STYLE = (
    ":root{background:#fff}text{font-family:sans-serif;font-size:13px;fill:#222}"
    ".node{fill:#fff;stroke:#555;stroke-width:1.5}.name{font-weight:bold}"
    ".role,.interface{fill:#666;font-size:11px}.cable{fill:none;stroke:#0072b2;stroke-width:2}"
    ".port{fill:#0072b2}"
    "@media(prefers-color-scheme:dark){:root{background:#14171a}"
    "text{fill:#e8eaed}.role,.interface{fill:#a3abb4}.node{fill:#1d2125;stroke:#a3abb4}"
    ".cable{stroke:#6cbcf0}.port{fill:#6cbcf0}}"
)


def text(description: TestbedDescription) -> str:
    """Return a testbed as lines: its nodes, and their ports with what they are cabled to."""
    far = _far(description)
    uses = {place: name for name, place in description.roles.ports.items()}
    lines = []
    for node, entry in description.nodes.items():
        roles = ", ".join(_roles(description, node)) or "no role"
        lines.append(f"{node} ({roles}): {entry.address}")
        for name, port in entry.ports.items():
            place = (node, name)
            cable = ".".join(far[place]) if place in far else "no cable"
            use = f"  [{uses[place]}]" if place in uses else ""
            mac = f" {port.mac}" if port.mac else ""
            lines.append(f"  {name:<10} {port.interface}{mac}  --  {cable}{use}")
    inline = description.inline
    lines.append(
        "The taps get copies of what passes."
        if inline is None
        else "The timestamper is inline: it passes on what its taps receive."
    )
    return "\n".join(lines)


def svg(description: TestbedDescription, *, styled: bool = True) -> str:
    """Return a testbed as a picture, an SVG document, which is dark where its viewer is.

    Args:
        description: the testbed.
        styled: whether it brings its colours; a page that it is a part of has its own.

    """
    nodes = sorted(description.nodes, key=lambda node: _order(description, node))
    rows = max(len(description.nodes[node].ports) for node in nodes)
    width = 2 * _MARGIN + len(nodes) * _BOX + (len(nodes) - 1) * _GAP
    height = 2 * _MARGIN + _HEAD + rows * _ROW + 2 * _ROW
    shapes = [
        shape
        for one, other in description.cables
        for shape in _cable(nodes, one, other, description)
    ]
    for column, node in enumerate(nodes):
        shapes += _node(description, node, _left(column))
    style = f"<style>{_STYLE}</style>" if styled else ""
    return (
        f'<svg class="testbed" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">'
        f"<title>Testbed</title>{style}{''.join(shapes)}</svg>\n"
    )


def _node(description: TestbedDescription, node: str, left: int) -> list[str]:
    entry = description.nodes[node]
    uses = {place: name for name, place in description.roles.ports.items()}
    height = _HEAD + len(entry.ports) * _ROW + 8
    roles = ", ".join(_roles(description, node))
    shapes = [
        f'<rect class="node" x="{left}" y="{_MARGIN}" width="{_BOX}" height="{height}" rx="6"/>',
        _words(left + 12, _MARGIN + 22, "name", node),
        _words(left + 12, _MARGIN + 40, "role", f"{roles} {entry.address}".strip()),
    ]
    for row, (name, port) in enumerate(entry.ports.items()):
        use = f" ({uses[node, name]})" if (node, name) in uses else ""
        y = _height(row)
        shapes.append(_words(left + 12, y + 4, "", f"{name}{use}"))
        shapes.append(_words(left + 130, y + 4, "interface", port.interface))
    return shapes


def _words(x: int, y: int, kind: str, said: str) -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(said)}</text>'


def _cable(
    nodes: list[str], one: Place, other: Place, description: TestbedDescription
) -> list[str]:
    """Draw a cable between the sides of two boxes that face each other."""
    (near, first), (far, second) = sorted((one, other), key=lambda end: nodes.index(end[0]))
    columns = nodes.index(near), nodes.index(far)
    rows = [
        list(description.nodes[node].ports).index(name)
        for node, name in ((near, first), (far, second))
    ]
    x = _left(columns[0]) + _BOX, _left(columns[1]) + (_BOX if columns[0] == columns[1] else 0)
    y = _height(rows[0]), _height(rows[1])
    # One that passes a node goes below it.
    bend = _GAP // 2 if columns[1] - columns[0] <= 1 else _GAP
    back = bend if columns[0] == columns[1] else -bend
    path = f"M{x[0]} {y[0]} C{x[0] + bend} {y[0]} {x[1] + back} {y[1]} {x[1]} {y[1]}"
    ends = [f'<circle class="port" cx="{x[end]}" cy="{y[end]}" r="4"/>' for end in (0, 1)]
    return [f'<path class="cable" d="{path}"/>', *ends]


def _left(column: int) -> int:
    return _MARGIN + column * (_BOX + _GAP)


def _height(row: int) -> int:
    return _MARGIN + _HEAD + row * _ROW + _ROW // 2


def _roles(description: TestbedDescription, node: str) -> list[str]:
    return [
        role
        for role in ("loadgen", "timestamper", "dut")
        if getattr(description.roles, role).node == node
    ]


def _order(description: TestbedDescription, node: str) -> int:
    roles = _roles(description, node)
    return ["loadgen", "timestamper", "dut"].index(roles[0]) if roles else len(description.nodes)


def _far(description: TestbedDescription) -> dict[Place, Place]:
    return {
        end: far for one, other in description.cables for end, far in ((one, other), (other, one))
    }
