"""Facts for a session about where it runs: a script's path and arguments, and how wide the terminal is.

Each is bound to a name with two underscores on either side, which no list of names shows.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession


async def tell_script(session: AsyncSession, path: str, arguments: tuple[str, ...]) -> None:
    """Make `path` the session's `__file__`, and `arguments` its `sys.argv`."""
    await session.set("__file__", _Done(f"__import__('sys').argv.__setitem__(slice(None), {list(arguments)!r})", path))


class Width:
    """Keeps a session's idea of the terminal's width: pandas and rich read COLUMNS, polars a variable of its own."""

    def __init__(self) -> None:
        self._told = 0

    async def tell(self, session: AsyncSession) -> None:
        """Tell it, if it has changed since this was last called."""
        columns = shutil.get_terminal_size().columns
        if columns != self._told:
            self._told = columns
            variables = {"COLUMNS": str(columns), "POLARS_TABLE_WIDTH": str(columns)}
            # no step of the user's; an import statement heeds no name that a cell has bound
            await session.aside(f"import os as __os__; __os__.environ.update({variables!r})")

    def forget(self) -> None:
        """The session has a new process."""
        self._told = 0


class _Done:
    """Becomes `value` when it is unpickled inside, after `action` was evaluated there."""

    def __init__(self, action: str, value: object) -> None:
        self._source = f"({action}, {value!r})[1]"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (self._source,)
