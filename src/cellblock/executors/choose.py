"""Which launcher a trust level means on this machine."""

from __future__ import annotations

from cellblock.executors.protocol import Launcher


def launcher_for(trust_level: str) -> Launcher:
    """The launcher of a trust level; ValueError for one that does not exist."""
    if trust_level == "isolated":
        from cellblock.executors.process.launcher import ProcessLauncher

        return ProcessLauncher()
    raise ValueError(f"trust_level must be 'isolated', not {trust_level!r}")
