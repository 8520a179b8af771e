"""What a cell hands to code of the program that keeps it for the whole process, or shows it as it is let go of."""

from __future__ import annotations

import _strptime
import ast
import collections
import collections.abc
import contextlib
import decimal
import fnmatch
import gc
import io
import ipaddress
import re
import sys
import time
import typing
import urllib.parse
import xml.etree.ElementTree as ElementTree
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from levels import local_session

from cellblock import ExecutionLimits, Policy, Session, Versioned
from cellblock.guard import rewrite
from cellblock.guard.world import World
from cellblock.policy import RARE

LYING = """
ran = []
class Lying:
    def __init__(self, like): self.like = like
    def __hash__(self): return hash(self.like)
    def __eq__(self, other): ran.append(other); return True
    def __call__(self): pass
class Text(str):
    def upper(self): ran.append(1); return "cell"
    def __str__(self): ran.append(1); return "cell"
    def __format__(self, spec): ran.append(1); return "cell"
class Number(int):
    def __and__(self, other): ran.append(1); return 0
    def __ror__(self, other): return Number(other)
    def __radd__(self, other): return Number(other)
"""
"""Classes of a cell whose objects are not what they look like; `ran` has what asked them."""


@pytest.fixture
def session() -> Iterator[Session]:
    with local_session() as session:
        assert session.run(LYING).ok
        yield session


@pytest.mark.threat("L11")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="parts of typing are in C: docs/limitations/local.md")
@pytest.mark.parametrize(
    ("form", "kind"),
    [("List[{}]", bytes), ("Optional[{}]", complex), ("Dict[str, {}]", bytearray), ("Annotated[int, {}]", frozenset)],
)
def test_hints_of_the_program_are_none_of_a_cells(session: Session, form: str, kind: type) -> None:
    session.run(f"import typing\nfrom typing import *\n{form.format(f'Lying({kind.__name__})')}\nran.clear()")
    found = eval(f"typing.{form.format(kind.__name__)}", {"typing": typing})
    assert kind in (*typing.get_args(found), *getattr(found, "__metadata__", ()))
    assert session.run("ran").value == []


@pytest.mark.threat("L11")
@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("Europe/Vaduz", "zoneinfo.ZoneInfo(key)"),
        ("Europe/Malta", "functools.partial(zoneinfo.ZoneInfo, key)()"),
        ("Europe/Tirane", "list(map(zoneinfo.ZoneInfo, [key]))"),
        ("Europe/Skopje", "list(itertools.starmap(zoneinfo.ZoneInfo, [[key]]))"),
        ("Europe/Monaco", "zoneinfo.ZoneInfo.__new__(zoneinfo.ZoneInfo, key)"),
    ],
)
def test_zones_of_the_program_have_names_that_are_texts(session: Session, key: str, source: str) -> None:
    assert session.run(f"import zoneinfo, functools, itertools\nkey = Text({key!r})\n{source}").ok
    zone = zoneinfo.ZoneInfo(key)
    assert (type(zone.key), str(zone)) == (str, key)
    assert session.run("ran").value == []


@pytest.mark.threat("L11")
@pytest.mark.parametrize("source", ["datetime.datetime.strptime('7', Text('%d'))", "time.strptime('7', Text('%d'))"])
def test_formats_that_the_program_keeps_are_texts(session: Session, source: str) -> None:
    _strptime._regex_cache.clear()  # type: ignore[attr-defined]
    assert session.run(f"import datetime, time\n{source}").ok
    assert {*map(type, _strptime._regex_cache)} == {str}  # type: ignore[attr-defined]


@pytest.mark.threat("L11")
@pytest.mark.parametrize("source", ["re.RegexFlag(Number(42))", "re.I | Number(34)", "re.RegexFlag(18) ^ re.S"])
def test_flags_of_patterns_of_the_program_are_none_of_a_cells(session: Session, source: str) -> None:
    assert session.run(f"import re\nkept = {source}").ok
    for flags in (42, 34, 18):
        assert type(re.RegexFlag(flags).value) is int
    assert session.run("ran").value == []


@pytest.mark.threat("L11")
@pytest.mark.parametrize("source", ["IPv4Address(Number(2**31))", "IPv4Address(2**31 - 1) + Number(1)"])
def test_addresses_of_the_program_are_private_or_not_whatever_a_cell_asks(session: Session, source: str) -> None:
    session.run(f"import ipaddress\nfrom ipaddress import IPv4Address\n({source}).is_private")
    assert ipaddress.ip_address("10.0.0.1").is_private
    assert not ipaddress.ip_address("128.0.0.0").is_private
    assert session.run("ipaddress.ip_address('192.168.1.1').is_private").value is True


