"""Modules that a session runs from Python's own source: they reach what a cell does, and none of them is shared."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pathlib
import subprocess
import sys
import types
from typing import Any

import pytest
from runner import guarded, plain

from cellblock.guard.signals import Ending
from cellblock.policy import RARE, Policy


class Host:
    """Shows what it pays, and nothing else."""

    limit = 100

    def __init__(self) -> None:
        self.balance = 100
        self._secret = "CANARY"

    def pay(self) -> int:
        return self.balance


RUNS = "__import__('builtins').print('reached')"
TEXTS = {
    "of an object that is no function": f"c = C()\nc.__annotations__ = {{'x': {RUNS!r}}}\nf.register(c)",
    "of a method": f"class D:\n    def m(self, x: {RUNS!r}): pass\nf.register(D().m)",
    "of a function": f"def g(x: {RUNS!r}): pass\nf.register(g)",
    "of what can be called": (
        f"class D:\n    def __call__(self): pass\nd = D()\nd.__annotations__ = {{'x': {RUNS!r}}}\nf.register(d)"
    ),
    "of a method of singledispatchmethod": (
        f"class D:\n    @functools.singledispatchmethod\n    def m(self, x): pass\n    @m.register\n"
        f"    def _(self, x: {RUNS!r}): pass"
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_dispatching_evaluates_runs_as_a_cell_does(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """L1, L5: `register()` reads annotations, whatever it is given."""
    source = "import functools\n@functools.singledispatch\ndef f(x): pass\nclass C: pass\n" + TEXTS[text]
    assert guarded(source, Policy(also=RARE)).error in ("SecurityError", "TypeError", "NameError")
    assert "reached" not in capfd.readouterr().out


METHODS = {
    "set by __init__": "D.__init__(host, 10**6)",
    "set by __init__ of a frozen one": "F.__init__(host, 10**6)",
    "told by __repr__": "print(S.__repr__(host))",
    "told by __eq__": "S.__eq__(host, host)",
    "told by __hash__": "print(F.__hash__(host))",
    "set on a class": "D.__init__(type(host), 1)",
    "set by __setattr__": "F.__setattr__(host, 'limit', 1)",
    "set on a class of the library": "import json\nJ.__init__(json.JSONEncoder, 'changed')",
    "told by asdict": "print(dataclasses.asdict(host))",
    "set by replace": "dataclasses.replace(host, balance=1)",
    "told by a cached property": "print(functools.cached_property(lambda one: one._secret).__get__(host))",
    "told by total_ordering": "functools.total_ordering(type(host))",
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_the_library_makes_reach_no_objects_of_the_host(method: str) -> None:
    """L1, L2: whatever `self` they are given."""
    host = Host()
    source = f"""
import dataclasses, functools
@dataclasses.dataclass
class D:
    balance: int
@dataclasses.dataclass(frozen=True)
class F:
    balance: int
@dataclasses.dataclass(order=True)
class S:
    _secret: str
@dataclasses.dataclass
class J:
    item_separator: object
