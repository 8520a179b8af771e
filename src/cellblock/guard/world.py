"""A world: one namespace that programs run in, what it grants them, and the gates around it."""

from __future__ import annotations

import decimal
import fractions
import inspect
import random
import types
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo

from cellblock.errors import SourceRejected
from cellblock.guard import sizes, spelling, steps
from cellblock.guard.anatomy import exactly, holder, lineage, name_of
from cellblock.guard.bounded import BY_NAME, found_in
from cellblock.guard.builtins import Globals, builtins_of
from cellblock.guard.calls import Calls
from cellblock.guard.check import Program, check
from cellblock.guard.classes import Classes
from cellblock.guard.delegating import AsyncManager, Delegating, Manager
from cellblock.guard.gates import Gates
from cellblock.guard.imports import Importer, class_data, grants
from cellblock.guard.matching import matcher
from cellblock.guard.names import RESERVED, is_dunder, names
from cellblock.guard.owndict import OwnDict
from cellblock.guard.printing import Input, Stream, printer
from cellblock.guard.refusal import denied
from cellblock.guard.rehearsal import Rehearsal
from cellblock.guard.rewrite import BUILTINS
from cellblock.guard.signals import Ending
from cellblock.guard.sources import Place, Source
from cellblock.guard.standins import LongRange, Range, TypeOfTypes, TypeStandIn
from cellblock.guard.stdlib.exponents import Decimal, Fraction
from cellblock.guard.steps import hashed
from cellblock.guard.tables import BUILTIN_TYPES, Matching, TypeAudit
from cellblock.guard.temporary import Unkept, entering
from cellblock.guard.trusted import Rows, Trusted
from cellblock.guard.weights import PLAIN, hashable, light
from cellblock.guard.written.library import Library
from cellblock.policy import Policy

NO_VALUE = object()
"""Result of a program without a last expression."""

_RANGE = names("count index start step stop")
_MAPPING = names("clear get items keys pop popitem setdefault update values")
_OWN_TYPES: dict[type, TypeAudit] = {
    kind: TypeAudit(type=kind, reads=reads, constructable=kind is Range)
    for kind, reads in {
        Globals: _MAPPING | names("copy"),
        OwnDict: _MAPPING | names("copy"),
        Range: frozenset(),
        range: _RANGE,
        LongRange: _RANGE,
        Input: names("read readline readlines name encoding closed isatty readable writable"),
        Stream: names("write writelines flush isatty writable readable encoding errors closed name"),
    }.items()
}
"""Stand-ins for Python's own types, and the streams."""


_STANDING: dict[type, type] = {decimal.Decimal: Decimal, fractions.Fraction: Fraction}
"""Classes that stand for others."""


