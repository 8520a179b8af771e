"""A policy as plain data, for the worker of a session: names of modules, classes and features, and patterns.

What is the host's alone is not sent. A granted function is called on the host, as a tool. Of a granted class or module
goes the name, by which the session's own interpreter imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any

from cellblock.errors import CellblockError
from cellblock.policy import ClassGrant, Members, ModuleGrant, Policy

_AS_TOOLS = "grant functions instead, policy.fn(f), which are called on the host"


def as_data(policy: Policy) -> dict[str, object]:
    """A policy as data for a worker. CellblockError for a grant that has no name inside a session."""
    return {
        **policy.settings(),
        "classes": [_class(grant) for grant in policy.classes],
        "granted": [_module(grant) for grant in policy.granted],
    }


def policy_of(data: Mapping[str, Any]) -> Policy:
    """The policy, inside a session: imports what it names. ImportError for what cannot be."""
    policy = Policy(
        modules=data["modules"],
        trusted=data["trusted"],
        without=data["without"],
        also=data["also"],
        format_index=data["format_index"],
    )
    for one in data["classes"]:
        policy = policy.cls(
            _found(one["module"], one["path"]),
            name=one["name"],
            include=one["members"][0],
            exclude=one["members"][1],
            statics=one["statics"],
            writes=one["writes"],
            constructable=one["constructable"],
            subclassable=one["subclassable"],
        )
    for one in data["granted"]:
        module = import_module(one["module"])
        policy = policy.module(module, name=one["name"], include=one["members"][0], exclude=one["members"][1])
    return policy


def _class(grant: ClassGrant) -> dict[str, object]:
    kind = grant.cls
    module = sys.modules.get(kind.__module__)
    try:
        is_named = module is not None and attrgetter(kind.__qualname__)(module) is kind
    except AttributeError:
        is_named = False
    if not is_named or kind.__module__ == "__main__":
        raise _unnamed(f"the class {kind.__qualname__}", kind.__module__, "put it at the top of a module of its own")
    return {
        "module": kind.__module__,
        "path": kind.__qualname__,
        "name": grant.name,
        "members": _patterns(grant.members),
        "statics": grant.statics.include,
        "writes": grant.writes.include,
        "constructable": grant.constructable,
        "subclassable": grant.subclassable,
    }


def _module(grant: ModuleGrant) -> dict[str, object]:
    name = grant.module.__name__
    if name == "__main__" or sys.modules.get(name) is not grant.module:
        raise _unnamed(f"the module {name}", name, "put what it holds into a module of its own")
    if grant.replaced:
        replaced = ", ".join(sorted(grant.replaced))
        raise CellblockError(
            f"the policy replaces members of {name} by objects of the host, which stay outside: {replaced}",
            hint=f'leave replaced= out, use trust_level="local", or {_AS_TOOLS}',
        )
    return {"module": name, "name": grant.name, "members": _patterns(grant.members)}


def _patterns(members: Members) -> list[tuple[str, ...]]:
    return [members.include, members.exclude]


def _unnamed(what: str, module: str, remedy: str) -> CellblockError:
    return CellblockError(
        f"the policy grants {what}, of {module}, which a session's interpreter cannot import",
        hint=f'{remedy} that is installed for the session, use trust_level="local", or {_AS_TOOLS}',
    )


def _found(module: str, path: str) -> type:
    found = import_module(module)
    try:
        kind = attrgetter(path)(found)
    except AttributeError:
        raise ImportError(f"{module} has no {path}", name=module) from None
    if not isinstance(kind, type):
        raise ImportError(f"{module}.{path} is no class", name=module)
    return kind
