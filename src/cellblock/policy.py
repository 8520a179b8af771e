"""Policies, which say what a session's code may reach: functions, classes and modules of the host, and the parts of
the language.

A policy is a value. `fn`, `cls` and `module` return a new one with one more grant:

    policy = Policy(modules=["math", "json"]).fn(search).cls(Account, exclude=["close"]).module(geo, include=["area*"])

Patterns are those of `fnmatch`, matched against names of members. Names that begin with an underscore
are never granted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any, Never, Self

FEATURES = ("inheritance", "decorators", "generators", "async", "global", "exceptions")
"""The parts of the language that can be switched off."""
RARE = ("metaclasses", "hooks")
"""The parts that are off unless a policy names them: classes of classes, and what answers for `isinstance`."""

UNTRUSTED = sys.stdlib_module_names | {"__main__", "cellblock"}
"""Modules that no policy trusts whole: the guard is made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Granted names of an object: those that `include` matches and `exclude` does not."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def allow(self, name: str) -> bool:
        """True if a member of this name is granted; never one that begins with an underscore."""
        return (
            not name.startswith("_")
            and any(fnmatchcase(name, pattern) for pattern in self.include)
            and not any(fnmatchcase(name, pattern) for pattern in self.exclude)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionGrant:
    """A function of the host, called by `name`."""

    name: str
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassGrant:
    """A class of the host: members that are read on instances and on the class, attributes that may be set.

    `statics` are those of `members` that are reached on the class itself.
    """

    cls: type
    name: str
    members: Members = Members()
    statics: Members = Members()
    writes: Members = Members(include=())
    constructable: bool = True
    subclassable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleGrant:
    """A module of the host, imported as `name`. Modules that are its members are not part of it."""

    module: ModuleType
    name: str
    members: Members = Members()
    replaced: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """Grants of what code may reach. `modules` are names of audited modules of the standard library; None is all of
    them."""

    modules: tuple[str, ...] | None
    trusted: tuple[str, ...]
    functions: tuple[FunctionGrant, ...]
    classes: tuple[ClassGrant, ...]
    granted: tuple[ModuleGrant, ...]
    without: frozenset[str]
    also: frozenset[str]
    format_index: bool

    def __init__(
        self,
        *,
        modules: Iterable[str] | None = None,
        trusted: Iterable[str] = (),
        without: Iterable[str] = (),
        also: Iterable[str] = (),
        format_index: bool = True,
        **unknown: Never,
    ) -> None:
        """`trusted` are packages that run unguarded, with those they need: this guards against mistakes only.

        `also` are those of `RARE` to have: "metaclasses", and "hooks", which are `__subclasshook__` and the like, and
        registering with abstract classes. `without` are `FEATURES` to refuse. `format_index`: whether `str.format`
        fields may have `[…]`.
        """
        if unknown:
            raise TypeError(f"Policy() takes no {', '.join(unknown)}=: packages are granted by trusted=[…]")
        for argument, given, known in (("without", without, FEATURES), ("also", also, RARE)):
            if odd := sorted(set(given) - set(known)):
                raise ValueError(f"{argument}= takes {', '.join(known)}, not {', '.join(odd)}")
        if isinstance(modules, str) or isinstance(trusted, str):
            raise TypeError("modules= and trusted= take names, not one text")
        put = object.__setattr__
        put(self, "modules", None if modules is None else tuple(modules))
        put(self, "trusted", tuple(map(_package, trusted)))
        put(self, "functions", ())
        put(self, "classes", ())
        put(self, "granted", ())
        put(self, "without", frozenset(without))
        put(self, "also", frozenset(also))
        put(self, "format_index", format_index)

    @classmethod
    def strict(cls) -> Self:
        """A policy for a smaller language: no inheritance, decorators, generators, async code or `global`."""
        return cls(without=[feature for feature in FEATURES if feature != "exceptions"])

    @property
    def off(self) -> frozenset[str]:
        """The parts of the language that code has not: of `FEATURES` and of `RARE`."""
        return self.without | (frozenset(RARE) - self.also)

    def fn(self, function: Callable[..., Any], *, name: str | None = None) -> Self:
        """Grant a function, by its own name or another."""
        grant = FunctionGrant(name=_name(name or function.__name__), function=function)
        return self._with(functions=(*self.functions, grant))

    def cls(
        self,
        cls: type,
        *,
        name: str | None = None,
        include: Iterable[str] = ("*",),
        exclude: Iterable[str] = (),
        statics: Iterable[str] = ("*",),
        writes: Iterable[str] = (),
        constructable: bool = True,
        subclassable: bool = False,
    ) -> Self:
        """Grant a class and its instances. `writes` are patterns of attributes that code may set."""
        if not isinstance(cls, type):
            raise TypeError(f"a class is registered, not {cls!r:.100}")
        members = Members(include=_patterns(include), exclude=_patterns(exclude))
        grant = ClassGrant(
            cls=cls,
            name=_name(name or cls.__name__),
            members=members,
            statics=replace(members, include=_patterns(statics)) if tuple(statics) != ("*",) else members,
            writes=Members(include=_patterns(writes)),
            constructable=constructable,
            subclassable=subclassable,
        )
        return self._with(classes=(*self.classes, grant))

    def module(
        self,
        module: ModuleType,
        *,
        name: str | None = None,
        include: Iterable[str] = ("*",),
        exclude: Iterable[str] = (),
        replaced: Mapping[str, Any] | None = None,
    ) -> Self:
        """Grant a module's members, imported by its own name or another. `replaced`: stand-ins for members, by name."""
        grant = ModuleGrant(
            module=module,
            name=name or module.__name__,
            members=Members(include=_patterns(include), exclude=_patterns(exclude)),
            replaced=dict(replaced or {}),
        )
        return self._with(granted=(*self.granted, grant))

    def settings(self) -> dict[str, object]:
        """All but the grants of what is the host's, as plain data."""
        return {
            "modules": None if self.modules is None else list(self.modules),
            "trusted": list(self.trusted),
            "without": sorted(self.without),
            "also": sorted(self.also),
            "format_index": self.format_index,
        }

    def _with(self, **changes: object) -> Self:
        made = object.__new__(type(self))
        for name in Policy.__slots__:
            object.__setattr__(made, name, changes.get(name, getattr(self, name)))
        return made


def _patterns(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _package(name: str) -> str:
    if not name.isidentifier() or name in UNTRUSTED:
        raise ValueError(f"trusted= takes names of packages, not {name!r}: name modules in modules=, or grant them")
    return name


def _name(name: str) -> str:
    if not name.isidentifier() or name.startswith("__"):
        raise ValueError(f"{name!r} is not a name that code can use: give name=…")
    return name
