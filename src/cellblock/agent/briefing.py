"""The first message to a model: how it works here and what it has, then its task and what came with that."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cellblock.agent.observing import preview
from cellblock.agent.prompts import Prompts
from cellblock.agent.workplace import Workplace
from cellblock.hosting import to_thread
from cellblock.network import destinations
from cellblock.session.session import AsyncSession

_NETWORK = "of the network there is only {}, by HTTP(S) through the proxy that the environment names"
_INSTALLED = "Packages can be imported; pip, run with subprocess, installs what an index that is listed has."
_MARK = """\
def mark_private(reason): ...                    # closes the network and what reaches outside, for good: call it before
                                                 # you read what nobody outside may have"""


def system(prompts: Prompts, workplace: Workplace) -> str:
    """The text of the system: the rules of a session, and what is registered for it."""
    options, limits, registry = workplace.options, workplace.limits, workplace.registry
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
    return {
        path: given if isinstance(given, bytes) else await to_thread.run_sync(Path(given).read_bytes)
        for path, given in files.items()
    }
