"""CloudFormation templates as YAML."""

from __future__ import annotations

from typing import Any

import typer
import yaml


def print_template(template: dict[str, Any]) -> None:
    """Print a template as YAML."""
    typer.echo(yaml.dump(template, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True), nl=False)


class _PlainDumper(yaml.SafeDumper):
    """Writes no aliases, which CloudFormation does not support."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write a text of several lines, such as a definition, as it is read."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_PlainDumper.add_representer(str, _write_text)
