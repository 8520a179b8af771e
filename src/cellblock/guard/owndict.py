"""`__dict__` of the code's own objects: a copy that writes through the gates."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import held, plain

if TYPE_CHECKING:
    from cellblock.guard.world import World

_MISSING = object()


class OwnDict(dict[str, Any]):
    """The attributes of an object as a dict. Changes reach the object, where it may have such an attribute."""

    __slots__ = ("_owner", "_world")

    def __init__(self, world: World, owner: Any) -> None:
        object.__getattribute__(owner, "__dict__")  # an AttributeError where there is none
        found = world.shown(held(owner))
        super().__init__({name: value for name, value in found.items() if not world.hides(type(owner), name)})
        self._world = world
        self._owner = owner

    def __setitem__(self, name: str, value: Any) -> None:
        name = plain(name)  # no gate asks a name what it is
        self._world.gates.write(self._owner, name)
        held(self._owner)[name] = value
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        name = plain(name)
        if name in self:
            self._world.gates.delete(self._owner, name)
            held(self._owner).pop(name, None)
        super().__delitem__(name)

    def update(self, *given: Any, **named: Any) -> None:
        for name, value in dict(*given, **named).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        if name not in self:
            if default is _MISSING:
                raise KeyError(name)
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return deepcopy(dict(self), memo)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self


owner_of: Any = vars(OwnDict)["_owner"].__get__
"""The object whose `__dict__` it is."""
