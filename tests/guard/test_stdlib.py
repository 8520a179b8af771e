"""Walks all that the audits of the standard library hand out."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest
from runner import guarded

from cellblock.errors import SourceRejected
from cellblock.guard.audits import _HOME_OF, audit_of
from cellblock.guard.names import FRAMES
from cellblock.guard.standins import Module, TypeOfTypes, TypeStandIn
from cellblock.guard.tables import ModuleAudit
from cellblock.guard.world import World

# members that this or that version of Python lacks
SINCE = {
    "3.12": "batched kde_random override TypeAliasType get_protocol_members is_protocol Buffer QUOTE_NOTNULL "
    "QUOTE_STRINGS sumprod binomialvariate Month Day JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER "
    "OCTOBER NOVEMBER DECEMBER",
    "3.13": "replace PatternError kde fma NoDefault ReadOnly TypeIs z85decode z85encode",
}
LATER = frozenset(" ".join(SINCE.values()).split())
INSIDES = (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType)


def _standard() -> list[str]:
    return sorted(name for name, home in _HOME_OF.items() if home.startswith("cellblock.guard.stdlib"))


MODULES = _standard()


def _world() -> World:
    return World(write=lambda stream, text: None)


def _audit(name: str) -> ModuleAudit:
    found = audit_of(name)
    assert found is not None, f"{name} is named, but has no audit"
    return found


@pytest.mark.parametrize("name", MODULES)
def test_what_a_table_names_exists(name: str) -> None:
    audit = _audit(name)
    if not audit.members:
        return
    real = importlib.import_module(name)
    missing = {one for one in audit.members if not hasattr(real, one)} - LATER
    assert not missing
    for kind in audit.types:
        assert isinstance(kind.type, type)
        assert not (kind.reads | kind.statics) & FRAMES
        assert not [one for one in kind.reads if one.startswith("__")]


@pytest.mark.parametrize("name", MODULES)
def test_nothing_of_the_interpreter_is_handed_out(name: str) -> None:
    """L2, L3, L4: no module, frame or code, no metaclass, and no class whose metaclass nobody looked at."""
    world = _world()
    module = world.importer.module(name)
    for member, value in vars(module).items():
        assert not isinstance(value, INSIDES), member
        assert value is not type, member
        if isinstance(value, type):
            for meta in type(value).__mro__[:-1]:
                assert meta in world.metaclasses or meta is type or _in_guard(value), (member, meta)


def _in_guard(kind: type) -> bool:
    return kind.__module__.startswith("cellblock.guard") or type(kind).__module__.startswith("cellblock.guard")


@pytest.mark.parametrize("name", MODULES)
def test_no_other_name_of_a_module_is_reachable(name: str) -> None:
    """L1, L4."""
    world = _world()
    module = world.importer.module(name)
    granted = set(vars(module)) | {"__name__", "__doc__", "__all__", "__dict__", "__class__"}
    try:
        real = importlib.import_module(name)
    except ImportError:
        return
    for one in set(dir(real)) - granted:
        if one.startswith("__") and one in ("__version__", "__file__", "__eq__", "__repr__", "__hash__"):
            continue
        with pytest.raises(AttributeError):
            world.builtins["getattr"](module, one)


def _handed(world: World) -> list[tuple[str, Any]]:
    found = []
    for name in MODULES:
        module = world.importer.module(name)
        found += [(f"{name}.{one}", value) for one, value in vars(module).items() if not isinstance(value, Module)]
    return found


def test_nothing_handed_out_leads_to_what_it_lives_in() -> None:
    """L2, L4, L6: globals, code, closures, modules and what is wrapped."""
    world = _world()
    get = world.builtins["getattr"]
    secret = (
        "__globals__",
        "__code__",
        "__closure__",
        "__self__",
        "__func__",
        "__builtins__",
        "__loader__",
        "__spec__",
    )
    for path, value in _handed(world):
        for name in (*secret, "__wrapped__", "__subclasses__", "__mro__", "__bases__", "__reduce__", "__reduce_ex__"):
            with pytest.raises(AttributeError):
                get(value, name)
        for name in ("__class__", "__module__", "__name__"):
            found = get(value, name, None)
            assert not isinstance(found, (*INSIDES, types.FunctionType)), (path, name)


def test_each_attribute_of_each_class_is_of_the_table() -> None:
    """L1, L3: a name that no row has is refused on the class, whatever it is there."""
    world = _world()
    get = world.builtins["getattr"]
    for path, value in _handed(world):
        if not isinstance(value, type) or issubclass(value, BaseException):
            continue
        for name in dir(value):
            if name.startswith("__"):
                continue
            try:
                found = get(value, name)
            except AttributeError:
                continue
            assert not isinstance(found, INSIDES), (path, name)
            assert found is not type, (path, name)
            row = [world.types[one] for one in value.__mro__ if one in world.types]
            granted = {
                one for each in row for one in (*each.statics, *each.replaced, *each.static_replaced, *each.reads)
            }
            assert name in granted or world.classes.own(value) or isinstance(found, value), (path, name)


@pytest.mark.parametrize("name", MODULES)
def test_a_note_says_what_is_left_out(name: str) -> None:
    audit = _audit(name)
    stand_ins = {*audit.instead, *audit.replaced}
    if not audit.members and not stand_ins:
        return
    real = importlib.import_module(name)
    left = {one for one in dir(real) if not one.startswith("_")} - set(audit.members) - stand_ins
    public = left & set(getattr(real, "__all__", ()))
    assert not public or audit.note, f"{name}: {sorted(public)} are left out without a word"


def test_types_of_types_are_never_classes() -> None:
    world = _world()
    for path, value in _handed(world):
        if isinstance(value, type) and issubclass(value, type):
            assert path in ("abc.ABCMeta",), path
        assert not isinstance(value, Module), path
        assert isinstance(value, TypeStandIn | TypeOfTypes) or type(value) is not types.ModuleType


PROGRAMS = {
    "queues": (
        "import queue\nq = queue.PriorityQueue()\nq.put(2); q.put(1)\nprint(q.get(), q.qsize(), q.empty())\n"
        "try:\n    q.get(); q.get(timeout=0.03)\nexcept queue.Empty: print('empty')"
    ),
    "urls": "from urllib.parse import urlparse, parse_qs, quote\nu = urlparse('https://a.b:8/c?d=1&d=2#e')\n"
    "print(u.netloc, u.port, parse_qs(u.query), quote('a b'), u._replace(path='/x').geturl())",
    "html": "from html.parser import HTMLParser\nclass P(HTMLParser):\n"
    "    def __init__(self):\n        super().__init__()\n"
    "        self.found = []\n    def handle_data(self, data): self.found.append(data)\n"
    "p = P(); p.feed('<b>x</b>y'); p.close(); print(p.found)",
    "xml": "import xml.etree.ElementTree as ET\nr = ET.fromstring('<a><b k=\"1\">t</b></a>')\n"
    "print(r.find('b').text, r[0].get('k'), [e.tag for e in r.iter()])\n"
    "s = ET.SubElement(r, 'c'); s.text = 'x'; print(ET.tostring(r, encoding='unicode'))",
    "addresses": "import ipaddress\nn = ipaddress.ip_network('10.0.0.0/30')\nprint(list(n.hosts()), n.num_addresses)",
    "graphs": "from graphlib import TopologicalSorter\nprint(list(TopologicalSorter({'b': ['a']}).static_order()))",
    "arrays": "from array import array\na = array('i', [3, 1]); a.append(2); print(a.tolist(), a.typecode, len(a))",
    "literals": "import ast\nprint(ast.literal_eval(\"{'a': [1, (2.5, None)]}\"))",
    "shell": "import shlex, fnmatch\nprint(shlex.split('a \"b c\"'), fnmatch.filter(['a.py', 'b.c'], '*.py'))",
    "weak": "import weakref\nclass A: pass\na = A(); r = weakref.ref(a); print(r() is a)\n"
    "d = weakref.WeakValueDictionary()\n"
    "d['a'] = a; print(len(d), d['a'] is a)",
    "variables": "import contextvars\nv = contextvars.ContextVar('v', default=1)\nt = v.set(2)\n"
    "print(v.get())\nv.reset(t)\nprint(v.get(), v.name)",
    "signatures of all kinds": "import inspect, functools\n"
    "class A:\n    def __init__(self, a, b=1): pass\n    def m(self, c, *d): pass\n"
    "    @classmethod\n    def k(cls, e): pass\n"
    "    @staticmethod\n    def s(f): pass\n    def __call__(self, g): pass\n"
    "class B(A): pass\nclass C: pass\nclass D:\n    def __new__(cls, h): pass\n"
    "@functools.wraps(A.m)\ndef w(*given): pass\n@functools.lru_cache\ndef c(i, /, j): pass\n"
    "for one in (A, B, C, D, A(1).m, A.m, A.k, A.s, A(1), w, c, functools.partial(A.m, 1), len):\n"
    "    print(inspect.signature(one))\n"
    "for one in (3, 'x'):\n    try: inspect.signature(one)\n    except TypeError as error: print(error)",
    "signatures": "import inspect\ndef f(a, b: int = 2, *c, d=None, **e) -> str: ...\nprint(inspect.signature(f))\n"
    "print(list(inspect.signature(f).parameters), inspect.isfunction(f), inspect.isclass(int))",
    "a failure as text": "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n"
    "    print(traceback.format_exc().splitlines()[-1], traceback.format_exception_only(e))",
    "timing": "import timeit\nprint(timeit.timeit(lambda: None, number=10) < 5)",
    "contexts": "from decimal import Decimal, getcontext, localcontext, ROUND_HALF_UP\n"
    "with localcontext() as c:\n    c.prec = 5\n"
    "    print(Decimal(1) / 3)\nprint(Decimal(1) / 3, getcontext().prec)\n"
    "print(Decimal('1.25').quantize(Decimal('.1'), ROUND_HALF_UP))",
    "enumerations": "from enum import Enum, IntEnum, Flag, auto\n"
    "C = Enum('C', 'A B')\nprint(C.A, list(C), C['B'].value, C(1))\n"
    "S = IntEnum('S', {'X': 5}); print(S.X + 1)\nP = Flag('P', ['R', 'W']); print(P.R | P.W)",
    "constants": "import codecs, colorsys, keyword\nprint(codecs.encode('abc', 'rot13'), keyword.iskeyword('if'))\n"
    "print(colorsys.rgb_to_hsv(1, 0, 0))",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_ordinary_programs_run_as_under_cpython(what: str) -> None:
    from runner import plain

    assert guarded(PROGRAMS[what]) == plain(PROGRAMS[what])


def test_logs_are_the_sessions_own(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    before = (list(logging.root.handlers), set(logging.root.manager.loggerDict))
    source = """
