"""The session that a command line asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellblock.cli.opening import Start, start_early
from cellblock.limits import ExecutionLimits

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A session's arguments; `place` has those of `options.place`, `inputs` local files by their names inside."""

    limits: ExecutionLimits = ExecutionLimits()
    preload: tuple[str, ...] = ()
    python: str | None = None
    place: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    network: tuple[str, ...] = ()
    private: bool | tuple[str, ...] = False

    def start(self) -> Start:
        """Start the processes that the session comes from, while the rest of us is still being imported."""
        expected = None if self.mounts or self.network else self.limits
        return start_early(self.python, self.preload, self.place, expected)

    def session(self) -> AsyncSession:
        """The session, which is not open yet."""
        from cellblock.session.session import AsyncSession

        return AsyncSession(
            **self.place,
            limits=self.limits,
            preload=self.preload,
            python=self.python,
            mounts=self.mounts,
            network=self.network,
            private=self.private,
        )

    async def put_inputs(self, session: AsyncSession) -> None:
        """Copy the input files into the session, once it is open."""
        import anyio

        for name, local in self.inputs.items():
            await session.files.write(name, await anyio.Path(local).read_bytes())
