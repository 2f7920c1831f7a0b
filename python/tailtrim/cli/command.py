"""How the help of one command looks: names as people type them, without types of Python."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose arguments are shown as ``NAME``, or ``[NAME]`` where they may be left out."""

    def collect_usage_pieces(self, context: Any) -> list[str]:
        """Return what stands behind the name in the usage line."""
        arguments = [p for p in self.get_params(context) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *(_name(p) if p.required else f"[{_name(p)}]" for p in arguments)]

    def format_options(self, context: Any, formatter: Any) -> None:
        """Write arguments and options."""
        arguments, options = [], []
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append((_name(parameter), record[1].removesuffix("  [required]")))
            else:
                options.append(record)
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _name(parameter: Any) -> str:
    shown = parameter.metavar or str(parameter.name).upper()
    return str(shown) + ("…" if parameter.nargs != 1 and not shown.endswith("…") else "")
