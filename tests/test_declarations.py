"""Imports and definitions of cells, as source: each once, in order, the newest of each."""

import warnings

import pytest

from cellblock.declarations import declared


def texts(*cells: str) -> list[str]:
    return [text for text, _ in declared(cells)]


def test_they_are_told_once_in_order_and_only_the_newest() -> None:
    assert declared(
        [
            "import math\nx = 1\ndef f(): return 1",
            "import math\nfrom os import path as p, sep\n@deco\ndef f():\n    return 2\n",
            "class A: pass",
            "class B(A): pass",
            "class A:\n    y = 1",
            "not python at all (",
            "import os.path",
        ]
    ) == [
        ("import math", {"math"}),
        ("from os import path as p, sep", {"p", "sep"}),
        ("@deco\ndef f():\n    return 2", {"f"}),
        ("class A: pass", {"A"}),
        ("class B(A): pass", {"B"}),
        ("class A:\n    y = 1", {"A"}),
        ("import os.path", {"os"}),
    ]


def test_what_a_later_one_uses_while_it_is_made_is_kept() -> None:
    wrapped = ["def f(): return 1", "@wrap(f)\ndef f(): return 2", "def f(x=f): return 3"]
    assert texts(*wrapped) == wrapped
    assert texts("def f(): return 1", "def g(): return f()", "def f(): return 2") == [
        "def g(): return f()",
        "def f(): return 2",
    ]


def test_lines_end_where_the_parser_takes_them_to() -> None:
    sources = [
        "s = '\u2028 \x0b \x0c'\r\n@deco\rdef f():\r\n    return '\x1c'\nx = 1",
        "def g(): return '\\d'  # why\n",
    ]
    with warnings.catch_warnings(record=True) as heard:
        assert texts(*sources) == ["@deco\ndef f():\n    return '\x1c'", "def g(): return '\\d'  # why"]
    assert heard == []


@pytest.mark.sampled(0)
def test_many_take_time_in_proportion() -> None:
    source = "".join(f"def f{number % 7}(): pass\n" for number in range(20_000))
    assert len(texts(source)) == 7
    assert len(texts(source.replace("f1()", "f1(x=f0)"))) == 20_000 // 7 + 7


def test_what_is_too_deep_is_left_out() -> None:
    assert texts("(" * 100_000, "x = " + "-" * 100_000 + "1", "def f(): pass", "\ud800", "\0") == ["def f(): pass"]
