"""Classes of the code's own that inherit from the host's: what the host's keep in instances and classes is not theirs.

A name that a class of the host does not grant is its own: code reads it neither from an instance, which the host's
methods write to, nor from the class, and nothing that code defines is told what they set.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cellblock.guard.anatomy import held, holder, lineage, namespace
from cellblock.guard.names import is_dunder
from cellblock.guard.refusal import denied

if TYPE_CHECKING:
    from cellblock.guard.world import World

_INTERCEPTING = ("__setattr__", "__delattr__", "__getattribute__", "__dict__")
"""Methods that would learn the attributes that a class of the host sets and reads on its own."""
_UNTOLD = (types.FunctionType, staticmethod, classmethod, str, int, float, bool, type(None), tuple, list, dict, set)
"""Types whose objects, as attributes of a class, are not told what is set on instances."""


class Heirs:
    """The classes of one world that inherit from the host's, and those that are inherited from beside them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._defined: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()
        self._beside: WeakKeyDictionary[type, set[type]] = WeakKeyDictionary()

    def require(self, bases: tuple[Any, ...], metaclass: Any, defined: Any) -> frozenset[str] | None:
        """That a class may be made so. The names that it defines, if it is an heir; None if it is not."""
        classes = dict.fromkeys(one for base in bases if isinstance(base, type) for one in lineage(base))
        hosts = {one for one in classes if one in self._world.host_types}
        if not hosts:
            return None
        self._require_untold(hosts, defined)
        for one in classes:
            if self._world.classes.own(one) and not self._beside.get(one, set()) >= hosts:
                self._require_untold(hosts, namespace(one))
                self._beside.setdefault(one, set()).update(hosts)
        for one in lineage(metaclass) if isinstance(metaclass, type) else ():
            if self._world.classes.own(one):
                self._require_untold(set(), namespace(one))
        return frozenset(defined)

    def note(self, made: Any, defined: frozenset[str] | None) -> None:
        """Remember what an heir defines: what it has besides is the host's."""
        if defined is not None and isinstance(made, type):
            self._defined[made] = defined

    def may_read(self, value: Any, where: type, name: str) -> bool:
        """True if an attribute that a class of the code's own defines is what code gets from one of its instances."""
        kind = type(value)
        return not self._world.hides(kind, name) or (name not in held(value) and self.may_read_class(where, name))

    def may_read_class(self, where: type, name: str) -> bool:
        """True if an attribute of a class of the code's own is one that the code defined."""
        return not self._world.hides(where, name) or name in self._defined.get(where, ())

    def may_set(self, kind: type, name: str) -> bool:
        """True if a class may get an attribute of this name."""
        hosts = self._beside.get(kind, ())
        return not self._world.hides(kind, name) and not any(self._world.hides(one, name) for one in hosts)

    def _require_untold(self, hosts: set[type], defined: Any) -> None:
        for name, value in list(defined.items()):
            if name in _INTERCEPTING and type(value) is not types.GetSetDescriptorType:
                raise denied(f"a class that inherits from one of the host cannot define {name}", "class")
            if is_dunder(name) or not self._is_hidden(hosts, name):
                continue
            if type(value) not in _UNTOLD or any(holder(lineage(one), name) for one in hosts):
                raise denied(f"{name!r} belongs to a class of the host that is inherited from", "class")
        if any(self._is_hidden(hosts, name) for name in _slots(defined.get("__slots__", ()))):
            raise denied("__slots__ has a name that belongs to a class of the host", "class")

    def _is_hidden(self, hosts: set[type], name: str) -> bool:
        return any(self._world.hides(one, name) for one in hosts)


def _slots(given: Any) -> list[str]:
    """The names of the slots that a class has."""
    found: list[Any] = [None]
    if type(given) is str:
        found = [given]
    elif type(given) in (tuple, list, dict):
        found = list(given)
    if not all(type(name) is str for name in found):
        raise denied("__slots__ is to be a tuple of names", "class")
    return found
