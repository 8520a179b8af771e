"""Decides which attributes of which objects may be read, set and deleted.

A gate gives back the object that the attribute is then read from: the object itself, or a `Holding` of what stands in
the attribute's place; or it raises. What it decides for a type and a name it remembers in the set that the rewritten
code asks first. It runs no code of the object's: classes are looked at through `anatomy`.
"""

from __future__ import annotations

import types
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import EnumType
from functools import partial
from typing import TYPE_CHECKING, Any

from cellblock.guard import spelling
from cellblock.guard.anatomy import exact, held, holder, kind_of, lineage, module_of, name_of, namespace, plain
from cellblock.guard.bounded import OF_MODULES
from cellblock.guard.calls import MAKERS
from cellblock.guard.hints import unaliased
from cellblock.guard.names import (
    CALLED,
    DESCRIBING,
    ERROR_PARTS,
    OPERATIONS,
    PROTOCOL_MARKS,
    TYPING,
    WRITABLE,
    is_dunder,
    never_read,
)
from cellblock.guard.owndict import OwnDict, owner_of
from cellblock.guard.printing import STREAMS, stream_of
from cellblock.guard.refusal import denied
from cellblock.guard.scopes import Group
from cellblock.guard.sizes import check_spec
from cellblock.guard.standins import (
    Holding,
    Module,
    Range,
    Setting,
    TypeOfTypes,
    TypeStandIn,
    Watched,
    called,
    module_name,
)
from cellblock.guard.tables import BUILTIN_TYPES, VALUES, Method, TypeAudit, view_of_copy
from cellblock.guard.unbound import Unbound, of_instances, require_instance
from cellblock.guard.weights import PLAIN

if TYPE_CHECKING:
    from cellblock.guard.world import World

_MAX_KNOWN = 20_000
_MADE = frozenset(kind.__name__ + spelling.CALLED for kind in MAKERS)
_TEXTS: set[type] = {str, bytes, bytearray}
_OF_CLASSES = frozenset(
    [
        *("__annotations__", "__match_args__", "__slots__", "__members__", "__abstractmethods__", "__post_init__"),
        *("__instancecheck__", "__subclasscheck__", "__prepare__", "__parameters__", "__type_params__"),
        *("__required_keys__", "__optional_keys__", "__total__", "__dataclass_fields__", "__isabstractmethod__"),
    ]
)
"""Attributes that a class of the code's own tells of itself though another class or its metaclass defines it."""
_ASKED = {"__setattr__": "write", "__delattr__": "delete", "__getattribute__": "read"}
"""Methods of `object` that take a name, and the gate that it goes through."""
_NAMES = frozenset(["__name__", "__qualname__", "__module__"])
_DESCRIBED = frozenset(["__get__", "__set__", "__delete__"])
_OF_FUNCTIONS = frozenset(["__annotations__", "__defaults__", "__kwdefaults__", "__wrapped__", "__type_params__"])
_OF_ALIASES = frozenset(["__origin__", "__args__", "__parameters__", "__unpacked__", "__class__"])
_DESCRIBED_KINDS: tuple[type, ...] = (types.FunctionType, type, ABCMeta)
"""Types of whose objects anybody may read a name, and other texts that describe them."""
_origin = vars(types.GenericAlias)["__origin__"].__get__
_LIKELY = (list, dict, str, set, Module)
_super_class = super.__dict__["__thisclass__"].__get__
_super_of = super.__dict__["__self_class__"].__get__
_super_self = super.__dict__["__self__"].__get__


