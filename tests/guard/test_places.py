"""Where a refusal or an error points: carets stand under what it is about."""

from __future__ import annotations

import linecache
import traceback

import pytest
from levels import local_session

from cellblock import Policy

FAILING = (
    "def ratio(x):\n    return 2 + 1 / x\nratio(0)\n",
    "ä = {}; ä['k']\n",
    "def f(a):\n\treturn a.b.c + 1\nf(1)\n",
    "x = [1]\nif True:\n    y = x[2] + x[0]\n",
    "def outer():\n    for k in (2, 1, 0):\n        print(1 + 10 // k)\nouter()\n",
    "try:\n    int('x')\nexcept ValueError as e:\n    raise KeyError('y') from e\n",
)


def _plain(source: str) -> str:
    """The traceback under CPython, from the cell on."""
    linecache.cache["<cell 1>"] = (len(source), None, source.splitlines(keepends=True), "<cell 1>")
    try:
        exec(compile(source, "<cell 1>", "exec", dont_inherit=True), {"__name__": "__main__"})
    except Exception as error:
        told = traceback.TracebackException.from_exception(error)
        one: traceback.TracebackException | None = told
        while one is not None:
            one.stack[:] = [frame for frame in one.stack if frame.filename == "<cell 1>"]
            one = one.__cause__
        return "".join(told.format())
    finally:
        del linecache.cache["<cell 1>"]
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("source", FAILING)
def test_a_traceback_is_that_of_cpython(source: str) -> None:
    with local_session() as session:
        assert session.run(source).error.traceback == _plain(source)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("import os", ["    import os", "           ^^"]),
        ("名前 = 'é'; import os", ["    名前 = 'é'; import os", "    " + " " * 17 + "^^"]),
        ("x = (a\n  .b.__mro__)", ["    x = (a", "         ^"]),
        ("def f():\n    exec('1')", ["        exec('1')", "        ^^^^"]),
    ],
)
def test_a_refused_source_is_shown_with_its_place(source: str, shown: list[str]) -> None:
    with local_session() as session:
        assert session.run(source).error.traceback.splitlines()[1:3] == shown


class Box:
    """A host's object."""

    lid = "open"


@pytest.mark.parametrize("loop", ["", "for _ in range(1):\n    "])
@pytest.mark.parametrize(
    ("code", "place"), [("print(Box().lid)", "Box().lid"), ("(1).x.y = b.lid", "b.lid"), ("b.lid = 1", "b.lid")]
)
def test_an_attribute_that_is_refused_while_running_is_shown_whole(code: str, place: str, loop: str) -> None:
    with local_session(policy=Policy().cls(Box, include=[])) as session:
        error = session.run(f"b = Box()\n{loop}{code}").error
    assert error.kind == "refused"
    line, carets = error.traceback.splitlines()[2:4]
    assert line == f"    {code}"
    assert carets == " " * (4 + code.index(place)) + "^" * len(place)