@pytest.mark.threat("L7")
@pytest.mark.parametrize(
    "source",
    [
        "async def f(): pass\nf.__qualname__ = Text('f')\nkept = f()",
        "class C:\n    __qualname__ = Text('C')\n    __module__ = Text('m')\nkept = C()",
        "import asyncio\nclass E(Exception):\n    def __str__(self): return str(Text('e'))\n"
        "async def fail(): raise E()\nasync def main():\n    kept.append(asyncio.create_task(fail()))\n"
        "    await asyncio.sleep(0.01)\nkept = [ran]\nasyncio.run(main())",
    ],
    ids=["coroutine", "class", "task"],
)
@pytest.mark.filterwarnings("ignore")
def test_no_code_of_a_cell_runs_as_the_program_lets_go_of_what_it_made(session: Session, source: str) -> None:
    cell = session.run(source + "\nran.clear()")
    assert cell.ok, cell.text
    session.run("kept = None")
    gc.collect()
    assert session.run("ran").value == []


@pytest.mark.threat("L1")
@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("s = Text('{0.gi_frame}')\ns.format += Sum()", None),
        ("class C: pass\nC.mro += Sum()", "type"),
        ("import enum\nclass E(enum.Enum):\n    A = 1\nE._convert_ += Sum()", "type"),
        ("import enum\nclass E(enum.Enum):\n    A = 1\ndef f(e):\n    e._convert_ -= Sum()\n    e._x\nf(E)", "type"),
        ("import asyncio\nq = asyncio.Queue()\nq._get_loop += Sum()", "store"),
    ],
)  # fmt: skip
def test_an_augmented_assignment_reads_what_may_be_read(session: Session, source: str, rule: str | None) -> None:
    session.run("got = []\nclass Sum:\n    def __radd__(self, other): got.append(other)\n    __rsub__ = __radd__")
    cell = session.run(source)
    if rule is None:
        cell = session.run("def g(): yield got[0](h)\nh = g()\nnext(h)")
        rule = "format"
    assert cell.error is not None
    assert f"[{rule}]" in cell.error.message


@pytest.mark.parametrize("kind", ["self.count", "Counter.count", "f.count"])
def test_an_augmented_assignment_to_an_attribute_of_the_codes_own_is_pythons(session: Session, kind: str) -> None:
    source = f"""
class Counter:
    count = 0
    items = []
    def step(self, f):
        for _ in range(3):
            {kind} += 1
        self.items += [1]
        return {kind}
def f(): pass
f.count = 0
counter = Counter()
counter.step(f), counter.items is Counter.items
"""
    assert session.run(source).value == (3, True)


@pytest.mark.threat("L12")
@pytest.mark.parametrize("name", ["_find", "__init__", "__class__", "__dict__"])
def test_no_name_of_a_stand_in_is_imported(session: Session, name: str) -> None:
    cell = session.run(f"from math import {name} as found")
    assert cell.error is not None
    assert "found" not in session.names()


@pytest.mark.threat("L10")
@pytest.mark.parametrize(
    "source",
    [
        "('\\x00' * 2500).translate(['x' * 1_000_000])",
        "import types\n('\\x00' * 2500).translate(types.MappingProxyType({0: 'x' * 1_000_000}))",
        "('\\uFBF9' * 3_000_000).encode('ascii', 'namereplace')",
        "import random\na = random.Random().getrandbits(12_000_000)",
        "import secrets\na = secrets.randbits(8_000_000)",
        "a = int(*('f' * 2_000_000, 16))",
        "a = list(map(int, ['f' * 2_000_000], [16]))",
        "class I(int): pass\nx = I(2**262143 - 1)\nx = x * x",
        "class I(int): pass\nx = I(2**262143 - 1)\nx *= x",
        "import typing\ntyping.List['[' + 'f(0),' * 400_000 + ']']",
        "import json\njson.loads('[' + '[],' * 9_000_000 + '[]]')",
        "import json\njson.JSONDecoder().decode('[' + '[],' * 9_000_000 + '[]]')",
        "import csv\nnext(csv.reader([',' * 99_000_000]))",
        "import csv\nnext(csv.DictReader(['a', ',' * 99_000_000]))",
        "import re\nre.escape('.' * 90_000_000)",
    ],
)
def test_one_call_takes_neither_long_nor_much(source: str) -> None:
    with local_session(limits=ExecutionLimits(timeout_seconds=3, max_memory_mb=256)) as session:
        cell = session.run(source)
    assert cell.error is not None
    assert cell.usage.duration_ms < 2500
    assert cell.error.kind != "timeout"


def test_what_is_bounded_is_pythons_otherwise(session: Session) -> None:
    cell = session.run("""
import collections, csv, itertools, json, random, re, types
[
    "abc".translate(types.MappingProxyType({97: "xy", 99: 0x41, 98: None})),
    "abc".translate(["z"] * 98),
    "abc".translate(collections.defaultdict(lambda: "q")),
    "é".encode("ascii", "namereplace"),
    len(("é" * 60_000).encode("ascii", "namereplace")),
    ("é" * 60_000).encode("utf-16", "namereplace") == ("é" * 60_000).encode("utf-16"),
    list(map(int, ["ff", "a"], [16, 16])), int(*("ff", 16)), list(itertools.starmap(int, [("f", 16)])),
    repr(collections.defaultdict(int)), json.JSONDecoder().decode("[1]"), list(csv.DictReader(["a", "1"])),
    re.escape("a.b"), str(re.I | re.S), re.I.name, re.compile("a", re.I | re.M).flags,
    random.Random(1).getrandbits(9) < 512,
]
""")
    assert cell.value == [
        "xyA", "zbc", "qqq", b"\\N{LATIN SMALL LETTER E WITH ACUTE}", 2_100_000, True, [255, 10], 255, [15],
        "defaultdict(<class 'int'>, {})", [1], [{"a": "1"}], "a\\.b", "re.IGNORECASE|re.DOTALL", "IGNORECASE", 42, True,
    ]  # fmt: skip


