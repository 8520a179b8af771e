"""The built-in functions and types that code sees."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, MutableMapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cellblock.guard import sizes
from cellblock.guard.anatomy import exact, lineage, namespace, plain
from cellblock.guard.names import RESERVED
from cellblock.guard.refusal import denied
from cellblock.guard.standins import Range, TypeStandIn
from cellblock.guard.steps import mixed, ticking
from cellblock.guard.tables import BUILTIN_TYPES
from cellblock.guard.weights import light

if TYPE_CHECKING:
    from cellblock.guard.world import World

AS_THEY_ARE = (
    "abs aiter all anext any bin bool bytearray bytes callable chr classmethod complex delattr dict divmod "
    "enumerate filter float frozenset hex id int isinstance issubclass len list map max min next "
    "object oct ord property reversed set slice sorted staticmethod str super tuple zip "
    "True False None Ellipsis NotImplemented __debug__"
)
"""Built-ins that reach nothing but their arguments. What they walk is walked in Python where it is long."""

_MISSING = object()
_FEW = 1000
"""Numbers that are added at once, whatever their size."""


def builtins_of(world: World) -> dict[str, object]:
    """The built-ins of a world."""
    found: dict[str, object] = {name: getattr(builtins, name) for name in AS_THEY_ARE.split()}
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            found[name] = value
    found |= {
        "type": world.type,
        "range": Range,
        "__build_class__": world.classes.build,
        "__import__": world.importer,
        **named(
            {
                "pow": lambda base, exp, mod=None: sizes.power(base, exp, mod),
                "input": _input(world),
                "exit": _exit,
                "quit": lambda code=None: _exit(code),
                "format": _format,
                "iter": _iter(world),
                "round": _round,
                "sum": _sum,
                "repr": lambda obj, /: repr(light(obj)),
                "ascii": lambda obj, /: ascii(light(obj)),
                "hash": lambda obj, /: hash(light(obj)),
            }
        ),
        **_attributes(world),
        **_namespaces(world),
    }
    return found


def named(functions: dict[str, Any]) -> dict[str, object]:
    """Functions under the names that they are known by, in messages too."""
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = "builtins"
    return functions


def _attributes(world: World) -> dict[str, object]:
    gates = world.gates

    def getattr(value: Any, name: Any, default: Any = _MISSING, /) -> Any:
        name = plain(name)
        try:
            return builtins.getattr(gates.read(value, name), name)
        except AttributeError:
            if default is _MISSING:
                raise
            return default

    def hasattr(value: Any, name: Any, /) -> bool:
        try:
            getattr(value, name)
        except AttributeError:
            return False
        return True

    def setattr(value: Any, name: Any, new: Any, /) -> None:
        name = plain(name)
        builtins.setattr(gates.write(value, name), name, new)

    def delattr(value: Any, name: Any, /) -> None:
        name = plain(name)
        builtins.delattr(gates.delete(value, name), name)

    return named({"getattr": getattr, "hasattr": hasattr, "setattr": setattr, "delattr": delattr})


def _namespaces(world: World) -> dict[str, object]:
    def visible(value: Any, name: str) -> bool:
        try:
            world.gates.read(value, name)
        except AttributeError:
            return False
        return True

    def here() -> dict[str, object]:
        frame = sys._getframe(2)
        if frame.f_globals is not world.globals and frame.f_globals not in world.library:
            raise denied("locals() is for the code's own functions", "name")
        return world.shown(frame.f_globals if frame.f_code.co_name == "<module>" else frame.f_locals)

    def locals() -> Any:
        return here()

    def globals() -> Globals:
        return Globals(world)

    def vars(*given: Any) -> Any:
        if not given:
            return here()
        if type(given[0]) in BUILTIN_TYPES and not type(given[0]).__dictoffset__:
            raise TypeError("vars() argument must have __dict__ attribute")
        return world.gates.read(given[0], "__dict__").__dict__

    def dir(*given: Any) -> list[str]:
        if not given:
            return sorted(here())
        value = given[0]
        if type(value) is TypeStandIn:
            return []
        own = world.classes.own(type(value))
        names = builtins.dir(value) if not own or "__dir__" not in namespace(type(value)) else value.__dir__()
        return sorted(one for one in names if type(one) is str and one.isidentifier() and visible(value, one))

    def help(*given: Any) -> None:
        world.write("stdout", _described(given, dir))

    return named({"locals": locals, "globals": globals, "vars": vars, "dir": dir, "help": help})


def _described(given: tuple[Any, ...], dir: Callable[..., list[str]]) -> str:
    if not given:
        return "help(x) tells what x can do\n"
    value = given[0]
    kind = value if isinstance(value, type) else type(value)
    doc = None
    for one in lineage(kind):
        doc = doc or namespace(one).get("__doc__")
    if callable(value) and not isinstance(value, type):
        doc = builtins.getattr(value, "__doc__", None) or doc
    shown = [name for name in dir(value) if not name.startswith("_")]
    return f"{kind.__name__}\n{doc if type(doc) is str else ''}\n\n{', '.join(shown)}\n"


class Globals(MutableMapping[str, Any]):
    """`globals()`: the code's own names, live."""

    __slots__ = ("_world",)

    def __init__(self, world: World) -> None:
        self._world = world

    def __getitem__(self, name: str) -> Any:
        if not _is_spelled(name):
            raise KeyError(name)
        return self._world.globals[name]

    def __setitem__(self, name: str, value: Any) -> None:
        name = plain(name)
        if not _is_spelled(name):
            raise denied(f"{name!r} cannot be bound", "name")
        self._world.globals[name] = value

    def __delitem__(self, name: str) -> None:
        if not _is_spelled(name):
            raise KeyError(name)
        del self._world.globals[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._world.globals if _is_spelled(name)])

    def __len__(self) -> int:
        return sum(map(_is_spelled, self._world.globals))

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """The names of now."""
        return dict(self)

    __copy__ = copy
    __deepcopy__ = None


