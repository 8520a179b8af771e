"""The session of a command: its start while the rest is imported, its files, its script, the terminal's width."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cellblock.cli.source import put
from cellblock.hosting.threads import in_thread

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession

_QUIET_SECONDS = 0.5


class Setup:
    """The arguments of a session and the files to copy into it.

    Making one starts, in a thread, the processes that the session comes from; a container starts when it is opened.
    """

    def __init__(self, options: Mapping[str, Any], inputs: Mapping[str, Path] | None = None) -> None:
        """`options` are arguments of `AsyncSession`; `inputs`, local files by their names inside."""
        self._options = options
        self._inputs = inputs or {}
        self.doing = ""
        """Work that the start waits for, such as the import of a package; "" at first."""
        self.started = in_thread(self._start, "cellblock starts")

    def _start(self) -> None:
        from cellblock.executors.choose import prepare

        asked = self._options
        if asked.get("trust_level") != "sandboxed":
            expected = None if asked.get("mounts") or asked.get("network") else asked["limits"]
            prepare(asked.get("python"), asked["preload"], asked.get("walls", "full"), self._tell, expected)

    def _tell(self, doing: str) -> None:
        self.doing = doing

    def session(self) -> AsyncSession:
        """The session, which is not open yet."""
        from cellblock.session.session import AsyncSession

        return AsyncSession(**self._options)

    async def open(self, session: AsyncSession, stream: TextIO | None = None) -> None:
        """Open the session and copy the files into it; errors of the start are raised here. Can be cancelled.

        On `stream`, where it is a terminal, a line tells what takes longer than half a second.
        """
        import asyncio

        from cellblock.cli.progress import redrawn

        def caption(seconds: float) -> str:
            return "opening a session" + (f": {self.doing}" if self.doing else "") + f" ({seconds:.1f} s)"

        async with redrawn(stream, caption, after=_QUIET_SECONDS) if stream and stream.isatty() else nullcontext():
            await asyncio.wrap_future(self.started)  # not in a thread, which would hold up the interpreter as it leaves
            await session.open()
        for name, local in self._inputs.items():
            await put(session, name, local)


# names with two underscores on either side stand in no list of names


async def set_script(session: AsyncSession, path: str, arguments: tuple[str, ...]) -> None:
    """Make `path` the session's `__file__`, and `arguments` its `sys.argv`."""
    await session.set("__file__", _Done(f"__import__('sys').argv.__setitem__(slice(None), {list(arguments)!r})", path))


class Width:
    """The terminal's width as the session knows it: pandas and rich read COLUMNS, polars a variable of its own."""

    def __init__(self) -> None:
        self._set = 0

    async def set(self, session: AsyncSession) -> None:
        """Set the variables, if the width has changed since the last call."""
        columns = shutil.get_terminal_size().columns
        if columns != self._set:
            self._set = columns
            variables = {"COLUMNS": str(columns), "POLARS_TABLE_WIDTH": str(columns)}
            # no step of the user's; an import statement heeds no name that a cell has bound
            await session.aside(f"import os as __os__; __os__.environ.update({variables!r})")

    def forget(self) -> None:
        """Set them again at the next call: the session may have a new process."""
        self._set = 0


class _Done:
    """Becomes `value` when it is unpickled inside, after `action` was evaluated there."""

    def __init__(self, action: str, value: str) -> None:
        self._source = f"({action}, {value!r})[1]"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (self._source,)
