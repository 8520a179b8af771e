"""Prompts: texts with places, each of which a user may replace; and the first message, filled in.

A place is `$name`, as in `string.Template`. A line whose places are all empty is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from cellblock.agent.context import preview
from cellblock.hosting import to_thread
from cellblock.limits import ExecutionLimits
from cellblock.network import destinations
from cellblock.session.session import AsyncSession
from cellblock.tools.registry import Registry

_NETWORK = "of the network there is only {}, by HTTP(S) through the proxy that the environment names"
_INSTALLED = "Packages can be imported; pip, run with subprocess, installs what an index that is listed has."
_MARK = """\
def mark_private(reason): ...                    # closes the network and what reaches outside, for good: call it before
                                                 # you read what nobody outside may have"""


@cache
def _shipped(name: str) -> str:
    return (resources.files("cellblock.agent") / "templates" / f"{name}.md").read_text(encoding="utf-8")


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

    def fill(self, name: str, **places: str | int) -> str:
        """A text with what belongs in its places."""
        template = getattr(self, name) or _shipped(name)
        lines = [_filled(line, places) for line in template.splitlines()]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if line is not None)).strip()


def _filled(line: str, places: Mapping[str, str | int]) -> str | None:
    named = Template(line).get_identifiers()
    if named and line.strip().startswith("$") and not any(str(places.get(name, "")) for name in named):
        return None
    return Template(line).safe_substitute({name: str(value) for name, value in places.items()})


def system(prompts: Prompts, registry: Registry, limits: ExecutionLimits, options: Mapping[str, Any]) -> str:
    """The text of the system: the rules of a session with these `options`, and what is registered for it."""
    policy, listed = registry.policy, destinations(options["network"] or ())
    modules = "the audited standard library" if policy is None or policy.modules is None else ", ".join(policy.modules)
    rules = prompts.fill(
        "rules_local" if policy is not None else "rules_isolated",
        seconds=f"{limits.timeout_seconds:g}",
        megabytes=limits.max_memory_mb,
        output=limits.max_output_bytes,
        modules=", ".join([modules, *(policy.trusted if policy is not None else ())]),
        network=_NETWORK.format(", ".join(map(str, listed))) if listed else "there is no network",
        packages=_INSTALLED if listed else "Packages can be imported, none can be installed.",
    )
    return prompts.fill(
        "system",
        rules=rules,
        private=_MARK if options["network"] or registry.reaches_outside else "",
        capabilities="\n".join(registry.stubs()),
        explore="" if options["trust_level"] == "local" else "; if a cell fails before commit(), all is undone",
        steps=limits.max_steps,
    )


async def handed_over(
    prompts: Prompts, session: AsyncSession, task: str, inputs: Mapping[str, object], files: Mapping[str, bytes]
) -> str:
    """Put into the session what comes with a task; the text that tells of both."""
    lines = []
    for name, value in inputs.items():
        await session.set(name, value)
    names = await session.names() if inputs else {}
    lines += [f"- {name}: {preview(names[name])}" for name in inputs if name in names]
    for path, content in files.items():
        await session.files.write(path, content)
        lines.append(f"- the file {path}, {len(content)} bytes")
    return prompts.fill("task", task=task, inputs="\n".join(["", "There are:", *lines]) if lines else "")


async def contents(files: Mapping[str, bytes | str | os.PathLike[str]]) -> dict[str, bytes]:
    """Contents of files given with a task; those given by a path are read from the host."""
    if not isinstance(files, Mapping):
        raise TypeError(f"files must map names to bytes or paths, not be a {type(files).__name__}")
    for path, given in files.items():
        if not isinstance(given, bytes | str | os.PathLike):
            raise TypeError(f"files[{path!r:.100}] must be bytes, or the path of a file, not {given!r:.100}")
    return {
        path: given if isinstance(given, bytes) else await to_thread.run_sync(Path(given).read_bytes)
        for path, given in files.items()
    }
