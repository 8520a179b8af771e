"""smolagents: a `PythonExecutor` whose code runs behind the walls, while tools stay functions of the host."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

from cellblock.advice import for_model
from cellblock.cell import Cell
from cellblock.errors import needing
from cellblock.session.blocking import Session
from cellblock.text import as_terminal, exact, sayable
from cellblock.values.portable import Opaque
from cellblock.values.room import held

with needing("smolagents", "the executor for smolagents needs that package"):
    from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor

__all__ = ["CellblockExecutor"]

_MOST_SHOWN = 1_000_000
"""Characters of a value that has no other form."""
_FINAL = "final_answer"
_CALL = "_cellblock_call"

_STUBS = f"""
def _cellblock_stubs(names):
    try:
        from threading import current_thread, main_thread
    except ImportError:  # not granted at the level local, where code makes no threads: False is False
        current_thread = main_thread = bool
    call = {_CALL}
    def stub(name):
        def tool(*args, **kwargs):
            return call(name, list(args), kwargs)
        tool.__name__ = tool.__qualname__ = name
        return tool
    class FinalAnswer(BaseException):
        __qualname__ = "FinalAnswer"
    def final_answer(*args, **kwargs):
        raise FinalAnswer(call({_FINAL!r}, list(args), kwargs, current_thread() is not main_thread()))
    return {{name: final_answer if name == {_FINAL!r} else stub(name) for name in names}}
"""


class CellblockExecutor(PythonExecutor):  # type: ignore[misc]  # the package has no type information
    """Runs a `CodeAgent`'s code in a session: `CodeAgent(tools, model, executor=CellblockExecutor())`.

    Names, imports and files stay from step to step. Tools are called on the host, with copies of what the code gives
    them; what they return has to be portable: see docs/limitations/values.md. Options are those of `Session`.
    """

    def __init__(self, **options: Any) -> None:
        """Opens the session: `IsolationUnavailable` where this machine cannot give its walls."""
        self._tools: dict[str, Callable[..., Any]] = {}
        self.session = Session(**options, tools=[self._function()])
        self._answer: _Answer | None = None
        """The newest answer of the step that runs."""
        self._numbers = count(1)
        self._account = self.session._session._account
        self._held = self._account.share()
        self.state: dict[str, object] = {"_print_outputs": ""}
        """Output of a failed step, which the agent reads here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Have code call these by their names; agents do so before each run."""
        for name in tools:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise ValueError(f"{name!r} cannot be the name of a tool: code could not call it")
        self._tools = dict(tools)
        names = sorted({*tools, _FINAL})
        source = f"{_STUBS}\nglobals().update(_cellblock_stubs({names!r}))\ndel _cellblock_stubs"
        _require(self.session.run(source))

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Bind names to copies of values of the host."""
        for name, value in variables.items():
            self.session[name] = value

    def __call__(self, code_action: str) -> CodeOutput:
        """Run one step. InterpreterError where it failed, with a traceback and what to do."""
        self._take()
        cell = self.session.run(code_action)
        printed = "".join(output.text for output in cell.outputs if output.stream is not None)
        logs = self.state["_print_outputs"] = as_terminal(printed)
        answer = self._take()
        if answer is not None and not answer.counts(cell):
            answer = None
        if answer is None:
            _require(cell)
        value = cell.value if answer is None else answer.value
        output = sayable(value.repr if isinstance(value, Opaque) else value, max_chars=_MOST_SHOWN)
        return CodeOutput(output=output, logs=logs, is_final_answer=answer is not None)

    def cleanup(self) -> None:
        """End the session and everything it started."""
        self.session.close()

    def _function(self) -> Callable[..., Any]:
        """The one host function of the session: tools change between runs, and a session's functions do not."""

        def call(name: str, args: list[Any], kwargs: dict[str, Any], aside: bool = False) -> object:
            if name == _FINAL:
                return self._keep(self._final(*args, **kwargs), aside=aside)
            if name not in self._tools:
                raise NameError(f"there is no tool {name!r} any more")
            result = self._tools[name](*args, **kwargs)
            return exact(result, None) if isinstance(result, str) else result  # smolagents' own kinds of text, too

        call.__name__ = _CALL
        return call

    def _keep(self, value: object, *, aside: bool) -> int:
        """Keep the newest answer of a step, charged to the session's account of host memory; returns its number."""
        answer = _Answer(next(self._numbers), value, aside)
        if self._answer is None or self._answer.aside or not aside:
            self._held.close()
            self._answer, self._held = answer, self._account.share(held(value))
        return answer.number

    def _take(self) -> _Answer | None:
        """Hand the answer of the step over to the caller."""
        answer, self._answer = self._answer, None
        self._held.close()
        return answer

    def _final(self, *args: Any, **kwargs: Any) -> object:
        """The agent's answer, made by its own tool where it has one."""
        if _FINAL in self._tools:
            return self._tools[_FINAL](*args, **kwargs)
        values = [*args, *kwargs.values()]
        return values[0] if values else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """A value given to `final_answer`; `aside` is True if a thread gave it, maybe one of an earlier step."""

    number: int
    value: object
    aside: bool

    def counts(self, cell: Cell) -> bool:
        """True if it is the answer of the step: no limit or crash ended the cell, and a thread's answer is the one that
        the cell waited for."""
        error = cell.error
        if error is None or error.kind != "raised":
            return error is None and not self.aside
        return not self.aside or (error.type, error.message) == ("FinalAnswer", str(self.number))


def _require(cell: Cell) -> None:
    error = cell.error
    if error is not None:
        text = error.traceback or f"{error.type}: {error.message}"
        hint = for_model(error.hint)
        raise InterpreterError(as_terminal(f"{text}\nhint: {hint}" if hint else text))
