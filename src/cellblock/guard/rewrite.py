"""Checks a tree node by node, and rewrites it in the same pass, so that what is decided at run time is decided inline.

The allow-list of nodes is the table at the end: what is not in it is refused. No recursion: source may nest as deep as
the compiler takes it. An attribute `x.a` becomes `(t if type(t := x) in read.a else gate(t, "a")).a`: the receiver is
looked at, and stays the receiver, so that calls, stores, deletions and augmented assignments are what they were.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import count
from types import FunctionType
from typing import Any

from cellblock.guard import build, sizes, spelling
from cellblock.guard.bounded import BY_NAME
from cellblock.guard.growth import MOST_STRIPPED
from cellblock.guard.magnitude import bits_of, infer
from cellblock.guard.matching import checks_of
from cellblock.guard.names import (
    DEFINABLE,
    HOOKS,
    LIBRARY_READS,
    LIBRARY_WRITES,
    REFUSED_BUILTINS,
    RESERVED,
    WRITABLE,
    is_dunder,
    mangled,
    never_read,
)
from cellblock.guard.operators import SIZED, Operation, harmless, is_simple, measure, place
from cellblock.guard.refusal import Refusal
from cellblock.guard.rules import BY_ID, instead_of
from cellblock.guard.scopes import (
    LOOP,
    PARAMETER,
    Group,
    Ranged,
    Scope,
    Site,
    literal_type,
    plain_format,
    plain_spec,
    settle,
    targets,
)
from cellblock.guard.tables import OF_CONTAINERS, READS, STRIPPING, SWAPPED

_TEMPS, _SOFT, _ITERABLE = 1, 2, 4
"""Flags of a place: names may be bound in it for a moment; an ImportError raised there is caught; it is part of what
a comprehension goes through, where lambdas bind none either."""

_SOURCES = count(1)
_SHORT = 1_000_000
"""Characters of a text that one call splits or pads without delay."""
_SEARCHED = 3_000
"""The same of one that is split from its end, where what splits it may be compared at each place."""
_IMPORT_ERRORS = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))


Slot = tuple[Any, Any]
"""Place of a node in its tree: a list and an index, or a node and a field."""


_HASHING = frozenset(("get", "setdefault", "pop", "add", "discard", "remove", "move_to_end"))
"""Names of methods that hash their first argument."""
_CALLING = frozenset(("map", "filter"))
"""Names of what calls its first argument over and over, in C."""
_KEYED = frozenset(("sorted", "min", "max", "sort"))
"""Names of what calls its `key` so."""
BUILTINS = frozenset(name for name, one in vars(builtins).items() if type(one) is not FunctionType) - {"property"}
"""Names that Python's own callables have in a cell that binds none of them."""


