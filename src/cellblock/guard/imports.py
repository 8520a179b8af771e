"""Imports: the modules that a policy grants, as stand-ins that hold the granted members and nothing else."""

from __future__ import annotations

import importlib
import inspect
from collections import ChainMap, OrderedDict, UserDict, defaultdict
from collections.abc import Mapping, MutableMapping, MutableSequence, MutableSet
from contextlib import suppress
from copy import deepcopy
from functools import partial
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import lineage, namespace
from cellblock.guard.audits import audit_of, audited
from cellblock.guard.refusal import denied
from cellblock.guard.signals import whole
from cellblock.guard.standins import Module, called
from cellblock.guard.tables import ModuleAudit, TypeAudit
from cellblock.guard.trusted import trusts
from cellblock.policy import Policy

if TYPE_CHECKING:
    from cellblock.guard.world import World

_FUTURE = ("annotations", "division", "generator_stop", "print_function", "unicode_literals", "absolute_import")
_CONTAINERS = (MutableMapping, MutableSequence, MutableSet)
_PLAIN = (dict, OrderedDict, defaultdict, ChainMap, UserDict)
_PACKAGES = frozenset(("numpy", "pandas"))
"""Whose arrays and tables are changed by assigning to their items."""


def grants(policy: Policy, name: str) -> bool:
    """True if a policy grants a module of this name. Imports nothing."""
    if name == "__future__" or any(one.name == name or one.name.startswith(name + ".") for one in policy.granted):
        return True
    if trusts(policy, name):
        return True
    if not audited(name):
        return False
    return policy.modules is None or any(_leads(one, name) or _leads(name, one) for one in policy.modules)


def _leads(package: str, name: str) -> bool:
    """True for a module itself, and for what is in it."""
    return name == package or name.startswith(package + ".")


