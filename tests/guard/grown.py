"""Grows small programs from seeds: each ends, prints what it comes to, and is the same for the same seed.

They go through the language's forms rather than its libraries: statements of every kind in each other, closures,
classes, generators, patterns, unpacking. What they do may fail: errors are printed and gone on from, or end the program.
"""

# ruff: noqa: E501 - forms side by side

from __future__ import annotations

import random
import sys
from collections.abc import Callable

_PRELUDE = '''
class Cell:
    """Holds a value, and can do what its operators say."""
    kind = "cell"
    count = 0
    def __init__(self, v=0, *rest, **named):
        self.v = v
        self._rest = rest
        self.__secret = len(named)
        Cell.count += 1
    def __repr__(self): return f"Cell({self.v!r})"
    def __eq__(self, other): return isinstance(other, Cell) and self.v == other.v
    def __hash__(self): return hash(str(self.v))
    def __add__(self, other): return Cell((self.v, getattr(other, "v", other)))
    def __radd__(self, other): return Cell((other, self.v))
    def __iadd__(self, other):
        self.v = (self.v, other)
        return self
    def __mul__(self, n): return Cell([self.v] * n)
    def __mod__(self, n): return f"{self.v}%{n}"
    def __pow__(self, n): return ("pow", self.v, n)
    def __lshift__(self, n): return ("shift", self.v, n)
    def __neg__(self): return Cell(("-", self.v))
    def __call__(self, *a, **k): return (self.v, a, sorted(k))
    def __getitem__(self, i): return (self.v, i)
    def __setitem__(self, i, v): self.v = (i, v)
    def __delitem__(self, i): self.v = ("del", i)
    def __contains__(self, x): return x == self.v
    def __len__(self): return 3
    def __bool__(self): return bool(self.v)
    def __iter__(self):
        yield self.v
        yield 1
    def __enter__(self):
        print("enter", self.v)
        return self
    def __exit__(self, kind, error, trace):
        print("exit", kind and kind.__name__)
        return bool(self.v)
    def __lt__(self, other): return str(self.v) < str(getattr(other, "v", other))
    @property
    def p(self): return ("p", self.v)
    @p.setter
    def p(self, v): self.v = v
    @classmethod
    def make(cls, *a): return cls(*a)
    @staticmethod
    def plain(x=1): return ("plain", x)
    def secret(self): return self.__secret
    def __format__(self, spec): return f"<{spec}>"

class Pair(Cell):
    __match_args__ = ("v", "w")
    kind = "pair"
    def __init__(self, v=0, w=None):
        super().__init__(v)
        self.w = w
    def __repr__(self): return f"Pair({self.v!r}, {self.w!r})"
    def __getattr__(self, name):
        if name.startswith("x"):
            return name.upper()
        raise AttributeError(name)

class Loud(ValueError):
    def __init__(self, *a, code=7):
        super().__init__(*a)
        self.code = code

def show(*a, **k):
    print(*[x if isinstance(x, (int, str, float, tuple, list, dict, Cell, bytes)) else type(x).__name__ for x in a], *sorted(k))

def twice(f):
    def wrapped(*a, **k):
        return (f(*a, **k), f(*a, **k))
    return wrapped

def drive(c):
    try:
        while True:
            c.send(None)
    except StopIteration as e:
        return e.value
'''
PRELUDE = _PRELUDE.strip() + "\n"


