"""A policy laid over a worker: its cells run behind the guard, inside the walls.

The guard and its audits are imported in the zygote, of sessions with a policy alone, before any cell runs. They are the
runner's, and stand in no table that an import looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from cellblock.worker.integrity import put_back
from cellblock.worker.interpreter import Interpreter

_runner: list[ModuleType] = []
_made: list[Callable[[Mapping[str, Any], list[ModuleType]], Interpreter]] = []


def load(runner: list[ModuleType]) -> list[ModuleType]:
    """In the zygote: import the guard, and the audits of what is there to be granted. All modules of the runner's."""
    with put_back(runner) as added:
        from cellblock.worker import guarded

        guarded.prepare()
    _made.append(guarded.lay)
    _runner.extend((*runner, *added))
    return list(_runner)


def lay(policy: Mapping[str, Any]) -> Interpreter:
    """In a worker, before any cell runs: the interpreter of a policy's cells. ImportError for what it cannot grant."""
    return _made[0](policy, _runner)
