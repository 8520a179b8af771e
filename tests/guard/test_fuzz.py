"""Invariants of the guard, on programs nobody wrote: it lets no unknown node pass, raises nothing but what it says it
raises, and what it lets pass does as under CPython. `grown` makes the programs; a failure names its seed."""

# ruff: noqa: E501, RUF001 - tables of sources

from __future__ import annotations

import ast
import random
import re
import secrets
import sys
import time
import warnings
from collections.abc import Iterator

import corpus
import pytest
from grown import grown
from runner import guarded, plain

from cellblock.errors import SourceRejected
from cellblock.guard import check as module_of_check
from cellblock.guard import rewrite
from cellblock.guard.check import Program, check

QUICK = 120
LONG = 300
"""Programs of the quick run, and seconds of the long one."""
SOURCES = [
    program.source
    for path in (*corpus.files(corpus.PARITY), *corpus.ESCAPES)
    for program in corpus.programs(path)
    if program.runs_here
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ------------------------------------------------------------------------------------ unknown nodes


class NewExpression(ast.expr):
    """An expression of a later Python, as `TemplateStr` is one of 3.14."""

    _fields = ("values",)


class NewStatement(ast.stmt):
    """A statement of a later Python."""

    _fields = ("body",)


class NewPattern(ast.pattern):
    """A pattern of a later Python."""

    _fields = ()


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Where nodes hang, and which."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                yield parent, field, None, value
            elif isinstance(value, list):
                for index, child in enumerate(value):
                    if isinstance(child, ast.AST):
                        yield parent, field, index, child


def _refusals(tree: ast.Module, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules that refuse a tree, were it what the parser made of a source."""
    with monkeypatch.context() as patched:
        patched.setattr(module_of_check, "compile", lambda *_, **__: tree, raising=False)
        with pytest.raises(SourceRejected) as rejected:
            check("", modules=lambda name: True)
    return [one.rule for one in rejected.value.refusals]


@pytest.mark.threat("L6")
def test_a_node_that_no_rule_knows_is_refused_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(5)
    kinds = {ast.expr: NewExpression, ast.stmt: NewStatement, ast.pattern: NewPattern}
    tried = set()
    for source in choose.choices(SOURCES, k=1_200):
        try:
            tree = ast.parse(source)
        except (SyntaxError, RecursionError, MemoryError):
            continue
        places = [one for one in _places(tree) if isinstance(one[3], tuple(kinds))]
        if not places:
            continue
        parent, field, index, node = choose.choice(places)
        new = next(made for kind, made in kinds.items() if isinstance(node, kind))
        unknown = ast.copy_location(new(values=[], body=[]) if new is not NewPattern else new(), node)
        if index is None:
            setattr(parent, field, unknown)
        else:
            getattr(parent, field)[index] = unknown
        tried.add((type(parent).__name__, field))
        assert "node" in _refusals(tree, monkeypatch), (source, type(parent).__name__, field)
    assert len(tried) > 60


def test_each_kind_of_node_of_this_python_is_known_or_refused() -> None:
    """What neither the rules nor the compiler know cannot get into a tree that came from source."""
    known = set(rewrite._HANDLERS) | set(rewrite._IN_PATTERNS)
    abstract = {"AST", "expr", "stmt", "pattern", "mod", "operator", "unaryop", "boolop", "cmpop", "expr_context"}
    abstract |= {"excepthandler", "type_ignore", "type_param", "slice"}
    old = {
        "Num",
        "Str",
        "Bytes",
        "NameConstant",
        "Ellipsis",
        "Index",
        "ExtSlice",
        "Suite",
        "AugLoad",
        "AugStore",
        "Param",
    }
    others = {"Interactive", "Expression", "FunctionType", "TypeIgnore"}
    kinds = {
        value
        for name, value in vars(ast).items()
        if isinstance(value, type) and issubclass(value, ast.AST) and name not in abstract | old | others
    }
    new = {kind.__name__ for kind in kinds - known} - old
    assert new <= {"TemplateStr", "Interpolation"}, "what is new in this Python is refused; somebody is to look at it"


@pytest.mark.threat("L6")
def test_templates_of_python_314_are_refused_by_the_rule_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TemplateStr", "Interpolation"):
        kind = type(name, (ast.expr,), {"_fields": ("values",)})
        tree = ast.parse("x = 1")
        tree.body[0].value = ast.copy_location(kind(values=[]), tree.body[0])  # type: ignore[attr-defined]
        assert _refusals(tree, monkeypatch) == ["node"]


# -------------------------------------------------------------------------------- nothing but its own


def _checked(source: str) -> None:
    """Raises whatever `check` raises that it must not."""
    try:
        program = check(source, filename="<cell>", modules=lambda name: name in ("math", "json"))
    except SourceRejected as error:
        rejected = error
    except SyntaxError:
        return
    else:
        assert type(program) is Program
        return
    assert rejected.refusals
    assert rejected.hint
    assert rejected.excerpts
    assert rejected.args[0].startswith("line ")
    assert "\n" not in rejected.args[0]


def _deep() -> Iterator[str]:
    for depth in (50, 90, 200, 1_000, 5_000, 30_000):
        for opens, closes, middle in (
            ("(", ")", "1"),
            ("[", "]", ""),
            ("{1:", "}", "1"),
            ("f(", ")", ""),
            ("x[", "]", "0"),
        ):
            yield opens * depth + middle + closes * depth
        yield "-" * depth + "1"
        yield "not " * depth + "x"
        yield "lambda: " * depth + "0"
        yield "x" + ".a" * depth
        yield "x" + "()" * depth
        yield "x" + "[0]" * depth
        yield "1" + "+1" * depth
        yield "1" + "**1" * depth
        yield "x" + " if x else x" * depth
        yield "a = " * depth + "1"
        yield "\n".join("    " * n + "if x:" for n in range(min(depth, 120))) + " pass"
        yield "\n".join(" " * n + "def f():" for n in range(min(depth, 120))) + " pass"
        yield "\n".join(" " * n + "class A:" for n in range(min(depth, 120))) + " pass"
        yield "\n".join(" " * n + "for x in y:" for n in range(min(depth, 30))) + " pass"
        yield "[" + "x for x in " * min(depth, 100) + "y" + "]"
        yield 'f"' + "{f'" * min(depth, 60) + "'}" * min(depth, 60) + '"'
        yield "match x:\n case " + "[" * depth + "]" * depth + ": pass"
        yield "match x:\n case " + "A(" * depth + ")" * depth + ": pass"
        yield "x = " + "{**" * depth + "x" + "}" * depth
        yield "async def f():\n " + "await " * depth + "x"


ODD = (
    "", " ", "\n", "\t", "\f", "\0", "x\0y", "x = '\0'", "\ufeff1", "\ufeff\ufeff1", "\ud800", "x = '\ud800'", "'\\ud800'",
    "# coding: latin-1\nx = 'é'", "# coding: nonsense\n1", "# -*- coding: utf-16 -*-\nx", "#!/bin/sh\n1", "\r", "a\rb",
    "x = 1\r\ny = 2\r", "if x:\r  y\n\tz", "\x0c\x0cx", "é = 1", "ℌ = 1", "x = ℌ.ﬁeld", "x.ﬀ", "a\u2028b", "\x1a",
    "x = 9" + "9" * 5_000, "0x" + "f" * 100_000, "1e" + "9" * 5_000, "1." + "0" * 100_000, "'" + "x" * 1_000_000 + "'",
    "x" * 100_000, "\\\n" * 5_000 + "1", "#" * 100_000, ";" * 100, "x = (" + "\n" * 10_000 + ")", "b'\\xff' 'x'", "f'{'",
    "f'{x!z}'", "f'{x:{y:{z:{w}}}}'", "f'{}'", "rb'\\'", "'''", "'\\N{nonsense}'", "'\\x'", "0777", "1_", "1__0", "1if 2else 3",
    "return 1", "yield 1", "await x", "break", "continue", "nonlocal x", "global x\nx = 1", "def f():\n x\n global x",
    "def f(x, x): 1", "f(a=1, a=2)", "f(**x, *y)", "del f()", "f() = 1", "*x", "*x = 1", "x: int: 2", "(x for x)", "None = 1",
    "__debug__ = 1", "def __debug__(): 1", "class __debug__: 1", "import __debug__", "x.__debug__ = 1", "lambda __debug__: 1",
    "from __future__ import braces", "from __future__ import nonsense", "from . import x", "from .. import *", "import a.b.c as d",
    "def f():\n from math import *", "try: 1\nexcept: 2\nexcept X: 3", "try: 1\nexcept* X: return", "async x", "async with x: 1",
    "def f():\n async with x: 1", "[await x for x in y]", "class A:\n  x = [(yield) for _ in x]", "match x:\n case a: 1\n case b: 2",
    "match x:\n case A(b=1, b=2): 1", "match x:\n case {**a, 'b': 1}: 1", "match x:\n case a | b: 1", "match x:\n case -a: 1",
    "@x\n@y\n", "@", "type X = 1", "def f[T](): 1", "class A[T: 1]: 1", "type X[T = 1] = T", "except x: 1", "print 1", "exec 'x'",
    "x = 1 <> 2", "`x`", "from __future__ import barry_as_FLUFL\nx <> 1", "t'{x}'", "with (a, b): 1", "with (a as b,): 1",
    "if x := 1: 2", "(x := 1) = 2", "[x := 1 for x in y]", "class A: [x := 1 for y in z]", "lambda: (yield)", "x = yield",
)  # fmt: skip
"""Sources that are odd, or wrong."""


@pytest.mark.threat("L10")
def test_odd_sources_raise_nothing_but_what_the_guard_raises() -> None:
    for source in ODD:
        _checked(source)


@pytest.mark.threat("L10")
def test_deep_sources_raise_nothing_but_what_the_guard_raises() -> None:
    for source in _deep():
        _checked(source)


_PIECES = (
    *"()[]{}:;,.@=\n\t #\\'\"`~!?$%^&*-+/<>|\0é\ud800",
    *(" if ", " else ", " for ", " in ", "lambda ", " yield ", " await ", "async ", "def f(", "class A(", "import ", "from "),
    *("match ", "case ", "try:\n", "except*", "finally:\n", "with ", "global ", "nonlocal ", "del ", "*", "**", ":=", "->", "..."),
    *("f'{", "}'", "b'", "'''", "0x", "1e9", "__", ".__class__", "gate.read", "t.1", "\n    ", "\n", "return ", "raise ", "type X"),
)  # fmt: skip


def _mutated(choose: random.Random) -> str:
    """A program of the corpora with some of it cut out, doubled, swapped or replaced."""
    text = choose.choice(SOURCES)
    for _ in range(choose.randrange(1, 5)):
        at, to = sorted((choose.randrange(len(text) + 1), choose.randrange(len(text) + 1)))
        to = min(to, at + choose.choice((0, 1, 5, 40)))
        other = choose.choice(SOURCES)
        start = choose.randrange(len(other))
        text = choose.choice(
            (
                text[:at] + text[to:],
                text[:to] + text[at:],
                text[:at] + choose.choice(_PIECES) + text[to:],
                text[:at] + choose.choice(_PIECES) + text[at:],
                text[:at] + other[start : start + choose.choice((3, 20, 200))] + text[to:],
                text[:at] + text[at:to][::-1] + text[to:],
            )
        )
    return text


def _mutants(seed: int, count: int) -> None:
    choose = random.Random(seed)
    for number in range(count):
        source = _mutated(choose)
        try:
            _checked(source)
        except BaseException as error:
            raise AssertionError(f"seed {seed}, program {number}: {source!r}") from error


@pytest.mark.sampled(0)
@pytest.mark.threat("L6")
def test_mutated_programs_raise_nothing_but_what_the_guard_raises() -> None:
    _mutants(seed=1, count=2_500)


def test_bytes_read_as_text_raise_nothing_but_what_the_guard_raises() -> None:
    choose = random.Random(2)
    for _ in range(1_500):
        junk = choose.randbytes(choose.randrange(60))
        for text in (junk.decode("latin-1"), junk.decode("utf-8", "surrogateescape"), junk.decode("utf-16", "replace")):
            _checked(text)


# ------------------------------------------------------------------------------------- as under CPython


_ADDRESS = re.compile(r"0x[0-9a-f]+")
_NOTICED = re.compile(r"(?<=maximum recursion depth exceeded) (while|in) [\w ]+")
"""Where recursion was found to be too deep, of which either has some levels of its own."""


def _told(shown: object) -> tuple[object, ...]:
    text, error, line, message = (getattr(shown, name) for name in ("text", "error", "line", "message"))
    text, message = (_NOTICED.sub("", _ADDRESS.sub("0x", one)) for one in (text, message))
    return text, error, line, message


def _same(seed: int) -> None:
    source = grown(seed)
    want, got = plain(source), guarded(source)
    assert got.error != "refused", f"seed {seed}: {got.message}\n{source}"
    if _told(got) != _told(want) and not _of_known_kind(want.text, got.text):
        raise AssertionError(f"seed {seed}: {_told(got)[1:]} for {_told(want)[1:]}\n{_first(want.text, got.text)}")


def _of_known_kind(want: str, got: str) -> bool:
    """Whether all that differs are lines that name the kind of a built-in function, which are Python's own here."""
    ours, theirs = got.splitlines(), want.splitlines()
    return len(ours) == len(theirs) and all(
        one == other or ("builtin_function_or_method" in other and "function" in one)
        for one, other in zip(ours, theirs, strict=True)
    )


def _first(want: str, got: str) -> str:
    ours, theirs = got.splitlines(), want.splitlines()
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return f"line {number} of the output: {one!r} for {other!r}"
    return f"{len(ours)} lines of output for {len(theirs)}"


@pytest.mark.sampled(0)
def test_what_grows_is_much_of_the_language() -> None:
    """Most programs end well, and together they have every node in them that the rules know."""
    seen: set[str] = set()
    ended = 0
    for seed in range(100):
        source = grown(seed)
        seen.update(type(node).__name__ for node in ast.walk(ast.parse(source)))
        ended += plain(source).error is None
    assert ended > 50
    known = {kind.__name__ for kind in rewrite._HANDLERS if issubclass(kind, ast.stmt | ast.expr | ast.pattern)}
    assert known - seen <= {"Pass", "TypeAlias", "Await", "TryStar", "Set", "DictComp", "AsyncWith", "Assert"}


@pytest.mark.sampled(0)
def test_grown_programs_do_as_under_cpython() -> None:
    for seed in range(QUICK):
        _same(seed)


@pytest.mark.slow
@pytest.mark.timeout(2 * LONG)
def test_programs_that_no_run_before_grew_do_as_under_cpython() -> None:
    first, until = secrets.randbits(40), time.monotonic() + LONG
    count = 0
    while time.monotonic() < until:
        _same(first + count)
        count += 1
    print(f"{count} programs from seed {first} on")


@pytest.mark.slow
@pytest.mark.timeout(2 * LONG)
def test_mutants_that_no_run_before_made_raise_nothing_but_what_the_guard_raises() -> None:
    until = time.monotonic() + LONG / 3
    while time.monotonic() < until:
        _mutants(seed=secrets.randbits(40), count=500)


if __name__ == "__main__":
    for number in sys.argv[1:]:
        _same(int(number))