class Rewriter:
    """One pass over one tree. Afterwards `refusals` are what was found, and the sets say which attributes it names."""

    def __init__(
        self,
        *,
        modules: Callable[[str], bool],
        bound: frozenset[str] | set[str],
        without: frozenset[str],
        texts: bool = False,
        library: bool = False,
    ) -> None:
        self.refusals: list[Refusal] = []
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.reaches: set[str] = set()
        self.groups: set[Group] = set()
        self.module = Scope("module", None, None)
        self.swaps: set[str] = set()
        self._modules = modules
        self._bound = set(bound)
        self._without = without
        self._library = library
        self._builtins: list[ast.Name] = []
        self._operations: list[Operation] = []
        self._callees: set[int] = set()
        self._ranges: list[ast.IfExp] = []
        self._looked_at: list[tuple[Any, Scope, Callable[[ast.AST], None], ast.expr]] = []
        self._stack: list[tuple[Any, Scope, int, Slot]] = []
        self._scopes: list[Scope] = []
        self._future = texts

    def rewrite(self, tree: ast.Module) -> None:
        """Check and rewrite a tree in place."""
        module = self.module
        self._scopes.append(module)
        self._future |= any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(one.name == "annotations" for one in node.names)
            for node in tree.body
        )
        self._push_list(tree.body, module, _TEMPS)
        stack, handlers = self._stack, _HANDLERS
        while stack:
            node, scope, flags, slot = stack.pop()
            handler = handlers.get(type(node), _unknown)
            if handler is None:
                self._push_children(node, scope, flags)
            else:
                handler(self, node, scope, flags, slot)
        for name in self._builtins:
            if name.id not in self._bound and not self._library:
                self._refuse("builtin", f"{name.id}() is not granted", name)
        ranges = "range" not in self._bound
        if not ranges:
            for test in self._ranges:
                test.orelse = build.call(test, spelling.CALL, build.name(test, "range"))
        for scope in self._scopes:
            _guard_handlers(scope)
            infer(scope, ranges=ranges)
        for looked_at, scope, put, held in self._looked_at:
            if bits_of(looked_at, scope) is not None:
                put(held.value if isinstance(held, ast.NamedExpr) else looked_at)
        for operation in self._operations:
            measure(operation)
        for scope in self._scopes:
            settle(scope, self._checked, self.groups)
        for operation in reversed(self._operations):
            place(operation)

    # ------------------------------------------------------------------------------ walking

    def _scope(self, kind: str, owner: str | None, outer: Scope) -> Scope:
        scope = Scope(kind, owner, outer)
        self._scopes.append(scope)
        return scope

    def _push_list(self, nodes: list[Any], scope: Scope, flags: int) -> None:
        for index in range(len(nodes) - 1, -1, -1):
            if nodes[index] is not None:
                self._stack.append((nodes[index], scope, flags, (nodes, index)))

    def _push(self, parent: Any, field: str, scope: Scope, flags: int) -> None:
        child = getattr(parent, field)
        if type(child) is list:
            self._push_list(child, scope, flags)
        elif child is not None:
            self._stack.append((child, scope, flags, (parent, field)))

    def _push_children(self, node: Any, scope: Scope, flags: int) -> None:
        stack, leaves = self._stack, _LEAVES
        for field in reversed(node._fields):
            child = getattr(node, field, None)
            if type(child) is list:
                for index in range(len(child) - 1, -1, -1):
                    if type(child[index]) not in leaves and isinstance(child[index], ast.AST):
                        stack.append((child[index], scope, flags, (child, index)))
            elif type(child) not in leaves and isinstance(child, ast.AST):
                stack.append((child, scope, flags, (node, field)))

    def _push_held(self, node: ast.expr, held: ast.expr, scope: Scope, flags: int) -> None:
        """Visit what is looked at, where it was kept for that; a name that may be read again stays where it is."""
        if isinstance(held, ast.NamedExpr):
            self._stack.append((node, scope, flags, (held, "value")))
        elif isinstance(node, ast.Name):
            self._name(node, scope, flags, (None, ""))

    def _refuse(self, rule: str, what: str, at: Any, instead: str = "") -> None:
        line = getattr(at, "lineno", 1)
        column, end = getattr(at, "col_offset", 0), getattr(at, "end_col_offset", None)
        self.refusals.append(
            Refusal(
                rule=rule,
                what=what,
                line=line,
                column=column,
                end_column=(end or column + 1) if getattr(at, "end_lineno", line) == line else sys.maxsize,
                instead=instead or BY_ID[rule].instead,
            )
        )

    def _feature(self, feature: str, what: str, at: Any) -> None:
        if feature in self._without:
            self._refuse(feature, what, at)

    # -------------------------------------------------------------------------------- names

    def _binds(self, name: str | None, at: Any, scope: Scope, by: object = None) -> None:
        """A name is bound here, by whatever form: `by` is what tells of its value."""
        if name is None:
            return
        self._bound.add(name)
        scope.bound.setdefault(name, []).append(by)
        if name in RESERVED or name == "__class__" or "." in name:
            self._refuse("name", f"{name} cannot be bound", at)
        elif scope.kind == "class" and is_dunder(name) and name not in DEFINABLE and not self._library:
            self._refuse("class", f"a class cannot define {name}", at)
        elif scope.kind == "class" and name in HOOKS:
            self._feature("hooks", f"defining {name} is switched off", at)

    def _name(self, node: ast.Name, scope: Scope, flags: int, slot: Slot) -> None:
        name = node.id
        if type(node.ctx) is not ast.Load:
            self._binds(name, node, scope)
        elif name in REFUSED_BUILTINS:
            self._builtins.append(node)
        elif name in RESERVED and not (self._library and name == "__path__"):
            rule = "import" if name == "__import__" else "name"
            self._refuse(rule, f"{name} is not granted", node)

    def _names(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        self._feature("global", f"{type(node).__name__.lower()} is switched off", node)
        for name in node.names:
            self._binds(name, node, scope)
        scope.declare(node.names, shared=isinstance(node, ast.Nonlocal))

    def _argument(self, node: ast.arg, scope: Scope, flags: int, slot: Slot) -> None:
        self._binds(node.arg, node, scope)
        self._annotation(node, "annotation", scope, flags)

    # --------------------------------------------------------------------------- attributes

    def _attribute(self, node: ast.Attribute, scope: Scope, flags: int, slot: Slot) -> None:
        name = mangled(node.attr, scope.owner)
        receiver = node.value
        if self._library and is_dunder(name) and self._of_library(node, name, scope, flags, slot):
            return
        if not self._library and (rule := never_read(name)) is not None:
            self._refuse(rule, f"attribute {node.attr} is not granted", node)
            self._push(node, "value", scope, flags)
            return
        if (
            name in ("__name__", "__qualname__")
            and isinstance(receiver, ast.Attribute)
            and receiver.attr == "__class__"
        ):
            receiver = node.value = _class_of(receiver)
        if type(node.ctx) is ast.Load:
            called = _is_callee(slot)
            own = scope.kind == "comprehension" and type(receiver) is ast.Name and receiver.id in scope.bound
            if name in STRIPPING and _strips_few(slot):
                name += spelling.BRIEF
            elif name in SWAPPED and (name not in OF_CONTAINERS if _is_text(receiver) else own or flags & _TEMPS):
                self._swapped(node, name, scope, flags, slot, own=own)
                return
            elif called:
                name += spelling.CALLED
            kind = literal_type(receiver)
            formats = node.attr == "format" and plain_format(receiver)
            if kind is not None and (formats or node.attr in READS.get(kind, ())):
                self._push(node, "value", scope, flags)
                return
        else:
            if is_dunder(name) and name not in WRITABLE and not self._library:
                self._refuse("store", f"attribute {node.attr} cannot be set", node)
            if type(node.ctx) is ast.Del:
                node.value = build.call(receiver, spelling.GATE_DELETE, receiver, build.constant(receiver, name))
                self._stack.append((receiver, scope, flags, (node.value.args, 0)))
                return
            if type(slot[0]) is ast.AugAssign:
                name += spelling.AUGMENTED
        stored = type(node.ctx) is not ast.Load
        if type(receiver) is ast.Name and scope.decides(receiver.id, stored=stored):
            self._name(receiver, scope, flags, slot)
            scope.sites.setdefault(receiver.id, []).append(Site(node, name, flags))
            return
        if _runs_once(scope, flags):
            flags &= ~_TEMPS  # this is run once: a call does, and is less to compile
        slot = self._checked(Site(node, name, flags), own=False)
        self._stack.append((receiver, scope, flags, slot))

    def _of_library(self, node: ast.Attribute, name: str, scope: Scope, flags: int, slot: Slot) -> bool:
        """Have the world tell what source of the library asks of a class, or sets on one. True if that was done."""
        asked = {"__class__": spelling.CLASS_OF} | {one: spelling.LIBRARY + one for one in LIBRARY_READS}
        if type(node.ctx) is ast.Load and name in asked:
            call = build.call(node, asked[name], node.value)
            _setter(slot)(build.call(node, spelling.CALL, call) if _is_callee(slot) else call)
        elif type(node.ctx) is ast.Store and name in LIBRARY_WRITES:
            node.value = call = build.call(node, spelling.SETTABLE, node.value, build.constant(node, name))
        else:
            return False
        self._stack.append((call.args[0], scope, flags, (call.args, 0)))
        return True

    def _checked(self, site: Site, *, own: bool) -> Slot:
        """Have it asked inline whether an attribute may be had of a receiver; where that stands now.

        `own`: the receiver is a name that nothing else rebinds, and may be evaluated more than once.
        """
        receiver = site.node.value
        if not own and not site.flags & _TEMPS:
            if site.stored:
                gate = spelling.GATE_CHANGE if site.changed else spelling.GATE_WRITE
                call = build.call(site.node, gate, receiver, build.constant(receiver, site.name))
            else:
                self.reaches.add(site.name)
                self.reads.add(site.name)
                call = build.call(site.node, spelling.REACH + site.name, receiver)
            site.node.value = call
            return call.args, 0
        known, prefix, gate = self.reads, spelling.READ, spelling.GATE
        if site.stored:
            known, prefix = self.writes, spelling.WRITE
            gate = spelling.GATE_CHANGE if site.changed else spelling.GATE_WRITE
        known.add(site.name)
        held, spelled = _held(receiver, own=own)
        kind: ast.expr = build.call(receiver, spelling.TYPE, held)
        tests = []
        if not site.stored and (site.flags & LOOP or isinstance(receiver, ast.Attribute)):
            tests.append(build.chain(receiver, kind, "is", build.name(receiver, spelling.LAST + site.name)))
            kind = build.call(receiver, spelling.TYPE, build.name(receiver, spelled))
        tests.append(build.is_in(receiver, kind, prefix + site.name))
        site.node.value = build.either(
            receiver,
            build.any_of(receiver, *tests),
            build.name(receiver, spelled),
            build.call(site.node, gate, build.name(receiver, spelled), build.constant(receiver, site.name)),
        )
        return held, "value"

    def _swapped(self, node: ast.Attribute, name: str, scope: Scope, flags: int, slot: Slot, *, own: bool) -> None:
        """A method that is the guard's own for some types: bound by type, and else read as any attribute."""
        receiver, swaps = node.value, spelling.SWAP + name
        most = _harmless_length(name, slot)
        if most and isinstance(receiver, ast.Constant) and len(str(receiver.value)) < most:
            return
        if most:
            held, spelled = _held(receiver, own=own)
            node.value = build.short_text(receiver, held, spelled, name, most)
            self._push_held(receiver, held, scope, flags)
            return
        self.swaps.add(name)
        if _is_text(receiver) and hasattr(str, name):
            _setter(slot)(build.call(node, swaps + ".str", receiver))
            return
        held, spelled = _held(receiver, own=own)
        test = build.is_in(receiver, build.call(receiver, spelling.TYPE, held), swaps)
        bind = build.item(node, swaps, build.call(node, spelling.TYPE, build.name(node, spelled)))
        bound = build.placed(ast.Call(bind, [build.name(node, spelled)], []), node)
        node.value = build.name(receiver, spelled)
        self._checked(Site(node, name + spelling.CALLED if _is_callee(slot) else name, flags), own=True)
        _setter(slot)(build.either(node, test, bound, node))
        self._push_held(receiver, held, scope, flags)

    # ---------------------------------------------------------------------------- operators

    def _operation(self, node: ast.BinOp, scope: Scope, flags: int, slot: Slot) -> None:
        if type(node.op) is ast.Add and not _is_number(node) and _checks_sum(scope, flags):
            made = build.call(node, spelling.ADD, node.left, node.right)
            _setter(slot)(made)
            self._push_list(made.args, scope, flags)
            return
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str | bytes)
        if type(node.op) is ast.Mod and text and harmless(ast.Mod, node.left, node.right):
            self._screened(node.right, scope, flags, (node, "right"))
            return
        if type(node.op) in SIZED and not harmless(type(node.op), node.left, node.right):
            self._operations.append(Operation(node, _setter(slot), scope, flags))
        self._push_children(node, scope, flags)

    def _augmented(self, node: ast.AugAssign, scope: Scope, flags: int, slot: Slot) -> None:
        kind, target = type(node.op), node.target
        sized = kind in SIZED and not harmless(kind, None, node.value)
        if (
            kind is ast.Add
            and isinstance(target, ast.Name)
            and not _is_number(node.value)
            and _checks_sum(scope, flags)
        ):
            self._binds(target.id, target, scope, node)
            checked = build.call(node.value, spelling.ADD + "_by", build.name(target, target.id), node.value)
            self._stack.append((node.value, scope, flags, (checked.args, 1)))
            node.value = checked
            return
        if sized and not is_simple(target):
            if scope.kind == "class":
                self._refuse("size", "this assignment cannot be checked inside a class body", node)
                return
            steps = self._steps(node, scope)
            whole = build.placed(ast.If(build.constant(node, True), [*steps, node], []), node)
            _setter(slot)(whole)
            self._stack.append((node, scope, flags, (whole.body, len(steps))))
            for step in reversed(steps):
                self._push(step, "value", scope, flags)
            return
        if sized:
            operation = Operation(node, _setter(slot), scope, flags)
            self._operations.append(operation)
            present: Any = deepcopy(target)
            present.ctx = build.LOAD
            operation.present = [present]
            self._push_list(operation.present, scope, flags)
        if isinstance(target, ast.Name):
            self._binds(target.id, target, scope, node)
        else:
            self._push(node, "target", scope, flags)
            if kind is ast.Add and not _is_number(node.value) and _checks_sum(scope, flags):
                node.value = build.call(node.value, spelling.ADDED, node.value)
        self._push(node, "value", scope, flags)

    # ------------------------------------------------------------------------ what is walked in C

    def _screened(self, node: ast.expr, scope: Scope, flags: int, slot: Slot, look: str = spelling.LIGHT) -> None:
        """Have a value measured that C code goes through, unless it is plain."""
        if _is_plain(node):
            self._stack.append((node, scope, flags, slot))
            return
        put = _setter(slot)
        own = type(node) is ast.Name and scope.decides(node.id, stored=False)
        if not own and (not flags & _TEMPS or _runs_once(scope, flags)):
            call = build.call(node, look, node)
            put(call)
            self._stack.append((node, scope, flags, (call.args, 0)))
            return
        held, spelled = _held(node, own=own)
        tests: list[ast.expr] = []
        for likely in _LIKELY[look]:
            kind = build.call(node, spelling.TYPE, held if not tests else build.name(node, spelled))
            tests.append(build.chain(node, kind, "is", build.name(node, likely)))
        known = build.call(node, spelling.TYPE, build.name(node, spelled))
        tests.append(build.is_in(node, known, spelling.PLAIN))
        light = build.call(node, look, build.name(node, spelled))
        whole = build.either(node, build.any_of(node, *tests), build.name(node, spelled), light)
        whole.of = node  # type: ignore[attr-defined]
        put(whole)
        if own or _is_sum(node):
            self._looked_at.append((node, scope, put, held))
        self._push_held(node, held, scope, flags)

    def _compare(self, node: ast.Compare, scope: Scope, flags: int, slot: Slot) -> None:
        """A comparison of two values of which neither is known to be small goes through both.

        `<` and `(x, y) in seen`, which are many and mostly of numbers, are looked at where they are run once.
        """
        if all(isinstance(one, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) for one in node.ops):
            by = spelling.TYPE if self._library else spelling.CLASS_OF
            node.left, *node.comparators = (_class_compared(one, by) for one in (node.left, *node.comparators))
        right = node.comparators[0]
        once = _runs_once(scope, flags)
        kinds = _WALKING_ONCE if once else _EQUAL if isinstance(node.left, ast.Tuple) else _WALKING
        walking = type(node.ops[0]) in kinds
        if len(node.ops) > 1 or not walking or _is_number(node.left) or _is_number(right):
            self._push_children(node, scope, flags)
            return
        if isinstance(node.ops[0], ast.In | ast.NotIn) and not isinstance(right, _SHOWN):
            self._sought(node, scope, flags, slot)
            return
        self._push_list(node.comparators, scope, flags)
        if isinstance(node.left, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in node.left.elts):
            for index, one in enumerate(node.left.elts):
                self._screened(one, scope, flags, (node.left.elts, index))
        else:
            self._screened(node.left, scope, flags, (node, "left"))

    def _parts_screened(self, node: ast.expr, scope: Scope, flags: int, slot: Slot, look: str) -> None:
        """The same, of each of its items where it is a tuple that stands in the source."""
        if not isinstance(node, ast.Tuple):
            self._screened(node, scope, flags, slot, look)
        elif any(isinstance(one, ast.Starred) for one in node.elts):
            call = build.call(node, look, node)
            _setter(slot)(call)
            self._stack.append((node, scope, flags, (call.args, 0)))
        else:
            for index, one in enumerate(node.elts):
                self._parts_screened(one, scope, flags, (node.elts, index), look)

    def _subscript(self, node: ast.Subscript, scope: Scope, flags: int, slot: Slot) -> None:
        if _runs_once(scope, flags) and not isinstance(node.slice, ast.Slice):
            self._parts_screened(node.slice, scope, flags, (node, "slice"), spelling.HASHABLE)
        else:
            self._push(node, "slice", scope, flags)
        self._push(node, "value", scope, flags)

    def _dict(self, node: ast.Dict, scope: Scope, flags: int, slot: Slot) -> None:
        self._push_list(node.values, scope, flags)
        for index, key in enumerate(node.keys):
            if key is not None:
                self._parts_screened(key, scope, flags, (node.keys, index), spelling.HASHABLE)

    def _sought(self, node: ast.Compare, scope: Scope, flags: int, slot: Slot) -> None:
        """Have what is looked for compared in steps, unless it is plain."""
        left, right, op, put = node.left, node.comparators[0], node.ops[0], _setter(slot)
        sought = build.call(node, spelling.FOUND, left, right)
        whole: ast.expr = sought if isinstance(op, ast.In) else build.placed(ast.UnaryOp(ast.Not(), sought), node)
        if isinstance(left, ast.Constant | ast.JoinedStr):
            self._push_children(node, scope, flags)
        elif not flags & _TEMPS or not isinstance(right, ast.Name | ast.Attribute | ast.Subscript):
            put(whole)
            self._push_list(sought.args, scope, flags)
        else:
            held = [one if _is_own(one, scope) else build.kept(one, scope.temporary(), one) for one in (left, right)]
            names = [one.target.id if isinstance(one, ast.NamedExpr) else one.id for one in held]  # type: ignore[attr-defined]
            kind = build.call(node, spelling.TYPE, build.name(node, names[0]))
            both = build.chain(node, held[0], "is not", held[1])
            sought.args = [build.name(node, name) for name in names]
            node.left, node.comparators = build.name(node, names[0]), [build.name(node, names[1])]
            put(build.either(node, build.all_of(node, both, build.is_in(node, kind, spelling.PLAIN)), node, whole))
            for one, holding in ((right, held[1]), (left, held[0])):
                self._stack.append((one, scope, flags, (holding, "value") if holding is not one else (None, "")))

    def _call(self, node: ast.Call, scope: Scope, flags: int, slot: Slot) -> None:
        """Rewrite a call. A value shown by `str(x)` or `"…".format(x)` is gone through whole, and so is a text that
        `int(x, 16)` reads.
        """
        function, arguments = node.func, node.args
        if _puts(function):
            node.func = build.name(function, spelling.PUT)
            self._push_list(arguments, scope, flags)
            return
        name = function.id if isinstance(function, ast.Name) else None
        fills = isinstance(function, ast.Attribute) and function.attr == "format" and _is_text(function.value)
        method, once = getattr(function, "attr", ""), _runs_once(scope, flags)
        shows = fills or (name == "str" and len(arguments) == 1)
        spread = name == "int" and any(isinstance(one, ast.Starred) for one in arguments)
        reads = name == "int" and len(arguments) + len(node.keywords) == 2
        if fills:
            for keyword in reversed(node.keywords):
                self._screened(keyword.value, scope, flags, (keyword, "value"))
        else:
            self._make_steps(node, scope, flags)
            self._push_list(node.keywords, scope, flags)
        for index in range(len(arguments) - 1, -1, -1):
            one = arguments[index]
            if spread and isinstance(one, ast.Starred):
                one.value = call = build.call(one, spelling.ALL_DIGITS, one.value)
                self._stack.append((call.args[0], scope, flags, (call.args, 0)))
                continue
            if shows and not isinstance(one, ast.Starred):
                self._screened(one, scope, flags, (arguments, index))
            elif index == 0 and once and method in _HASHING and not isinstance(one, ast.Starred):
                self._parts_screened(one, scope, flags, (arguments, index), spelling.HASHABLE)
            elif (spread or (reads and index == 0)) and not isinstance(one, ast.Starred) and not _is_small(one):
                arguments[index] = call = build.call(one, spelling.DIGITS, one)
                self._stack.append((one, scope, flags, (call.args, 0)))
            else:
                self._stack.append((one, scope, flags, (arguments, index)))
        self._callee(node, scope, flags)

    def _callee(self, node: ast.Call, scope: Scope, flags: int) -> None:
        """Have it asked inline whether what is called may be. A method is looked at with its object."""
        function = node.func
        name = function.id if isinstance(function, ast.Name) else ""
        spread = _spreads_key(node, name or getattr(function, "attr", ""))
        with_object = isinstance(function, ast.Attribute) and not spread
        if with_object or isinstance(function, ast.Lambda) or id(function) in self._callees or "." in name:
            self._push(node, "func", scope, flags)
        elif spread or not (name or flags & _TEMPS):
            node.func = call = build.call(function, spelling.CALL, function)
            self._stack.append((function, scope, flags, (call.args, 0)))
        else:
            node.func = self._may_be_called(function, name, scope, flags)

    def _may_be_called(self, function: ast.expr, name: str, scope: Scope, flags: int) -> ast.expr:
        held, spelled = _held(function, own=bool(name))
        if name in BUILTINS:
            test: ast.expr = build.is_same(function, held, build.name(function, spelling.CALLABLE + name))
        else:
            kind = build.call(function, spelling.TYPE, held)
            known = build.call(function, spelling.ID, build.name(function, spelled))
            test = build.any_of(
                function,
                build.chain(function, kind, "is", build.name(function, spelling.FUNCTION)),
                build.is_in(function, known, spelling.CALL_KNOWN),
            )
        self._push_held(function, held, scope, flags)
        asked = build.call(function, spelling.CALL, build.name(function, spelled))
        called = spelling.BOUNDED + name if name in BY_NAME else spelled
        return build.either(function, test, build.name(function, called), asked)

    def _decorators(self, nodes: list[ast.expr], scope: Scope, flags: int) -> None:
        """Have decorators looked at: the interpreter itself calls them."""
        for index, one in enumerate(nodes):
            nodes[index] = call = build.call(one, spelling.CALL, one)
            self._stack.append((one, scope, flags, (call.args, 0)))

    def _make_steps(self, node: ast.Call, scope: Scope, flags: int) -> None:
        """Have what C code calls over and over, or goes through all at once, pass through Python.

        `*x` is a tuple of all that `x` holds, which has to fit into what the memory limit leaves.
        """
        function = node.func
        named = isinstance(function, ast.Name)
        name = getattr(function, "id" if named else "attr", "")

        def step(checks: str, value: ast.expr) -> ast.Call:
            return build.call(value, checks, value, *([build.name(value, name)] if named else []))

        if name in _KEYED:
            for keyword in node.keywords:
                if keyword.arg == "key" and not isinstance(keyword.value, ast.Lambda):
                    keyword.value = step(spelling.STEPPED, keyword.value)
        for index, one in enumerate(node.args):
            if isinstance(one, ast.Starred):
                if named and name == "zip":
                    one.value = step(spelling.SPREAD, one.value)
                elif _checks_sum(scope, flags):
                    one.value = build.call(one.value, spelling.PAUSE, one.value)
            elif not named:
                continue
            elif index == 0 and name in _CALLING and not isinstance(one, ast.Lambda | ast.Starred | ast.Constant):
                node.args[0] = step(spelling.STEPPED, one)

    def _paused(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        """A display of what others hold, `(*x, *x)`, is as large as all of them: it is made in a step of its own."""
        if len(node.elts) > 1 and isinstance(getattr(node, "ctx", build.LOAD), ast.Load):
            first = next((one for one in node.elts if isinstance(one, ast.Starred)), None)
            if first is not None and _checks_sum(scope, flags):
                first.value = build.call(first.value, spelling.PAUSE, first.value)
        self._push_children(node, scope, flags)

    def _set(self, node: ast.Set, scope: Scope, flags: int, slot: Slot) -> None:
        for index, one in enumerate(node.elts):
            if isinstance(one, ast.Starred):
                one.value = build.call(one.value, spelling.FED, one.value)
                self._stack.append((one, scope, flags, (node.elts, index)))
            else:
                self._parts_screened(one, scope, flags, (node.elts, index), spelling.HASHABLE)

    def _steps(self, node: ast.AugAssign, scope: Scope) -> list[ast.Assign]:
        """Assignments that evaluate the target of an augmented assignment before it."""
        steps: list[ast.Assign] = []
        target: Any = node.target

        def before(value: ast.expr) -> ast.Name:
            kept = build.placed(ast.Name(scope.temporary(), build.STORE), value)
            steps.append(build.placed(ast.Assign([kept], value), value))
            return build.name(value, kept.id)

        target.value = before(target.value)
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            target.slice = before(target.slice)
        elif isinstance(target, ast.Subscript):
            for part in ("lower", "upper", "step"):
                if getattr(target.slice, part) is not None:
                    setattr(target.slice, part, before(getattr(target.slice, part)))
        return steps

    # ------------------------------------------------------------------------------ strings

    def _joined(self, node: ast.FormattedValue, scope: Scope, flags: int, slot: Slot) -> None:
        spec = node.format_spec
        if spec is None or plain_spec(spec):
            self._screened(node.value, scope, flags, (node, "value"))
            return
        conversion = build.constant(node, node.conversion)
        node.value = build.call(node.value, spelling.FORMAT, node.value, conversion, spec)
        node.conversion, node.format_spec = -1, None
        self._push_list(node.value.args, scope, flags)

    # ---------------------------------------------------------------------------- functions

    def _function(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        if self._library and scope.kind == "class" and is_dunder(node.name) and node.name not in DEFINABLE:
            _setter(slot)(build.placed(ast.Pass(), node))  # how it is pickled, which no class of a world tells
            return
        asynchronous = isinstance(node, ast.AsyncFunctionDef)
        if asynchronous:
            self._feature("async", "async def is switched off", node)
        if node.decorator_list:
            self._feature("decorators", "decorators are switched off", node.decorator_list[0])
        self._binds(node.name, node, scope)
        inner = self._scope("function", scope.owner, scope)
        inner.suspends = asynchronous
        inner.body = node.body
        self._push_list(node.body, inner, _TEMPS | (flags & _SOFT))
        self._annotation(node, "returns", scope, flags)
        self._arguments(node.args, scope, inner, flags)
        self._decorators(node.decorator_list, scope, flags)
        self._push_list(getattr(node, "type_params", []), scope, flags & ~_TEMPS)

    def _lambda(self, node: ast.Lambda, scope: Scope, flags: int, slot: Slot) -> None:
        inner = self._scope("function", scope.owner, scope)
        self._unnamed(scope)
        self._push(node, "body", inner, flags & _ITERABLE or _TEMPS)
        self._arguments(node.args, scope, inner, flags)

    def _arguments(self, node: ast.arguments, scope: Scope, inner: Scope, flags: int) -> None:
        self._push_list(node.kw_defaults, scope, flags)
        self._push_list(node.defaults, scope, flags)
        for argument in (*node.posonlyargs, *node.args, node.vararg, *node.kwonlyargs, node.kwarg):
            if argument is not None:
                self._binds(argument.arg, argument, inner, PARAMETER)
                self._annotation(argument, "annotation", scope, flags)

    def _class(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        if node.bases or node.keywords:
            self._feature("inheritance", "classes with bases are switched off", node)
        if node.decorator_list:
            self._feature("decorators", "decorators are switched off", node.decorator_list[0])
        self._binds(node.name, node, scope)
        inner = self._scope("class", node.name, scope)
        self._push_list(node.body, inner, flags & _SOFT)
        for field in ("keywords", "bases"):
            self._push_list(getattr(node, field), scope, flags & ~_TEMPS)
        self._decorators(node.decorator_list, scope, flags)
        self._push_list(getattr(node, "type_params", []), scope, flags & ~_TEMPS)

    def _annotation(self, node: Any, field: str, scope: Scope, flags: int) -> None:
        """An annotation, or what becomes a text and is not run: that holds nothing unknown either."""
        if not self._future:
            self._push(node, field, scope, flags & ~_TEMPS)
        elif (found := getattr(node, field)) is not None:
            for part in ast.walk(found):
                if type(part) not in _HANDLERS:
                    self._not_known(part, scope, flags, (node, field))

    def _annotated(self, node: ast.AnnAssign, scope: Scope, flags: int, slot: Slot) -> None:
        if isinstance(node.target, ast.Name):
            scope.plain = True
        self._push(node, "value", scope, flags)
        self._push(node, "target", scope, flags)
        self._annotation(node, "annotation", scope, flags)

    def _suspending(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        feature = "async" if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) else "generators"
        self._feature(feature, f"{type(node).__name__.lower()} is switched off", node)
        scope.home.suspends = True
        if scope.home is self.module and isinstance(node, ast.Yield | ast.YieldFrom):
            self.module.plain = True
        if isinstance(node, ast.YieldFrom | ast.Await):
            by = spelling.AWAITED if isinstance(node, ast.Await) else spelling.ITERATED
            node.value = build.call(node.value, by, node.value)
        elif isinstance(node, ast.AsyncFor):
            node.iter = build.call(node.iter, spelling.STEPPED_ASYNC, node.iter)
        if isinstance(node, ast.AsyncFor):
            self._loop(node, scope, flags, slot)
        else:
            self._push_children(node, scope, flags)

    def _comprehension(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        if isinstance(node, ast.GeneratorExp):
            self._feature("generators", "generator expressions are switched off", node)
        if any(part.is_async for part in node.generators):
            self._feature("async", "async for is switched off", node)
            scope.home.suspends = True
        self._unnamed(scope)
        inner = self._scope("comprehension", scope.owner, scope)
        for number, part in enumerate(node.generators):
            ranged = self._real_range(part)
            if part.is_async:
                part.iter = build.call(part.iter, spelling.STEPPED_ASYNC, part.iter)
            self._push(part, "iter", inner if number else scope, (flags | _ITERABLE) & ~_TEMPS)
            for name in targets(part.target):
                self._binds(name.id, name, inner, ranged)
            if not targets(part.target):
                self._push(part, "target", inner, flags & ~_TEMPS)
            self._push(part, "ifs", inner, flags & ~_TEMPS)
        hashed = {ast.SetComp: "elt", ast.DictComp: "key"}.get(type(node))
        for field in ("elt", "key", "value"):
            if field == hashed:
                part = getattr(node, field)
                self._parts_screened(part, inner, flags & ~_TEMPS, (node, field), spelling.HASHABLE)
            elif hasattr(node, field):
                self._push(node, field, inner, flags & ~_TEMPS)

    def _unnamed(self, scope: Scope) -> None:
        """Name what is made here after its place."""
        if scope.home is self.module:
            scope.home.unnamed = True

    def _named(self, node: ast.NamedExpr, scope: Scope, flags: int, slot: Slot) -> None:
        self._binds(node.target.id, node.target, scope.home)
        self._push(node, "value", scope, flags)

    def _assign(self, node: ast.Assign, scope: Scope, flags: int, slot: Slot) -> None:
        if any(_is_slice(target) for target in node.targets) and _checks_sum(scope, flags):
            node.value = build.call(node.value, spelling.PAUSE, node.value)
        self._push(node, "value", scope, flags)
        for index, target in enumerate(node.targets):
            pairs = list(_pairs(target, node.value))
            for name, value in pairs:
                self._binds(name.id, name, scope, value)
            if not pairs:
                self._stack.append((target, scope, flags, (node.targets, index)))

    def _loop(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        ranged = self._real_range(node)
        self._push(node, "orelse", scope, flags)
        self._push(node, "body", scope, flags | LOOP)
        names = targets(node.target)
        if names and type(node) is ast.For:
            for name in names:
                self._binds(name.id, name, scope, ranged or node)
        self._push(node, "iter", scope, flags)
        if not names or type(node) is not ast.For:
            self._push(node, "target", scope, flags)

    def _real_range(self, node: Any) -> Ranged | None:
        """Have a loop over `range(…)` use the real one, as its body is interrupted between two rounds.

        What else may be called so one day gives no other than numbers, which is what is known of the loop's name.
        """
        called = node.iter
        if not (isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "range"):
            return None
        func = called.func
        same = build.is_same(func, func, build.name(func, spelling.RANGE))
        other = build.call(func, spelling.CALL, build.name(func, "range"))
        called.func = test = build.either(func, same, build.name(func, spelling.RANGE_REAL), other)
        self._callees.add(id(test))
        if not isinstance(node.target, ast.Name):
            return None
        test.orelse = build.call(func, spelling.ORDINARY, other)
        self._ranges.append(test)
        return Ranged(called)

    def _while(self, node: ast.While, scope: Scope, flags: int, slot: Slot) -> None:
        self._push(node, "orelse", scope, flags)
        self._push(node, "body", scope, flags | LOOP)
        self._push(node, "test", scope, flags | LOOP)

    def _return(self, node: ast.Return, scope: Scope, flags: int, slot: Slot) -> None:
        if scope.kind == "module":
            scope.plain = True
        self._push(node, "value", scope, flags)

    # --------------------------------------------------------------------------- statements

    def _try(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        self._feature("exceptions", "try is switched off", node)
        scope.tries.append(node)
        soft = flags | _SOFT if any(_catches_imports(one) for one in node.handlers) else flags
        for field in ("finalbody", "orelse", "handlers"):
            self._push(node, field, scope, flags)
        self._push_list(node.body, scope, soft)
        if type(node) is not ast.Try:
            for handler in node.handlers:
                handler.type = build.call(handler.type, spelling.SPLIT, handler.type)

    def _handler(self, node: ast.ExceptHandler, scope: Scope, flags: int, slot: Slot) -> None:
        self._binds(node.name, node, scope)
        self._push_list(node.body, scope, flags)
        self._push(node, "type", scope, flags)

    def _raise(self, node: ast.Raise, scope: Scope, flags: int, slot: Slot) -> None:
        self._feature("exceptions", "raise is switched off", node)
        self._push_children(node, scope, flags)

    def _with(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        asynchronous = isinstance(node, ast.AsyncWith)
        if asynchronous:
            self._feature("async", "async with is switched off", node)
            scope.home.suspends = True
        scope.withs.extend((item, asynchronous) for item in node.items)
        self._push_children(node, scope, flags)

    def _match(self, node: ast.Match, scope: Scope, flags: int, slot: Slot) -> None:
        cases: list[ast.match_case] = []
        for case in node.cases:
            for kept in checks_of(case.pattern, self._refuse, lambda: self._found(scope)):
                asked: Any = kept.value
                wildcard = build.placed(ast.MatchAs(), case.pattern)
                nothing = build.placed(ast.Pass(), case.pattern)
                never = build.chain(case.pattern, kept, "is", build.name(case.pattern, spelling.MATCH))
                cases.append(ast.match_case(wildcard, never, [nothing]))
                self._stack.append((asked.args[0], scope, flags, (asked.args, 0)))
                if scope.kind == "class":
                    self._refuse("pattern", "this pattern cannot be checked inside a class body", case.pattern)
            cases.append(case)
            self._push_list(case.body, scope, flags)
            self._push(case, "guard", scope, flags)
            for part in ast.walk(case.pattern):
                self._binds(getattr(part, "name", None) or getattr(part, "rest", None), part, scope)
                if isinstance(part, ast.MatchClass | ast.MatchValue | ast.MatchMapping | ast.Constant):
                    continue
                if isinstance(part, ast.Name) and part.id in RESERVED | REFUSED_BUILTINS:
                    self._refuse("name", f"{part.id} is not granted", part)
                if type(part) not in _IN_PATTERNS:
                    self._refuse("node", f"{type(part).__name__} is not known in a pattern", part)
        node.cases = cases
        self._push(node, "subject", scope, flags)

    def _found(self, scope: Scope) -> str:
        """A name for what a pattern uses. One of a module is its source's own: another may run while it is in use."""
        return f"{scope.temporary()}.{next(_SOURCES)}" if scope.kind == "module" else scope.temporary()

    def _if(self, node: ast.If, scope: Scope, flags: int, slot: Slot) -> None:
        """Leave out imports that are for type checkers alone."""
        for field in ("orelse", "test"):
            self._push(node, field, scope, flags)
        checking = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        self._push_list(node.body, scope, flags | _SOFT if checking else flags)

    def _import(self, node: ast.Import, scope: Scope, flags: int, slot: Slot) -> None:
        for alias in node.names:
            self._binds(alias.asname or alias.name.partition(".")[0], alias, scope)
            if not flags & _SOFT and not self._library and not self._modules(alias.name):
                self._refuse("import", f"{alias.name} is not granted", alias, instead_of(alias.name))

    def _import_from(self, node: ast.ImportFrom, scope: Scope, flags: int, slot: Slot) -> None:
        for alias in node.names:
            if alias.name != "*":
                self._binds(alias.asname or alias.name, alias, scope)
        module = node.module or ""
        if module == "__future__" or node.names[0].name == "*":
            scope.plain = True
        if node.level:
            self._refuse("import", "relative imports lead nowhere here", node)
        elif module != "__future__" and not flags & _SOFT and not self._library and not self._modules(module):
            self._refuse("import", f"{module} is not granted", node, instead_of(module))

    def _type_alias(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        self._push_children(node, scope, flags & ~_TEMPS)

    def _type_parameter(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        self._binds(node.name, node, scope)
        self._push_children(node, scope, flags & ~_TEMPS)

    def _not_known(self, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
        self._refuse("node", f"{type(node).__name__} is not known", node)


def _unknown(rewriter: Rewriter, node: Any, scope: Scope, flags: int, slot: Slot) -> None:
    rewriter._not_known(node, scope, flags, slot)


def _held(node: ast.expr, *, own: bool) -> tuple[ast.expr, str]:
    """An expression to be evaluated first, and the name under which its value is read from then on.

    `own`: it is a name that nothing else rebinds, and may be evaluated more than once.
    """
    if own and isinstance(node, ast.Name):
        return node, node.id
    return build.kept(node, spelling.TEMPORARY, node), spelling.TEMPORARY


def _runs_once(scope: Scope, flags: int) -> bool:
    """True if what stands here is in no function and no loop."""
    return scope.kind == "module" and not flags & LOOP


def _setter(slot: Slot) -> Callable[[ast.AST], None]:
    container, key = slot

    def put(node: ast.AST) -> None:
        if type(container) is list:
            container[key] = node
        else:
            setattr(container, key, node)

    return put


def _checks_sum(scope: Scope, flags: int) -> bool:
    """True if this sum is one of those that are measured: every fourth of a function, and what is run once.

    A sum doubles at most, and between two rounds of a loop or two calls memory is looked at; the rest is measured so
    that nothing grows for long in a straight line.
    """
    if _runs_once(scope, flags):
        return True
    scope.home.adds += 1
    return scope.home.adds % 4 == 0


def _is_callee(slot: Slot) -> bool:
    """True if what stands here is called."""
    return slot[1] == "func" and type(slot[0]) is ast.Call


def _spreads_key(node: ast.Call, name: str) -> bool:
    """True if a function that C code is to call may be among arguments that are not told one by one."""
    return (name in _KEYED and any(one.arg is None for one in node.keywords)) or (name in _CALLING and _spreads(node))


def _spreads(node: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in node.args)


def _puts(function: ast.expr) -> bool:
    """True if it is `object.__setattr__` as dataclasses write it."""
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "__setattr__"
        and isinstance(function.value, ast.Name)
        and function.value.id == "__dataclass_builtins_object__"
    )


def _class_compared(node: ast.expr, by: str) -> ast.expr:
    """`x.__class__`, where it is compared and no more, is what `type(x)` is; any other expression as it is."""
    return _class_of(node, by) if isinstance(node, ast.Attribute) and node.attr == "__class__" else node


def _class_of(node: ast.Attribute, by: str = spelling.CLASS_OF) -> ast.Call:
    return build.call(node, by, node.value)


def _is_number(node: ast.expr) -> bool:
    """True if an expression is a constant, or gives no sequence."""
    if isinstance(node, ast.BinOp):
        if type(node.op) is ast.Add:
            return _is_number(node.left) or _is_number(node.right)
        return type(node.op) in _ARITHMETIC
    return isinstance(node, ast.Constant | ast.UnaryOp | ast.Compare)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The names of a target with what each is bound to, where source tells it."""
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(value, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in value.elts):
        names = targets(target)
        if len(names) == len(value.elts):
            yield from zip(names, value.elts, strict=True)


def _harmless_length(name: str, slot: Slot) -> int:
    """Longest text whose method of this name makes nothing large; 0 where there is no telling."""
    if name in ("split", "rsplit", "splitlines"):
        return _SHORT if name != "rsplit" else _SEARCHED
    call, place = slot
    if place != "func" or not isinstance(call, ast.Call) or call.keywords:
        return 0
    given = call.args
    if name == "replace" and len(given) >= 2 and _is_text(given[1]) and not isinstance(given[0], ast.Starred):
        return _SHORT // max(len(str(given[1].value)), 1)  # type: ignore[attr-defined]
    if name in ("ljust", "rjust", "center", "zfill") and given and isinstance(given[0], ast.Constant):
        return _SHORT if type(given[0].value) is int and given[0].value <= _SHORT else 0
    return 0


def _is_plain(node: ast.expr) -> bool:
    """True if a value stands in the source, and has no parts."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or isinstance(node.operand, ast.Constant)
    return isinstance(node, ast.Constant | ast.JoinedStr)


def _is_sum(node: ast.expr) -> bool:
    """True if it is made of names and constants by `+` and `-` alone."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Sub) and _is_sum(node.left) and _is_sum(node.right)
    return isinstance(node, ast.Name | ast.Constant)


def _strips_few(slot: Slot) -> bool:
    """True if a method that takes characters off a text is called here without any, or with few constant ones."""
    call, place = slot
    if place != "func" or not isinstance(call, ast.Call) or call.keywords:
        return False
    given = call.args
    return not given or (isinstance(given[0], ast.Constant) and len(str(given[0].value)) <= MOST_STRIPPED)


def _is_own(node: ast.expr, scope: Scope) -> bool:
    """True if it is a name that may be read again."""
    return isinstance(node, ast.Name) and scope.decides(node.id, stored=False)


def _is_slice(node: ast.expr) -> bool:
    """True if it is a slice that what is put there may make longer."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is None


def _is_small(node: ast.expr) -> bool:
    """True if it is a constant that stands in the source, of which an integer may be a large number."""
    return isinstance(node, ast.Constant) and (type(node.value) is not int or node.value < sizes.MAX_BYTES)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is str


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _IMPORT_ERRORS) for kind in kinds)


def _guard_handlers(scope: Scope) -> None:
    """See to it that no handler sees the exceptions that end a cell, and that no `finally` runs after them.

    What may be suspended may be ended by whoever drops it last, in any thread: its handlers then do not run either.
    """
    for node in scope.tries:
        if node.handlers and type(node) is ast.Try:
            at = node.handlers[0]
            caught: ast.expr = build.call(at, spelling.ESCAPING) if scope.suspends else build.name(at, spelling.STOP)
            again = build.placed(ast.Raise(), at)
            node.handlers.insert(0, build.placed(ast.ExceptHandler(caught, None, [again]), at))
        if node.finalbody:
            first = node.finalbody[0]
            test: ast.expr = build.name(first, spelling.STOPPING)
            if scope.suspends:
                test = build.call(first, spelling.FOREIGN)
            node.finalbody = [build.unless(first, test, node.finalbody)]
    if scope.suspends:
        for item, asynchronous in scope.withs:
            function = spelling.ENTER_ASYNC if asynchronous else spelling.ENTER
            item.context_expr = build.call(item.context_expr, function, item.context_expr)


_ARITHMETIC = (ast.Sub, ast.Div, ast.FloorDiv, ast.MatMult, ast.BitAnd, ast.BitXor, ast.RShift)
_LIKELY = {
    spelling.LIGHT: (spelling.INT, spelling.STR, spelling.FLOAT),
    spelling.HASHABLE: (spelling.INT, spelling.STR),
}
"""Types that are asked for first."""
_SHOWN = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr)
"""Containers and texts that stand in the source."""
_EQUAL = (ast.Eq, ast.NotEq)
_WALKING = (*_EQUAL, ast.In, ast.NotIn)
_WALKING_ONCE = (*_WALKING, ast.Lt, ast.LtE, ast.Gt, ast.GtE)

_IN_PATTERNS = (
    ast.MatchSingleton, ast.MatchSequence, ast.MatchStar, ast.MatchAs, ast.MatchOr, ast.MatchClass, ast.MatchMapping,
    ast.MatchValue, ast.Constant, ast.Attribute, ast.Name, ast.Load, ast.UnaryOp, ast.USub, ast.BinOp, ast.Add, ast.Sub,
    ast.JoinedStr,
)  # fmt: skip

_PLAIN = (
    "Module Expr Delete Assert Pass Break Continue BoolOp UnaryOp IfExp "
    "JoinedStr Constant Starred Slice Load Store Del And Or Add Sub Mult MatMult Div "
    "Mod Pow LShift RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn "
    "comprehension arguments keyword alias withitem match_case"
)

_HANDLERS: dict[type, Any] = {
    ast.Name: Rewriter._name,
    ast.Global: Rewriter._names,
    ast.Nonlocal: Rewriter._names,
    ast.arg: Rewriter._argument,
    ast.Attribute: Rewriter._attribute,
    ast.BinOp: Rewriter._operation,
    ast.AugAssign: Rewriter._augmented,
    ast.Compare: Rewriter._compare,
    ast.Call: Rewriter._call,
    ast.List: Rewriter._paused,
    ast.Tuple: Rewriter._paused,
    ast.Set: Rewriter._set,
    ast.Dict: Rewriter._dict,
    ast.Subscript: Rewriter._subscript,
    ast.FormattedValue: Rewriter._joined,
    ast.FunctionDef: Rewriter._function,
    ast.AsyncFunctionDef: Rewriter._function,
    ast.Lambda: Rewriter._lambda,
    ast.ClassDef: Rewriter._class,
    ast.AnnAssign: Rewriter._annotated,
    ast.Yield: Rewriter._suspending,
    ast.YieldFrom: Rewriter._suspending,
    ast.Await: Rewriter._suspending,
    ast.AsyncFor: Rewriter._suspending,
    ast.For: Rewriter._loop,
    ast.While: Rewriter._while,
    ast.Return: Rewriter._return,
    ast.Assign: Rewriter._assign,
    ast.NamedExpr: Rewriter._named,
    ast.If: Rewriter._if,
    ast.ListComp: Rewriter._comprehension,
    ast.SetComp: Rewriter._comprehension,
    ast.DictComp: Rewriter._comprehension,
    ast.GeneratorExp: Rewriter._comprehension,
    ast.Try: Rewriter._try,
    ast.TryStar: Rewriter._try,
    ast.ExceptHandler: Rewriter._handler,
    ast.Raise: Rewriter._raise,
    ast.With: Rewriter._with,
    ast.AsyncWith: Rewriter._with,
    ast.Match: Rewriter._match,
    ast.Import: Rewriter._import,
    ast.ImportFrom: Rewriter._import_from,
}
"""Handler of each kind of node. None: it is let through and its children are looked at."""
_HANDLERS |= {getattr(ast, name): None for name in _PLAIN.split()}
_LEAVES = {kind for kind in _HANDLERS if not kind._fields} | {ast.Constant}  # type: ignore[attr-defined]
"""Known kinds of nodes that have no parts."""
for _name in ("TypeAlias",):
    if hasattr(ast, _name):
        _HANDLERS[getattr(ast, _name)] = Rewriter._type_alias
for _name in ("TypeVar", "ParamSpec", "TypeVarTuple"):
    if hasattr(ast, _name):
        _HANDLERS[getattr(ast, _name)] = Rewriter._type_parameter