LIKE_PYTHON = """
import codecs, csv, datetime, functools, io, random, typing

class D(datetime.datetime):
    @classmethod
    def strptime(cls, text, form): return super().strptime(text + "1", form)
    def again(self): return super().strptime("2025", "%Y")

class I(int):
    @classmethod
    def from_bytes(cls, *given): return super().from_bytes(*given)

class Reader(csv.DictReader):
    def __next__(self): return dict(super().__next__(), more=1)

def lines():
    yield from ("a", "b")

class Failing:
    def __init__(self): self.left = iter(["l1,x", None, "l3,x"])
    def __iter__(self): return self
    def __next__(self):
        if (one := next(self.left)) is None: raise OSError("once")
        return one

rows, reader = [], csv.reader(Failing())
while True:
    try: rows.append(next(reader))
    except OSError: rows.append("again")
    except StopIteration: break
told = []
for make in (lambda: csv.reader(5), lambda: csv.DictReader(5)):
    try: make()
    except TypeError as error: told.append(str(error))
long = "\\u00e9" * 60_000
results = [
    D.strptime("202", "%Y").year, type(D.strptime("202", "%Y")).__name__, D(2020, 1, 1).again().year,
    I.from_bytes(b"\\x01\\x02", "big"),
    list(Reader(lines())), rows, told, functools.partial(int, base=2).func is int, repr(functools.partial(int, base=2)),
    typing.get_origin(typing.Generic) is typing.Generic, long.encode("u16", "namereplace") == long.encode("utf-16"),
    long.encode("latin-1", "namereplace") == long.encode("latin-1"), len(long.encode("us-ascii", "namereplace")),
]
"""


def test_what_was_replaced_answers_as_pythons_own(session: Session) -> None:
    source = LIKE_PYTHON.replace("\\\\", "\\")
    plain: dict[str, Any] = {}
    exec(compile(source, "plain", "exec"), plain)
    assert session.run(source).ok, session.run(source).text
    assert session.run("results").value == plain["results"]


def test_marks_of_the_guards_own_are_no_names_of_attributes(session: Session) -> None:
    cell = session.run("""
class A: pass
a = A()
setattr(a, "=", 3)
setattr(a, "__dict__=", 4)
def f(): pass
object.__setattr__(f, "__name__", "g")
getattr(a, "", None), getattr(a, "="), getattr(a, "__dict__="), f.__name__
""")
    assert cell.value == (None, 3, 4, "g")


@pytest.mark.threat("L10")
@pytest.mark.parametrize("source", ["int(*[], *[t, 2])", "int(*[], t, 2)", "int.__new__(int, t, 2)"])
def test_an_integer_is_bounded_however_it_is_read(session: Session, source: str) -> None:
    cell = session.run(f"t = '1' * 2_000_000\na = {source}")
    assert cell.error is not None
    assert cell.error.type == "OverflowError"


def test_addresses_that_the_host_hands_over_can_be_read(session: Session) -> None:
    session.run("import ipaddress")
    session["address"] = ipaddress.ip_address("10.0.0.7")
    assert session.run("str(address), address.is_private, address.version").value == ("10.0.0.7", True, 4)


@pytest.mark.threat("L11")
def test_paths_into_trees_are_kept_by_the_session_alone(session: Session) -> None:
    source = """
import xml.etree.ElementTree as ET
tree = ET.fromstring('<r xmlns="http://x"><b/></r>')
found = [one.tag for one in tree.findall("x:b", {"x": "http://x"})]
try: tree.findall("x:c", {"x": Lying("http://x")})
except TypeError: pass
ran.clear()
"""
    assert session.run(source).ok
    tree = ElementTree.fromstring('<r xmlns="http://x"><c/></r>')
    assert [one.tag for one in tree.findall("x:c", {"x": "http://x"})] == ["{http://x}c"]
    assert session.run("found, ran").value == (["{http://x}b"], [])


@pytest.mark.threat("L10")
@pytest.mark.parametrize(
    "source",
    [
        "json.loads(S('[' + '[],' * 9_000_000 + '[]]'))",
        "json.loads(B(b'[' + b'[],' * 9_000_000 + b'[]]'))",
        "json.JSONDecoder().raw_decode(S('[' + '[],' * 9_000_000 + '[]]'))",
        "re.escape(S('.' * 90_000_000))",
    ],
)
def test_sizes_are_those_of_the_value_and_not_what_it_says(session: Session, source: str) -> None:
    session.run("""
import json, re
class S(str):
    def __len__(self): return 1
    def count(self, *_): return 0
class B(bytearray):
    def __len__(self): return 1
    def count(self, *_): return 0
""")
    cell = session.run(source)
    assert cell.error is not None
    assert cell.error.type == "MemoryError"


