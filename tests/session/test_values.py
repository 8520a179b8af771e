"""Values between host and session: pickled in, portable out, and no code of a cell's runs here."""

from __future__ import annotations

import datetime
import decimal
import sys
import threading
import uuid
from collections.abc import Callable
from fractions import Fraction
from pathlib import PurePosixPath

import pytest

from cellblock import AsyncSession, Opaque, Session, UnpicklableError


class OnlyHere:
    """A class that no session can import."""


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        2**100,
        -0.5,
        float("inf"),
        1 + 2j,
        "é\0😀",
        b"\0\xff",
        bytearray(b"a"),
        [1, [2, [3]]],
        (1, "a"),
        {1, 2},
        frozenset({"a"}),
        {"k": {1: (2, 3)}},
        range(3),
        datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        datetime.timedelta(days=1),
        decimal.Decimal("1.10"),
        Fraction(1, 3),
        uuid.UUID(int=7),
        PurePosixPath("/a/b"),
        "x" * 3_000_000,
        b"x" * 3_000_000,
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_value_goes_in_and_comes_back(session: Session, value: object) -> None:
    session["x"] = value
    assert session["x"] == value
    assert type(session["x"]) is type(value)


def test_object_of_a_class_that_the_session_can_import_goes_in_as_what_it_is(session: Session) -> None:
    from collections import Counter, OrderedDict

    session["x"] = [Counter("aab"), OrderedDict(a=1)]
    assert session.run("x[0].most_common(1), list(x[1])").value == ([("a", 2)], ["a"])


def test_names_bound_by_the_host_are_copies(session: Session) -> None:
    rows = [1]
    session["rows"] = rows
    session.run("rows.append(2)")
    assert rows == [1]
    assert session["rows"] == [1, 2]


@pytest.mark.parametrize(
    "value", [lambda: 1, threading.Lock(), (n for n in ()), open], ids=["lambda", "lock", "gen", "ok"]
)
def test_value_that_cannot_be_pickled_is_refused_with_a_hint(session: Session, value: object) -> None:
    if value is open:
        session["x"] = value  # a builtin goes by name
        return
    with pytest.raises(
        UnpicklableError, match=f"x: {type(value).__name__} cannot be copied into the session: "
    ) as caught:
        session["x"] = value
    assert caught.value.hint == "give it as plain data, or make it inside the session"
    assert session.names() == {}


def test_value_whose_class_the_session_lacks_is_refused_with_a_hint(session: Session) -> None:
    with pytest.raises(UnpicklableError, match="x: the session could not rebuild OnlyHere: ") as caught:
        session["x"] = OnlyHere()
    assert caught.value.hint == (
        "its type must be importable inside the session: give it plain data, or the file of the type's module "
        "by files.write or mounts="
    )
    assert session.run("1").value == 1


def test_value_larger_than_one_message_is_refused_with_a_hint(open_session) -> None:  # type: ignore[no-untyped-def]
    session = open_session()
    with pytest.raises(UnpicklableError, match="100 MB are more than the 96 MB that can be sent at once"):
        session["x"] = bytes(100 * 2**20)


@pytest.mark.parametrize("name", ["", "1x", "a b", "a.b", "x\n", "class", 3])
def test_name_that_is_none_is_refused(session: Session, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        session[name] = 1


@pytest.mark.parametrize("name", ["__builtins__", "__builtin\uff53__"])  # one of full width
def test_name_that_holds_what_cells_call_is_refused(session: Session, name: str) -> None:
    with pytest.raises(ValueError, match="__' holds Python's own functions, such as len: choose another name"):
        session[name] = 1
    assert session.run("len([1])").value == 1


def test_unknown_name_is_a_key_error(session: Session) -> None:
    with pytest.raises(KeyError, match="'nothing'"):
        session["nothing"]


@pytest.mark.parametrize(
    ("source", "type_"),
    [
        ("x = lambda: 1", "function"),
        ("x = object()", "object"),
        ("import os as x", "module"),
        ("x = open('f', 'w')", "TextIOWrapper"),
    ],
)
def test_value_that_is_no_data_arrives_as_opaque(session: Session, source: str, type_: str) -> None:
    session.run(source)
    value = session["x"]
    assert isinstance(value, Opaque)
    assert value.type == type_


def test_reduce_of_a_cells_object_never_runs_on_the_host(session: Session) -> None:
    session.run(
        "class Sly:\n    def __reduce__(self): return (__import__('os').getenv, ('HOME',))\n"
        '    def __reduce_ex__(self, protocol): return eval, (\'__import__("sys").modules.__setitem__("sly", 1)\',)\n'
        "    def __repr__(self): return 'sly'\nsly = Sly()"
    )
    assert session["sly"] == session.run("sly").value == Opaque("Sly", "sly")
    assert "sly" not in sys.modules


def test_forged_class_names_build_nothing_on_the_host(session: Session) -> None:
    session.run("Popen = type('Popen', (), {'__module__': 'subprocess'})\nx = [Popen(), type('int', (int,), {})(3)]")
    popen, number = session["x"]
    assert (type(popen), type(number), number) == (Opaque, int, 3)
    assert [type(session.run(f"x[{n}]").value) for n in range(2)] == [Opaque, int]


def test_names_tell_type_size_and_preview(session: Session) -> None:
    session.run("x = [1, 2]\ndef f(): pass\nimport math\n_hidden = 1")
    names = session.names()
    assert (names["x"].type, names["x"].preview) == ("list", "[1, 2]")
    assert names["x"].size >= 56
    assert {name: one.type for name, one in names.items() if name != "_hidden"} == {
        "x": "list",
        "f": "function",
        "math": "module",
    }


def test_previews_of_hostile_reprs_are_bounded(session: Session) -> None:
    session.run(
        "class Raises:\n    def __repr__(self): raise ValueError('no')\n"
        "class Long:\n    def __repr__(self): return 'x' * 50_000_000\n"
        "class Exits:\n    def __repr__(self): raise RuntimeError(self)\n    def __sizeof__(self): return 'large'\n"
        "class Typed:\n    def __repr__(self): return 3\n"
        "class Meta(type):\n    __name__ = property(lambda c: 1/0)\n"
        "class M(metaclass=Meta): pass\n"
        "r, l, e, t, m = Raises(), Long(), Exits(), Typed(), M()"
    )
    names = session.names()
    assert names["r"].preview.startswith("<Raises repr failed: ValueError")
    assert max(len(one.preview) for one in names.values()) < 1000
    assert names["m"].type == "M"
    assert session.run("1").value == 1


@pytest.mark.sampled(0)
def test_many_names_are_bounded(session: Session) -> None:
    session.run("globals().update({f'n{i}': i for i in range(20_000)})")
    assert len(session.names()) <= 20_000
    assert session.run("1").value == 1


@pytest.mark.anyio
async def test_async_session_sets_and_gets() -> None:
    async with AsyncSession() as session:
        await session.set("x", {"a": 1})
        assert await session.get("x") == {"a": 1}
        assert list(await session.names()) == ["x"]


def test_name_is_the_one_that_python_reads(open_session: Callable[..., Session]) -> None:
    for trust_level in ("isolated", "local"):
        session = open_session(trust_level=trust_level)
        session["\ufb01"] = 3
        assert session.run("\ufb01, fi").value == (3, 3)
        assert (session["\ufb01"], session["fi"], list(session.names())) == (3, 3, ["fi"])