class Gates:
    """The gates of one world. `reads` and `writes` map a name to the set of types it may be read or set on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._types = world.types
        self._own = world.classes.own
        self._heirs = world.classes.heirs
        self._unbound = Unbound()
        self._asked = {name + spelling.CALLED for name in ("ChainMap", "DefaultDict", "Deque")}
        """Names of what modules have that is asked for where it is called: aliases of `typing`, and what is added."""
        self._met: set[str] = set()
        self.reads: dict[str, set[type]] = {}
        self.writes: dict[str, set[type]] = {}
        self._statics: dict[str, set[type]] = {}
        self._groups: dict[Group, set[type]] = {}
        self._swaps: dict[str, dict[type, Any]] = {}
        self._stored: dict[str, set[type]] = {}
        """By name, the classes of the code's own on an instance of which it was ever set; "" for any name."""
        self._swapped: dict[tuple[type, str], Any] = {}
        """Stand-ins for attributes of instances of exactly this type, found before."""

    # -------------------------------------------------------------------------------- sets

    def known_reads(self, name: str) -> set[type]:
        """The set of types on which a name may be read, made when first asked for."""
        if name.endswith(spelling.BRIEF):
            return _TEXTS
        known = self.reads.get(name)
        if known is None:
            in_c = name in _MADE or (name[-1:] == ")" and name.removesuffix(spelling.CALLED) in OF_MODULES)
            asked = in_c or name.startswith("_") or name in self._asked
            known = self.reads[name] = set(_DESCRIBED_KINDS if name in DESCRIBING else () if asked else (Module,))
            self._learn(name, known, self._types)
        return known

    def ask_of_modules(self, name: str) -> None:
        """Have what modules have under a name asked for where it is called."""
        self._asked.add(name + spelling.CALLED)
        self.known_reads(name + spelling.CALLED).discard(Module)

    def _learn(self, name: str, known: set[type], audits: Mapping[type, TypeAudit]) -> None:
        """Put the types by whose rows a name may be read, or called, into its set."""
        plain = name.removesuffix(spelling.CALLED)
        if not plain.startswith("_"):
            known.update(
                kind
                for kind, audit in audits.items()
                if plain in audit.reads
                and not issubclass(kind, type)
                and (plain is name or (plain not in audit.writes and kind_of(kind, plain) in _METHODS))
                and (kind not in self._world.host_types or kind_of(kind, plain) is types.FunctionType)
            )

    def known_writes(self, name: str) -> set[type]:
        """The set of types on which a name may be set."""
        known = self.writes.get(name)
        if known is None:
            known = self.writes[name] = set()
            if name in _NAMES:
                return known
            if name.endswith(spelling.AUGMENTED) and name != spelling.AUGMENTED:
                plain = name.removesuffix(spelling.AUGMENTED)
                known.update(self.known_reads(plain) & self.known_writes(plain))
                return known
            known.update(kind for kind, audit in self._types.items() if name in audit.writes and name in audit.reads)
        return known

    def swaps(self, name: str) -> dict[type, Any]:
        """By type, what binds a method of the guard's own to an instance."""
        found = self._swaps.get(name)
        if found is None:
            found = self._swaps[name] = {}
            self._swap(name, self._types)
        return found

    def _swap(self, name: str, audits: dict[type, TypeAudit]) -> None:
        for kind, audit in audits.items():
            method = audit.replaced.get(name)
            if isinstance(method, Method):
                function = method.function(self._world)
                plain_one = type(function) is types.FunctionType
                self._swaps[name][kind] = function.__get__ if plain_one else partial(types.MethodType, function)

    def learn(self, audits: dict[type, TypeAudit]) -> None:
        """Types that were granted just now."""
        for name in self._swaps:
            self._swap(name, audits)
        self._swapped.clear()
        for name, known in self.reads.items():
            self._learn(name, known, audits)

    def group(self, group: Group) -> tuple[set[type], Callable[[Any], Any]]:
        """The set of types on which all names of a group may be had, and what looks at an object of another."""
        known = self._groups.setdefault(group, set())

        def watch(value: Any) -> Any:
            kind = type(value)
            if not self._grants_all(group, value, kind):
                return Watched(self, value)
            if len(known) < _MAX_KNOWN:
                known.add(kind)
            return value

        return known, watch

    def _grants_all(self, group: Group, value: Any, kind: type) -> bool:
        for names, known, ask in (
            (group.reads, self.known_reads, self.read),
            (group.writes, self.known_writes, self.write),
        ):
            for name in names:
                if kind in known(name):
                    continue
                try:
                    (self.change if name.endswith(spelling.AUGMENTED) else ask)(value, name)
                except AttributeError:
                    return False
                if kind not in known(name):
                    return False
        return True

    def _forget(self, name: str) -> None:
        """A class of the code's own lost an attribute: what it hid may be seen again."""
        called, augmented = name + spelling.CALLED, name + spelling.AUGMENTED
        for sets, one in (
            *((self.reads, name), (self.writes, name), (self._statics, name)),
            *((self.reads, called), (self.writes, augmented)),
        ):
            if one in sets:
                sets[one].difference_update([kind for kind in sets[one] if self._own(kind)])
        for one in (name, called):
            self._ask_first(one, None)
        for group, known in self._groups.items():
            if name in group.reads or name in group.writes or augmented in group.writes:
                known.difference_update([kind for kind in known if self._own(kind)])

    def _remember(self, sets: dict[str, set[type]], name: str, kind: type) -> None:
        known = sets.setdefault(name, set())
        if len(known) < _MAX_KNOWN:
            known.add(kind)
            if sets is self.reads:
                self._ask_first(name, kind)

    def likely(self, name: str) -> type | None:
        """A type on which a name may be read, the one that is looked for first."""
        known = self.known_reads(name)
        return next((kind for kind in _LIKELY if kind in known), None)

    def shows(self, value: Any, names: Iterable[str]) -> bool:
        """True if each of some names may be read on an object of the host's; of another, it is up to that."""
        value = unaliased(value)
        kind = type(value)
        of = value if issubclass(kind, type) else kind
        if (self._own(of) or of in self._types) and not self._inherits(of):
            return True
        try:
            for name in names:
                self.read(value, plain(name))
        except AttributeError:
            return False
        return True

    def without_hosts(self, value: Any) -> Any:
        """The same, or its items one by one. Refuses an object of the host's, and what has one as an item."""
        if type(value) in PLAIN:
            return value
        self._require_own(value)
        order = lineage(type(value))
        goes: Any = holder(order, "__iter__")
        if issubclass(type(value), type | str | bytes) or goes is None:
            return value
        if goes not in BUILTIN_TYPES or holder(order, "__next__") is not None:
            return map(self._no_host, value)  # which can be gone through once
        for one in goes.__iter__(value):
            self._no_host(one)
        return value

    def _no_host(self, value: Any) -> Any:
        if type(value) not in PLAIN:
            self._require_own(value)
        return value

    def _require_own(self, value: Any) -> None:
        value = unaliased(value)
        kind = value if issubclass(type(value), type) else type(value)
        if self._own(kind) and not self._inherits(kind):
            return
        library = kind in self._types or module_of(kind).partition(".")[0] in self._world.trusted
        if kind in self._world.host_types or not library:
            raise denied(f"an object of {name_of(kind)!r}, whose methods would be used by name, is not taken here")

    def _ask_first(self, name: str, kind: type | None) -> None:
        if spelling.LAST + name in self._world.builtins:
            self._world.builtins[spelling.LAST + name] = kind

    # ------------------------------------------------------------------------------- reading

    def read(self, value: Any, name: str) -> Any:
        """The object to read `name` from in place of `value`."""
        kind = type(value)
        if kind is super and name == "__init__" and self._binds(value):  # often
            return value
        if name[-1:] == ")":
            if name.endswith(spelling.CALLED):
                return self._read_called(value, kind, name)
            called = name.removesuffix(spelling.BRIEF) + spelling.CALLED
            return value if kind in _TEXTS else self._read_called(value, kind, called)
        swapped = self._swapped.get((kind, name))
        if swapped is not None:
            return Holding(name, swapped(self._world, value))
        if kind in self.known_reads(name):
            return value
        if (rule := never_read(name)) is not None:
            raise denied(f"attribute {name} is not granted", rule)
        if issubclass(kind, type):
            return self._read_class(value, kind, name)
        if kind is super:
            return self._read_super(value, name)
        if issubclass(kind, types.GenericAlias) and name not in _OF_ALIASES:
            return self.read(_origin(value), name)  # which it would be read from, unseen
        if kind is types.FunctionType:
            return self._read_function(value, value, name)
        if kind is types.MethodType:
            return self._read_method(value, name)
        if kind is Module:
            return self._read_module(value, name)
        if kind is TypeStandIn or kind is TypeOfTypes:
            return self._read_stand_in(value, name)
        own = self._own(kind)
        if not own and kind not in self._types:
            self._meet(kind)
        if not own and not self._audited(kind):
            raise self._refusal(kind, name)
        if is_dunder(name):
            return self._read_dunder(value, kind, name, own)
        found = self._decide(lineage(kind), name, value)
        if found is value and kind in self._world.host_types and self._hands_out(value, kind, name):
            return value
        if found is value and not (own and self._world.hides(kind, name)):
            self._remember(self.reads, name, kind)
        return found

    def _meet(self, kind: type) -> None:
        """A class that no row names: that of a module which code may import has its rows by now, imported or not."""
        if (module := module_of(kind)) not in self._met:
            self._met.add(module)
            self._world.importer.find(module)

    def _hands_out(self, value: Any, kind: type, name: str) -> bool:
        """True if what a granted object has under a name is a function of C, which may be called then."""
        where = holder(lineage(kind), name)
        member = held(value).get(name) if where is None else namespace(where)[name]
        member = member.__func__ if type(member) is staticmethod else member
        if type(member) not in (types.BuiltinFunctionType, partial):
            return False
        self._world.calls.grant(member)
        return True

    def _read_called(self, value: Any, kind: type, called: str) -> Any:
        """Give what to read the name of a called method from: the object itself, or what holds what may be."""
        if kind in self.known_reads(called):
            return value
        name = called.removesuffix(spelling.CALLED)
        found = self.read(value, name)
        if kind is super and name in CALLED:
            return found  # classes have no other than may be called
        if found is value and self._own(kind) and self._calls_own(value, kind, name):
            self._remember(self.reads, called, kind)
            return value
        try:
            member = getattr(found, name)
        except AttributeError:
            if found is value and not self._own(kind):
                return value  # there is none, which is told where it is read
            raise
        mine = self._own(kind) or kind is super or (issubclass(kind, type) and self._own(value))
        return Holding(name, self._world.calls(member) if mine else self._world.calls.member(member))

    def _calls_own(self, value: Any, kind: type, name: str) -> bool:
        """True if a name of instances of a class of the code's own is a function of its own, and nothing hides it."""
        if kind_of(kind, name) is not types.FunctionType:
            return False
        classes = lineage(kind)
        hidden = name in held(value) or any(kind in self._stored.get(one, ()) for one in (name, ""))
        looked_up = holder(classes, "__getattribute__")
        return not (hidden or is_dunder(name)) and looked_up is not None and not self._own(looked_up) and not any(
            name in namespace(one).get("__dataclass_fields__", ()) for one in classes
        )

    def _binds(self, value: Any) -> bool:
        """True if `__init__` of a super object is bound, and none of a class of the host's."""
        itself = type(_super_self(value))
        return not self._world.host_types and not issubclass(itself, type) and not issubclass(itself, MAKERS)

    def _audited(self, kind: type) -> bool:
        return any(one in self._types for one in lineage(kind)[:-1]) or kind is object

    def _decide(self, classes: tuple[type, ...], name: str, value: Any) -> Any:
        """An attribute without underscores at both ends, looked up in these classes."""
        where = holder(classes, name)
        kind = type(value)
        if where is not None and self._own(where):
            if not self._heirs.may_read(value, where, name):
                raise self._refusal(kind, name)
            return value
        granted = False
        foreign = where is not None and not self._own(kind) and kind not in self._types
        hidden = foreign and (name in held(value) or not _is_looked_up(classes))
        for audit in self._rows(kind, classes, None if hidden else where):
            if name in audit.replaced:
                if audit.type is kind and not is_dunder(name):
                    self._swapped[kind, name] = audit.replaced[name]
                return Holding(name, audit.replaced[name](self._world, value))
            granted = granted or name in audit.reads
        if granted:
            return value
        if where is None and self._own(kind):
            if self._world.hides(kind, name):
                raise self._refusal(kind, name)
            return value
        if where is None and kind in BUILTIN_TYPES and not issubclass(kind, BaseException):
            return value  # there is none, and CPython says so
        if where is None and kind not in self._world.host_types and _lacks(value, classes, name):
            object.__getattribute__(value, name)  # raises, as CPython words it
        raise self._refusal(kind, name)

    def _rows(self, kind: type, classes: Iterable[type], where: type | None) -> Iterator[TypeAudit]:
        """The rows of some classes of which `kind` inherits that hold for what `where` defines, or nobody.

        A class of the standard library has those of all; one of the code's own those of classes that have it too. One
        of the host's has those that the host gave, and those of Python's own types for what they define themselves.
        """
        own, host = self._own(kind), kind not in self._types or kind in self._world.host_types
        for one in classes:
            audit = self._types.get(one)
            if audit is None:
                continue
            if own:
                holds = where is None or where in lineage(one)
            else:
                holds = not host or one in self._world.host_types or (one in BUILTIN_TYPES and where in lineage(one))
            if holds:
                yield audit

    def _refusal(self, kind: type, name: str) -> Exception:
        return denied(f"attribute {name!r} of {name_of(kind)!r} is not granted")

    def _refusal_of_class(self, kind: type, name: str, rule: str = "attribute") -> Exception:
        return denied(f"attribute {name!r} of class {name_of(kind)!r} is not granted", rule)

    def _refusal_to_set(self, kind: type, name: str) -> Exception:
        return denied(f"attribute {name!r} of {name_of(kind)!r} cannot be set", "store")

    # ------------------------------------------------------------------------------- dunders

    def _read_dunder(self, value: Any, kind: type, name: str, own: bool) -> Any:
        if name == "__class__":
            return self._read_of_class(value, kind, own)
        if name in ("__setattr__", "__delattr__", "__getattribute__"):
            return Holding(name, self._checked_method(value, name))
        if name == "__new__":
            return Holding(name, self._world.maker(kind))
        where = holder(lineage(kind), name)
        if name == "__format__" and not self._own(where or kind):
            return Holding(name, lambda spec: value.__format__(_bearable(spec)))
        if name == "__dict__" and (
            where is None
            or where is types.SimpleNamespace
            or type(namespace(where)[name]) is types.GetSetDescriptorType
        ):
            if not own:
                raise self._refusal(kind, name)
            return Holding(name, self._world.own_dict(value))
        if where is not None and self._own(where):
            return value
        if name == "__call__" and where is not None:
            return Holding(name, self._world.calls(value))
        if name in DESCRIBING or name in OPERATIONS or (name in ERROR_PARTS and issubclass(kind, BaseException)):
            return value
        if name == "__get__" and kind in (staticmethod, classmethod):
            return value
        if name == "__init__" and (own or kind in BUILTIN_TYPES):
            return value
        if own and (where is None or name in ("__annotations__", "__match_args__", "__slots__", "__post_init__")):
            return value
        if name in TYPING and namespace(kind).get("__module__", "types") in ("types", "typing", "builtins"):
            return Holding(name, self._world.told(getattr(value, name)))
        raise self._refusal(kind, name)

    def _read_of_class(self, value: Any, kind: type, own: bool) -> Any:
        """`__class__` of what the code or the standard library made; of plain data and the host's, only its name."""
        if own:
            return value
        known = kind in self._types and kind not in self._world.host_types
        if not known or (kind in BUILTIN_TYPES and not issubclass(kind, BaseException)):
            raise self._refusal(kind, "__class__")
        return Holding("__class__", self._world.typeof(value))

    def class_of(self, value: Any) -> Any:
        """The class for `value.__class__.__name__`, and for comparisons with `value.__class__`."""
        return value.__class__ if self._own(type(value)) else self._world.typeof(value)

    def _checked_method(self, value: Any, name: str) -> Any:
        """`__setattr__` and the like of an object, bound: each name goes through the gates."""
        ask = getattr(self, _ASKED[name])

        def checked(one: Any, /, *new: Any) -> Any:
            found = ask(value, one := plain(one))
            return getattr(type(found) if issubclass(type(found), Watched) else object, name)(found, one, *new)

        return called(name, checked)

    # ------------------------------------------------------------------------------- classes

    def _read_class(self, value: type, kind: type, name: str) -> Any:
        if value in self._statics.get(name, ()):
            return value
        if is_dunder(name):
            found = self._read_class_dunder(value, kind, name)
            return self._read_class_call(value, kind) if name == "__call__" else found
        classes = lineage(value)
        where = holder(classes, name)
        if where is not None and self._own(where):
            if not self._heirs.may_read_class(where, name):
                raise self._refusal_of_class(value, name)
            self._remember(self._statics, name, value)
            return value
        for audit in self._rows(value, classes, where):
            if name in audit.static_replaced:
                return Holding(name, audit.static_replaced[name](self._world, value))
            if name in audit.replaced:
                return Holding(name, self._unbound_replaced(audit, name))
            if name in audit.statics and where is not None:
                if (checked := self._of_instances(where, name)) is not None:
                    return checked
                if type(static := namespace(where)[name]) is staticmethod:
                    self._world.calls.grant(static.__func__)
                self._remember(self._statics, name, value)
                return value
        if where is None:
            return self._read_metaclass(value, kind, name)
        if _is_member(value, name):
            return value
        raise self._refusal_of_class(value, name)

    def _read_metaclass(self, value: type, kind: type, name: str) -> Any:
        meta = holder(lineage(kind), name)
        if meta is ABCMeta and name == "register":
            self._world.classes.require_feature("hooks", "registering with an abstract class")
        if meta is None:
            if self._own(value) or value in BUILTIN_TYPES or value is Range or _is_member(value, name):
                return value  # there is none, unless a metaclass makes one
            audited = value in self._types and value not in self._world.host_types
            if audited and holder(lineage(kind), "__getattr__") is None:
                return value  # there is none, and CPython says so
        elif self._own(meta) or (
            self._own(value) and any(name in audit.reads for audit in self._rows(kind, lineage(kind), meta))
        ):
            return value
        raise self._refusal_of_class(value, name, "type")

    def _of_instances(self, where: type, name: str) -> Holding | None:
        """Stand-in for an attribute that a class defines for its instances; None where it may be had as it is."""
        audit = self._types.get(where)
        if audit is not None and audit.trusted:
            return None
        found = self._unbound.of(where, name, host=where in self._world.host_types)
        return None if found is None else Holding(name, found)

    def _unbound_replaced(self, audit: TypeAudit, name: str) -> Any:
        def unbound(instance: Any, *given: Any, **named: Any) -> Any:
            require_instance(audit.type, name, instance)
            method: Any = audit.replaced[name](self._world, instance)
            return method(*given, **named)

        return unbound

    def _read_class_dunder(self, value: type, kind: type, name: str) -> Any:
        if name in DESCRIBING:
            return value
        if name == "__new__":
            return Holding(name, self._world.maker(value))
        if name == "__class__" and self._own(value):
            return Holding(name, self._world.typeof(value))
        if name == "__dict__" and self._own(value):
            return Holding(name, types.MappingProxyType(self._shown(value)))
        if name in ("__setattr__", "__delattr__", "__getattribute__"):
            return Holding(name, lambda instance, *given: self._checked_method(instance, name)(*given))
        if name == "__members__" and issubclass(kind, EnumType) and (self._own(value) or self._audited(value)):
            return Holding(name, view_of_copy(namespace(value)["_member_map_"]))
        where = holder(lineage(value), name) or holder(lineage(kind), name)
        if where is None or self._own(where):
            return value
        if name == "__init__" and where in self._world.host_types:
            return Holding(name, self._own_init(value, where))
        if name == "__format__":
            method: Any = namespace(where)[name]
            return Holding(name, lambda instance, spec: method(instance, _bearable(spec)))
        if name == "__init__" and issubclass(where, MAKERS):
            found = self._of_instances(where, name)
            return Holding(name, self._world.calls.giving(getattr(found or value, name)))
        inherited = name in OPERATIONS or name in ("__init__", "__init_subclass__", "__class_getitem__")
        if inherited and (where in self._types or where is type):
            return self._of_instances(where, name) or value
        if name in OPERATIONS and value in self._types:
            return Holding(name, of_instances(value, name, getattr(value, name)))
        if self._own(value) and (inherited or name in _OF_CLASSES or (name in _DESCRIBED and where is property)):
            return self._of_instances(where, name) or value
        if name in ("__members__", "__annotations__", "__match_args__", "__parameters__") and self._audited(value):
            return value
        raise self._refusal_of_class(value, name, "type")

    def _read_class_call(self, value: type, kind: type) -> Any:
        """`__call__` of a class: what its instances are called by, or else what makes one. Neither passes the gate."""
        calls, where = self._world.calls, holder(lineage(value), "__call__")
        if self._own(where or holder(lineage(kind), "__call__") or value):
            return value
        if where is None:
            return Holding("__call__", calls(value))

        def __call__(instance: Any, /, *given: Any, **named: Any) -> Any:
            require_instance(where, "__call__", instance)
            return calls(instance)(*given, **named)

        return Holding("__call__", __call__)

    def _shown(self, kind: type) -> dict[str, Any]:
        """All of a class of the code's own that is the code's: no descriptor by which its objects are read."""
        return {
            name: value
            for name, value in self._world.shown(namespace(kind)).items()
            if type(value) not in _DESCRIPTORS and self._heirs.may_read_class(kind, name)
        }

    def _own_init(self, kind: Any, where: type) -> Any:
        """`__init__` of a class of the host, for what the code made of it: it would make a host's object anew."""

        def init(instance: Any, /, *given: Any, **named: Any) -> None:
            require_instance(where, "__init__", instance)
            if not self._own(type(instance)):
                raise denied(f"{name_of(type(instance))!r} cannot be initialised again", "store")
            kind.__init__(instance, *given, **named)

        return init

    def _read_super(self, value: Any, name: str) -> Any:
        start, of, itself = _super_class(value), _super_of(value), _super_self(value)
        if of is None:
            raise denied(f"attribute {name!r} of an unbound super object is not granted")
        classes = lineage(of)
        rest = classes[classes.index(start) + 1 :]
        if name == "__new__":
            return Holding(name, self._world.maker(holder(rest, name) or object))
        where = holder(rest, name)
        if name == "__init__" and where in self._world.host_types and not self._own(type(itself)):
            raise denied(f"{name_of(type(itself))!r} cannot be initialised again", "store")
        if where is None or self._own(where) or name in DESCRIBING:
            return value
        if name == "__format__" and not issubclass(type(itself), type):
            return Holding(name, lambda spec: value.__format__(_bearable(spec)))
        if issubclass(type(itself), type) and where not in lineage(type(itself)):
            value = self._of_instances(where, name) or value  # `super(C, C)` binds nothing
        if name == "__init__":
            return Holding(name, self._world.calls.giving(getattr(value, name))) if issubclass(where, MAKERS) else value
        if name in ("__setattr__", "__delattr__", "__getattribute__") and where is object:
            return Holding(name, self._checked_method(itself, name))
        if name in ("__init_subclass__", "__class_getitem__", "__post_init__", "__dir__", "__prepare__"):
            return value
        if name in OPERATIONS and (where in self._types or where is type or self._audited(where)):
            return value
        of_class = isinstance(itself, type)
        for audit in self._rows(of, rest, where) if not is_dunder(name) else ():
            instead = audit.static_replaced if of_class else audit.replaced
            if name in instead:
                return Holding(name, instead[name](self._world, itself))
            if name in (audit.statics if of_class else audit.reads):
                return value
        raise denied(f"attribute {name!r} of super is not granted")

    # ----------------------------------------------------------------------------- functions

    def _read_function(self, value: Any, function: Any, name: str) -> Any:
        if name in DESCRIBING or name in OPERATIONS or name == "__get__":
            return value
        if self._world.made(function):
            if name == "__dict__":
                return Holding(name, self._world.own_dict(function))
            if not is_dunder(name) or name in _OF_FUNCTIONS:
                return value
        elif name in self._world.open_functions.get(function, ()) or self._world.trusted.shows(function, name):
            return value
        elif name not in function.__dict__ and not is_dunder(name):
            return value  # there is none, and CPython says so
        raise self._refusal(type(value), name)

    def _read_method(self, value: Any, name: str) -> Any:
        function = value.__func__
        if type(function) is types.FunctionType:
            return self._read_function(value, function, name)
        if name in DESCRIBING:
            return value
        raise self._refusal(type(value), name)

    def _read_module(self, value: Module, name: str) -> Any:
        if name in ("__name__", "__doc__"):
            return Holding(name, module_name(value) if name == "__name__" else None)
        if name in ("__all__", "__version__", "__file__", "__stdin__", "__stdout__", "__stderr__"):
            return value
        if name == "__dict__":
            return Holding(name, types.MappingProxyType(self._world.shown(vars(value))))
        raise denied(f"attribute {name!r} of module {module_name(value)!r} is not granted")

    def _read_stand_in(self, value: Any, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return value
        if name == "__hash__" and type(value) is TypeStandIn:
            hashed = namespace(holder(lineage(value._kind), name) or object)[name] is not None
            return Holding(name, self._world.builtins["hash"] if hashed else None)
        if name in OPERATIONS and type(value) is TypeStandIn and self._audited(value._kind):
            return self.read(value._kind, name)
        if name == "__module__":
            return Holding(name, "builtins" if type(value) is TypeOfTypes else module_of(value._kind))
        if name == "__new__" and type(value) is TypeOfTypes:
            return Holding(name, self._world.maker(type))
        if type(value) is TypeOfTypes and name in ("__call__", "__init__", "__instancecheck__", "__subclasscheck__"):
            return Holding(name, self._of_type(name))
        raise denied(f"attribute {name!r} of a type is not granted", "type")

    def _of_type(self, name: str) -> Any:
        """`type.__call__` and the like, for the code's own metaclasses."""
        method = getattr(type, name)

        def checked(kind: Any, *given: Any, **named: Any) -> Any:
            if not isinstance(kind, type) or not self._own(kind):
                raise denied(f"type.{name} of what the code did not make is not granted", "type")
            return method(kind, *given, **named)

        return checked

    # ------------------------------------------------------------------------------- writing

    def write(self, value: Any, name: str) -> Any:
        """The object, if an attribute may be set on it."""
        found = self._settable(value, name)
        if name in _NAMES and found is value and not self._own(type(value)):  # which the host shows, whenever
            return self._called(value, lambda _, given: exact(given))
        return found

    def _settable(self, value: Any, name: str) -> Any:
        kind = type(value)
        if kind in self.known_writes(name):
            return value
        if name == "default_factory" and issubclass(kind, defaultdict):
            return self._called(value, lambda _, given: self._world.calls.given(given))
        if is_dunder(name) and name not in WRITABLE:
            raise denied(f"attribute {name} cannot be set", "store")
        if issubclass(kind, type):
            if self._own(value):
                self._world.classes.require_defined(value, name)
            if name in PROTOCOL_MARKS or not self._own(value) or not self._heirs.may_set(value, name):
                raise denied(f"attribute {name!r} of class {name_of(value)!r} cannot be set", "store")
            self._forget(name)
            return self._called(value, self._world.calls.method) if name in CALLED else value
        if name == "__dict__":
            return self._write_dict(value, kind)
        if self._own(kind):
            if self._world.hides(kind, name):
                raise self._refusal_to_set(kind, name)
            if kind in self.reads.get(name + spelling.CALLED, ()):
                self._forget(name)  # it may hide a method from now on
            self._stored.setdefault(name, set()).add(kind)
            self._remember(self.writes, name, kind)
            return value
        if kind is types.FunctionType and self._world.made(value):
            return value
        if name in ERROR_PARTS and issubclass(kind, BaseException):
            return value
        if kind is Module and name in STREAMS and module_name(value) == "sys":
            return stream_of(self._world, value)
        for audit in self._rows(kind, lineage(kind), None):
            if name in audit.writes and (name in audit.reads or issubclass(audit.type, BaseException)):
                return value
        if kind in VALUES:
            return value  # it cannot be, and CPython says so
        raise self._refusal_to_set(kind, name)

    def change(self, value: Any, name: str) -> Any:
        """The object, if an attribute may be read and then set on it, as augmented assignments do; else watched."""
        kind = type(value)
        if kind in self.known_writes(name):
            return value
        plain = name.removesuffix(spelling.AUGMENTED)
        if kind is types.FunctionType and self._world.made(value) and not (is_dunder(plain) or never_read(plain)):
            return value
        if self.write(value, plain) is not value or self.read(value, plain) is not value:
            return Watched(self, value)
        if kind in self.known_reads(plain) and kind in self.known_writes(plain):
            self._remember(self.writes, name, kind)
        return value

    def _write_dict(self, value: Any, kind: type) -> Any:
        """A setter of `__dict__` for an object of the code's own, with nothing of the host's in it."""
        where = holder(lineage(kind), "__dict__")
        plain = where is not None and type(namespace(where)["__dict__"]) is types.GetSetDescriptorType
        if not self._own(kind) or not plain or self._inherits(kind):
            raise self._refusal_to_set(kind, "__dict__")

        def put(name: str, given: Any) -> None:
            object.__setattr__(value, name, self._real_dict(given, value))

        def drop(name: str) -> None:
            raise TypeError("cannot delete __dict__")

        return Setting(self, value, put, drop)

    def _called(self, value: Any, check: Callable[[str, Any], Any]) -> Setting:
        """An object on which something is set that C code or the interpreter calls: what `check` gives, by name."""
        return Setting(
            self, value, lambda name, given: setattr(value, name, check(name, given)), lambda name: delattr(value, name)
        )

    def _inherits(self, kind: type) -> bool:
        return any(one in self._world.host_types for one in lineage(kind))

    def _real_dict(self, given: Any, value: Any) -> Any:
        """The dict that an object is to have: the one that was given, or that of the object whose `__dict__` it is."""
        self._stored.setdefault("", set()).add(type(value))
        for name in [one for one in self.reads if one.endswith(spelling.CALLED)]:
            self._forget(name.removesuffix(spelling.CALLED))
        self._world.classes.tame_lookups(type(value))
        if type(given) is not OwnDict:
            if type(given) is not dict:
                raise TypeError(f"__dict__ must be set to a dictionary, not a {name_of(type(given))!r}")
            return given
        owner = owner_of(given)
        if self._inherits(type(owner)):
            raise denied(f"attribute '__dict__' of {name_of(type(owner))!r} cannot be shared", "store")
        return object.__getattribute__(owner, "__dict__")

    def delete(self, value: Any, name: str) -> Any:
        """The object, if an attribute may be deleted from it."""
        found = self.write(value, name)
        if issubclass(type(value), type):
            if not is_dunder(name):
                self._require_covered(value, name)
            self._forget(name)
        return found

    def _require_covered(self, kind: type, name: str) -> None:
        """That no object shows what it was not granted once this class lacks a name: what was granted stays so."""
        for one in _family(kind):
            where = holder((other for other in lineage(one) if other is not kind), name)
            if where is None or self._own(where):
                continue
            audits = [*self._rows(one, lineage(one), where)]
            if not any(name in audit.reads for audit in audits) or any(name in audit.replaced for audit in audits):
                raise denied(
                    f"attribute {name!r} of class {name_of(kind)!r} cannot be deleted: it hides another", "store"
                )


_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_METHODS = (
    types.FunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType,
    types.WrapperDescriptorType, staticmethod, classmethod,
)  # fmt: skip


def _family(kind: type) -> Iterable[type]:
    """A class and all that inherit from it."""
    yield kind
    for heir in _heirs(kind):
        yield from _family(heir)


_heirs: Callable[[type], list[type]] = vars(type)["__subclasses__"]


def _bearable(spec: Any) -> Any:
    """A format specification with no width that could not be borne."""
    return check_spec(str.__str__(spec)) if isinstance(spec, str) else spec


def _lacks(value: Any, classes: tuple[type, ...], name: str) -> bool:
    """True if an object whose classes define no such name has none of its own either, and no code that makes one up.
    """
    return _is_looked_up(classes) and holder(classes, "__getattr__") is None and name not in held(value)


def _is_looked_up(classes: tuple[type, ...]) -> bool:
    """True if no code of these classes says what their objects have under a name."""
    where = holder(classes, "__getattribute__") or object
    return type(namespace(where)["__getattribute__"]) is types.WrapperDescriptorType


def _is_member(kind: type, name: str) -> bool:
    """True if a class is an enumeration with a member of this name."""
    return isinstance(kind, EnumType) and name in namespace(kind).get("_member_map_", ())