LIARS = """
class Size:
    def __init__(self, size): self.size = size
    def __index__(self): return self.size
    def __gt__(self, other): return False
    def __lt__(self, other): return True
    __le__, __ge__ = __lt__, __gt__
    def __mul__(self, other): return 1
    __rmul__ = __mul__
    def __neg__(self): return self
class Whole(int):
    def __gt__(self, other): return False
    def __lt__(self, other): return True
    __le__, __ge__ = __lt__, __gt__
    def __mul__(self, other): return 1
    __rmul__ = __mul__
class Small(str):
    def __len__(self): return 1
    def isascii(self): return True
    def count(self, *_): return 0
    def lower(self): return "md5"
import collections, csv, decimal, hashlib, io, itertools, math, random, secrets, unicodedata
"""


@pytest.mark.threat("L10")
@pytest.mark.parametrize("size", ["Size", "Whole"])
@pytest.mark.parametrize(
    "source",
    [
        "math.factorial({}(3_000_000))",
        "math.comb({0}(4_000_000), {0}(2_000_000))",
        "io.BytesIO().seek({}(1_500_000_000))",
        "hashlib.pbkdf2_hmac('sha256', b'a', b'b', {}(20_000_000))",
        "secrets.token_bytes({}(1_500_000_000))",
        "secrets.randbits({}(8_000_000))",
        "'a' * {}(1_500_000_000)",
        "'a'.ljust({}(1_500_000_000))",
        "'\\t'.expandtabs({}(1_500_000_000))",
        "bytes({}(1_500_000_000))",
        "random.choices([1], k={}(300_000_000))",
        "round(10**5, {}(-200_000_000))",
        "(1).to_bytes({}(1_500_000_000), 'big')",
        "itertools.tee([1], {}(200_000_000))",
        "itertools.product('ab', repeat={}(10**8))",
        "itertools.combinations('ab', {}(10**8))",
        "setattr(decimal.getcontext(), 'prec', {}(500_000_000))",
    ],
)
def test_sizes_are_asked_for_once(session: Session, source: str, size: str) -> None:
    cell = session.run(LIARS + source.format(size))
    assert cell.error is not None
    assert cell.error.type in ("OverflowError", "MemoryError"), cell.text


@pytest.mark.threat("L10")
@pytest.mark.parametrize(
    "source",
    [
        "'%*d' % (Whole(1_500_000_000), 1)",
        "format(1, Small('1500000000d'))",
        "hashlib.new(Small('shake_256')).digest(10)",
        "unicodedata.normalize('NFC', Small('a' + '\\u0301\\u0316' * 40_000))",
    ],
)
def test_texts_are_what_they_hold_and_not_what_they_say(session: Session, source: str) -> None:
    cell = session.run(LIARS + source)
    assert cell.error is not None
    assert cell.error.type in ("OverflowError", "MemoryError", "ValueError"), cell.text


KEPT = """
import asyncio, decimal, fnmatch, io, re, urllib.parse, weakref
class Part(Lying):
    def __format__(self, spec): ran.append(spec); return "cell"
    def __index__(self): return self.like
class Bytes(bytearray):
    def __hash__(self): return hash("http://bank/")
    def __eq__(self, other): ran.append(other); return True
    def __iter__(self): return iter([Part(32), Part(47)])
    def rstrip(self, *_): return b"x"
"""


@pytest.mark.threat("L11")
@pytest.mark.parametrize(
    "source",
    [
        "urllib.parse.quote_from_bytes(Bytes(b'a'), '/')",
        "urllib.parse.urlsplit(Bytes(b'http://bank/'))",
        "fnmatch.fnmatchcase('a', Part('*'))",
        "fnmatch.filter(['a'], Bytes(b'*'))",
        "re.sub('b(a)', Bytes(rb'evil'), 'bank')",
        "re.sub('b(a)', Part(''), 'bank')",
        "re.compile(Bytes(b'b(a)'))",
    ],
)
def test_what_the_library_keeps_for_the_program_is_none_of_a_cells(session: Session, source: str) -> None:
    session.run(KEPT + source)
    session.run("ran.clear()")
    assert urllib.parse.quote("a b/") == "a%20b/"
    assert urllib.parse.urlsplit("http://bank/").netloc == "bank"
    assert fnmatch.filter(["a", "b.py"], "*.py") == ["b.py"]
    assert re.sub("b(a)", r"\1", "bank") == "ank"
    assert session.run("ran").value == []


@pytest.mark.threat("L11")
@pytest.mark.parametrize(
    "source",
    [
        "class S(io.StringIO):\n    def close(self): ran.append(1)\ns = S()\ns.me = s",
        "class S(io.BytesIO):\n    def close(self): ran.append(1)\ns = S()\ns.me = s",
        "class V: pass\nv = V()\nv.me = v\nd = weakref.WeakValueDictionary()\nd[Lying(1)] = v\ndel v",
        "c = decimal.localcontext(prec=2)\nc.__enter__()\nall = [c]\nall.append(all)",
    ],
)
def test_what_is_dropped_runs_nothing_where_it_is_collected(session: Session, source: str) -> None:
    assert session.run(KEPT + source).ok
    session.run("del s" if "s.me" in source else "del c, all" if "all" in source else "ran.clear()")
    gc.collect()
    assert decimal.getcontext().prec == decimal.DefaultContext.prec
    assert session.run("ran").value == []