import logging, io
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("a.b")
log.info("x=%d", 1); log.debug("no")
out = io.StringIO(); h = logging.StreamHandler(out); log.addHandler(h); log.propagate = False
log.warning("w")
try: 1 / 0
except ZeroDivisionError: log.exception("e")
print(repr(out.getvalue().splitlines()[0]), out.getvalue().splitlines()[-1])
"""
    found = guarded(source)
    assert found.text == "INFO a.b: x=1\n'w' ZeroDivisionError: division by zero\n", found
    assert before == (list(logging.root.handlers), set(logging.root.manager.loggerDict))
    assert capsys.readouterr().err == ""


REFUSED = {
    "a log to a file": "import logging\nlogging.basicConfig(filename='/tmp/x')",
    "attributes in a log's format": "import logging\n"
    "logging.Formatter('{args.__class__}', style='{').format(logging.makeLogRecord({'args': ()}))",
    "source that is timed": "import timeit\ntimeit.timeit('().__class__.__base__')",
    "files by their paths": "import pathlib\npathlib.Path('x').read_text()",
    "words of a file": "import argparse\nargparse.ArgumentParser(fromfile_prefix_chars='@').parse_args(['@x'])",
    "callbacks of references": "import weakref\nclass A: pass\nweakref.ref(A(), print)",
    "deep literals": "import ast\nast.literal_eval('[' * 10000)",
    "documents with entities": "import xml.etree.ElementTree as E\n"
    "E.fromstring('<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>')",
    "deep documents": "import xml.etree.ElementTree as E\nE.fromstring('<a>' * 100000)",
    "a context's items": "import contextvars\ncontextvars.copy_context()",
    "files of trees": "import xml.etree.ElementTree as E\nE.parse('/etc/passwd')",
    "files of arrays": "import array\narray.array('b').fromfile",
    "an object of another class": "import argparse\nargparse.Namespace(**{'__class__': int})",
    "a library's protocol on an object": "import argparse\nargparse.Namespace(**{'__array_interface__': {}})",
    "a name that is set by words": "import argparse\nclass A: __slots__ = ()\np = argparse.ArgumentParser()\n"
    "p.add_argument('--x', dest='__class__')\np.parse_args(['--x', '1'], namespace=argparse.Namespace())",
    "a default of the host's": "import inspect\nprint(inspect.signature(held).parameters['x'].default.secret)",
}


def test_a_signature_is_read_off_a_function_and_no_text() -> None:
    sys.modules["settings"] = settings = types.ModuleType("settings")
    settings.KEY = "CANARY"  # type: ignore[attr-defined]
    try:
        source = "import inspect\nclass C:\n    'C(x=settings.KEY)\\n--\\n\\n'\nprint(inspect.signature(C))"
        assert guarded(source).text == "()\n"
    finally:
        del sys.modules["settings"]


HELD = types.SimpleNamespace(secret="CANARY")


@pytest.mark.parametrize("what", REFUSED)
def test_what_reaches_out_is_refused(what: str) -> None:
    def held(x: Any = HELD) -> None: ...

    found = guarded(REFUSED[what], host={"held": held})
    assert found.error in ("SecurityError", "refused", "AttributeError"), found
    assert "CANARY" not in found.text


@pytest.mark.parametrize(
    ("module", "word"),
    [("os", "content"), ("threading", "asyncio"), ("pickle", "json"), ("os.path", "content"), ("numpy", "trusted=[")],
)
def test_a_module_that_is_not_granted_says_what_to_use(module: str, word: str) -> None:
    for source in (f"import {module}", f"from {module} import x"):
        with pytest.raises(SourceRejected) as refused:
            _world().check(source, "<cell 1>")
        assert refused.value.refusals[0].rule == "import"
        assert word in refused.value.hint
