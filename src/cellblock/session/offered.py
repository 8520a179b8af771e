"""A session as plain functions for models: what they are told of them, and the text that answers a call."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cellblock.cell import Cell
from cellblock.errors import CellblockError, IsolationUnavailable, SessionClosed, StoreError
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.session.files import listing
from cellblock.session.record import MOST_NOTE, within
from cellblock.session.unreached import in_a_line
from cellblock.text import BadJson, bounded, line, read_json, text_of, too_much, valid
from cellblock.tools.schema import Callee

if TYPE_CHECKING:
    from cellblock.session.blocking import Session
    from cellblock.session.session import AsyncSession

Function = Callable[..., Any]


class Answer(str):
    """A call's answer: text for the model. `ok` is whether the call did what it was to; `cell` is the cell that ran, if
    one did. What a cell prints changes neither.
    """

    ok: bool
    cell: Cell | None

    def __new__(cls, text: str, *, ok: bool = True, cell: Cell | None = None) -> Answer:
        made = super().__new__(cls, valid(text))
        made.ok, made.cell = ok, cell
        return made


_MOST_ARGUMENTS = 4 * 2**20
"""Characters of JSON, as of a model's whole answer: its reader holds all threads meanwhile."""
_NOT_THE_MODELS = (SessionClosed, StoreError, IsolationUnavailable)
"""Nothing that a model could write would help with these: the host's own program gets them."""


class AsyncSessionTools:
    """Functions over one session, for any framework that calls functions.

    `functions` are async functions with annotations and docstrings; `openai` and `anthropic` describe them as those
    endpoints take them; `call` answers a call that a model made. What a model did wrong is the answer, too.
    """

    def __init__(self, session: AsyncSession, include: Iterable[str] | None = None) -> None:
        """`include` names the functions that are offered; None is all. ValueError for one that there is not."""
        self._session = session
        offered = _Functions(session).all()
        chosen = list(offered) if include is None else list(include)
        if unknown := [name for name in chosen if name not in offered]:
            raise ValueError(f"there is no tool {', '.join(map(ascii, unknown))}: there are {', '.join(offered)}")
        self._callees = {name: Callee(offered[name]) for name in chosen}
        self.functions: tuple[Function, ...] = tuple(offered[name] for name in chosen)

    @property
    def openai(self) -> list[dict[str, Any]]:
        """As `tools=` of OpenAI's chat completions, and of the endpoints that are compatible with it."""
        return [callee.schema for callee in self._callees.values()]

    @property
    def anthropic(self) -> list[dict[str, Any]]:
        """As `tools=` of Anthropic's messages."""
        functions = [callee.schema["function"] for callee in self._callees.values()]
        return [
            {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
            for one in functions
        ]

    async def call(self, name: str, arguments: str | Mapping[str, Any]) -> Answer:
        """The answer to a call, as text: arguments as JSON text or as a mapping, whichever the endpoint gives.

        It has at most the session's `max_output_bytes`, with a note where more was cut.
        """
        answer = await self._answer(name, arguments)
        most = self._session.limits.max_output_bytes + MOST_NOTE
        return Answer(within([answer], most), ok=answer.ok, cell=answer.cell)

    async def _answer(self, name: str, arguments: str | Mapping[str, Any]) -> Answer:
        callee = self._callees.get(line(name))
        if callee is None:
            return _failed(f"there is no tool {line(name)!r}: there are {', '.join(self._callees)}")
        try:
            given = await off_loop(len(arguments) if isinstance(arguments, str) else LARGE, _read, arguments)
        except BadJson as error:
            return _failed(f"the arguments are no JSON: {error}")
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            return _failed(f"the arguments are no JSON object but {type(given).__name__}")
        try:
            answer = await callee.call(given)
            return answer if isinstance(answer, Answer) else Answer(text_of(answer, max_chars=sys.maxsize))
        except _NOT_THE_MODELS:
            raise
        except (CellblockError, ValueError) as error:
            return _failed(str(error))


class SessionTools:
    """The blocking twin of `AsyncSessionTools`: `functions` are plain ones, and `call` waits."""

    def __init__(self, session: Session, include: Iterable[str] | None = None) -> None:
        self._session = session
        self._tools = AsyncSessionTools(session._session, include)
        self.functions: tuple[Function, ...] = tuple(map(self._blocking, self._tools.functions))
        self.openai = self._tools.openai
        self.anthropic = self._tools.anthropic

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Answer:
        """The answer to a call, as text: arguments as JSON text or as a mapping, whichever the endpoint gives."""
        return self._session._in_turn(self._tools.call, name, arguments)

    def _blocking(self, function: Callable[..., Awaitable[str]]) -> Function:
        def blocking(*args: Any, **kwargs: Any) -> str:
            return self._session._in_turn(function, *args, **kwargs)

        told = functools.update_wrapper(blocking, function)
        del told.__wrapped__
        told.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return told


class _Functions:
    """The functions themselves, each of which gives text; their docstrings are what models are told."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def all(self) -> dict[str, Function]:
        """Each by its name."""

        async def run_python(code: str) -> str:
            return _of(await self._session.run(code))

        run_python.__doc__ = (
            "Run Python in a session that keeps names, imports and files from call to call; the last expression's "
            f"value and all that is printed is the answer. {in_a_line(self._session._reach())}"
        )

        async def shell(command: str) -> str:
            """Run a command with /bin/sh in the session's workspace."""
            return _of(await self._session.shell(command))

        async def list_files() -> str:
            """List the files of the session's workspace."""
            return str(listing(await self._session.files.list(), max_bytes=self._session.limits.max_output_bytes))

        async def read_file(path: str) -> str:
            """Read a text file of the session; a long one is cut."""
            most = self._session.limits.max_output_bytes
            data = await self._session.files.read(path, max_bytes=most, offset=0)
            size = await self._session.files.size(path)
            more = f"\n[{size} bytes in all: read parts of it by run_python]" if size > most else ""
            return data.decode(errors="replace") + more

        async def write_file(path: str, content: str) -> str:
            """Create or replace a text file of the session, with the directories it needs."""
            data = content.encode(errors="backslashreplace")
            await self._session.files.write(path, data)
            return f"{path}: {len(data)} bytes"

        async def undo(steps: int = 1) -> str:
            """Go back by so many steps, each a cell, a command or a written file: names, objects and files."""
            await self._session.undo(steps)
            return f"{steps} undone"

        functions: tuple[Function, ...] = (run_python, shell, list_files, read_file, write_file, undo)
        return {one.__name__: one for one in functions}


def _read(arguments: str | Mapping[str, Any]) -> object:
    if not isinstance(arguments, str):
        return bounded(arguments)
    if len(arguments) > _MOST_ARGUMENTS:
        raise BadJson(f"they have more than {_MOST_ARGUMENTS:,} characters")
    if much := too_much(arguments):
        raise BadJson(f"they have more than {much}")
    return read_json(arguments or "{}")


def _of(cell: Cell) -> Answer:
    return Answer(told(cell), ok=cell.ok, cell=cell)


def _failed(why: str) -> Answer:
    return Answer(f"error: {why}", ok=False)


def told(cell: Cell) -> str:
    """Text of a cell for a model: what it showed, how it failed, and what to do about that."""
    failed = f"{line(cell.error.type)}: {cell.error.message}" if cell.error is not None else ""
    return cell.text or failed or "done, nothing was shown"