@pytest.mark.threat("L11")
@pytest.mark.parametrize(
    "source",
    [
        "class Q(asyncio.Queue): pass",
        "asyncio.Condition(Lying(1))",
        "asyncio.Queue(Lying(1))",
        "async def m(): return asyncio.current_task(Lying(1))\nasyncio.run(m())",
        "async def m(): return asyncio.all_tasks(Lying(1))\nasyncio.run(m())",
    ],
)
def test_nothing_of_a_cells_stands_in_for_parts_of_a_loop(session: Session, source: str) -> None:
    cell = session.run(KEPT + source)
    assert cell.error is not None
    assert cell.error.type in ("TypeError", "SecurityError")
    assert session.run("ran").value == []


@pytest.mark.threat("L12")
def test_an_operator_is_not_handed_type(session: Session) -> None:
    session.run("class Given:\n    def __or__(self, other): ran.append(other is type)\n    __ror__ = __or__")
    cell = session.run("Given() | type\ntype | Given()")
    assert cell.error is not None
    assert cell.error.type == "TypeError"
    assert session.run("ran, str(int | type), str(type | None)").value == ([True], "int | type", "type | None")


@pytest.mark.threat("L12")
def test_a_field_that_is_renamed_is_source_as_a_cells_is(session: Session) -> None:
    cell = session.run("""
import dataclasses
@dataclasses.dataclass
class A:
    x: int = 1
dataclasses.fields(A)[0].name = "x, ran.append(object.__subclasses__())"
@dataclasses.dataclass(init=False, eq=False)
class B(A): pass
repr(B())
""")
    assert cell.error is not None
    assert session.run("ran").value == []


class Cursor:
    """Rows, and commands that are sent to it."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> str:
        return "row"

    def send(self, command: object) -> str:
        self.sent.append(command)
        return "secret"

    throw = close = send

    def __await__(self) -> Cursor:
        return self

    def get(self, *_: object) -> str:
        return "secret"

    keys = items = values = copy = get


@pytest.mark.threat("L2")
@pytest.mark.parametrize(
    "source",
    [
        "def g(): yield from cursor\nx = g()\nnext(x)\nx.send('DROP')",
        "def g(): yield from cursor\nx = g()\nnext(x)\nx.throw(ValueError)",
        "async def g(): return await cursor\nx = g()\nx.send(None)\nx.send('DROP')",
        "import types\ntypes.MappingProxyType(cursor).get('x')",
        "import types\ntypes.MappingProxyType[str, int](cursor).get('x')",
        "import types\ntypes.MappingProxyType(types.GenericAlias(cursor, int)).get('x')",
        "import xml.etree.ElementTree as ET\nclass E:\n    def __getattribute__(self, name):\n"
        "        return ET.Element if name == '__class__' else cursor.get\nET.tostring(E())",
        "from typing import *\n@runtime_checkable\nclass P(Protocol):\n    sent: list\nassert isinstance(cursor, P)",
    ],
)
def test_no_statement_reaches_what_is_not_granted(source: str) -> None:
    with local_session(policy=Policy(also=RARE).cls(Cursor, include=["nothing"])) as session:
        session["cursor"] = cursor = Cursor()
        cell = session.run(source)
        assert not cell.ok
        assert "secret" not in (cell.text or "")
        assert cursor.sent == []


@pytest.mark.threat("L2")
@pytest.mark.parametrize("by", ["def g(): yield from given()", "async def g(): return await given()"])
def test_what_is_sent_to_an_object_without_a_grant_is_refused(by: str) -> None:
    cursor = Cursor()

    def given() -> Cursor:
        return cursor

    with local_session(policy=Policy(also=RARE).fn(given)) as session:
        assert not session.run(by + "\nx = g()\nx.send(None)\nx.send('DROP')").ok
    assert cursor.sent == []


@pytest.mark.threat("L9")
@pytest.mark.parametrize(
    "source",
    [
        "from typing import *\n@runtime_checkable\nclass P(Protocol):\n    x: int\nP.__annotations__ = {name: int}\n"
        "isinstance(cursor, P)",
        "__dataclass_builtins_object__.__setattr__(Text('x'), name, 1)",
    ],
)
def test_names_that_gates_are_asked_about_are_texts(source: str) -> None:
    world = World(Policy(also=RARE).cls(Cursor, include=["nothing"]), write=lambda *_: None)
    world.globals["cursor"] = Cursor()
    name = """
class Name(Lying):
    def endswith(self, text): return False
    def __getitem__(self, at): return ""
    startswith = removesuffix = endswith
