"""Prompts: texts with places, each of which a user may replace.

A place is `$name`, as in `string.Template`. A line whose places are all empty is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from string import Template


@cache
def _shipped(name: str) -> str:
    return (files("cellblock.agent") / "templates" / f"{name}.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The texts of an agent; one that is "" is the text that ships, in `cellblock/agent/templates`.

    | text | its places |
    |---|---|
    | system | rules, capabilities, explore, private, steps |
    | rules_isolated, rules_local | seconds, megabytes, output, modules, network, packages |
    | task | task, inputs |
    | observation | outcome, output, state, remarks, left |
    | verify | answer, task |
    """

    system: str = ""
    rules_isolated: str = ""
    rules_local: str = ""
    task: str = ""
    observation: str = ""
    verify: str = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            text, known = getattr(self, one.name), set(Template(_shipped(one.name)).get_identifiers())
            if one.name.startswith("rules"):
                known = {"seconds", "megabytes", "output", "modules", "network", "packages"}
            unknown = set(Template(text).get_identifiers()) - known
            if unknown:
                raise ValueError(f"{one.name} has no place ${sorted(unknown)[0]}; it has {', '.join(sorted(known))}")

    def fill(self, name: str, **places: object) -> str:
        """A text with what belongs in its places."""
        template = getattr(self, name) or _shipped(name)
        lines = [_filled(line, places) for line in template.splitlines()]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if line is not None)).strip()


def _filled(line: str, places: dict[str, object]) -> str | None:
    named = Template(line).get_identifiers()
    if named and line.strip().startswith("$") and not any(str(places.get(name, "")) for name in named):
        return None
    return Template(line).safe_substitute({name: str(value) for name, value in places.items()})
