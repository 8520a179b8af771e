"""An interpreter whose cells run behind the guard: checked here, whoever sent them, and rewritten."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from cellblock.errors import SourceRejected
from cellblock.guard.audits import STANDARD, audit_of
from cellblock.guard.rehearsal import Rehearsal
from cellblock.guard.temporary import Unkept
from cellblock.guard.world import World
from cellblock.policy import Policy
from cellblock.wire.granted import policy_of
from cellblock.wire.messages import Failure
from cellblock.worker import failures, late
from cellblock.worker.integrity import ours
from cellblock.worker.interpreter import Interpreter, lines_of
from cellblock.worker.interrupts import Interrupted
from cellblock.worker.keeping import unkept as unkept_of


def prepare() -> None:
    """In the zygote: import the audits of the standard library."""
    with late.importing():
        for name in STANDARD:
            audit_of(name)


def lay(data: Mapping[str, Any]) -> Guarded:
    """In a worker, before any cell runs: the interpreter of a policy's cells. ImportError for what it cannot grant."""
    policy = policy_of(data)
    for name in policy.trusted:
        import_module(name)
    return Guarded(policy)


class Guarded(Interpreter):
    """One world. What cells bind stands in its globals, which are no module's."""

    __slots__ = ("_sources", "_world")

    rehearsal = Interpreter.rehearsal.replace("    import a\n", "")

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._world = World(policy, write=_write)
        self._world.rehearsal = _Outright()
        self._world.values["random"] = random._inst  # which is seeded with the session
        self._world.ending.begin()
        self._world.end_with(Interrupted)
        self._sources: dict[str, list[str]] = {}
        self.namespace = self._world.globals
        self.known = self._world.builtins

    def names(self) -> list[str]:
        return self._world.names()

    def scope(self, temporary: ModuleType, unkept: Unkept) -> None:
        self._world.scope(partial(unkept_of, self._world))

    def clear(self) -> None:
        self._world.clear()

    def offer(self, name: str, value: object) -> None:
        self._world.bind_builtin(name, value)

    def bound(self, name: str) -> object:
        if name not in self._world.names():
            raise KeyError(name)
        return self.namespace[name]

    def _compile(self, source: str, filename: str) -> list[CodeType]:
        source, lines = ours(lines_of, source)
        self._sources[filename] = [line[:-1] for line in lines]
        return self._world.run(self._world.cell(source, filename))

    def describe(self, error: BaseException, max_text: int) -> Failure:
        if isinstance(error, SourceRejected):
            return failures.refused(error)
        return failures.describe(error, self._sources, max_text)


class _Outright(Rehearsal):
    """Tries nothing beforehand: what takes too long is for the walls to end, whatever it is."""

    def call(self, name: str, source: str | bytes, flags: int, text: str | bytes, *given: Any) -> Any:
        return (0, True) if name == "finditer" else None


def _write(stream: str, text: str) -> None:
    getattr(sys, stream).write(text)
