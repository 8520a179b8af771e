"""The host's functions, and the runner's own, in what a versioned session keeps: by reference, and bound again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import Session, Versioned

LEVELS = ("isolated", "local")


def price(amount: int, tax: float = 0.5) -> float:
    """A price with tax."""
    return amount * (1 + tax)


async def price_later(amount: int) -> int:
    return amount


def fail() -> None:
    raise UnicodeDecodeError("utf8", b"a", 0, 1, "why")


TOOLS = (price, price_later, fail)


@pytest.fixture
def reopened(tmp_path: Path) -> Callable[..., Session]:
    """Opens one stored session anew."""

    def opened(tools: tuple[Callable[..., object], ...] = TOOLS, *, trust_level: str = "isolated") -> Session:
        return Session("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), tools=tools, trust_level=trust_level)

    return opened


HELD = {
    "a name": ("g = price", "g(2)", 3.0),
    "a dictionary": ("r = [1]\nby = {'p': price, 'r': r}", "by['p'](2), r, by['r'] is r", (3.0, [1], True)),
    "an async one": ("by = {'p': price_later}", "await by['p'](2)", 2),
    "a partial": ("from functools import partial\nh = partial(price, 2)", "h()", 3.0),
    "an attribute": ("class A: pass\na = A()\na.p = price\na.rows = [1]", "a.p(2), a.rows", (3.0, [1])),
    "a class": ("class A:\n    p = staticmethod(price)", "A().p(2)", 3.0),
    "a closure": ("def make(f):\n    return lambda x: f(x)\nh = make(price)", "h(2)", 3.0),
    "a default": ("def h(x, f=price): return f(x)", "h(2)", 3.0),
    "a wrapper": (
        "import functools\n@functools.wraps(price)\ndef h(*a): return price(*a)",
        "h(2), h.__wrapped__ is price, h.__doc__",
        (3.0, True, "A price with tax."),
    ),
    "a cache": ("import functools\nh = functools.lru_cache(price)\nh(2)", "h(2)", 3.0),
    "a key": ("by = {price: 1}", "by[price]", 1),
    "a signature": ("import inspect\ns = inspect.signature(price)", "repr(s.parameters['tax'].default)", "0.5"),
    "what a cell has replaced": ("import builtins\ng = price\nbuiltins.price = 1\ndel builtins.price", "g(2)", 3.0),
}  # fmt: skip


@pytest.mark.sampled(0)
@pytest.mark.parametrize("held", HELD)
def test_what_holds_a_tool_is_saved_and_calls_it_again(reopened: Callable[..., Session], held: str) -> None:
    source, use, expected = HELD[held]
    with reopened() as session:
        assert session.run(source).error is None
        session.flush()
        assert session.unsaved == ()
    with reopened() as session:
        assert session.run(use).value == expected


@pytest.mark.sampled(0)
@pytest.mark.parametrize("trust_level", LEVELS)
def test_session_without_the_tool_keeps_what_holds_it_for_one_with_it(
    reopened: Callable[..., Session], trust_level: str
) -> None:
    with reopened(trust_level=trust_level) as session:
        session.run("rows = [1]\nby = {'p': price, 'rows': rows}")
    with reopened((), trust_level=trust_level) as session:
        assert session.run("by['rows'] is rows, rows").value == (True, [1])
        error = session.run("by['p'](2)").error
        assert error is not None
        assert (error.type, error.message) == (
            "RuntimeError",
            "price() is a tool that this session was opened without: open it with tools=[price]",
        )
        session.run("other = by['p']")
        session.flush()
        assert session.unsaved == ()
    with reopened(trust_level=trust_level) as session:
        assert session.run("by['p'](2), other is by['p'], by['p'] is price").value == (3.0, True, True)


def test_branches_and_merges_keep_what_holds_a_tool(reopened: Callable[..., Session]) -> None:
    with reopened() as session:
        session.run("by = {'p': price}")
        with session.branch() as branch:
            branch.run("q = by['p'](2)")
            session.merge(branch)
        assert session.run("q, by['p'](2)").value == (3.0, 3.0)


RUNNERS = {
    "display": ("v = display", "v is display"),
    "the handler of interrupts": ("import signal\nv = signal.getsignal(2)", "v is signal.getsignal(2)"),
    "the hook for what is dropped": ("import sys\nv = sys.unraisablehook", "v is sys.unraisablehook"),
    "pyplot.show": ("import matplotlib.pyplot as plt\nv = plt.show", "v is plt.show"),
    "show of pictures": ("import PIL.ImageShow\nv = PIL.ImageShow.show", "v is PIL.ImageShow.show"),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("given", RUNNERS)
def test_what_the_runner_gives_cells_is_saved_by_reference(reopened: Callable[..., Session], given: str) -> None:
    source, use = RUNNERS[given]
    with reopened() as session:
        assert session.run(source).error is None
        session.flush()
        assert session.unsaved == ()
    with reopened() as session:
        assert session.run(use).value is True


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "source",
    [
        "import sys\nv = sys.meta_path",
        "import sys\nv = type(sys.meta_path[0])",
        "v = price.__globals__",
        "v = display.__closure__",
    ],
)
def test_insides_of_the_runner_cost_their_name_alone_and_are_told_as_such(
    reopened: Callable[..., Session], source: str
) -> None:
    with reopened() as session:
        session.run(f"x = 1\n{source}")
        session.flush()
        told = [(one.name, one.reason.rpartition(": ")[2], one.remedy) for one in session.unsaved]
        assert told == [("v", "a part of what runs the cells", "use it in the cell that needs it")]
    with reopened() as session:
        assert session.run("x").value == 1
