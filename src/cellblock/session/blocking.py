"""The blocking interface: `Session` is `AsyncSession` driven from ordinary code, on an event loop of our own."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeVar

from cellblock.cell import Cell, Lost
from cellblock.container import Container
from cellblock.differences import Diff, Name
from cellblock.errors import CellblockError
from cellblock.events import Event
from cellblock.executors.protocol import Capabilities
from cellblock.hosting.shortage import meant
from cellblock.limits import ExecutionLimits
from cellblock.policy import Policy
from cellblock.session.arguments import require_kind
from cellblock.session.files import MAX_READ_BYTES, AsyncFiles
from cellblock.session.hostloop import Answer, answer_of, call, finish, in_task, is_own_step
from cellblock.session.notebook import Notebook
from cellblock.session.session import AsyncSession
from cellblock.state import Resumed, State, Versioned, state_or_type
from cellblock.text import half_made
from cellblock.walls import TrustLevel, Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.offered import SessionTools
    from cellblock.store import Commit

T = TypeVar("T")

_LAST_SECONDS = 1.0
"""Seconds that a program waits at its end for what sessions that nobody has closed store."""


@cache
def _write_at_the_end(process: int) -> None:
    """Have commits under way made as the interpreter of this process ends. Called with the first session open: what
    ends its processes at that time comes after this.
    """
    atexit.register(_write_last, process)


def _write_last(process: int) -> None:
    from cellblock.session.lasting import all_written

    if os.getpid() == process:
        with suppress(CellblockError):  # cells whose commits are not made are run again
            call(all_written, _LAST_SECONDS)


class Session:
    """A place to run code that remembers; the blocking twin of `AsyncSession`, with the same methods.

    Thread-safe. It works inside a running event loop too, but blocks that loop, and warns once that it does.
    Opening happens in the constructor; use it as a context manager, or call `close`.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        user: str = "default",
        state: State | Literal["default"] | None = "default",
        trust_level: TrustLevel | None = None,
        walls: Walls | None = None,
        limits: ExecutionLimits | None = None,
        preload: Iterable[str] = (),
        python: str | None = None,
        seed: int | None = None,
        mounts: Mapping[str, str | os.PathLike[str]] | None = None,
        network: Iterable[str] | None = None,
        private: bool | Iterable[str] = False,
        tools: Iterable[Callable[..., Any]] = (),
        policy: Policy | None = None,
        container: Container | str | None = None,
    ) -> None:
        state = state_or_type(state)  # type: ignore[assignment]  # whose type is looked at by the other session
        self._session = call(
            _make,
            name,
            user=user,
            trust_level=trust_level,
            container=container,
            walls=walls,
            limits=limits,
            preload=preload,
            python=python,
            seed=seed,
            mounts=mounts,
            network=network,
            private=private,
            tools=tools,
            policy=policy,
            state=state,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            call(self._session.open)
        except BaseException:  # after it was opened, too
            self.close()
            raise
        if isinstance(self._session.state, Versioned):
            _write_at_the_end(os.getpid())

    @half_made
    def __repr__(self) -> str:
        return repr(self._session).replace("AsyncSession", type(self).__name__, 1)

    def _repr_html_(self) -> str:
        return self._session._repr_html_().replace("AsyncSession", type(self).__name__, 1)

    def __reduce__(self) -> NoReturn:
        self._session.__reduce__()

    def close(self) -> None:
        """End the session and everything it started. Its notebook stays readable.

        What a session that lasts has done is in its store by then; StoreError names what it does not take.
        """
        finish(self._session.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str | None:
        """The session's name in its store; None where it does not last."""
        return self._session.name

    @property
    def limits(self) -> ExecutionLimits:
        """The limits the session was opened with."""
        return self._session.limits

    @property
    def seed(self) -> int:
        """Seed of the session's random generators."""
        return self._session.seed

    @property
    def notebook(self) -> Notebook:
        """The record of the session's cells."""
        return self._session.notebook

    @property
    def is_guarded(self) -> bool:
        """True if a guard stands between cells and the interpreter."""
        return self._session.is_guarded

    @property
    def capabilities(self) -> Capabilities:
        """The walls around this session, mechanism by mechanism."""
        return self._session.capabilities

    @property
    def files(self) -> Files:
        """The session's files, which its cells see as ordinary files."""
        return Files(self._session.files)

    def run(
        self, source: str, *, wait: bool = True, call_id: str | None = None, timeout: float | None = None
    ) -> Cell:
        """Run one cell to its end. Ctrl-C, or another exception raised here meanwhile, ends the cell first.

        `timeout`: seconds that it may take, in place of the session's `timeout_seconds`, more or fewer.

        A cell that has begun is interrupted, and killed after the grace; one that still waits never begins.

        `call_id` becomes the cell's id: 1 to 64 letters, digits, `_` or `-`. A second call of the same id runs nothing,
        and gives the cell that the first has run; one that another program began and did not end is such a cell, too.
        """
        return self._run_now(source, wait, call_id, timeout)

    def stream(
        self,
        source: str,
        *,
        kind: Literal["python", "shell"] = "python",
        wait: bool = True,
        call_id: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[Event]:
        """Run one cell, or a command, and tell what it shows as it happens, an error that ends it too; then `Done`.

        `call_id` and `timeout`: see `run`.
        """
        events = self._session.stream(source, kind=kind, wait=wait, call_id=call_id, timeout=timeout)
        try:
            while True:
                self._session._require_here()
                yield call(anext, events)
        except StopAsyncIteration:
            return
        finally:
            if self._session._is_here and not is_own_step():  # which drops them, and the loop then closes them
                finish(events.aclose)

    def shell(
        self, command: str, *, wait: bool = True, call_id: str | None = None, timeout: float | None = None
    ) -> Cell:
        """Run a command with /bin/sh in the workspace. A status other than 0 is the cell's error.

        `call_id` and `timeout`: see `run`.
        """
        return self._in_turn(self._session.shell, command, wait=wait, call_id=call_id, timeout=timeout)

    def rerun(self, cell_id: str, *, wait: bool = True) -> Cell:
        """Run a cell's source again, as a new execution with a new number in the same cell, and its time limit."""
        return self._in_turn(self._session.rerun, cell_id, wait=wait)

    def delete(self, cell_id: str) -> None:
        """Remove a cell's record; what it did stays done.

        Does not wait. A session that lasts has it in the store before the next step begins, and after `flush`.
        """
        self._session.delete(cell_id)

    def clear(self, *, files: bool = False) -> None:
        """Remove every record, unbind every name and, with `files`, delete the workspace's files: one step.

        CellblockError where that failed.
        """
        self._in_turn(self._session.clear, files=files)

    def checkpoint(self) -> str:
        """The id of the newest step, for `undo(to=…)`; while a cell runs, that of the step before it.

        In a session that lasts it is good for as long as that step is part of the session's history.
        """
        return self._session.checkpoint()

    def undo(self, steps: int = 1, *, to: str | None = None) -> None:
        """Undo steps, each a cell, a command or a change from the host: names, objects and files go back.

        `to` is a step, from `checkpoint`, to go back to. A cell that was rolled back does not count as a step.
        CellblockError if fewer steps can be undone, or the state after that step is gone.
        """
        self._in_turn(partial(self._session.undo, steps, to=to))

    def aside(self, source: str, *, step: str = "", reads: bool = False) -> object:
        """Run source that is not a cell, and return its value: it is not in the notebook, and shows nothing.

        CellblockError if it fails. In a session that lasts it is a commit, and run again where that is needed. With
        `step`, which says what it is for, it is a step that can be undone; without, it belongs to the step before:
        `undo` takes both back. `reads` says that it changes nothing: then nothing is kept of it.
        """
        return self._in_turn(partial(self._session.aside, source, step=step, reads=reads))

    def branch(self, name: str | None = None) -> Session:
        """Another session with the same names, objects and files; from then on the two are independent.

        While a cell runs, the branch has the state before it. What two processes cannot both have (pipes, sockets,
        shared memory) is closed in the branch: its next cell says so in `lost`. A branch executes no programs, and its
        `undo` goes back no further than its first state. Takes time by the size of the files, which are copied.

        The branch of a session that lasts is kept under a name of its own in the same store; `merge` brings it back.
        """
        branch = Session.__new__(Session)
        branch._tasks = set()
        made: list[AsyncSession] = []

        async def make() -> None:
            made.append(await self._session.branch(name))

        try:
            call(make)
        except BaseException:
            for one in made:
                finish(one.close)
            raise
        (branch._session,) = made
        return branch

    @property
    def resumed(self) -> Resumed | None:
        """Description of the resume, where the session existed before."""
        return self._session.resumed

    @property
    def unsaved(self) -> tuple[Lost, ...]:
        """Losses: parts of the state that the newest commit could not save, each with the reason and a remedy.

        A commit is made after its cell has ended: `flush` waits for it, and `cell.lost` tells at once of some.
        """
        return self._session.unsaved

    def flush(self) -> None:
        """Until all that was done is in the store for good, a loss of power included; `StoreError` where it is not."""
        self._in_turn(self._session.flush)

    def hibernate(self) -> None:
        """End the session's processes once all is in the store; the next call that needs them makes others.

        Names that cannot be saved are gone with them, and told as `lost` by the cell that comes next. `CaptureFailed`
        where no state could be saved: then the processes go on.
        """
        self._in_turn(self._session.hibernate)

    def log(self, revision: str = "HEAD", *, limit: int = 50) -> list[Commit]:
        """The newest commits that lead to a revision, newest first: one for each step."""
        return self._in_turn(partial(self._session.log, revision, limit=limit))

    def diff(self, before: str = "HEAD~1", after: str = "HEAD") -> Diff:
        """Difference between two revisions: names with previews, files with sizes, and the steps in between."""
        return self._in_turn(self._session.diff, before, after)

    def checkout(self, revision: str) -> None:
        """Go to the state of a commit: names, files and notebook. What comes next follows from there; nothing is lost.

        A revision is `HEAD~3`, a tag, a branch, or the beginning of a commit's id; `UnknownCommit` for anything else.
        """
        self._in_turn(self._session.checkout, revision)

    def merge(self, other: Session | str, *, prefer: Literal["ours", "theirs"] | None = None) -> Commit:
        """Take over what another version has changed since the two parted: names with what they share, and files.

        `other` is a branch of this session, or its name, or else a revision. One that is not open here is merged as the
        store has it; CellblockError where its journal holds more. Both are parents of the commit; where there is
        nothing to take over, it is the newest one of this session. `MergeConflict`, and nothing is merged, where both
        changed the same, unless one is preferred.
        """
        theirs = other if isinstance(other, str) else require_kind(other, Session, "other")._session
        return self._in_turn(partial(self._session.merge, theirs, prefer=prefer))

    def tag(self, name: str, revision: str = "HEAD") -> None:
        """Give a commit a name of its own."""
        self._in_turn(self._session.tag, name, revision)

    @property
    def private(self) -> str:
        """Why the session holds private data; "" where nobody has said that it does."""
        return self._session.private

    def mark_private(self, reason: str) -> None:
        """From now on the session has no network, and cannot call functions that are declared outward. For good.

        Does not wait for its turn. When this returns, what is open is cut, and the mark is in the store.
        """
        call(self._session.mark_private, reason)

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell. Does not wait."""
        self._session.interrupt()

    def kill(self) -> None:
        """End the session's process at once. Does not wait; the running cell reports it."""
        self._session.kill()

    def __getitem__(self, name: str) -> object:
        """A name's value where it is portable, an `Opaque` where it is not; KeyError if it is unbound."""
        return self._in_turn(self._session.get, name)

    def __setitem__(self, name: str, value: object) -> None:
        """Bind a name to a copy of any picklable value."""
        self._in_turn(self._session.set, name, value)

    def __delitem__(self, name: str) -> None:
        """Unbind a name: a step that can be undone. KeyError if it is unbound."""
        self._in_turn(self._session.unset, name)

    def get(self, name: str, default: object = ...) -> object:
        """A name's value where it is portable, an `Opaque` where it is not.

        The default if it is unbound; KeyError without one.
        """
        return self._in_turn(self._session.get, name, default)

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        """The names that are bound, as `names` has them."""
        return iter(self.names())

    @property
    def types(self) -> dict[str, str]:
        """The names that cells have bound, with their types, as of the last cell that ended. Asks no process."""
        return self._session.types

    def names(self) -> dict[str, Name]:
        """The names that cells have bound, with previews made inside.

        The preview of a value whose `__repr__` ends its process, or does not end, says so.
        """
        return self._in_turn(self._session.names)

    def as_tools(self, include: Iterable[str] | None = None) -> SessionTools:
        """The session as functions that models call, with their schemas and what answers a call.

        `include` names those that are offered. Needs pydantic, of the extra `agent`.
        """
        from cellblock.session.offered import SessionTools

        return SessionTools(self, include)

    def read_output(self, uri: str) -> bytes:
        """The bytes behind an output's URI."""
        return self._session.read_output(uri)

    def _in_turn(self, function: Callable[..., Awaitable[T]], *args: object, **options: object) -> T:
        result: T = answer_of(in_task, self._tasks, partial(function, *args, **options))
        return result

    def _run_now(self, *args: object) -> Cell:
        """As deep as `_in_turn`: a warning names the caller."""
        cell: Cell = answer_of(self._run, *args)
        return cell

    def _run(
        self, source: str, wait: bool, call_id: str | None, timeout: float | None, answer: Answer[Any]
    ) -> None:
        """On our loop: run a cell here and now where no other call is under way, in a task as far as it takes longer.

        A task costs more than a short cell. A call that has one came first, though it may not have begun yet.
        """
        session = self._session
        try:
            execution = None if self._tasks or (call_id, timeout) != (None, None) else session._begin_at_once(source)
            cell = None if execution is None else session._end_at_once(execution)
        except BaseException as error:  # the caller's
            answer.give(error=meant(error))
            return
        if cell is not None:
            answer.give(cell)
        elif execution is not None:
            in_task(self._tasks, partial(session._follow, execution), answer)
        else:
            in_task(self._tasks, partial(session.run, source, wait=wait, call_id=call_id, timeout=timeout), answer)


def session_here(given: object) -> AsyncSession:
    """A session of the caller's as the running event loop uses it. TypeError for one that it would wait for, for ever.

    A `Session` is used on the loop of the blocking sessions, as by `agent.run`, and an `AsyncSession` on its own.
    """
    if isinstance(given, Session) and is_own_step():
        return given._session
    if isinstance(given, AsyncSession) and given._lock.is_of_running_loop:
        return given
    if isinstance(given, Session):
        raise TypeError("session must be an AsyncSession, not Session, which blocks: pass one, or call run()")
    if isinstance(given, AsyncSession):
        raise TypeError("session is an AsyncSession of another event loop: pass a Session, or await arun()")
    raise TypeError(f"session must be a Session or an AsyncSession, not {type(given).__name__}")


class Files:
    """Files of a session, which its cells see as ordinary files. What leads outside raises `FileRefused`."""

    def __init__(self, files: AsyncFiles) -> None:
        self._files = files

    def write(self, path: str | os.PathLike[str], data: bytes | str) -> None:
        """Create or replace a file, with the directories it needs; text is written as UTF-8."""
        call(self._files.write, path, data)

    def read(
        self, path: str | os.PathLike[str], *, max_bytes: int = MAX_READ_BYTES, offset: int | None = None
    ) -> bytes:
        """A file's bytes. A file of more than `max_bytes` is refused; with `offset`, a part of at most that is read."""
        return call(self._files.read, path, max_bytes=max_bytes, offset=offset)

    def size(self, path: str | os.PathLike[str]) -> int:
        """The bytes of a file, which is not read."""
        return call(self._files.size, path)

    def exists(self, path: str | os.PathLike[str]) -> bool:
        """True if a path is a file or a directory of the session's; False for what leads outside."""
        return call(self._files.exists, path)

    def list(self, directory: str | os.PathLike[str] = "") -> list[str]:
        """Every file below a directory, sorted; without one, of the workspace.

        Those below `/tmp` and `/data` are listed by themselves: `list("/tmp")`. Mounts are left out.
        """
        return call(self._files.list, directory)

    def delete(self, path: str | os.PathLike[str]) -> None:
        """Remove one file."""
        call(self._files.delete, path)


async def _make(name: str | None, **options: Any) -> AsyncSession:
    return AsyncSession(name, **options)