class Importer:
    """The `__import__` of one world."""

    def __init__(self, world: World, policy: Policy) -> None:
        self._world = world
        self._policy = policy
        self._modules: dict[str, Module] = {}
        self._made: dict[str, dict[str, object]] = {}
        """The members of modules of the standard library."""

    def __call__(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> object:
        if globals is not None and globals in self._world.library:
            return self._world.library.imported(name, fromlist)
        if type(fromlist) is list:  # PyImport_Import, which takes no notice of what it gets: it looks in sys.modules
            importlib.import_module(name)
            return None
        if level:
            raise ImportError("relative imports lead nowhere here")
        module = self.module(name)
        if not fromlist:
            return module if "." not in name else self.module(name.partition(".")[0])
        for one in fromlist:
            if one != "*" and not self._has(module, name, one):
                raise ImportError(f"cannot import name {one!r} from {name!r}: not granted [import]", name=name)
        return module

    def _has(self, module: Module, name: str, member: str) -> bool:
        if member in vars(module):
            return True
        if name not in self._world.trusted or hasattr(Module, member):  # what the stand-in itself has is no member
            return False
        if not hasattr(module, member):
            with suppress(ModuleNotFoundError):
                self.module(f"{name}.{member}")
        return hasattr(module, member)

    @whole
    def module(self, name: str) -> Module:
        """A granted module; ModuleNotFoundError for what is not."""
        found = self._modules.get(name)
        if found is None:
            if not grants(self._policy, name):
                raise ModuleNotFoundError(f"No module named {name!r} is granted [import]", name=name)
            if name in self._world.trusted:
                return self._trusted(name, importlib.import_module(name))
            found = self._modules[name] = Module(name, self._members(name))
        return found

    def of(self, real: ModuleType) -> Module:
        """The stand-in for a module that another holds; AttributeError where it is not granted."""
        name = real.__name__
        found = self._trusted(name, real) if name in self._world.trusted else self.find(name)
        if found is None:
            raise denied(f"module {name!r} is not granted", "import")
        return found

    def find(self, name: str) -> Module | None:
        """A module of the standard library, if it is granted."""
        return self.module(name) if grants(self._policy, name) and audited(name) else None

    def _trusted(self, name: str, real: ModuleType) -> Module:
        if name not in self._modules:
            trusted = self._world.trusted
            self._modules[name] = Module(name, trusted.members(real), partial(trusted.member, real))
        return self._modules[name]

    def imported(self, name: object) -> Module | None:
        """A module that code has imported."""
        return self._modules.get(name) if type(name) is str else None

    def inside(self, name: str) -> dict[str, object]:
        """The members that code would have of a module, for library code: all of it where it is a written one."""
        audit = audit_of(name)
        if audit is None:
            return {}
        return self._world.library.module(name) if audit.written else self._audited(audit)

    def members(self) -> dict[str, dict[str, object]]:
        """Members of the modules that were imported, by their names."""
        return {name: dict(vars(module)) for name, module in self._modules.items()}

    def renew(self, name: str, member: str, value: object) -> None:
        """Another value for a member, where the module was imported."""
        if name in self._modules:
            vars(self._modules[name])[member] = value

    def _members(self, name: str) -> dict[str, object]:
        members: dict[str, object] = {}
        for grant in self._policy.granted:
            if grant.name == name:
                members.update(self._granted(grant.module, grant))
            elif grant.name.startswith(name + "."):
                inner = grant.name[len(name) + 1 :].partition(".")[0]
                members[inner] = self.module(f"{name}.{inner}")
        if name == "__future__":
            real = importlib.import_module(name)
            return {one: getattr(real, one).optional for one in _FUTURE}
        audit = audit_of(name)
        if not members and audit is not None:
            modules = self._policy.modules
            if modules is None or any(_leads(one, name) for one in modules):
                return self._audited(audit)
            within = {one[len(name) + 1 :].partition(".")[0] for one in modules if _leads(name, one)}
            return {one: self.module(f"{name}.{one}") for one in within & audit.submodules}
        return members

    def _audited(self, audit: ModuleAudit) -> dict[str, object]:
        if audit.name not in self._made:
            self._made[audit.name] = self._make(audit)
        return self._made[audit.name]

    def _make(self, audit: ModuleAudit) -> dict[str, object]:
        if audit.written:
            self._world.grant_types({one.type: one for one in audit.types})
            found = self._world.library.module(audit.name)
            return {one: found[one] for one in audit.members if one in found} | self._inner(audit)
        real: Any = importlib.import_module(audit.name) if audit.members or audit.types else None
        if audit.real is not None and not self._policy.trusted:  # whose packages know the program's alone
            real = audit.real
        self._world.grant_types({one.type: one for one in audit.types})
        members: dict[str, object] = {}
        for one in audit.members:
            if hasattr(real, one):
                value = getattr(real, one)
                members[one] = self._handed(self._prepared(audit, one, value))
        stand_ins = {**audit.instead, **{one: make(self._world) for one, make in audit.replaced.items()}}
        for one, stand_in in stand_ins.items():
            made = called(one, stand_in)
            members[one] = made = self._prepared(audit, one, made)
            self._world.calls.grant(made)
        return members | self._inner(audit)

    def _prepared(self, audit: ModuleAudit, name: str, member: Any) -> Any:
        calls = self._world.calls
        member = calls.giving(member) if name in audit.calling else member
        return calls.naming(member) if name in audit.naming else member

    def _inner(self, audit: ModuleAudit) -> dict[str, object]:
        return {one: self._submodule(f"{audit.name}.{one}") for one in audit.submodules}

    def _submodule(self, name: str) -> Module:
        """A module within one whose members are asked for: by library code maybe, of which no policy knows."""
        return self.module(name) if grants(self._policy, name) else Module(name, self.inside(name))

    def _granted(self, real: ModuleType, grant: Any) -> dict[str, object]:
        """The members of a host's module: its functions, classes and plain values. Other modules are left out."""
        members: dict[str, object] = {}
        types: dict[type, TypeAudit] = {}
        for one in dir(real):
            if not grant.members.allow(one):
                continue
            value = getattr(real, one)
            if isinstance(value, ModuleType):
                continue
            if isinstance(value, type) and value not in self._world.types:
                reads = frozenset(n for n in dir(value) if grant.members.allow(n))
                copied = class_data(value, reads)
                rest = reads - set(copied)
                types[value] = TypeAudit(type=value, reads=rest, statics=rest, replaced=copied, static_replaced=copied)
            members[one] = self._handed(value)
        self._world.grant_types(types, host=True)
        return members | dict(grant.replaced)

    def _handed(self, value: Any) -> Any:
        if inspect.ismodule(value):
            raise TypeError(f"{value.__name__} is a module and cannot be a member")
        handed = _copy_of_data(self._world.in_place_of(value))
        self._world.calls.grant(handed)
        return handed


def class_data(kind: type, granted: Any) -> dict[str, Any]:
    """Copies of the granted data that a class holds, such as lists and dicts."""

    def copied(name: str) -> Any:
        return lambda world, value: _copy_of_data(getattr(value, name))

    held = {name for one in lineage(kind)[:-1] for name, value in namespace(one).items() if _is_data(value)}
    return {name: copied(name) for name in held if name in granted}


def _is_data(value: object) -> bool:
    """True if code could change a value, or what it holds, without an attribute of it."""
    kind = type(value)
    if isinstance(value, tuple):
        return any(map(_is_data, tuple.__iter__(value)))
    return (
        isinstance(value, _CONTAINERS)
        or kind is MappingProxyType
        or (kind.__module__.partition(".")[0] in _PACKAGES and hasattr(kind, "__setitem__"))
    )


def _copy_of_data(value: Any) -> Any:
    """A copy of a value that code could change; anything else as it is.

    A read-only view of a dict is one of a copy: comparing it hands the dict to the other side's `__eq__`. Of a mapping
    that stands for something else, such as the environment, it is a dict.
    """
    if not _is_data(value):
        return value
    if type(value) is MappingProxyType:
        return MappingProxyType(deepcopy(dict(value)))
    if isinstance(value, Mapping) and not isinstance(value, _PLAIN):
        return deepcopy(dict(value))
    return deepcopy(value)
