"""Stand-ins for modules about the interpreter: what a program reads of it, and nothing that reaches it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.names import names
from cellblock.guard.printing import Input
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit

if TYPE_CHECKING:
    from cellblock.guard.world import World

_SHOWN = names(
    "version version_info maxsize byteorder float_info int_info hash_info maxunicode platform "
    "hexversion api_version copyright float_repr_style flags getsizeof getrecursionlimit intern getdefaultencoding"
)


class Implementation:
    """`sys.implementation`, as far as it is the same wherever the interpreter runs; itself, it can be changed."""

    __slots__ = ("cache_tag", "hexversion", "name", "version")

    def __init__(self) -> None:
        for one in self.__slots__:
            setattr(self, one, getattr(sys.implementation, one))

    def __repr__(self) -> str:
        shown = ("name", "cache_tag", "version", "hexversion")
        return f"namespace({', '.join(f'{one}={getattr(self, one)!r}' for one in shown)})"


def _exit(*status: object) -> None:
    if len(status) > 1:
        raise TypeError(f"exit expected at most 1 argument, got {len(status)}")
    raise SystemExit(*(one for one in status if one is not None))


def _exc_info(world: World) -> Callable[[], tuple[Any, Any, None]]:
    def exc_info() -> tuple[Any, Any, None]:
        """The error that is being handled, without its traceback, which leads to frames."""
        error = sys.exception()
        return (None, None, None) if error is None else (world.typeof(error), error, None)

    return exc_info


def _set_digits(world: World) -> Callable[[int], None]:
    def set_int_max_str_digits(maxdigits: int) -> None:
        """Remembered, and no more: the limit is the process's, and what it bounds nothing ends."""
        if maxdigits != 0 and maxdigits < sys.int_info.str_digits_check_threshold:
            least = sys.int_info.str_digits_check_threshold
            raise ValueError(f"maxdigits must be 0 or larger than {least}")
        world.values["digits"] = maxdigits

    return set_int_max_str_digits


class Warned:
    """A warning that was recorded."""

    def __init__(self, message: Warning, category: type[Warning]) -> None:
        self.message = message
        self.category = category
        self.lineno = 0
        self.filename = "<cell>"


def _warn(world: World) -> Callable[..., None]:
    def warn(message: Any, category: Any = None, *_: Any, **__: Any) -> None:
        kind = type(message) if isinstance(message, Warning) else category or UserWarning
        message = message if isinstance(message, Warning) else kind(message)
        recorded = world.values.get("warnings")
        if recorded and recorded[-1] is not None:
            recorded[-1].append(Warned(message, kind))
            return
        if world.values.get("warnings as errors"):
            raise message
        world.write("stderr", f"<cell>: {kind.__name__}: {message}\n")

    return warn


def _simplefilter(world: World) -> Callable[..., None]:
    def simplefilter(action: str, *_: Any, **__: Any) -> None:
        world.values["warnings as errors"] = action == "error"

    return simplefilter


def _catch_warnings(world: World) -> type:
    class catch_warnings:
        def __init__(self, **_: Any) -> None:
            self._record = bool(_.get("record"))

        def __enter__(self) -> Any:
            found: list[Any] | None = [] if self._record else None
            world.values.setdefault("warnings", []).append(found)
            self._errors = world.values.get("warnings as errors", False)
            return found

        def __exit__(self, *_: object) -> None:
            world.values["warnings"].pop()
            world.values["warnings as errors"] = self._errors

    world.grant_types({catch_warnings: TypeAudit(type=catch_warnings)})
    return catch_warnings


AUDITS = (
    ModuleAudit(
        name="sys",
        instead={
            **{name: getattr(sys, name) for name in _SHOWN},
            "implementation": Implementation(),
            "executable": "",
            "exception": lambda: sys.exception(),
            "exit": _exit,
            "setrecursionlimit": lambda *_, **__: None,
        },
        replaced={
            "argv": lambda world: [""],
            "path": lambda world: [],
            "stdout": lambda world: world.current("stdout"),
            "stderr": lambda world: world.current("stderr"),
            "__stdout__": lambda world: world.streams["stdout"],
            "__stderr__": lambda world: world.streams["stderr"],
            "stdin": lambda world: Input(),
            "__stdin__": lambda world: Input(),
            "exc_info": _exc_info,
            "set_int_max_str_digits": _set_digits,
            "get_int_max_str_digits": lambda world: lambda: world.values.get("digits", sys.get_int_max_str_digits()),
        },
        types=(
            *(
                audit(type(getattr(sys, name)), constructable=False)
                for name in ("version_info", "float_info", "int_info", "hash_info", "flags")
            ),
            TypeAudit(type=Implementation, reads=frozenset(Implementation.__slots__), constructable=False),
        ),
        note="made of values: the real module leads to every other",
    ),
    ModuleAudit(
        name="warnings",
        replaced={
            "warn": _warn,
            "simplefilter": _simplefilter,
            "catch_warnings": _catch_warnings,
        },
        instead={"filterwarnings": lambda *_, **__: None, "resetwarnings": lambda *_, **__: None},
        types=(TypeAudit(type=Warned, reads=names("message category lineno filename"), constructable=False),),
        note="filters are the process's: a session has but one of its own, whether warnings are errors",
    ),
)