host = get()
{METHODS[method]}
"""
    shown = guarded(source, Policy(also=RARE).cls(Host, include=["pay"]).fn(lambda: host, name="get"))
    assert shown.error in ("SecurityError", "TypeError", "ValueError"), shown
    assert (host.balance, host.limit, Host.limit, host._secret) == (100, 100, 100, "CANARY")
    assert "CANARY" not in shown.text + shown.message


@pytest.mark.parametrize("empty", ["C.__doc__ = ''", "del C.__doc__", "C.__doc__ = None"])
@pytest.mark.parametrize("how", ["dataclass(C)", "dataclass(init=False)(C)", "dataclass(slots=True, init=False)(C)"])
def test_no_text_of_a_class_is_evaluated_for_its_signature(empty: str, how: str) -> None:
    """L1: CPython keeps the first docstring, and reads it as a signature."""
    settings: Any = types.ModuleType("settings_of_the_host")
    settings.API_KEY = "HOST-SECRET"
    sys.modules["settings_of_the_host"] = settings
    try:
        source = "from dataclasses import dataclass\nclass C:\n    'C(x=settings_of_the_host.API_KEY)\\n--\\n\\n'\n"
        shown = guarded(f"{source}{empty}\nprint({how}.__doc__)", Policy(also=RARE))
    finally:
        del sys.modules["settings_of_the_host"]
    assert "HOST-SECRET" not in shown.text + shown.message


@pytest.mark.parametrize("name", ["x=1", "a\nimport os", "__init__", "__class__", "class", "self.x"])
def test_names_of_fields_are_names(name: str) -> None:
    """L5: they become source."""
    source = f"import dataclasses\ndataclasses.make_dataclass('A', [({name!r}, int)])\nprint('made')"
    assert guarded(source, Policy(also=RARE)).text == ""


def test_fields_that_were_made_up_are_source_that_is_checked(capfd: pytest.CaptureFixture[str]) -> None:
    """L5: what `dataclasses` writes is checked before it is compiled, as any source."""
    source = """
import dataclasses
@dataclasses.dataclass
class A:
    a: int = 0
made = A.__dataclass_fields__['a']
made.name = '''a=(__import__('builtins').print('reached'), ().__class__.__base__.__subclasses__())'''
@dataclasses.dataclass
class B(A):
    b: int = 0
B()
"""
    shown = guarded(source, Policy(also=RARE))
    assert shown.error is not None
    assert "reached" not in capfd.readouterr().out


def test_what_a_session_changes_of_the_library_is_its_own() -> None:
    """L8: classes, functions and caches of a written module are the session's."""
    source = """
import functools, dataclasses
functools.cached_property.func = 'changed'
functools.wraps.mark = 'changed'
dataclasses.Field.mark = 'changed'
dataclasses.MISSING.mark = 'changed'
functools.cached_property.__get__ = lambda *given: 'changed'
dataclasses.dataclass.__kwdefaults__
"""
    guarded(source, Policy(also=RARE))
    assert not hasattr(functools.cached_property, "func")
    for one in (functools.wraps, dataclasses.Field, dataclasses.MISSING):
        assert not hasattr(one, "mark")
    other = "import functools\nclass A:\n    @functools.cached_property\n    def x(self): return 1\nprint(A().x)"
    assert guarded(other).text == "1\n"


def test_library_code_is_told_of_the_classes_that_its_session_knows() -> None:
    """L3: dispatching looks through the classes that inherit from another."""
    seen: list[Any] = []

    class Meta(type(Host)):  # type: ignore[misc]
        def __subclasscheck__(cls, kind: type) -> bool:
            seen.append(kind)
            return False

    class Base: ...

    class Heir(Base, metaclass=Meta): ...

    source = """
import functools
@functools.singledispatch
def f(x): return 'any'
@f.register(Base)
def _(x): return 'base'
class C: pass
print(f(C()), f.dispatch(int)(1))
"""
    assert guarded(source, Policy().cls(Base)).text == "any any\n"
    assert seen == []


@pytest.mark.parametrize("name", ["functools", "dataclasses"])
def test_a_written_module_has_no_less_than_cpythons(name: str) -> None:
    public = sorted(__import__(name).__all__)
    source = f"import {name}\nprint([one for one in {public!r} if not hasattr({name}, one)])"
    assert guarded(source).text == plain(source).text == "[]\n"


def test_no_source_of_a_cell_reaches_what_library_source_is_compiled_with() -> None:
    """L5: names of the guard's own hold a dot."""
    source = "import functools\nprint([one for one in dir(functools) if '.' in one or one.startswith('__')])"
    assert guarded(source).text == "['__all__', '__dict__', '__doc__']\n"
    for name in ("library.put", "library.__mro__", "exec", "getattr.__globals__"):
        assert guarded(f"globals()[{name!r}]").error == "KeyError"


