"""The session that a command line asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellblock.cli.opening import Start, start_early

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession


@dataclass(frozen=True, slots=True)
class Setup:
    """The arguments of a session, as `options.session` gives them, and local files by their names inside."""

    options: Mapping[str, Any]
    inputs: Mapping[str, Path]

    def start(self) -> Start:
        """Start the processes that the session comes from, while the rest of us is still being imported."""
        asked = self.options
        expected = None if asked["mounts"] or asked["network"] else asked["limits"]
        return start_early(asked["python"], asked["preload"], asked, expected)

    def session(self) -> AsyncSession:
        """The session, which is not open yet."""
        from cellblock.session.session import AsyncSession

        return AsyncSession(**self.options)

    async def put_inputs(self, session: AsyncSession) -> None:
        """Copy the input files into the session, once it is open."""
        import anyio

        for name, local in self.inputs.items():
            await session.files.write(name, await anyio.Path(local).read_bytes())