class World:
    """Runs programs in one namespace, under one policy. `write(stream, text)` takes what they print.

    Not for two threads at once.
    """

    def __init__(self, policy: Policy | None = None, *, write: Callable[[str, str], None]) -> None:
        self.policy = policy or Policy()
        self.write = write
        self.ending = Ending()
        self.rehearsal = Rehearsal()
        self.dead = False
        self.open_functions: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()
        """Functions of the host's whose attributes of these names are granted."""
        self.redirections: dict[str, list[Any]] = {"stdout": [], "stderr": []}
        self.trusted = Trusted(self)
        self.types: dict[type, TypeAudit] = BUILTIN_TYPES | _OWN_TYPES
        if self.policy.trusted:
            self.types = Rows(self.types, self.trusted.find)
        self._given: dict[type, TypeAudit] = {}
        self.host_types: set[type] = set()
        self.metaclasses: set[type] = {type, ABCMeta}
        self.values: dict[str, Any] = {"random": random.Random()}  # noqa: S311 - a session puts its own here
        """Stand-ins for members met in several places, by a name of the audits' choosing."""
        self._standins: dict[type, TypeStandIn] = {}
        self.type = TypeOfTypes(self)
        self.calls = Calls(self)
        self.classes = Classes(self)
        self.delegating = Delegating(self)
        self.gates = Gates(self)
        self.importer = Importer(self, self.policy)
        self.library = Library(self)
        self.streams = {name: Stream(name, self.say) for name in ("stdout", "stderr")}
        self.builtins: dict[str, Any] = builtins_of(self) | self._spelled()
        self.builtins["print"] = printer(self)
        for name in BUILTINS:
            self.builtins[spelling.CALLABLE + name] = value = self.builtins.get(name)
            self.calls.grant(value)
        self.globals: dict[str, Any] = {"__name__": "__main__", "__doc__": None, "__builtins__": self.builtins}
        self.ending.globals = self.globals
        self._hidden = frozenset(self.globals) | {"__annotations__", "__warningregistry__"}
        self.flags = 0
        """Flags that cells have set by `from __future__`, for those that follow."""
        self._sources: dict[str, list[Source]] = {}
        self.tools: dict[str, Callable[..., object]] = {}
        """Functions of the host by their names, and what stands for those that this session is without."""
        self._grant_policy()

    # ------------------------------------------------------------------------------- running

    def check(
        self,
        source: str,
        filename: str,
        *,
        plain: bool = False,
        scopes: bool = False,
        flags: int | None = None,
        bound: Iterable[str] = (),
    ) -> Program:
        """The program of a source, under this world's policy and with the names that are bound in it, and `bound`."""
        return check(
            source,
            filename=filename,
            modules=partial(grants, self.policy),
            bound=self._bound().union(bound),
            without=self.policy.off,
            flags=self.flags if flags is None else flags,
            plain=plain,
            scopes=scopes and spelling.SCOPED in self.builtins,
        )

    def cell(self, source: str, filename: str) -> Program:
        """The program of a cell; where names are to be kept, it is remembered with what is defined in it."""
        flags = self.flags
        program = self.check(source, filename, scopes=True)
        if spelling.SCOPED in self.builtins:
            self._remember(Source(filename, source, flags, program))
        return program

    def recall(self, filename: str, text: str, flags: int, bound: Iterable[str]) -> Source:
        """A source of an earlier world's, checked by this one's policy and not run. `bound` are names of that world."""
        program = self.check(text, filename, scopes=True, flags=flags, bound=bound)
        self.link(program)
        source = Source(filename, text, flags, program)
        self._remember(source)
        return source

    def _remember(self, source: Source) -> None:
        if source.places:
            self._sources.setdefault(source.filename, []).append(source)

    def source_of(self, code: types.CodeType) -> tuple[Source, Place] | None:
        """Place of code in the cells; None for what they made of texts."""
        for source in self._sources.get(code.co_filename, ()):
            if (place := source.places.get(id(code))) is not None:
                return source, place
        return None

    def run(self, program: Program) -> list[types.CodeType]:
        """Make what a program needs. Its code is then to be evaluated in `globals`, one after the other."""
        self.link(program)
        if program.body is not None:
            self.flags |= program.body.co_flags & 0x1FF0000
        return [code for code in (program.body, program.last) if code is not None]

    def link(self, program: Program) -> None:
        """Have the sets and functions that a program names."""
        builtins, gates = self.builtins, self.gates
        for name in program.reads:
            if (spelled := spelling.READ + name) not in builtins:
                builtins[spelled] = gates.known_reads(name)
                builtins[spelling.LAST + name] = gates.likely(name)
        for name in program.writes:
            if (spelled := spelling.WRITE + name) not in builtins:
                builtins[spelled] = gates.known_writes(name)
        for group in program.groups:
            if (spelled := spelling.ALL + group.spelled) not in builtins:
                builtins[spelled], builtins[spelling.WATCH + group.spelled] = gates.group(group)
        for name in program.swaps:
            if (spelled := spelling.SWAP + name) not in builtins:
                builtins[spelled] = gates.swaps(name)
                for kind, bind in gates.swaps(name).items():
                    if kind in (str, bytes):
                        builtins[f"{spelled}.{kind.__name__}"] = bind
        for name in program.reaches:
            if (spelled := spelling.REACH + name) not in builtins:
                builtins[spelled] = _reach(gates.known_reads(name), gates.read, name)

    def scope(self, unkept: Unkept) -> None:
        """Have a `with` at top level be a temporary scope, in sources that are checked with `scopes`."""
        self.builtins[spelling.SCOPED] = entering(self.globals, unkept)

    def end_with(self, kind: type[BaseException]) -> None:
        """Have exceptions of this kind, which come from outside of the world, end its programs too."""
        self.builtins[spelling.STOP] = self.ending.caught = (self.ending.base, kind)

    def execute(self, source: str, filename: str) -> Any:
        """Run statements that code has as text, as those of a cell; gives the value of the last, if an expression."""
        program = self._of_text(source, filename, plain=False)
        value = None
        for code in self.run(program):
            value = eval(code, self.globals)
        return value if program.last is not None else None

    def bound_by(self, source: str, filename: str) -> dict[str, Any]:
        """Names that statements given as text bind, beside the names of its own."""
        program = self._of_text(source, filename, plain=True)
        self.link(program)
        found: dict[str, Any] = {}
        if program.body is not None:
            eval(program.body, self.globals, found)
        return self.shown(found)

    def _of_text(self, source: str, filename: str, *, plain: bool) -> Program:
        try:
            return self.check(source, filename, plain=plain)
        except SourceRejected as error:
            first: Any = error.refusals[0]
            raise denied(first.what, first.rule) from None

    def evaluate(self, source: str, names: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression that code has as text: checked as a cell is, and refused as running code is."""
        program = self._of_text(source.strip(), "<text>", plain=True)
        if program.body is not None or program.last is None:
            raise SyntaxError(f"{source!r:.100} is no expression")
        self.link(program)
        return eval(program.last, self.globals, dict(names or {}))

    def names(self) -> list[str]:
        """The names that programs have bound."""
        return [name for name in list(self.globals) if self._is_shown(name)]

    def say(self, stream: str, text: str) -> None:
        """Write where code has redirected a stream to, or to the stream."""
        targets = self.redirections[stream]
        if targets:
            self.gates.read(targets[-1], "write()").write(text)
        else:
            self.write(stream, text)

    def redirect(self, stream: str, targets: list[Any]) -> None:
        """Have what is written to a stream go to the last of some targets; to the stream itself where there is none."""
        self.redirections[stream][:] = targets
        self.importer.renew("sys", stream, self.current(stream))

    def current(self, stream: str) -> Any:
        """The object that a stream is written to."""
        targets = self.redirections[stream]
        return targets[-1] if targets else self.streams[stream]

    def clear(self) -> None:
        """Unbind them."""
        for name in self.names():
            self.globals.pop(name, None)
        for name in [name for name in self.globals if name not in self._hidden]:
            del self.globals[name]
        self.globals.pop("__annotations__", None)
        self.builtins.pop("_", None)
        self.flags = 0

    def _is_shown(self, name: str) -> bool:
        return name not in self._hidden and name.isidentifier() and not is_dunder(name)

    def _bound(self) -> set[str]:
        return set(self.globals) | self._granted_names

    # ------------------------------------------------------------------------------- granting

    def grant_types(self, audits: Mapping[type, TypeAudit], *, host: bool = False) -> None:
        """Types that code may meet from now on. `host`: their instances may hold what was not granted."""
        fresh = {kind: one for kind, one in audits.items() if self._given.get(kind) is not one}
        if not fresh:
            return
        self._given.update(fresh)
        self.types.update(fresh)
        fresh = {kind: self._with_replaced(one) for kind, one in fresh.items()}
        self.types.update(fresh)
        if host:
            self.host_types.update(fresh)
        for kind in fresh:
            if issubclass(kind, type):
                self.metaclasses.add(kind)
        self.gates.learn(fresh)

    def _with_replaced(self, audit: TypeAudit) -> TypeAudit:
        """An audit without the members that something else stands in for where they come from."""
        classes = lineage(audit.type)
        lost = {
            name
            for one in classes[1:]
            if one in self.types
            for name in self.types[one].replaced
            if name not in audit.replaced
            and (name in audit.reads or name in audit.statics)
            and holder(classes, name) is holder(classes[classes.index(one) :], name)
        }
        if not lost:
            return audit
        refused = None if audit.refused is None else audit.refused | lost
        return replace(audit, reads=audit.reads - lost, statics=audit.statics - lost, refused=refused)

    def in_place_of(self, value: Any) -> Any:
        """Stand-in for a value of a module."""
        if value is type:
            return self.type
        return Range if value is range else value

    def _grant_policy(self) -> None:
        self._granted_names: set[str] = {"print", "display", "help"}
        for known in self.policy.classes:
            copied = class_data(known.cls, Matching(known.members))
            reads, statics = Matching(known.members, copied), Matching(known.statics, copied)
            found = TypeAudit(
                type=known.cls,
                reads=reads,  # type: ignore[arg-type]
                statics=statics,  # type: ignore[arg-type]
                writes=Matching(known.writes),  # type: ignore[arg-type]
                replaced=copied,
                static_replaced=copied,
                constructable=known.constructable,
                subclassable=known.subclassable,
            )
            self.grant_types({known.cls: found}, host=True)
            self.bind_builtin(known.name, self.typeof_class(known.cls))
        for grant in self.policy.functions:
            self.bind_builtin(grant.name, _handed(grant.function))

    def bind_builtin(self, name: str, value: object) -> None:
        """Have a name known everywhere, as Python's own are."""
        self.builtins[name] = value
        self.calls.grant(value)
        self._granted_names.add(name)

    def bind_tool(self, name: str, function: Callable[..., object]) -> None:
        """The same for a function that the session may be opened without, the next time."""
        self.tools[name] = function
        self.bind_builtin(name, function)

    # ---------------------------------------------------------------------------------- types

    def typeof(self, value: object) -> object:
        """`type(value)` as code sees it: the class where it was granted, else a stand-in."""
        return self.typeof_class(type(value))

    def told(self, value: Any) -> Any:
        """Attribute of an annotation, with `type` as code sees it."""
        if type(value) is tuple:
            return tuple(map(self.told, value))
        return self.type if value is type else value

    def typeof_class(self, kind: type) -> object:
        """A class as code sees it."""
        if kind is type or kind is TypeOfTypes or kind is TypeStandIn:
            return self.type
        if kind is range or kind is LongRange:
            return Range
        if kind in _STANDING:
            return _STANDING[kind]
        if kind is Globals or kind is OwnDict:
            return dict
        if self.classes.own(kind):
            return kind
        audit = self.types.get(kind)
        if audit is not None and audit.constructable and not issubclass(kind, type):
            return kind
        standin = self._standins.get(kind)
        if standin is None:
            standin = self._standins[kind] = TypeStandIn(kind)
        return standin

    def made(self, function: Any) -> bool:
        """True if code of this world made a function."""
        if type(function) is not types.FunctionType:
            return False
        return function.__globals__ is self.globals or function.__globals__ in self.library

    def maker(self, source: type) -> Callable[..., Any]:
        """`source.__new__`, for classes that code may make instances of."""

        def new(cls: Any, /, *given: Any, **named: Any) -> Any:
            if type(cls) is TypeOfTypes:
                return cls(*given, **named)
            if not isinstance(cls, type):
                raise TypeError(f"{name_of(source)}.__new__(X): X is not a type object ({name_of(type(cls))})")
            where = holder(lineage(source), "__new__")
            if where is not None and self.classes.own(where):
                return source.__new__(cls, *given, **named)
            if issubclass(cls, type):
                return self.classes.make(cls, *given, **named)
            known = self.types.get(cls)
            if not self.classes.own(cls) and (known is None or not known.constructable):
                raise denied(f"{name_of(cls)} cannot be created here", "class")
            made = exactly(source.__new__) if source is ZoneInfo else source.__new__
            if source is int and len(given) + len(named) == 2:
                sizes.digits_of_all(given)
            return made(cls, *given, **named)

        return new

    def own_dict(self, value: Any) -> OwnDict:
        """`__dict__` of an object of the code's own."""
        return OwnDict(self, value)

    def hides(self, kind: type, name: str) -> bool:
        """True if an object of the code's own has this name from a class of the host that does not grant it."""
        return any(one in self.host_types and name not in self.types[one].reads for one in lineage(kind))

    def shown(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The names of a namespace that code can spell."""
        return {
            name: value
            for name, value in list(found.items())
            if type(name) is str and name.isidentifier() and name not in RESERVED
        }

    # ------------------------------------------------------------------------------- spelled

    def _spelled(self) -> dict[str, Any]:
        """Functions that rewritten code calls by names that no source can spell."""
        ending, gates = self.ending, self.gates
        sized = {
            spelling.MULTIPLY: (sizes.multiply, sizes.multiply_by),
            spelling.POWER: (sizes.power, sizes.power_by),
            spelling.SHIFT: (sizes.shift, sizes.shift_by),
            spelling.MODULO: (sizes.modulo, sizes.modulo_by),
            spelling.ADD: (sizes.add, sizes.add_by),
        }
        found: dict[str, Any] = {
            spelling.GATE: gates.read,
            spelling.GATE_WRITE: gates.write,
            spelling.GATE_CHANGE: gates.change,
            spelling.GATE_DELETE: gates.delete,
            spelling.TYPE: type,
            spelling.ID: id,
            spelling.FUNCTION: types.FunctionType,
            spelling.CALL: self.calls,
            spelling.CALL_KNOWN: self.calls.known,
            spelling.CLASS_OF: gates.class_of,
            spelling.NUMBERS: sizes.NUMBERS,
            spelling.INT: int,
            spelling.STR: str,
            spelling.LENGTH: len,
            spelling.FLOAT: float,
            spelling.ORDINARY: sizes.ordinary,
            spelling.ADDED: sizes.added,
            spelling.FORMAT: sizes.formatted,
            spelling.DIGITS: sizes.digits,
            spelling.ALL_DIGITS: sizes.digits_of_all,
            spelling.LIGHT: light,
            spelling.HASHABLE: hashable,
            spelling.STEPPED: self.calls.stepped,
            spelling.FED: hashed,
            spelling.FOUND: found_in,
            spelling.SPREAD: steps.spread,
            spelling.PAUSE: steps.pause,
            spelling.PLAIN: PLAIN,
            spelling.STOP: ending.caught,
            spelling.STOPPING: ending.flag,
            spelling.FOREIGN: ending.foreign,
            spelling.ESCAPING: ending.escaping,
            spelling.SPLIT: ending.split,
            spelling.ENTER: partial(Manager, ending),
            spelling.ENTER_ASYNC: partial(AsyncManager, ending, self.delegating),
            spelling.ITERATED: self.delegating.iterated,
            spelling.AWAITED: self.delegating.awaited,
            spelling.STEPPED_ASYNC: self.delegating.stepped,
            spelling.MATCH: matcher(self),
            spelling.RANGE: Range,
            spelling.RANGE_REAL: range,
        }
        found |= self.library.spelled()
        for name, (whole, by) in sized.items():
            found[name], found[name + "_by"] = whole, by
        for name, form in BY_NAME.items():
            found[spelling.BOUNDED + name] = form
        return found


def _handed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the host as code gets it: it can be called, and holds nothing else that could be read."""

    async def awaited(*given: Any, **named: Any) -> Any:
        return await function(*given, **named)

    def called(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    handed = awaited if inspect.iscoroutinefunction(function) else called
    for name in ("__name__", "__qualname__", "__doc__"):
        if isinstance(getattr(function, name, None), str):
            setattr(handed, name, getattr(function, name))
    return handed


def _reach(known: set[type], gate: Callable[[Any, str], Any], name: str) -> Callable[[Any], Any]:
    def reach(value: Any) -> Any:
        return value if type(value) in known else gate(value, name)

    return reach