name = Name("__subclasses__")
"""
    with contextlib.suppress(TypeError, AttributeError):
        for code in world.run(world.cell(LYING + name + source, "<cell>")):
            eval(code, world.globals)
    assert {type(one) for sets in (world.gates.reads, world.gates.writes) for one in sets} == {str}


def test_copies_of_a_dictionary_of_weak_values_are_such(session: Session) -> None:
    session.run("import copy, weakref\nclass V: pass\nv = V()\nd = weakref.WeakValueDictionary(a=v)")
    assert session.run("[sorted(one) for one in (d.copy(), copy.copy(d), copy.deepcopy(d), d | {'b': v})]").value == [
        ["a"], ["a"], ["a"], ["a", "b"]
    ]  # fmt: skip


def test_words_of_a_shell_are_not_read_from_the_program(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret words"))
    cell = session.run("import shlex\nshlex.split(None)")
    assert "secret" not in (cell.text or "")
    assert session.run("shlex.split('a \"b c\"')").value == ["a", "b c"]


def test_a_partial_of_a_type_is_saved(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    for _ in range(2):
        with Session("q", trust_level="local", state=Versioned(url)) as session:
            session.run("import functools\nif 'p' not in globals(): p = functools.partial(int, base=2)")
            assert session.run("p('101'), p.func is int").value == (5, True)


@pytest.mark.threat("L9")
def test_names_in_a_dict_of_attributes_are_texts(session: Session) -> None:
    cell = session.run("""
class A: pass
asked = []
class Name:
    def __hash__(self): asked.append(1); return 7
    def __eq__(self, other): asked.append(2); return True
    def endswith(self, text): asked.append(3); return False
a = A()
vars(a)[Name()] = 1
""")
    assert cell.error is not None
    assert cell.error.type == "TypeError"
    kinds = "[type(one).__name__ for one in vars(a)]"
    assert session.run(f"vars(a)[Text('n')] = 2\n{kinds}, a.n, asked").value == (["str"], 2, [])


class Titles(collections.UserList[str]):
    """Says what is called of it."""

    title = "t"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def clear(self) -> None:
        self.asked.append("clear")


class Rows(collections.abc.Mapping[str, str]):
    title = "t"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> str:
        return "row"

    def __iter__(self) -> Iterator[str]:
        return iter("a")

    def __len__(self) -> int:
        return 1

    def items(self) -> Any:
        self.asked.append("items")
        return [("secret", "row")]


class Sheet(dict[str, str]):
    title = "t"

    def __init__(self) -> None:
        super().__init__(a="row")
        self.asked: list[str] = []

    def copy(self) -> Any:
        self.asked.append("copy")
        return "secret"


class Failure(Exception):
    title = "t"

    def __init__(self) -> None:
        super().__init__("said")
        self.asked: list[str] = []

    def with_traceback(self, where: Any) -> Any:
        self.asked.append("with_traceback")
        return "secret"


@pytest.mark.threat("L2")
@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (Titles, "x.clear()"), (Titles, "x.append('a')"), (Rows, "x.items()"), (Rows, "x.get('a')"),
        (Sheet, "x.copy()"), (Failure, "x.with_traceback(None)"),
    ],
)  # fmt: skip
def test_what_a_class_of_the_host_inherits_is_not_granted_by_rows(kind: Any, source: str, granted: bool) -> None:
    value = kind()
    policy = Policy(also=RARE).fn(lambda: value, name="given")
    with local_session(policy=policy.cls(kind, include=["title"]) if granted else policy) as session:
        session.run("x = given()")
        for before in ("1", "import collections.abc, urllib.parse\nfrom collections import *"):
            assert session.run(before).ok
            for one in (source, f"def f(x): return {source}\nf({{}}) if {kind is Rows} else 0\nf(x)"):
                cell = session.run(one)
                assert cell.error is not None
                assert cell.error.type == "SecurityError"
    assert value.asked == []


def test_what_a_builtin_type_defines_is_had_of_its_heirs() -> None:
    sheet, failure = Sheet(), Failure()
    with local_session(policy=Policy().fn(lambda: sheet, name="sheet").fn(lambda: failure, name="failure")) as session:
        assert session.run("[*sheet().items()], sheet().get('a'), failure().args").value == (
            [("a", "row")], "row", ("said",)
        )  # fmt: skip


class Odd:
    """An object of the host's whose methods are what libraries call by name."""

    title = "t"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _called(self, *_: object, **__: object) -> Any:
        self.asked.append("called")
        return [("secret", 1)]

    copy = pop = popitem = get = append = clear = sort = split = upper = items = lower = _called
    delimiter, quotechar, lineterminator = "s", "e", "crets"

    def __iter__(self) -> Iterator[Any]:
        return iter([("a", 1)])


