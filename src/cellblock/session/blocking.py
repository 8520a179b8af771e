"""The blocking face: `Session` is `AsyncSession` driven from ordinary code, on an event loop of our own."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from cellblock.cell import Cell
from cellblock.events import Event
from cellblock.executors.protocol import Capabilities
from cellblock.limits import ExecutionLimits
from cellblock.session.files import MAX_READ_BYTES, AsyncFiles
from cellblock.session.notebook import Notebook
from cellblock.session.session import AsyncSession, Name

T = TypeVar("T")


class Session:
    """A place to run code that remembers; the blocking twin of `AsyncSession`, with the same methods.

    Thread-safe. It works inside a running event loop too, but blocks that loop, and warns once that it does.
    Opening happens in the constructor; use it as a context manager, or call `close`.
    """

    def __init__(
        self,
        *,
        trust_level: Literal["isolated"] = "isolated",
        limits: ExecutionLimits | None = None,
        preload: Iterable[str] = (),
        python: str | None = None,
        seed: int | None = None,
        mounts: Mapping[str, str | os.PathLike[str]] | None = None,
        tools: Iterable[Callable[..., Any]] = (),
    ) -> None:
        self._session = _call(
            _make,
            trust_level=trust_level,
            limits=limits,
            preload=tuple(preload),
            python=python,
            seed=seed,
            mounts=mounts,
            tools=tuple(tools),
        )
        _call(self._session.open)

    def close(self) -> None:
        """End the session and everything it started. Its notebook stays readable."""
        _call(self._session.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def limits(self) -> ExecutionLimits:
        """The limits the session was opened with."""
        return self._session.limits

    @property
    def seed(self) -> int:
        """What the session's random generators were seeded from."""
        return self._session.seed

    @property
    def notebook(self) -> Notebook:
        """The record of the session's cells."""
        return self._session.notebook

    @property
    def capabilities(self) -> Capabilities:
        """The walls around this session, mechanism by mechanism."""
        return self._session.capabilities

    @property
    def files(self) -> Files:
        """The session's files, which its cells see as ordinary files."""
        return Files(self._session.files)

    def run(self, source: str, *, wait: bool = True) -> Cell:
        """Run one cell to its end. Ctrl-C while it runs interrupts the cell and raises here."""
        return self._interruptibly(self._session.run, source, wait=wait)

    def stream(self, source: str, *, wait: bool = True) -> Iterator[Event]:
        """Run one cell and tell what it shows as it happens; the last event is `Done`."""
        events = self._session.stream(source, wait=wait)
        try:
            while True:
                yield self._interruptibly(anext, events)
        except StopAsyncIteration:
            return
        finally:
            _call(events.aclose)

    def shell(self, command: str, *, wait: bool = True) -> Cell:
        """Run a command with /bin/sh in the workspace. A status other than 0 is the cell's error."""
        return self._interruptibly(self._session.shell, command, wait=wait)

    def rerun(self, cell_id: str, *, wait: bool = True) -> Cell:
        """Run a cell's source again, as a new execution with a new number in the same cell."""
        return self._interruptibly(self._session.rerun, cell_id, wait=wait)

    def delete(self, cell_id: str) -> None:
        """Remove a cell's record; what it did stays done."""
        self._session.delete(cell_id)

    def clear(self) -> None:
        """Remove every record and unbind every name. Files stay."""
        _call(self._session.clear)

    def undo(self, steps: int = 1) -> None:
        """See `AsyncSession.undo`."""
        _call(self._session.undo, steps)

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell. Does not wait."""
        self._session.interrupt()

    def kill(self) -> None:
        """End the session's process at once. Does not wait; the running cell reports it."""
        self._session.kill()

    def __getitem__(self, name: str) -> object:
        """A name's value where it is portable, an `Opaque` where it is not; KeyError if it is unbound."""
        return _call(self._session.get, name)

    def __setitem__(self, name: str, value: object) -> None:
        """Bind a name to a copy of any picklable value."""
        _call(self._session.set, name, value)

    def names(self) -> dict[str, Name]:
        """The names that cells have bound, with previews made inside."""
        return _call(self._session.names)

    def read_output(self, uri: str) -> bytes:
        """The bytes behind an output's URI."""
        return self._session.read_output(uri)

    def _interruptibly(self, function: Callable[..., Awaitable[T]], *args: object, **options: object) -> T:
        try:
            return _call(function, *args, **options)
        except KeyboardInterrupt:
            self._session.interrupt()
            raise


class Files:
    """Files of a session, which its cells see as ordinary files. What leads outside raises `FileRefused`."""

    def __init__(self, files: AsyncFiles) -> None:
        self._files = files

    def write(self, path: str, data: bytes | str) -> None:
        """Create or replace a file, with the directories it needs; text is written as UTF-8."""
        _call(self._files.write, path, data)

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """A file's bytes."""
        return _call(self._files.read, path, max_bytes=max_bytes)

    def list(self) -> list[str]:
        """Every file of the workspace, sorted."""
        return _call(self._files.list)

    def delete(self, path: str) -> None:
        """Remove one file."""
        _call(self._files.delete, path)


async def _make(**options: Any) -> AsyncSession:
    return AsyncSession(**options)


_portal: BlockingPortal | None = None
_starting = threading.Lock()
_warned = False


def _call(function: Callable[..., Awaitable[T]], *args: object, **options: object) -> T:
    """Run a coroutine function on our loop and wait for it."""
    _warn_inside_a_loop()
    result: T = _the_portal().start_task_soon(_run, function, args, options).result()
    return result


async def _run(function: Callable[..., Awaitable[T]], args: tuple[object, ...], options: dict[str, object]) -> T:
    return await function(*args, **options)


def _the_portal() -> BlockingPortal:
    """Our loop's portal. The thread is a daemon: it must not keep the interpreter from leaving."""
    global _portal
    if _portal is None:
        with _starting:
            if _portal is None:
                ready = threading.Event()
                threading.Thread(target=anyio.run, args=(_serve, ready), name="cellblock", daemon=True).start()
                ready.wait()
    assert _portal is not None
    return _portal


async def _serve(ready: threading.Event) -> None:
    global _portal
    async with BlockingPortal() as portal:
        _portal = portal
        ready.set()
        await portal.sleep_until_stopped()


def _warn_inside_a_loop() -> None:
    global _warned
    if _warned or asyncio._get_running_loop() is None:
        return
    _warned = True
    warnings.warn(
        "a blocking Session blocks the running event loop; use AsyncSession there",
        RuntimeWarning,
        stacklevel=4,
    )


def _after_fork_in_child() -> None:
    global _portal, _starting
    _portal, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
