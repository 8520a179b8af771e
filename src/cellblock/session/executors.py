"""Code run over a dict of the caller's: `Executor` and `ExecutionResult`, over sessions of each trust level.

    with SubprocessExecutor() as executor:
        names = {"x": 20}
        executor.run("y = x + 1", names)
        names["y"]                        # 21

The dict goes in as copies, before each run; its functions are called over the wall. Afterwards it holds what has a
portable form and was bound or changed, and lacks what was deleted. What cannot cross stays inside, by its name, for
the next run with the same dict. A run that was killed changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from cellblock.cell import Cell, CellState
from cellblock.container import Container
from cellblock.limits import ExecutionLimits
from cellblock.session.blocking import Session
from cellblock.values import portable
from cellblock.walls import TrustLevel


@dataclass(slots=True)
class ExecutionResult:
    """Result of one run.

    `output` is what it printed and its last value, with the traceback of an `error`, which is that in a line.
    `is_final` where it called `final_answer`, with the `answer` that was given. `timeout` where it ran too long.
    """

    output: str
    is_final: bool
    duration_ms: int
    memory_used_bytes: int
    error: str | None = None
    timeout: bool = False
    answer: object = None


@runtime_checkable
class Executor(Protocol):
    """A runner of code over a dict. `kill` may be called from another thread, while `run` waits."""

    def run(self, code: str, namespace: dict[str, Any]) -> ExecutionResult: ...

    def kill(self) -> None: ...


class _SessionExecutor:
    """An executor over one session, opened by the first run."""

    _trust_level: TrustLevel

    def __init__(self, *, limits: ExecutionLimits | None = None, **options: Any) -> None:
        """`options` are those of `Session`."""
        given = limits or ExecutionLimits()
        self._limits = replace(given, max_checkpoints=max(1, given.max_checkpoints))  # what a killed run is undone by
        self._options = options
        self._session: Session | None = None
        self._functions: dict[str, Callable[..., Any]] = {}
        self._namespace: dict[str, Any] | None = None
        self._final = False
        self._answer: object = None

    def run(self, code: str, namespace: dict[str, Any]) -> ExecutionResult:
        """Run code over a dict, which then holds what came of it. What the code does wrong is the result's `error`."""
        functions = {name: value for name, value in namespace.items() if _is_function(value)}
        values = {name: one for name, one in namespace.items() if name not in functions and not name.startswith("__")}
        session = self._session_for(namespace, functions)
        for name, value in values.items():
            session[name] = value
        self._final, self._answer = False, None
        cell = session.run(code)
        if not (cell.rolled_back or _has_lost_all(cell)):
            _take_back(session, namespace, values, functions)
        return ExecutionResult(
            output=cell.text,
            is_final=self._final and cell.ok,
            duration_ms=round(cell.usage.duration_ms),
            memory_used_bytes=cell.usage.memory_peak_bytes,
            error=_said(cell),
            timeout=cell.state is CellState.TIMEOUT,
            answer=self._answer if cell.ok else None,
        )

    def kill(self) -> None:
        """End the code that runs, at once; its run says so. The next run starts from its dict."""
        if self._session is not None:
            self._session.kill()

    def close(self) -> None:
        """End the session. The next run opens another."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _session_for(self, namespace: dict[str, Any], functions: dict[str, Callable[..., Any]]) -> Session:
        """The session that has these functions, and no names of another dict."""
        if self._session is not None and functions == self._functions:
            if namespace is not self._namespace:
                self._session.clear()
        else:
            self.close()
            tools = [_named(name, one) for name, one in functions.items() if name != "final_answer"]
            self._session = Session(
                trust_level=self._trust_level,
                limits=self._limits,
                tools=[*tools, self._final_answer(functions.get("final_answer"))],
                **self._options,
            )
        self._functions, self._namespace = functions, namespace
        return self._session

    def _final_answer(self, given: Callable[..., Any] | None) -> Callable[..., Any]:
        def final_answer(value: Any, *args: Any, **more: Any) -> Any:
            """Give the answer."""
            self._final, self._answer = True, value
            return None if given is None else given(value, *args, **more)

        return final_answer


class LocalExecutor(_SessionExecutor):
    """Runs code in this process, behind the guard."""

    _trust_level = "local"


class SubprocessExecutor(_SessionExecutor):
    """Runs code in a process of its own, behind the kernel's walls."""

    _trust_level = "isolated"


class DockerExecutor(_SessionExecutor):
    """Runs code in a container of docker's or podman's, behind the kernel's walls.

    `DockerExecutor("image", engine="docker", runtime="runsc", cpus=1)`, all of which `Container` explains.
    """

    _trust_level = "sandboxed"

    def __init__(
        self,
        image: str = "",
        *,
        engine: str = "",
        runtime: str = "",
        cpus: float | None = None,
        limits: ExecutionLimits | None = None,
        **options: Any,
    ) -> None:
        container = Container(image=image, engine=engine, runtime=runtime, cpus=cpus)
        super().__init__(limits=limits, container=container, **options)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function under the name that the dict has it by."""
    if getattr(function, "__name__", None) == name:
        return function

    def call(*args: Any, **more: Any) -> Any:
        return function(*args, **more)

    call.__name__ = call.__qualname__ = name
    return call


def _take_back(
    session: Session, namespace: dict[str, Any], values: dict[str, Any], functions: dict[str, Callable[..., Any]]
) -> None:
    """Have the dict hold what the session's names do, as far as it can cross and is not what went in."""
    bound = [name for name in session.names() if name not in functions and not name.startswith("__")]
    for name in values.keys() - set(bound):
        del namespace[name]
    for name in bound:
        value = session[name]
        if _is_portable(value) and not (name in values and _is_same(values[name], value)):
            namespace[name] = value


def _is_portable(value: object) -> bool:
    return not isinstance(value, portable.Opaque)


def _is_same(before: object, after: object) -> bool:
    """True if two values are equal in their portable forms: then the caller's own object stays."""
    try:
        return list(portable.pack(portable.encode(before))) == list(portable.pack(portable.encode(after)))
    except portable.NotPortable:
        return False


def _has_lost_all(cell: Cell) -> bool:
    """True if the names went with the process, or whatever held them."""
    return cell.error is not None and cell.error.kind == "crashed"


def _said(cell: Cell) -> str | None:
    if cell.error is None:
        return None
    return f"{cell.error.type}: {cell.error.message}" if cell.error.message else cell.error.type