@pytest.mark.threat("L2")
@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize(
    "source",
    [
        "ChainMap(x).copy()", "ChainMap(x).popitem()", "c = ChainMap()\nc.maps[0] = x\nc.clear()",
        "u = UserDict()\nu.data = x\nu.copy()", "u = UserList()\nu.data = x\nu.append(1)",
        "u = UserList()\nu.data = x\nu.sort()", "u = UserString('')\nu.data = x\nu.split()",
        "weakref.WeakValueDictionary(x)", "weakref.WeakKeyDictionary().update(x)",
        "codecs.encode('a', x)", "ET.tostring(ET.Element('a'), encoding=x)",
        "f = io.StringIO()\ncsv.writer(f, dialect=x).writerow('ab')\nf.getvalue()",
        "list(csv.reader(['ab'], x))", "list(csv.DictReader(['ab'], dialect=x))",
        "csv.DictWriter(io.StringIO(), ['a'], dialect=x).writeheader()", "types.MappingProxyType(mapping=x).get('a')",
    ],
)  # fmt: skip
def test_libraries_use_no_method_that_is_not_granted(source: str, granted: bool) -> None:
    odd = Odd()
    policy = Policy(also=RARE).fn(lambda: odd, name="given")
    with local_session(policy=policy.cls(Odd, include=["title"]) if granted else policy) as session:
        names = "codecs, csv, io, types, weakref, xml.etree.ElementTree as ET"
        setup = f"from collections import *\nimport {names}\nx = given()"
        assert session.run(setup).ok
        cell = session.run(source)
        assert not cell.ok
        assert "secret" not in (cell.text or "")
    assert odd.asked == []


@pytest.mark.threat("L5")
@pytest.mark.parametrize(
    "source",
    [
        "class T(tuple): pass\n'%*d' % T((1_500_000_000, 1))",
        "class T(tuple): pass\n'%.*f' % T((1_500_000_000, 1.5))",
        "import re\nb = bytearray(b'ab')\nclass P:\n    def __index__(self):\n        b[:] = b'a' * 40 + b'b'\n"
        "        return 0\nre.compile(b'(a|aa)+$').match(b, P())",
        "import binascii\nbinascii.b2a_qp(b'=' * 90_000_000)",
    ],
)
def test_what_says_its_size_late_is_looked_at_by_it(source: str) -> None:
    with local_session(limits=ExecutionLimits(timeout_seconds=1)) as session:
        began = time.monotonic()
        cell = session.run(source)
        assert time.monotonic() - began < 3
        assert not cell.ok


def test_classes_over_data_are_the_sessions_own_and_do_what_pythons_do(session: Session) -> None:
    cell = session.run("""
from collections import ChainMap, Counter, UserDict, UserList, UserString
from collections.abc import Mapping, MutableSequence
import copy
class Doubled(UserDict):
    def __setitem__(self, key, item): super().__setitem__(key, 2 * item)
    def __missing__(self, key): return key
d = Doubled(a=1)
u = UserList([3, 1])
u.append(2)
u.sort()
c = ChainMap({"a": 1}, {"b": 2})
class Five(Mapping):
    def __getitem__(self, key): return 5
    def __iter__(self): return iter("ab")
    def __len__(self): return 2
(
    d["q"], d.data, dict(**d), list(u), [0] + u == [0, 1, 2, 3], isinstance(u, MutableSequence), isinstance(c, Mapping),
    dict(c.new_child({"x": 1})), repr(c), c.parents.maps, copy.copy(u) == u, UserString("ab") * 2 == "abab",
    Counter(Five()), Counter(d).total(),
)
""")
    assert cell.value == (
        "q", {"a": 2}, {"a": 2}, [1, 2, 3], True, True, True, {"a": 1, "b": 2, "x": 1},
        "ChainMap({'a': 1}, {'b': 2})", [{"b": 2}], True, True, {"a": 5, "b": 5}, 2,
    )  # fmt: skip


def test_rare_calls_answer_as_in_python(session: Session) -> None:
    cell = session.run("""
import asyncio, decimal, typing, xml.etree.ElementTree as ET
def tried(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
root = ET.fromstring("<r><a>1</a></r>")
class Named(typing.NamedTuple):
    x: int
Named.x.__doc__ = "said"
async def main():
    condition = asyncio.Condition()
    before = condition.locked()
    await condition.acquire()
    held = condition.locked()
    condition.release()
    return before, held, condition.locked()
[
    root.find(""), root.findall(""), root.findtext(""), root.find("q:b"), root.findtext("q:b", 5), root.findtext("a"),
    root.findtext("b", default=4), tried(lambda: decimal.localcontext(foo=1)), Named.x.__doc__, asyncio.run(main()),
]
""")
    assert cell.value == [
        None, [], None, None, 5, "1", 4, "TypeError: 'foo' is an invalid keyword argument for this function", "said",
        (False, True, False),
    ]  # fmt: skip


@pytest.mark.threat("L6")
@pytest.mark.parametrize(
    ("kind", "source"), [(ast.While, "while False: pass"), (ast.Lambda, "(lambda: 1)()"), (ast.JoinedStr, "f'{1}'")]
)
def test_a_node_that_no_rule_knows_is_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch, kind: type[ast.AST], source: str
) -> None:
    """As one of a Python that is newer than the guard would be."""
    assert session.run(source).ok
    monkeypatch.delitem(rewrite._HANDLERS, kind)
    error = session.run(f"ran.append(1)\n{source}").error
    assert error is not None
    assert (error.kind, error.message) == ("refused", f"line 2: {kind.__name__} is not known [node]")
    assert session.run("ran").value == []


