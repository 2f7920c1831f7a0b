"""YAML text as nodes with their lines, and as data, within bounds.

An alias stands for all that its anchor holds, so a few lines can stand for more than memory has
room for; and brackets within brackets end in the interpreter's own limit. Both are counted while
the text is read.
"""

from __future__ import annotations

from typing import Any, NoReturn

import yaml

#: The longest honest plan is one of 100,000 runs (``variables.MOST_RUNS``) that writes out each
#: value of its loop variable. All else that a plan can say is a few hundred keys and values.
MOST_NODES = 101_000
#: Forty bytes for each of these values, and the rest.
MOST_BYTES = 4 << 20
#: A plan is four deep: the plan, its loop, the list of a variable, a value.
MOST_DEPTH = 16
#: Of a whole number. Python writes none of more than 14,000, and 1,024 fit into no float.
_MOST_BITS = 1_000


class TooMuch(yaml.MarkedYAMLError):
    """The text is YAML, but more than a plan can be."""


def compose(text: str) -> yaml.Node | None:
    """Return the root of a document, ``None`` for an empty one.

    Raises:
        TooMuch: with its aliases written out, it has too many nodes or is too deep.
        yaml.YAMLError: it is not YAML.

    """
    root: yaml.Node | None = _Counting(text).get_single_node()
    return root


def data(root: yaml.Node) -> Any:
    """Return what a document says. Merge keys of the nodes are resolved in place.

    Raises:
        yaml.YAMLError: a value is not what its tag or its form says.

    """
    return _Values().construct_document(root)


class _Counting(yaml.SafeLoader):
    """Composes nodes as long as there are not too many."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = self._depth = self._deepest = 0
        #: Size of each complete anchor: its nodes, and its levels.
        self._sizes: dict[str, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor: str | None = event.anchor
        if isinstance(event, yaml.AliasEvent):
            if anchor in self.anchors and anchor not in self._sizes:
                self._refuse(event, f"alias *{anchor} is part of what it stands for")
            nodes, levels = self._sizes.get(str(anchor), (0, 0))
            self._count(event, nodes, levels)
            return super().compose_node(parent, index)
        nodes_before, deepest_before = self._nodes, self._deepest
        self._deepest = self._depth
        self._count(event, 1, 1)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if anchor is not None:
            self._sizes[anchor] = (self._nodes - nodes_before, self._deepest - self._depth)
        self._deepest = max(deepest_before, self._deepest)
        return node

    def _count(self, event: Any, nodes: int, levels: int) -> None:
        self._nodes += nodes
        self._deepest = max(self._deepest, self._depth + levels)
        if self._nodes > MOST_NODES:
            counted = "keys and values, aliases written out"
            self._refuse(event, f"more than {MOST_NODES:,} {counted}: too many for a plan")
        if self._deepest > MOST_DEPTH:
            self._refuse(event, f"nested more than {MOST_DEPTH} deep, aliases written out")

    def _refuse(self, event: Any, problem: str) -> NoReturn:
        raise TooMuch(problem=problem, problem_mark=event.start_mark)


class _Values(yaml.constructor.SafeConstructor):
    """Makes values of nodes; errors in values have a line, too."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Such as a day that no month has, or text where the tag says a number.
            raise _impossible(node) from error
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise _impossible(node)
        return value


def _impossible(node: yaml.Node) -> yaml.YAMLError:
    kind = node.tag.rpartition(":")[2]
    return yaml.constructor.ConstructorError(
        problem=f"{kind} cannot have this value", problem_mark=node.start_mark
    )
