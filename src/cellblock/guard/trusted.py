"""Packages that a policy trusts: they run unguarded, and cells use all that is public in them.

A package is trusted with the packages that it declares to need: a table of pandas is made of arrays of numpy. Names
that begin with an underscore stay refused, and so does what a trusted module holds of others: `pandas.io.common.os`.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from functools import cache, wraps
from importlib import metadata
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import module_of
from cellblock.guard.refusal import denied
from cellblock.guard.tables import Matching, TypeAudit
from cellblock.policy import UNTRUSTED, Members, Policy

if TYPE_CHECKING:
    from cellblock.guard.world import World

_PUBLIC = Matching(Members())
_OF_MODULES = frozenset(("__all__", "__version__", "__file__"))
_DRAWS = {"sample": "random_sample", "ranf": "random_sample"}
"""Other names in `numpy.random` of what its generators have."""
_HAVE_HOMES = (types.FunctionType, types.BuiltinFunctionType)
_REQUIRED = re.compile(r"[\w.-]+")


class Rows(dict[type, TypeAudit]):
    """The rows of a world's types. A type that has none yet is looked for among those of trusted packages."""

    __slots__ = ("_find",)

    def __init__(self, rows: dict[type, TypeAudit], find: Callable[[type], None]) -> None:
        super().__init__(rows)
        self._find = find

    def get(self, kind: type, default: Any = None) -> Any:
        if not dict.__contains__(self, kind):
            self._find(kind)
        return dict.get(self, kind, default)

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and self.get(kind) is not None


class Trusted:
    """The trusted packages of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._looked: set[str] = set()

    @property
    def _packages(self) -> frozenset[str]:
        return packages(self._world.policy.trusted)

    def __contains__(self, module: object) -> bool:
        """True if a module of this name belongs to a trusted package."""
        return type(module) is str and module.partition(".")[0] in self._packages

    def shows(self, function: types.FunctionType, name: str) -> bool:
        """True if an attribute that was set on a function is one of a trusted package's."""
        return function.__module__ in self and name in _PUBLIC

    def find(self, kind: type) -> None:
        """Grant a type that code has met, where its package is trusted, or its module is one that is granted."""
        home = module_of(kind)
        if home in self and not self._world.classes.own(kind):
            self._world.grant_types({kind: _row(kind)})
        elif home not in self._looked and home not in self:
            self._looked.add(home)
            self._world.importer.find(home)

    def members(self, real: types.ModuleType) -> dict[str, object]:
        """The members of a module's stand-in from the first. The rest is found when it is asked for."""
        homes = {None, *self._packages}
        held = {
            name: self.member(real, name)
            for name, value in list(vars(real).items())
            if _is_shown(name) and not isinstance(value, types.ModuleType) and _home(value) in homes
        }
        if "__all__" in held:
            held["__all__"] = tuple(name for name in real.__all__ if name in _PUBLIC)
        return held

    def member(self, real: types.ModuleType, name: str) -> object:
        """Give what a module of a trusted package has under a name; AttributeError for what is not granted."""
        if not _is_shown(name):
            raise denied(f"attribute {name!r} of module {real.__name__!r} is not granted")
        value = getattr(real, name)
        if isinstance(value, types.ModuleType):
            return self._world.importer.of(value)
        if (home := _home(value)) is not None and home not in self._packages:
            return self._elsewhere(real, name, value.__module__, value.__name__)
        if real is sys.modules.get("numpy") and name in ("empty", "empty_like"):
            return _zeroed(value, real.zeros)
        drawn = _DRAWS.get(name, name)
        if real is sys.modules.get("numpy.random") and hasattr(real.RandomState, drawn):
            return getattr(self._generator(real.RandomState), drawn)
        return self._world.in_place_of(value)

    def _elsewhere(self, real: types.ModuleType, name: str, home: str, called: str) -> object:
        """Give what a trusted module took from another: as that is granted, if it is."""
        if home == "builtins":
            held = self._world.builtins
        else:
            found = self._world.importer.find(home)
            held = {} if found is None else vars(found)
        if called not in held:
            raise denied(f"{name!r} of module {real.__name__!r} belongs to {home}, which is not granted", "import")
        return held[called]

    def _generator(self, kind: Any) -> Any:
        """The session's own generator, in place of the process's behind functions of `numpy.random`."""
        found = self._world.values.get("numpy.random")
        if found is None:
            found = self._world.values["numpy.random"] = kind(self._world.values["random"].getrandbits(32))
        return found


def _is_shown(name: str) -> bool:
    return name in _PUBLIC or name in _OF_MODULES


def _home(value: object) -> str | None:
    """The package that a class or function belongs to, where it tells."""
    home = module_of(value) if isinstance(value, type) else value.__module__ if type(value) in _HAVE_HOMES else None
    return home.partition(".")[0] if type(home) is str else None


def _zeroed(function: Callable[..., Any], zeros: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes arrays, which show nothing of the memory that another part of the program gave back."""

    @wraps(function)
    def zeroed(*given: Any, **named: Any) -> Any:
        made = function(*given, **named)
        if not made.dtype.hasobject:
            made[...] = zeros((), made.dtype)
        return made

    return zeroed


def _row(kind: type) -> TypeAudit:
    return TypeAudit(
        type=kind,
        reads=_PUBLIC,  # type: ignore[arg-type]
        statics=_PUBLIC,  # type: ignore[arg-type]
        writes=_PUBLIC,  # type: ignore[arg-type]
        subclassable=True,
        trusted=True,
    )


def trusts(policy: Policy, module: str) -> bool:
    """True if a policy grants the import of a module as part of a trusted package. Imports nothing."""
    top, *rest = module.split(".")
    return top in packages(policy.trusted) and not any(part.startswith("_") for part in rest)


@cache
def packages(named: tuple[str, ...]) -> frozenset[str]:
    """Packages that were named, and those that belong to their distributions or are declared as needed."""
    found = set(named)
    for name in named:
        own = _distribution(name)
        if own is not None:
            found |= _tops(own)
            for required in own.requires or ():
                if "extra" not in required.partition(";")[2] and (match := _REQUIRED.match(required)):
                    found |= _tops_of(match[0])
    return frozenset(found) - UNTRUSTED


def _distribution(package: str) -> metadata.Distribution | None:
    """The distribution that a package was installed from."""
    try:
        found = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        found = None
    if found is not None and package in _tops(found):
        return found
    return next((one for one in metadata.distributions() if package in _tops(one)), found)


def _tops_of(distribution: str) -> set[str]:
    try:
        return _tops(metadata.distribution(distribution))
    except metadata.PackageNotFoundError:  # for another Python or system
        return set()


def _tops(distribution: metadata.Distribution) -> set[str]:
    """The top-level packages and modules of a distribution."""
    told = distribution.read_text("top_level.txt")
    if told is None:
        told = "\n".join(path.partition("/")[0] for path in (distribution.read_text("RECORD") or "").splitlines())
    return {name for line in told.splitlines() if (name := line.partition(".")[0]).isidentifier()}
