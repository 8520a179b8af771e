"""Executors: the places where workers run, and the walls around them.

`Executor`, `ExecutionResult` and the classes that run code over a dict are of sessions, a layer above; here they can be
had by these names, which load on first use.
"""

from __future__ import annotations

_OF_SESSIONS = ("Executor", "ExecutionResult", "LocalExecutor", "SubprocessExecutor", "DockerExecutor")


def __getattr__(name: str) -> object:
    if name not in _OF_SESSIONS:
        raise AttributeError(f"module 'cellblock.executors' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("cellblock.session.executors"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_OF_SESSIONS])