def _is_spelled(name: object) -> bool:
    return type(name) is str and name.isidentifier() and name not in RESERVED


def _input(world: World) -> Callable[..., str]:
    def input(prompt: object = "", /) -> str:
        """A line of what `sys.stdin` was set to; there is no other input."""
        world.say("stdout", str.__str__(str(prompt)))
        source = world.values.get("stdin")
        line = "" if source is None else world.gates.read(source, "readline()").readline()
        if type(line) is not str or not line:
            raise EOFError("EOF when reading a line")
        return line.removesuffix("\n")

    return input


def _exit(code: object = None) -> None:
    raise SystemExit(code)


def _format(value: Any, spec: str = "", /) -> str:
    spec = exact(spec)
    return format(light(value), sizes.check_spec(spec) if type(spec) is str else spec)


def _iter(world: World) -> Callable[..., Any]:
    def iter(value: Any, /, *sentinel: Any) -> Any:
        if len(sentinel) == 1 and callable(value):
            function = world.calls(value)
            return builtins.iter(lambda: light(function()), *sentinel)
        return builtins.iter(value, *sentinel)

    return iter


def _round(number: Any, ndigits: Any = None) -> Any:
    ndigits = sizes.counted(ndigits)
    if type(ndigits) is int and abs(ndigits) > 5000 and issubclass(type(number), int):
        raise OverflowError(f"rounding to {ndigits} digits [size]")
    return round(number) if ndigits is None else round(number, ndigits)


def _sum(values: Any, /, start: Any = 0) -> Any:
    if type(start) in sizes.NUMBERS:
        if type(start) is Decimal or mixed(values):
            return sum((one for one in values), start)
        few = type(values) in (list, tuple) and len(values) <= _FEW
        return sum(values if few else ticking(values), start)
    if issubclass(type(start), str | bytes | bytearray):
        return sum((), start)  # CPython says what to do instead
    total = start
    for value in values:
        total = total + value
    return total
