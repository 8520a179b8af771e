"""Half of a character in each text that a session is given: one clear error, or a value, and the session goes on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from cellblock import AsyncSession, CellblockError, Session, Versioned
from cellblock.session.blocking import Files
from cellblock.session.files import AsyncFiles

HALF = "a\ud800b"
SAYS = "has half of a character, '\\ud800' at 1: leave it out, or give all of it"
OTHERS: dict[str, Any] = {
    "source": "1", "command": "true", "revision": "HEAD", "before": "HEAD~1", "after": "HEAD", "name": "here",
    "path": "f", "data": b"1", "value": 1, "cell_id": "c0", "uri": "notebook://cell/c0/text/0", "reason": "said",
    "other": "HEAD",
}  # fmt: skip
"""What the other parameters are given that have no default."""
VALUES = {("run", "source"), ("stream", "source"), ("shell", "command"), ("__setitem__", "value"), ("set", "value"),
          ("mark_private", "reason"), ("exists", "path")}  # fmt: skip
"""Where such text is a value: a cell's own error, an object that a cell may hold, a reason of which it is left out, a
path at which there is nothing."""
OWN = {
    ("stream", "kind"): 'kind must be "python" or "shell"',
    ("merge", "prefer"): 'prefer must be "ours", "theirs" or None',
    ("read_output", "uri"): "is not the URI of an output",
    ("as_tools", "include"): "there is no tool",
    ("set", "name"): "is not a name",
    ("__setitem__", "name"): "is not a name",
    ("__delitem__", "name"): "is not a name",
    ("unset", "name"): "is not a name",
    ("get", "name"): "ud800",
}
"""Where it is no name of any, and the error for such a name says so."""


def texts_of(kind: type) -> list[tuple[str, str]]:
    """The public methods of a class with their parameters that take text."""
    found = []
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_") and name not in ("__setitem__", "__delitem__"):
            continue
        for one in inspect.signature(method).parameters.values():
            if "str" in str(one.annotation) or "Literal" in str(one.annotation) or (name, one.name) in VALUES:
                found.append((name, one.name))
    return found


SESSION, FILES = texts_of(Session), texts_of(Files)


def test_async_faces_take_the_same_texts() -> None:
    items = {"__delitem__": "unset", "__setitem__": "set"}
    assert sorted((items.get(name, name), one) for name, one in SESSION) == sorted(texts_of(AsyncSession))
    assert texts_of(AsyncFiles) == FILES


def given(method: Callable[..., object], parameter: str) -> dict[str, object]:
    """Arguments by their names, with half of a character in one."""
    needed = {
        one.name: OTHERS[one.name]
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty and one.name != "self"
    }
    return {**needed, parameter: [HALF] if parameter == "include" else HALF}


def checked(name: str, parameter: str, error: Exception | None) -> None:
    if (name, parameter) in VALUES:
        assert error is None
        return
    assert error is not None
    assert not isinstance(error, UnicodeError)
    said = str(error)
    said.encode()
    if parameter in ("path", "directory"):
        assert isinstance(error, CellblockError)
    elif (name, parameter) in OWN:
        assert OWN[name, parameter] in said
    else:
        assert said == f"{parameter} {SAYS}"


@pytest.fixture(params=["live", "versioned"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    if request.param == "live":
        return {}
    return {"name": "one", "state": Versioned(f"sqlite:///{tmp_path}/cells.db")}


@pytest.mark.sampled(1)
def test_every_method_says_which_text_has_half_of_a_character(options: dict[str, Any]) -> None:
    with Session(**options) as session:
        for owner, texts in ((session, SESSION), (session.files, FILES)):
            for name, parameter in texts:
                method = getattr(owner, name)
                error = None
                try:
                    result = method(**given(method, parameter))
                    if name == "stream":
                        list(result)
                except Exception as raised:
                    error = raised
                checked(name, parameter, error)
        assert session.run("1 + 1").value == 2
        if options:
            session.flush()
            assert session.unsaved == ()


def test_every_async_method_says_which_text_has_half_of_a_character(options: dict[str, Any]) -> None:
    async def call(method: Callable[..., Any], arguments: dict[str, object]) -> Exception | None:
        try:
            result = method(**arguments)
            if inspect.isawaitable(result):
                await result
            elif inspect.isasyncgen(result):
                async for _ in result:
                    continue
        except Exception as raised:
            return raised
        return None

    async def main() -> None:
        async with AsyncSession(**options) as session:
            for owner, texts in ((session, texts_of(AsyncSession)), (session.files, FILES)):
                for name, parameter in texts:
                    method = getattr(owner, name)
                    checked(name, parameter, await call(method, given(method, parameter)))
            assert (await session.run("1 + 1")).value == 2

    anyio.run(main)


@pytest.mark.parametrize("argument", ["python", "preload", "private"])
def test_opening_says_which_text_has_half_of_a_character(argument: str) -> None:
    with pytest.raises(ValueError, match="half of a character") as caught:
        Session(**{argument: HALF if argument == "python" else [HALF]})  # type: ignore[arg-type]
    assert str(caught.value) == f"{argument} {SAYS}"