@pytest.mark.threat("L10")
@pytest.mark.parametrize(
    "source",
    [
        "'{:2000000}'.format(1)",
        "'{:{}}'.format(1, 2000000)",
        "'{x:2000000}'.format_map({'x': 1})",
        "f'{1:2000000}'",
        "format(1, '2000000')",
        "'%2000000d' % 1",
        "(1).__format__('2000000')",
    ],
)
def test_a_width_is_refused_before_anything_is_as_wide(session: Session, source: str) -> None:
    error = session.run(f"len({source})").error
    assert error is not None
    assert (error.type, error.message) == ("MemoryError", "a width of 2000000")


@pytest.mark.threat("L10")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("2 ** size", "a power of 20,000,000 bits: more than 262,144 cannot be interrupted [size]"),
        ("pow(2, size)", "a power of 20,000,000 bits: more than 262,144 cannot be interrupted [size]"),
        ("two **= size", "a power of 20,000,000 bits: more than 262,144 cannot be interrupted [size]"),
        ("1 << size", "a shift of 10,000,001 bits: more than 262,144 cannot be interrupted [size]"),
        ("two <<= size", "a shift of 10,000,002 bits: more than 262,144 cannot be interrupted [size]"),
        ("'wide' * 3 * size", "a repetition to 120,000,000 items"),
        ("[0] * 2 * size", "a repetition to 20,000,000 items"),
        ("some *= 2 * size", "a repetition to 20,000,000 items"),
    ],
)
def test_what_an_operator_makes_is_refused_before_it_is_too_large(session: Session, source: str, message: str) -> None:
    error = session.run(f"size, two, some = 10_000_000, 2, [0]\n{source}").error
    assert error is not None
    assert error.message == message


class Sent:
    """A cursor without a grant, whose ways to be waited for are no plain functions."""

    title = "t"

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.throw = self._sent

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> str:
        return "row"

    def _sent(self, *given: object) -> str:
        self.asked.append(given)
        return "secret"

    @property
    def send(self) -> Any:
        return self._sent

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._sent


class Own(dict[str, str]):
    """A dict whose objects have a method of their own."""

    def __init__(self) -> None:
        super().__init__(a="row")
        self.items = lambda: "secret"  # type: ignore[method-assign, assignment]


@pytest.mark.threat("L2")
@pytest.mark.parametrize(
    "source",
    [
        "def g(): yield from x\ny = g()\nnext(y)\ny.send('DROP')", "def g(): yield from x\ny = g()\nnext(y)\ny.close()",
        "typing.ChainMap(x).copy()", "types.MappingProxyType(typing.Annotated[x, 1]).get('a')",
        "csv.writer(io.StringIO(), dialect=typing.Annotated[x, 1])", "uuid.UUID(x)", "inspect.Signature([x])",
        "statistics.mean(iter([x]))", "statistics.mean(collections.deque([x]))",
        "statistics.mean([types.GenericAlias(x, 1)])",
        "csv.DictWriter(io.StringIO(), ['a'], extrasaction='ignore').writerow(x)", "asyncio.run(asyncio.wait([x]))",
        "csv.DictWriter(io.StringIO(), ['a'], extrasaction=x)", "collections.OrderedDict(x)", "own.items()",
        "difflib.HtmlDiff().make_table([x], ['a'])", "statistics.NormalDist.from_samples([x, x])",
    ],
)  # fmt: skip
def test_no_way_round_leads_to_what_is_not_granted(source: str) -> None:
    sent, own = Sent(), Own()
    policy = Policy(also=RARE).fn(lambda: sent, name="given").fn(lambda: own, name="owned")
    with local_session(policy=policy) as session:
        modules = "asyncio, collections, csv, difflib, inspect, io, statistics, types, typing, uuid"
        assert session.run(f"import {modules}\nx, own = given(), owned()").ok
        cell = session.run(source)
        assert "secret" not in (cell.text or "")
        assert (not cell.ok) or source.endswith("close()")
    assert sent.asked == []


def test_what_the_host_hands_over_of_the_library_has_its_methods_at_once() -> None:
    given = [collections.Counter("aab"), collections.ChainMap({"a": 1}), collections.UserList([2, 1])]
    with local_session(policy=Policy().fn(lambda: given, name="given")) as session:
        assert session.run("c, m, u = given()\nc.most_common(1), m.get('a'), sorted(u), u.index(1)").value == (
            [("a", 2)], 1, [1, 2], 1,
        )  # fmt: skip


class Kept:
    """Keeps what nobody is to see."""

    title = "t"

    def __init__(self) -> None:
        self.priv = "secret"


@pytest.mark.threat("L2")
def test_what_shows_all_of_an_object_is_no_base_beside_the_hosts_classes() -> None:
    with local_session(policy=Policy(also=RARE).cls(Kept, include=["title"], subclassable=True)) as session:
        cell = session.run("import types\nclass X(types.SimpleNamespace, Kept): pass\nrepr(X())")
        assert cell.error is not None
        assert cell.error.type == "SecurityError"
        assert "secret" not in cell.text
