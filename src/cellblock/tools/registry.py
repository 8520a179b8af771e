"""Capabilities of one agent: functions, classes and modules of the host, for each trust level in its own way.

At `local` all of it is granted by a policy: functions get the cells' own objects, instances stay live. At the other
levels functions are called over the wall, with copies; a class is found again by its module inside, and so is a module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from copy import copy
from types import ModuleType
from typing import Any

from cellblock.policy import ClassGrant, ModuleGrant, Policy
from cellblock.tools.stubs import class_stub, function_stub, module_stub
from cellblock.tools.tool import Visibility, about, listed, require_callable_name


class Registry:
    """The capabilities of one agent, in the order in which they were registered."""

    def __init__(
        self,
        tools: Iterable[Callable[..., Any]],
        *,
        guarded: bool,
        policy: Policy | None,
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        """`guarded`: whether cells run behind the guard, by `policy` or else by one that grants what is registered.

        `reserved` are names that nothing is registered under.
        """
        if not isinstance(policy, Policy | None):
            raise TypeError(f"policy must be a Policy, not {type(policy).__name__}")
        self._reserved = reserved
        self._stubs: dict[str, str] = {}
        self.policy = (policy or Policy()) if guarded else None
        self.tools: list[Callable[..., Any]] = []
        """Functions that are called over the wall."""
        self.classes: dict[str, type] = {}
        """Classes that a session is to find by its own imports, by the names that they are bound to."""
        if self.policy is not None:
            self._tell_of(self.policy)
        for tool in listed(tools):
            self.tool(tool)

    def under(self, policy: Policy) -> Registry:
        """The same capabilities under another policy."""
        other = copy(self)
        other.policy = policy
        return other

    def tool(self, function: Any) -> None:
        """Register a function that is called with copies, whatever the level."""
        self._add(function.__name__, function_stub(function, about(function).visibility))
        self.tools.append(function)

    def fn(self, function: Callable[..., Any], *, name: str | None, visibility: Visibility) -> None:
        """Register a function, which behind the guard of `local` gets the cells' own objects."""
        called: object = name or getattr(function, "__name__", None)
        if not isinstance(called, str):
            raise TypeError(f"{function!r:.100} has no name: give name=")
        require_callable_name(called)
        stub = function_stub(function, visibility, name=called)
        if self.policy is None:
            if called != getattr(function, "__name__", None):
                raise ValueError(
                    "only the guard can give a function another name: give the agent a policy, or wrap the function"
                )
            self._add(called, stub)
            self.tools.append(function)
        else:
            granted = self.policy.fn(function, name=name)
            self._add(called, stub)
            self.policy = granted

    def cls(self, cls: type, *, name: str | None, visibility: Visibility, **grant: Any) -> None:
        """Register a class, granted member by member."""
        one = Policy().cls(cls, name=name, **grant).classes[-1]
        if self.policy is None:
            self._require_whole(one, Policy().cls(cls, name=name).classes[-1])
        self._add(one.name, class_stub(cls, visibility, name=one.name, members=one.members))
        if self.policy is None:
            self.classes[one.name] = cls
        else:
            self.policy = self.policy.cls(cls, name=name, **grant)

    def module(self, module: ModuleType, *, name: str | None, visibility: Visibility, **grant: Any) -> None:
        """Register a module, granted member by member."""
        if not inspect.ismodule(module):
            raise TypeError(f"module() takes a module, not {module!r:.100}")
        one = Policy().module(module, name=name, **grant).granted[-1]
        if self.policy is None:
            self._require_whole(one, Policy().module(module).granted[-1])
        self._add(one.name, module_stub(module, visibility, name=one.name, members=one.members))
        if self.policy is not None:
            self.policy = self.policy.module(module, name=name, **grant)

    def _tell_of(self, policy: Policy) -> None:
        """Take up what a policy grants already."""
        for function in policy.functions:
            stub = function_stub(function.function, about(function.function).visibility, name=function.name)
            self._add(function.name, stub)
        for one in policy.classes:
            self._add(one.name, class_stub(one.cls, name=one.name, members=one.members))
        for module in policy.granted:
            self._add(module.name, module_stub(module.module, name=module.name, members=module.members))

    def stubs(self) -> list[str]:
        """Stubs for the model, a piece of Python for each that is not hidden."""
        return [stub for stub in self._stubs.values() if stub]

    @property
    def reaches_outside(self) -> bool:
        """True if a session that holds private data is refused one of the functions."""
        granted = () if self.policy is None else self.policy.functions
        return any(about(one).outward for one in (*self.tools, *(grant.function for grant in granted)))

    @property
    def names(self) -> frozenset[str]:
        """The names that are taken."""
        return frozenset(self._stubs)

    def _add(self, name: str, stub: str) -> None:
        if name in self._reserved:
            raise ValueError(f"{name!r} is a name of the agent's own: register it under another one")
        if name in self._stubs:
            raise ValueError(f"{name!r} is registered twice")
        self._stubs[name] = stub

    @staticmethod
    def _require_whole(given: ClassGrant | ModuleGrant, whole: ClassGrant | ModuleGrant) -> None:
        if given != whole:
            raise ValueError(
                f"parts of {given.name} can be granted where the guard stands: "
                'give the agent policy=Policy(), or trust_level="local"'
            )
