"""What a session that lasts was opened with, as a store keeps it; what its opener says anew comes before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from cellblock.container import Container
from cellblock.errors import StoreError
from cellblock.executors.protocol import KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.network import destinations


def to_plain(spec: KernelSpec, trust_level: str, walls: str) -> dict[str, Any]:
    """Settings as JSON data."""
    return {
        "trust_level": trust_level,
        "walls": walls,
        "seed": str(spec.seed),
        "python": spec.python,
        "preload": list(spec.preload),
        "limits": asdict(spec.limits),
        "mounts": dict(spec.mounts),
        "network": [str(one) for one in spec.network],
        "container": None if spec.container is None else asdict(spec.container),
    }


def merged(stored: Mapping[str, Any], given: Mapping[str, Any], said: frozenset[str]) -> dict[str, Any]:
    """The settings to go on with: of what was `said` now the given ones, of the rest those that were stored."""
    return {name: value if name in said else stored.get(name, value) for name, value in given.items()}


def to_spec(plain: Mapping[str, Any], given: KernelSpec) -> KernelSpec:
    """The given spec with these settings; `StoreError` where they are damaged."""
    try:
        return replace(
            given,
            limits=ExecutionLimits(**plain["limits"]),
            preload=tuple(map(str, plain["preload"])),
            python=None if plain["python"] is None else str(plain["python"]),
            seed=int(plain["seed"]),
            mounts=tuple((str(name), str(path)) for name, path in plain["mounts"].items()),
            network=destinations(plain["network"]),
            container=None if plain["container"] is None else Container(**plain["container"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(
            f"the settings of the session are damaged: {error}", hint="open it with another name"
        ) from None
