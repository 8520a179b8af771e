"""Settings of a session as a store or a log keeps them, and the part of them that an opener takes from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, get_args

from cellblock.container import Container
from cellblock.documents import reading
from cellblock.errors import StoreError
from cellblock.executors.protocol import KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.network import destinations
from cellblock.walls import TrustLevel, Walls

_FROM_WEAK = {"trust_level": get_args(TrustLevel), "walls": get_args(Walls)[::-1]}
_NOTHING: tuple[object, ...] = (None, [], {}, asdict(Container()))
_OF_AGENTS = "max_steps"
"""A limit that bounds nothing of the machine's."""


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


def narrowed(
    document: Mapping[str, Any], given: Mapping[str, Any], said: frozenset[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Security border: the settings to go on with, and those of the document that were left out, each as "name=value".

    Whoever can write the document (a row of a store, a log) must not decide what the host executes and what cells
    reach. `given` are the caller's settings, of which those `said` were no defaults and count alone. Of the others
    the document's level and walls count if they are stronger, and limits that are lower; and its seed always: cells
    that are run again are to draw what they drew.
    """
    settings, left_out = dict(given), list[str]()
    for name, value in document.items():
        if name not in given:
            continue
        if name == "seed":
            settings[name] = value
        elif name in said or value == given[name] or value in _NOTHING:
            continue
        elif name == "limits" and isinstance(value, Mapping):
            settings[name], above = _lowered(value, given[name])
            left_out += map(_told, above, above.values())
        elif name == "limits" or _is_stronger(name, value, given[name]):
            settings[name] = value
        else:
            left_out.append(_told(name, value))
    return settings, tuple(left_out)


def most_limits(document: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The highest limits that a session was opened with, these included, and those that are lower now, as above."""
    before = document.get("most_limits", document.get("limits"))
    above = _lowered(before, given)[1] if isinstance(before, Mapping) else {}
    return {**given, **above}, tuple(map(_told, above, above.values()))


def _is_stronger(name: str, value: object, given: str) -> bool:
    order = _FROM_WEAK.get(name, ())
    return value in order and order.index(value) > order.index(given)


def _lowered(document: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Limits as low as both say, and those of the document that are above the given ones; what is no limit at all stays
    for who checks them."""
    limits, above = dict(given), {}
    for name, value in document.items():
        bound = given["max_memory_mb"] if name == "max_checkpoint_mb" and given[name] is None else given.get(name)
        if name == _OF_AGENTS or bound is None or not isinstance(value, int | float) or value < bound:
            limits[name] = given.get(name) if value is None else value
        elif value > bound:
            above[name] = value
    return limits, above


def _told(name: str, value: object) -> str:
    return f"{name}={value!r:.300}"


def to_spec(plain: Mapping[str, Any], given: KernelSpec) -> KernelSpec:
    """The given spec with these settings; `StoreError` where they are damaged."""
    hint = "give the arguments that it names, or open it with another name"
    with reading("the settings of the session are", StoreError, hint=hint):
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