PROGRAMS = {
    "fields that are none": """
import dataclasses
class F:
    name = 'x=1'
@dataclasses.dataclass
class A:
    a: int = 0
A.__dataclass_fields__['z'] = F()
@dataclasses.dataclass
class B(A):
    b: int = 0
print(B())
""",
    "slots": """
import dataclasses
@dataclasses.dataclass(slots=True)
class A:
    x: int = 1
a = A()
try: a.y = 2
except AttributeError as e: print(e)
print(a, A.__slots__, A.__qualname__)
""",
    "frozen": """
import dataclasses, copy
@dataclasses.dataclass(frozen=True, slots=True)
class A:
    x: int = 1
a = A(2)
try: a.x = 2
except dataclasses.FrozenInstanceError as e: print(e)
print(copy.copy(a), hash(a) == hash(A(2)))
""",
    "inherited": """
import dataclasses
@dataclasses.dataclass
class A:
    x: int = 1
@dataclasses.dataclass
class B(A):
    y: list = dataclasses.field(default_factory=list)
print(B(), B(1) == B(1), [f.name for f in dataclasses.fields(B)])
""",
    "ordered": """
import dataclasses
@dataclasses.dataclass(order=True)
class A:
    x: int
    y: str = ''
print(sorted([A(2), A(1, 'b'), A(1, 'a')]), A(1) < A(2), A(1) == 1)
""",
    "mutable default": """
import dataclasses
@dataclasses.dataclass
class A:
    x: list = []
""",
    "as data": """
import dataclasses, collections
T = collections.namedtuple('T', 'a b')
@dataclasses.dataclass
class A:
    x: object
print(dataclasses.asdict(A({1: [A(T(1, 2))]})), dataclasses.astuple(A([A(1)])))
""",
    "parameters of init": """
import dataclasses
@dataclasses.dataclass
class A:
    x: int
    n: dataclasses.InitVar[int] = 2
    def __post_init__(self, n): self.x += n
print(A(1), A(1, n=5), A.__doc__)
""",
    "repr of itself": """
import dataclasses
@dataclasses.dataclass
class A:
    x: object = None
a = A()
a.x = a
print(a)
""",
    "made by a call": """
import dataclasses
A = dataclasses.make_dataclass('A', ['x', ('y', int, 3)], namespace={'f': lambda s: s.x})
print(A(1), A(1).f())
""",
    "not equal": """
import dataclasses
@dataclasses.dataclass
class A:
    x: float
n = float('nan')
print(A(n) == A(n), A(1) != A(2))
""",
    "dispatched": """
import functools, collections.abc
@functools.singledispatch
def f(x): return 'any'
@f.register
def _(x: int | str): return 'either'
@f.register(collections.abc.Sequence)
def _(x): return 'many'
print(f(1), f('x'), f([]), f(None), f(True), f.registry.keys() >= {int, str})
""",
    "ordered by one": """
import functools
@functools.total_ordering
class A:
    def __init__(self, x): self.x = x
    def __eq__(self, o): return self.x == o.x
    def __gt__(self, o): return self.x > o.x
print(A(1) <= A(1), A(2) < A(1))
""",
    "wrapped": """
import functools
def f(a: int) -> str:
    'doc'
f.mark = 1
@functools.wraps(f)
def g(*given): pass
print(g.__name__, g.__doc__, g.__annotations__, g.mark, g.__wrapped__ is f)
""",
    "cached": """
import functools
@functools.lru_cache(maxsize=2)
def f(x): return x
f(1), f(2), f(3), f(3)
print(f.cache_info(), f.__name__)
""",
    "cached property": """
import functools
class A:
    @functools.cached_property
    def x(self): print('once'); return 1
a = A()
print(a.x, a.x, vars(a))
del a.x
print(a.x)
""",
    "partial method": """
import functools
class A:
    def f(self, a, b=0): return a, b
    g = functools.partialmethod(f, 1, b=2)
print(A().g())
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_do_what_they_do_under_cpython(program: str) -> None:
    assert guarded(PROGRAMS[program]) == plain(PROGRAMS[program])


@dataclasses.dataclass
class Order:
    """Of the host's."""

    number: int
    items: list[str] = dataclasses.field(default_factory=list)


def test_dataclasses_of_the_host_are_told_as_far_as_they_were_granted() -> None:
    source = (
        "from dataclasses import *\n"
        "print(asdict(order), [f.name for f in fields(order)], is_dataclass(order))"
    )
    whole = guarded(source, Policy().cls(Order), {"order": Order(1, ["a"])})
    assert whole.text == "{'number': 1, 'items': ['a']} ['number', 'items'] True\n"
    part = guarded(source, Policy().cls(Order, include=["number"]), {"order": Order(1, ["CANARY"])})
    assert part.error in ("SecurityError", "TypeError")
    assert "CANARY" not in part.text + part.message
    replaced = "import dataclasses\nprint(dataclasses.replace(order, number=2))"
    assert guarded(replaced, Policy().cls(Order), {"order": Order(1)}).text == "Order(number=2, items=[])\n"
    assert guarded(replaced, Policy().cls(Order, constructable=False), {"order": Order(1)}).error == "TypeError"


def test_signatures_are_those_of_cpython() -> None:
    source = (
        "import dataclasses, inspect\n@dataclasses.dataclass\nclass A:\n    x: int\n    y: str = 'a'\n"
        "print(inspect.signature(A))"
    )
    assert guarded(source).text == plain(source).text
    assert inspect.signature(dataclasses.dataclass)


_FIRST = """
from cellblock import Session
from cellblock.guard.written import library
with Session(trust_level="local") as session:
    session.run("1")
    before = library._program.cache_info().misses
    cell = session.run("from dataclasses import dataclass\\n@dataclass\\nclass A:\\n    x: int\\nA(1).x")
    print(cell.value, library._program.cache_info().misses - before)
"""


@pytest.mark.sampled(0)
def test_first_dataclass_of_a_process_waits_for_no_source_of_the_library() -> None:
    """It is checked before any cell runs, and counts to none."""
    done = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1 0\n"


STACKS = {
    "entering a host's": "contextlib.ExitStack().enter_context(host)",
    "leaving a host's": "contextlib.ExitStack().push(host)",
    "calling what a host holds": "with contextlib.ExitStack() as stack:\n    stack.callback(host._pay)",
    "closing a host's": "with contextlib.closing(host): pass",
    "writing to a host's": "with contextlib.redirect_stdout(host): print('changed')",
    "a module of the library's": (
        "contextlib.redirect_stdout._stream = 'modules'\ncontextlib.redirect_stdout(host).__enter__()"
    ),
    "a class that the library asks": "isinstance(host, contextlib.AbstractContextManager) and print('CANARY')",
}


@pytest.mark.parametrize("stack", STACKS)
def test_context_managers_of_the_library_reach_what_their_cell_does(stack: str) -> None:
    """L1, L8: what they enter, leave, close and write to passes the gates."""
    host = Host()
    source = f"import contextlib\nhost = get()\n{STACKS[stack]}"
    shown = guarded(source, Policy(also=RARE).cls(Host, include=["limit"]).fn(lambda: host, name="get"))
    assert shown.error in ("SecurityError", "TypeError", None)
    assert "changed" not in shown.text
    assert "CANARY" not in shown.text
    assert host.balance == 100


def test_context_managers_of_the_library_do_as_pythons() -> None:
    source = """
import contextlib, decimal, io
log = []
@contextlib.contextmanager
def managed(name):
    try:
        yield log.append(name)
    except KeyError as error:
        log.append(repr(error))
@managed('decorated')
def run(): return 7
with contextlib.ExitStack() as stack:
    stack.enter_context(managed('entered'))
    held = stack.enter_context(io.StringIO())
    stack.enter_context(decimal.localcontext()).prec = 3
    stack.callback(log.append, str(decimal.Decimal(1) / 3))
    stack.push(lambda kind, error, _: log.append(kind.__name__))
    raise KeyError(1)
written = io.StringIO()
with contextlib.redirect_stdout(written), contextlib.redirect_stdout(io.StringIO()):
    print('inner')
print(log, run(), held.closed, repr(written.getvalue()), isinstance(stack, contextlib.AbstractContextManager))
try:
    with managed('raises'):
        raise ValueError(2)
except ValueError as error:
    print(error.__context__, log[-1])
"""
    assert guarded(source, Policy()) == plain(source)


def test_parsers_of_arguments_do_as_pythons() -> None:
    source = """
import argparse
parser = argparse.ArgumentParser(
    prog='tool', description='does %(prog)s things', formatter_class=argparse.ArgumentDefaultsHelpFormatter
)
parser.add_argument('name', help='the name')
parser.add_argument('-n', '--number', type=int, default=3, metavar='N', help='a number of %(type)s')
parser.add_argument('--color', action=argparse.BooleanOptionalAction)
parser.add_argument('--list', nargs='*', choices=['a', 'b'])
parser.add_argument('-v', action='count', default=0)
group = parser.add_argument_group('group', 'of its own')
group.add_argument('--more', action='append')
either = parser.add_mutually_exclusive_group()
either.add_argument('--one')
either.add_argument('--other')
print(parser.parse_args('me -n 5 --no-color -vv --more 1 --more 2 --list a'.split()), parser.get_default('number'))
parser.print_help()
for words in ('me -n x', '', 'me --list z', 'me --one 1 --other 2', '-h', 'me --nope'):
    try:
        parser.parse_args(words.split())
    except SystemExit as ended:
        print('exit', ended.code)
class Upper(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values.upper())
outer = argparse.ArgumentParser(prog='outer')
commands = outer.add_subparsers(dest='command', required=True)
inner = commands.add_parser('run', aliases=['r'])
inner.add_argument('--up', action=Upper)
inner.set_defaults(call=lambda found: found.up)
found, rest = outer.parse_known_args(['run', '--up', 'a', '--rest'])
print(found.command, found.call(found), rest, argparse.Namespace(a=1) == argparse.Namespace(a=1))
"""
    assert guarded(source, Policy()) == plain(source)


def test_time_in_which_source_of_the_library_is_checked_does_not_count_to_a_limit() -> None:
    """It is checked once a process, in whichever cell imports a module first."""
    ending = Ending()
    ending.begin()
    ending.excused = 60.0
    assert ending.raise_in("timeout", ending.cell)
    assert not ending.flag
    ending.begin()
    assert ending.excused == 0.0
    ending.thread = -1  # no thread's, which it would end
    assert ending.raise_in("timeout", ending.cell)
    assert ending.flag


def test_loggers_do_as_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    monkeypatch.setattr(logging.root, "level", logging.root.level)
    monkeypatch.setattr(logging.root, "handlers", [])
    source = """
import io, logging, sys
written = io.StringIO()
form = '%(asctime)s|%(levelname)-8s|%(name)s|%(funcName)s|%(lineno)d|%(message)s'
logging.root.handlers.clear() if hasattr(logging, 'root') else None
logging.basicConfig(stream=written, level=logging.DEBUG, format=form, datefmt='X', force=True)
log = logging.getLogger('a.b')
def run():
    log.info('text %s %d', 'x', 3)
    log.warning('dict %(key)s', {'key': 1})
run()
try:
    1 / 0
except ZeroDivisionError:
    log.exception('bad')
logging.error('root')
print(written.getvalue().count('ZeroDivisionError'), [line for line in written.getvalue().splitlines() if '|' in line])
class Kept(logging.Handler):
    def emit(self, record):
        records.append((record.getMessage(), record.levelname, record.funcName))
class Filter(logging.Filter):
    def filter(self, record):
        return 'secret' not in record.getMessage()
records = []
other = logging.getLogger('other')
other.propagate = False
other.setLevel('INFO')
other.addHandler(Kept())
other.addFilter(Filter())
for text in ('open', 'secret'):
    other.debug(text)
    other.info(text)
logging.LoggerAdapter(other, {'key': 1}).log(25, 'adapted')
print(records, other.isEnabledFor(10), other, other.parent)
shown = logging.StreamHandler(sys.stdout)
other.addHandler(shown)
for style, form in (('{', '{levelname}:{message}'), ('$', '$levelname $message')):
    shown.setFormatter(logging.Formatter(form, style=style))
    other.error(style)
print(logging.getLevelName(20), logging.getLogger('a').getChild('b') is log, log.getEffectiveLevel(), log.hasHandlers())
"""
    assert guarded(source, Policy()) == plain(source)


LOGS = {
    "to a file": "logging.basicConfig(filename='/tmp/made-by-a-cell', force=True)",
    "to a host's": "logging.StreamHandler(host).emit(logging.makeLogRecord({'msg': 'changed'}))",
    "of a host's names": "logging.Formatter('{one._secret}', style='{').format(logging.makeLogRecord({'one': host}))",
    "of a frame": "logging.Formatter('{exc.f_back}', style='{').format(logging.makeLogRecord({'exc': host}))",
    "of a width": "logging.info('%999999999d', 1) or logging.error('%999999999d', 1)",
}


@pytest.mark.parametrize("log", LOGS)
def test_loggers_reach_what_their_cell_does(log: str) -> None:
    """L1, L5: names, files and widths of a log pass the gates."""
    host = Host()
    policy = Policy(also=RARE).cls(Host, include=["limit"]).fn(lambda: host, name="get")
    shown = guarded(f"import logging\nhost = get()\n{LOGS[log]}", policy)
    assert shown.error in ("SecurityError", "MemoryError", None)
    assert "CANARY" not in shown.text + shown.message
    assert "changed" not in shown.text
    assert not pathlib.Path("/tmp/made-by-a-cell").exists()


@pytest.mark.parametrize("name", ["__setattr__", "__getstate__", "__mro__", "__traceback__", "__class__"])
def test_words_set_nothing_that_their_cell_could_not(name: str) -> None:
    """L3: `argparse` sets attributes by names that it is told."""
    source = f"""
import argparse
class A: pass
parser = argparse.ArgumentParser()
parser.add_argument('--x', dest={name!r}, type=lambda text: leaked)
parser.parse_args(['--x', '1'], namespace=A)
A().x = 1
print('set')
"""
    shown = guarded(source, Policy(also=RARE), {"leaked": exec})
    assert (shown.error, shown.text) == ("SecurityError", "")


def test_texts_are_wrapped_and_filled_in_as_pythons() -> None:
    source = """
import string, textwrap
text = 'The quick brown fox jumps over the lazy dog-eared  page. ' * 5
print(textwrap.fill(text, 40, initial_indent='* ', subsequent_indent='  '), textwrap.shorten(text, 50))
print(textwrap.wrap('a\\tb ' * 9, 20, tabsize=4), textwrap.dedent('  a\\n    b'), textwrap.indent('a\\nb', '> '))
class Percent(string.Template):
    delimiter = '%'
print(Percent('%x').substitute(x=3), string.Template('$a ${b} $$ $c').safe_substitute(a=1, b=2), string.capwords('a b'))
class Upper(string.Formatter):
    def get_value(self, key, given, named):
        return key.upper() if isinstance(key, str) else super().get_value(key, given, named)
print(Upper().format('{abc} {0[1]:>5} {0!r}', 'xy'))
"""
    assert guarded(source, Policy()) == plain(source)


def test_formatters_of_the_library_read_no_attributes() -> None:
    """L1: a text says which."""
    shown = guarded("import string\nprint(string.Formatter().format('{0.__class__}', 1))", Policy(also=RARE))
    assert (shown.error, shown.text) == ("SecurityError", "")