class Grower:
    """One program in the making."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = ["a", "b", "c"]
        self.made = 0
        self.functions: list[str] = []
        self.classes = ["Cell", "Pair"]
        self.inside: list[str] = []
        self.room = 60

    # ------------------------------------------------------------------------ choosing

    def one(self, *ways: Callable[[], str]) -> str:
        return self.random.choice(ways)()

    def of(self, *texts: str) -> str:
        return self.random.choice(texts)

    def maybe(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def fresh(self, prefix: str = "n") -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def name(self) -> str:
        return self.random.choice(self.names)

    def number(self) -> str:
        return str(self.random.choice((0, 1, 2, 3, 5, 8, -1, -2, 13, 1.5, True)))

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --------------------------------------------------------------------- expressions

    def expression(self, depth: int = 2) -> str:
        if depth <= 0 or self.maybe(0.15):
            return self.atom()
        ways = (
            self.atom, self.operation, self.operation, self.comparison, self.logic, self.choice, self.call, self.call,
            self.method, self.method, self.attribute, self.item, self.display, self.display, self.comprehension,
            self.comprehension, self.text, self.function, self.walrus, self.asked,
        )  # fmt: skip
        return str(self.random.choice(ways)(depth - 1))

    def atom(self, depth: int = 0) -> str:
        return self.one(
            self.name,
            self.name,
            self.name,
            self.number,
            self.number,
            lambda: self.of("'ab'", "''", "'x y'", "b'by'", "None", "[]", "{}", "()", "...", "[1, 2, 3]", "(4, 5)"),
            lambda: self.of("{'k': 1, 'j': [2]}", "{3}", "Cell(2)", "Pair(1, 2)", "range(3)", "'%s-%r'", "'{}:{!r}'"),
        )

    def operation(self, depth: int) -> str:
        a, b = self.expression(depth), self.expression(depth)
        kind = self.random.random()
        if kind < 0.5:
            return f"({a} {self.of('+', '-', '/', '//', '&', '|', '^', '@')} {b})"
        if kind < 0.6:
            return f"({a} ** {self.of('2', '0', '1.5', '-1')})"
        if kind < 0.7:
            return f"({a} << {self.of('1', '3')})"
        if kind < 0.85:
            return f"({a} * {self.of('2', '3', '0', 'True', '1.5', '-1')})" if self.maybe() else f"(2 * {a})"
        return f"({a} % {self.of('3', '7', b, f'({b},)')})"

    def comparison(self, depth: int) -> str:
        signs = ("==", "!=", "<", "<=", ">", "in", "not in", "is", "is not")
        rest = " ".join(f"{self.of(*signs[:7])} {self.expression(depth)}" for _ in range(self.random.choice((1, 1, 2))))
        return f"({self.expression(depth)} {rest})"

    def logic(self, depth: int) -> str:
        if self.maybe(0.3):
            return f"({self.of('not', '-', '+', '~')} {self.expression(depth)})"
        return f"({self.expression(depth)} {self.of('and', 'or')} {self.expression(depth)})"

    def choice(self, depth: int) -> str:
        return f"({self.expression(depth)} if {self.expression(depth)} else {self.expression(depth)})"

    def arguments(self, depth: int) -> str:
        parts = [self.expression(depth) for _ in range(self.random.randrange(3))]
        if self.maybe(0.2):
            parts.append(f"*{self.expression(depth)}")
        if self.maybe(0.2):
            parts.append(f"{self.of('v', 'w', 'k')}={self.expression(depth)}")
        if self.maybe(0.15):
            parts.append("**" + self.of("{'w': 1}", "{}", "{'z': 2}", "dict(v=3)"))
        return ", ".join(parts)

    def call(self, depth: int) -> str:
        a = self.expression(depth)
        if self.functions and self.maybe(0.4):
            return f"{self.of(*self.functions)}({self.arguments(depth)})"
        return self.of(
            f"len({a})", f"str({a})", f"repr({a})", f"list({a})", f"tuple({a})", f"sorted({a}, key=str)", f"sum({a})",
            f"max({a}, default=1)", f"bool({a})", f"type({a}).__name__", f"isinstance({a}, (int, str))", f"abs({a})",
            f"dict(zip({a}, {self.expression(depth)}))", f"list(enumerate({a}))", f"list(map(str, {a}))", f"int({a})",
            f"list(reversed({a}))", f"any({a})", f"hash({a}) == hash({a})", f"round({a}, 1)", f"divmod({a}, 3)",
            f"getattr({a}, {self.of(repr('v'), repr('w'), repr('xx'), repr('real'))}, 'none')", f"callable({a})",
            f"hasattr({a}, 'v')", f"{self.of(*self.classes)}({self.arguments(depth)})", f"show({a})", f"next(iter({a}))",
            f"format({a}, {self.of(repr('>5'), repr(''), repr('x'), repr('05.1f'))})", f"chr(65 + len(str({a})))",
            f"list(filter(None, {a}))", f"set({a}) == set({a})", f"frozenset({a}) == 1", f"pow({a}, 2)", f"ascii({a})",
            f"iter({a}).__class__.__name__", f"vars({a}) == 1", f"bytes({a}) if {a} == 3 else 0",
        )  # fmt: skip

    def method(self, depth: int) -> str:
        a, b = self.expression(depth), self.expression(depth)
        return f"{a if a[0] not in '-0123456789' else f'({a})'}." + self.of(
            "upper()", f"join({b})", "split()", f"replace('a', {b})", f"append({b})", "copy()", "items()", "keys()",
            f"get({b}, 9)", f"pop({b})", f"count({b})", f"index({b})", f"format({b}, {b})", "secret()", "make(1)",
            f"plain({b})", f"update({b})", f"setdefault('k', {b})", "bit_length()", f"startswith({b})", "encode()",
            f"union({b})", f"extend({b})", f"insert(0, {b})", "sort(key=str)", "reverse()", f"__add__({b})", "__len__()",
            "strip()", f"partition({b})", "title()", "ljust(4, '.')", "zfill(3)", f"find({b})", "values()",
        )  # fmt: skip

    def attribute(self, depth: int) -> str:
        a = self.expression(depth)
        owner = a if a[0] not in "-0123456789" else f"({a})"
        return f"{owner}.{self.of('v', 'w', 'p', 'kind', 'count', 'xy', 'real', '_rest', 'missing', '__doc__', 'args')}"

    def item(self, depth: int) -> str:
        a, b = self.expression(depth), self.expression(depth)
        where = self.of(b, "0", "-1", "'k'", f"{b}:", f":{b}", "::2", "1:3", "0, 1", "...")
        return f"{a if a[0] not in '-0123456789' else f'({a})'}[{where}]"

    def display(self, depth: int) -> str:
        parts = [self.expression(depth) for _ in range(self.random.randrange(4))]
        if self.maybe(0.25):
            parts.append(f"*{self.expression(depth)}")
        kind = self.random.randrange(4)
        if kind == 0:
            return f"[{', '.join(parts)}]"
        if kind == 1:
            return f"({', '.join([*parts, ''])})" if parts else "()"
        if kind == 2:
            return f"{{{', '.join(parts)}}}" if parts else "set()"
        pairs = [f"{self.of(repr('k'), repr('q'), '1', '2')}: {part}" for part in parts if part[0] != "*"]
        if self.maybe(0.2):
            pairs.append("**" + self.of("{'z': 1}", "{}", "dict(k=5)"))
        return f"{{{', '.join(pairs)}}}"

    def comprehension(self, depth: int) -> str:
        kept, own = list(self.names), self.fresh("i")
        over = self.expression(depth)
        self.names.append(own)
        target = own
        if self.maybe(0.2):
            other = self.fresh("j")
            target = self.of(f"{own}, {other}", f"{own}, *{other}", f"({own}, {other})")
            self.names.append(other)
        more = f" for {own} in {self.expression(depth - 1)}" if self.maybe(0.15) else ""
        test = f" if {self.expression(depth - 1)}" if self.maybe(0.4) else ""
        inner = self.expression(depth)
        self.names = kept
        rest = f"for {target} in {over}{more}{test}"
        return self.of(
            f"[{inner} {rest}]",
            f"[{inner} {rest}]",
            f"list({inner} {rest})",
            f"{{str({inner}): 1 {rest}}}",
            f"sorted({{str({inner}) {rest}}})",
            f"tuple(x for x in [{inner} {rest}])",
            f"sum(1 {rest})",
        )

    def text(self, depth: int) -> str:
        a, b = self.expression(depth).replace("\\", ""), self.expression(depth)
        if sys.version_info < (3, 12) and ('"' in a or "'" in a):
            a = self.name()
        spec = self.of("", "!r", "!s", ":>6", ":.3", "!r:^9", ":{2 + 3}", ":x", ":{a}", "=")
        quoted = '"' if sys.version_info < (3, 12) or self.maybe() else "'"
        return f"f{quoted}<{{{'(' + a + ')'}{spec}}}|{{{self.name()}}}{quoted} {self.of('', '*2', '+ str(' + b + ')')}"

    def function(self, depth: int) -> str:
        kept, own = list(self.names), self.fresh("p")
        self.names = [*self.names, own]
        body = self.expression(depth)
        self.names = kept
        default = f"={self.expression(depth - 1)}" if self.maybe(0.6) else ""
        return f"(lambda {own}{default}, *r, **k: {body})({self.arguments(depth - 1)})"

    def walrus(self, depth: int) -> str:
        if "class" in self.inside[-1:]:
            return self.atom()
        return f"({self.fresh('t')} := {self.expression(depth)})"

    def asked(self, depth: int) -> str:
        a = self.expression(depth)
        return self.of(f"{a}.__class__.__name__", f"type({a}) is type({a})", f"({a}, {a})", f"[*{a}]", f"({a} or 1)")

    # ---------------------------------------------------------------------- statements

    def block(self, depth: int, most: int = 3) -> None:
        """Some statements, and one that does nothing where there is no room."""
        before = len(self.lines)
        for _ in range(self.random.randrange(1, most + 1)):
            if self.room > 0 and depth < 7:
                self.statement(depth)
        if len(self.lines) == before or self.lines[-1].lstrip().startswith("#"):
            self.emit(depth, f"show({self.name()})")

    def statement(self, depth: int) -> None:
        self.room -= 1
        ways = [
            self.assignment, self.assignment, self.assignment, self.unpacking, self.augmented, self.printing,
            self.printing, self.branch, self.loop, self.repetition, self.attempt, self.attempt, self.managed,
            self.definition, self.definition, self.generator, self.klass, self.matching, self.storing, self.removal,
            self.raising, self.closure, self.coroutine, self.groups, self.importing,
        ]  # fmt: skip
        if "def" in self.inside:
            ways += [self.returning] * 2
        if self.inside[-1:] == ["loop"]:
            ways += [self.leaving] * 2
        if depth and self.inside[-1:] == ["class"]:
            ways = [self.assignment, self.definition, self.printing, self.branch, self.klass, self.method_of]
        self.random.choice(ways)(depth)

    def assignment(self, depth: int) -> None:
        value = self.expression(3)
        name = self.fresh("v") if self.maybe(0.5) else self.name()
        form = self.of("{n} = {v}", "{n} = {v}", "{n}: int = {v}", "{n} = last = {v}")
        self.emit(depth, form.format(n=name, v=value))
        if name not in self.names:
            self.names.append(name)
        if self.maybe(0.3):
            self.emit(depth, f"show({name})")

    def unpacking(self, depth: int) -> None:
        names = [self.fresh("u") for _ in range(3)]
        target = self.of("{}, {}, {}", "{}, *{}, {}", "[{}, ({}, *{})]", "*{}, {}, {}").format(*names)
        self.emit(depth, f"{target} = {self.of(self.expression(2), '1, (2, 3), 4', '1, [5, 6]', repr('abc'))}")
        self.emit(depth, f"show({', '.join(names)})")
        if not self.inside:
            self.names.extend(names[:1])

    def augmented(self, depth: int) -> None:
        target = self.of(self.name(), self.name(), f"{self.name()}.v", f"{self.name()}['k']", f"{self.name()}[0]")
        sign = self.of("+", "-", "*", "|", "&", "//", "%", "^")
        value = self.of("2", "3", "1.5", "'z'", "[7]") if sign == "*" else self.expression(2)
        self.emit(depth, f"{target} {sign}= {value}")

    def storing(self, depth: int) -> None:
        target = f"{self.name()}{self.of('.v', '.w', '.p', '.new', '[0]', repr(['k'])[0] + repr('k') + ']', '[1:2]')}"
        self.emit(depth, f"{target} = {self.expression(2)}")

    def removal(self, depth: int) -> None:
        name = self.fresh("d")
        self.emit(depth, f"{name} = {self.expression(2)}")
        self.emit(depth, f"del {self.of(name, name + '.v', name + '[0]', f'({name})')}")
        self.emit(depth, f"show({name})" if self.maybe(0.7) else "pass")

    def printing(self, depth: int) -> None:
        self.emit(depth, f"show({', '.join(self.expression(3) for _ in range(self.random.choice((1, 2))))})")

    def importing(self, depth: int) -> None:
        self.emit(
            depth,
            self.of(
                "import math, itertools as it; show(math.floor(2.5), list(it.islice(it.count(), 2)))",
                "from functools import reduce, partial; show(reduce(lambda x, y: x, [1, 2]), partial(show, 1)(2))",
                "from collections import Counter; show(sorted(Counter('aab').items()))",
                "from operator import attrgetter, itemgetter; show(attrgetter('v')(Cell(4)), itemgetter(0)([3]))",
            ),
        )

    def raising(self, depth: int) -> None:
        error = self.of(
            "Loud('x', code=2)", "Loud", "KeyError('k')", "ValueError(1, 2)", "StopIteration(3)", "TypeError"
        )
        rest = self.of("", "", " from None", " from KeyError('why')")
        self.emit(depth, f"if {self.expression(2)}:")
        self.emit(depth + 1, f"raise {error}{rest}")

    def returning(self, depth: int) -> None:
        self.emit(depth, f"if {self.expression(1)}:")
        self.emit(depth + 1, self.of("return", f"return {self.expression(2)}", f"return 1, *{self.expression(1)}"))

    def leaving(self, depth: int) -> None:
        self.emit(depth, f"if {self.expression(1)}:")
        self.emit(depth + 1, self.of("break", "continue"))

    def branch(self, depth: int) -> None:
        self.emit(depth, f"if {self.expression(2)}:")
        self.within("if", depth)
        if self.maybe(0.3):
            self.emit(depth, f"elif {self.expression(2)}:")
            self.within("if", depth)
        if self.maybe():
            self.emit(depth, "else:")
            self.within("if", depth)

    def within(self, kind: str, depth: int, most: int = 3) -> None:
        if kind != "if":
            self.inside.append(kind)
        kept = list(self.names)
        self.block(depth + 1, most)
        if kind in ("def", "class"):
            self.names = kept
        if kind != "if":
            self.inside.pop()

    def loop(self, depth: int) -> None:
        name = self.fresh("x")
        target = self.of(name, name, f"{name}, *{self.fresh('y')}", f"({name}, {self.fresh('y')})")
        over = self.of("range(3)", "[1, 'b', None]", "{'k': 1}.items()", "enumerate('ab')", f"list({self.name()})[:3]")
        self.emit(depth, f"for {target} in {over}:")
        self.names.append(name)
        self.within("loop", depth)
        self.otherwise(depth)

    def repetition(self, depth: int) -> None:
        name = self.fresh("w")
        self.emit(depth, f"{name} = {self.of('0', '1')}")
        self.emit(depth, f"while ({name} := {name} + 1) < {self.of('3', '4')}:")
        self.within("loop", depth)
        self.otherwise(depth)

    def otherwise(self, depth: int) -> None:
        if self.maybe(0.25):
            self.emit(depth, "else:")
            self.emit(depth + 1, "show('else')")

    def attempt(self, depth: int) -> None:
        self.emit(depth, "try:")
        self.within("if", depth)
        caught = self.of("Exception", "Exception", "(TypeError, ValueError)", "Loud", "LookupError", "")
        handled = self.maybe(0.85)
        if handled:
            self.emit(depth, f"except {caught} as e:" if caught else "except:")
            name = "str(e)[:60], type(e).__name__" if caught else "'bare'"
            self.emit(depth + 1, f"show({name})")
            if self.maybe(0.2):
                self.emit(depth + 1, self.of("raise", f"raise KeyError({self.number()})", "show(e.__context__)"))
            if self.maybe(0.3):
                self.within("if", depth, 1)
            if self.maybe(0.2):
                self.emit(depth, "else:")
                self.within("if", depth, 1)
        if not handled or self.maybe(0.3):
            self.emit(depth, "finally:")
            self.within("if", depth, 1)

    def managed(self, depth: int) -> None:
        name = self.fresh("m")
        other = f", Cell({self.number()}) as {name}.v" if self.maybe(0.2) else ""
        bound = self.of(f" as {name}", f" as {name}", f" as ({name}, {self.fresh('m')})")
        self.emit(depth, f"with Cell({self.expression(1)}){bound}{other}:")
        self.within("if", depth)

    def parameters(self) -> list[str]:
        names = [self.fresh("q") for _ in range(4)]
        form = self.of(
            "{0}, {1}=1, *{2}, **{3}", "{0}=None, /, {1}=2, *, {2}=3, **{3}", "*{0}, {1}=0, **{2}",
            "{0}={d}, {1}=({d}), *{2}, v=None, **{3}", "{0}: int = 0, *{2}, w: 'str' = '', **{3}",
        )  # fmt: skip
        self.signature = form.format(*names, d=self.atom())
        return [name for name in names if f"{name}" in self.signature]

    def definition(self, depth: int) -> None:
        names, name = self.parameters(), self.fresh("f")
        if self.maybe(0.2):
            self.emit(depth, self.of("@twice", "@lambda f: f", "@twice"))
        self.emit(depth, f"def {name}({self.signature}){self.of('', ' -> int')}:")
        kept = list(self.names)
        self.names = [*self.names, *names]
        if self.maybe(0.2) and not self.inside:
            self.emit(depth + 1, f"global {self.fresh('g')}")
            self.emit(depth + 1, f"g{self.made} = {self.expression(1)}")
        self.within("def", depth)
        self.emit(depth + 1, f"return {self.expression(2)}")
        self.names = kept
        self.emit(depth, f"show({name}({self.arguments(1)}))")
        if not self.inside:
            self.functions.append(name)

    def closure(self, depth: int) -> None:
        outer, inner, held = self.fresh("o"), self.fresh("h"), self.fresh("s")
        self.emit(depth, f"def {outer}({held}={self.atom()}):")
        self.emit(depth + 1, f"def {inner}(z=1):")
        self.emit(depth + 2, f"nonlocal {held}")
        self.names.append(held)
        self.emit(depth + 2, f"{held} = {self.of(self.expression(2), f'({held}, z)')}")
        self.emit(depth + 2, self.of(f"{held} += (z,)", f"show({held})", f"return {held}, [{held} for _ in range(2)]"))
        self.emit(depth + 2, f"return {held}")
        self.emit(depth + 1, f"return {self.of(f'{inner}(), {held}', f'[{inner}(y) for y in (1, 2)], {held}')}")
        self.names.remove(held)
        self.emit(depth, f"show({outer}())")

    def generator(self, depth: int) -> None:
        name, got = self.fresh("gen"), self.fresh("r")
        self.emit(depth, f"def {name}(n=2):")
        kept = list(self.names)
        self.names.append("n")
        self.emit(depth + 1, "try:")
        self.emit(depth + 2, f"{got} = yield {self.expression(2)}")
        self.emit(depth + 2, f"show('got', {got})")
        self.emit(depth + 2, self.of(f"yield from {self.expression(2)}", "yield from range(n)", f"yield {got}, n"))
        self.inside.append("def")
        self.block(depth + 2, 2)
        self.inside.pop()
        self.emit(depth + 1, self.of("except Loud as e:", "except (KeyError, Loud) as e:"))
        self.emit(depth + 2, "yield 'caught', type(e).__name__")
        self.emit(depth + 1, "finally:")
        self.emit(depth + 2, "show('finally')")
        self.names = kept
        used = self.fresh("k")
        self.emit(depth, f"{used} = {name}()")
        for step in range(self.random.randrange(1, 4)):
            way = self.of(f"next({used})", f"next({used}, 'end')", f"{used}.send({step or None})", f"list({used})[:5]")
            way = self.of(way, way, f"{used}.throw(Loud('in'))", f"{used}.close()")
            self.emit(depth, f"show({way})")
        self.emit(depth, f"{used}.close()")

    def coroutine(self, depth: int) -> None:
        name = self.fresh("co")
        self.emit(depth, f"async def {name}(x=1):")
        self.emit(depth + 1, "async def inner(y):")
        self.emit(depth + 2, f"return {self.expression(1)}, y")
        self.emit(depth + 1, "async def many():")
        self.emit(depth + 2, f"for z in {self.of('range(2)', '(x, x)', 'list(str(x))')}: yield z")
        self.emit(
            depth + 1,
            self.of("show([z async for z in many()])", "show(await inner(x))", "async for q in many(): show(q)"),
        )
        self.emit(depth + 1, f"return await inner({self.expression(1)})")
        self.emit(depth, f"show(drive({name}({self.atom()})))")

    def groups(self, depth: int) -> None:
        self.emit(depth, "try:")
        self.emit(depth + 1, f"raise ExceptionGroup('g', [{self.of('Loud(1)', 'KeyError(2)')}, TypeError(3)])")
        self.emit(depth, f"except* {self.of('Loud', 'KeyError', '(Loud, KeyError)', 'Exception')} as e:")
        self.emit(depth + 1, "show('star', len(e.exceptions))")
        self.emit(depth, f"except* {self.of('TypeError', 'LookupError')} as e:")
        self.emit(depth + 1, "show('other', str(e))")

    def klass(self, depth: int) -> None:
        name = self.fresh("K")
        bases = self.of("", "", "(Cell)", "(Pair)", "(list)", "(dict)", f"({self.of(*self.classes)})", "(Exception)")
        if self.maybe(0.15):
            self.emit(depth, "@lambda c: c")
        typed = "[T]" if sys.version_info >= (3, 12) and self.maybe(0.2) else ""
        self.emit(depth, f"class {name}{typed}{bases}:")
        kept = list(self.names)
        self.emit(depth + 1, f"kind = {self.of(repr(name), self.expression(1))}")
        if self.maybe(0.2):
            self.emit(depth + 1, "__hidden = 4; shown = __hidden + 1")
        if self.maybe(0.2):
            self.emit(depth + 1, f"table = [k for k in {self.of('range(3)', 'str(kind)')}]")
        if self.maybe(0.2):
            self.emit(depth + 1, "def __init_subclass__(cls, **k): show('subclass', cls.__name__, sorted(k))")
        self.inside.append("class")
        for _ in range(self.random.randrange(3)):
            self.method_of(depth + 1)
        if self.maybe(0.3):
            self.block(depth + 1, 2)
        self.inside.pop()
        self.names = kept
        self.emit(depth, f"show({name}.__name__, {name}.kind, {name}({self.arguments(1)}))")
        if not self.inside:
            self.classes.append(name)

    def method_of(self, depth: int) -> None:
        name = self.of("v", "make", "run", "__len__", "__getitem__", "__call__", "_own", "__mine", "__eq__", "secret")
        decorator = self.of("", "", "", "@property", "@classmethod", "@staticmethod")
        if decorator and not name.startswith("__"):
            self.emit(depth, decorator)
        kept = list(self.names)
        self.names.append("self")
        self.emit(depth, f"def {name}(self=None, *a, **k):")
        self.inside.append("def")
        if self.maybe(0.3):
            self.emit(depth + 1, self.of("self.__x = 1; show(self.__x)", "self.z = a", "show(type(self).__name__)"))
        if self.maybe(0.2):
            self.emit(
                depth + 1, self.of("show(super().__repr__()[:9])", "show(__class__.__name__)", "super().__init__()")
            )
        self.block(depth + 1, 1)
        self.inside.pop()
        self.names = kept
        self.emit(depth + 1, f"return {self.of('a', 'self', '1', self.expression(1))}")

    def pattern(self, depth: int = 2) -> str:
        simple = ["_", "1", "-2", "'ab'", "None", "True", "[]", "{}", "int()", "str() | bytes()", "b'by'", "1.5"]
        if depth <= 0:
            return self.of(*simple, self.fresh("c"))
        a, b = self.pattern(depth - 1), self.pattern(depth - 1)
        return self.of(
            f"[{a}, {b}]", f"({a}, *{self.fresh('c')})", f"[*_, {b}]", f"{{'k': {a}}}", f"{{'k': {a}, **{self.fresh('c')}}}",
            f"Cell(v={a})", f"Pair({a}, {b})", f"Pair(v={a}, w={b})", f"({a}) as {self.fresh('c')}", "1 | 2 | None",
            "[1, _] | (_, 2, *_)", f"list([{a}, *_])", f"str({self.fresh('c')})", "Cell.kind", *simple,
        )  # fmt: skip

    def matching(self, depth: int) -> None:
        self.emit(depth, f"match {self.expression(2)}:")
        for _ in range(self.random.randrange(1, 4)):
            before = self.made
            pattern = self.pattern()
            while pattern in ("_",) or pattern == f"c{self.made}":
                pattern = self.pattern()
            bound = [
                f"c{n}"
                for n in range(before + 1, self.made + 1)
                if f"c{n}" in pattern.replace("'", " ").replace("(", " ")
            ]
            test = f" if {self.expression(1)}" if self.maybe(0.3) else ""
            self.emit(depth + 1, f"case {pattern}{test}:")
            self.emit(depth + 2, f"show({', '.join([repr(len(bound)), *bound])})")
        if self.maybe(0.6):
            self.emit(depth + 1, "case _:")
            self.within("if", depth + 1, 1)

    # ------------------------------------------------------------------------- programs

    def program(self) -> str:
        """The whole: some parts, each of which goes on after an error but now and then."""
        self.emit(0, f"a, b, c = {self.atom_of_start()}, {self.atom_of_start()}, {self.atom_of_start()}")
        while self.room > 0:
            before = len(self.lines)
            if self.maybe(0.93):
                self.emit(0, "try:")
                names = list(self.names)
                self.block(1, 4)
                self.names = [name for name in self.names if name in names] if self.maybe(0.5) else self.names
                self.emit(0, "except Exception as e:")
                self.emit(1, "show('!', type(e).__name__, str(e).replace('SecurityError', '')[:200])")
            else:
                self.block(0, 1)
            if not _compiles("\n".join(self.lines)):
                del self.lines[before:]
                self.inside.clear()
        self.emit(0, "print(a, b, c, sep='|', end='.')" if self.maybe(0.1) else "show(a, b, c)")
        return PRELUDE + "\n".join(self.lines) + "\n"

    def atom_of_start(self) -> str:
        return self.of("1", "'text'", "[1, 2]", "{'k': 3}", "Cell(5)", "Pair([1], 'w')", "2.5", "(1, 2, 3)", "{'k'}")


def _compiles(text: str) -> bool:
    try:
        compile(text, "<grown>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def grown(seed: int) -> str:
    """The program of a seed."""
    return Grower(seed).program()


if __name__ == "__main__":
    print(grown(int(sys.argv[1])))
