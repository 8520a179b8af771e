"""Notes of an agent while it works, which the model's code has as `memory`.

The host holds them: it puts them into the namespace before a cell that may look, and reads back afterwards what the
cell did to them. So they outlive everything that is rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from cellblock.errors import CellblockError
from cellblock.hosting import to_thread
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.session.session import AsyncSession
from cellblock.text import text_of
from cellblock.values.forms import Opaque
from cellblock.values.room import held

_MOST_ENTRIES = 200
_MOST_CHARACTERS = 2_000

_CLASS = """\
class AgentMemory:
    "What was learned so far: `variables` to keep values in, `observations` and `failed_approaches`, lists of texts."
    def __init__(self, variables, observations, failed_approaches):
        self.variables = variables
        self.observations = observations
        self.failed_approaches = failed_approaches
    def __repr__(self):
        lists = f"observations={self.observations!r}, failed_approaches={self.failed_approaches!r}"
        return f"AgentMemory(variables={self.variables!r}, {lists})"
memory = AgentMemory({}, [], [])
"""
_TEXTS = f"""[
    [f"{{one}}"[:{_MOST_CHARACTERS + 1}] for one in (memory.observations + [])[-{_MOST_ENTRIES}:]],
    [f"{{one}}"[:{_MOST_CHARACTERS + 1}] for one in (memory.failed_approaches + [])[-{_MOST_ENTRIES}:]],
    memory.variables | {{}} and None,
]"""
_VALUES = "memory.variables | {}"
_NAMES = '[f"{one}" for one in memory.variables | {}]'


_LEFT = Opaque("", "", "too large for the host, with what was read before it")


@dataclass(slots=True)
class AgentMemory:
    """Notes of an agent: values that it keeps, what it observed, and what did not work, oldest first."""

    variables: dict[str, object] = field(default_factory=dict)
    observations: list[str] = field(default_factory=list)
    failed_approaches: list[str] = field(default_factory=list)

    def observe(self, text: str) -> None:
        """Note what was learned. Past 200 entries the oldest goes."""
        self.observations[:] = newest([*self.observations, text])

    def fail(self, text: str) -> None:
        """Note what did not work, as `observe` does."""
        self.failed_approaches[:] = newest([*self.failed_approaches, text])

    def copy(self) -> AgentMemory:
        return AgentMemory(dict(self.variables), list(self.observations), list(self.failed_approaches))


class BoundMemory:
    """A memory, bound to the name `memory` in a session's namespace.

    Costs a cell nothing unless its source, or an earlier one, has that name. Its texts are read after each cell, its
    values when the run ends.
    """

    def __init__(self, memory: AgentMemory, session: AsyncSession) -> None:
        self._memory = memory
        self._session = session
        self._inside: tuple[list[str], list[str]] | None = None
        """The texts in the namespace; None where they are not known."""
        self._used = False

    async def begin(self, *, again: bool) -> None:
        """Bind the name; `again`, in a session that had it before, take up what is there."""
        if again and await self._take():
            cells = await to_thread.run_sync(lambda: self._session.notebook.cells)
            self._used = any("memory" in cell.source for cell in cells)
            await self._take_values()
        else:
            await self._make()

    async def resume(self, *, ran: bool) -> None:
        """Bind the name in a session that comes from a store: the host's notes replace those in the namespace.

        They do not where a cell `ran` that the host has not heard of, and that was lent the memory.
        """
        kept = self._memory.copy()
        await self.begin(again=True)
        if not (ran and self._used):
            self._memory.observations, self._memory.failed_approaches = kept.observations, kept.failed_approaches
            self.went_back()
        self._used = True

    async def before(self, source: str) -> None:
        """Put into the namespace what the host has noted, where the source may look."""
        self._used = self._used or "memory" in source
        if self._used:
            await self._put()

    async def after(self) -> None:
        """Read what a cell has changed. A name that is no memory any more is bound again before the next cell."""
        if self._used and not await self._take():
            self._inside = None

    async def end(self) -> None:
        """Leave the host's notes in the namespace for the next run, and take the values from it."""
        await self._put()
        if self._used:
            await self._take_values()

    def went_back(self) -> None:
        """Note that the namespace is an older one: the host's notes are put into it before a cell that may look."""
        self._inside = None

    async def _put(self) -> None:
        """Make the namespace's texts those of the host."""
        observations, failed = self._memory.observations, self._memory.failed_approaches
        if self._inside == (observations, failed):
            return
        source = (
            f"memory.observations = {observations!r}\nmemory.failed_approaches = {failed!r}\nmemory.variables |= {{}}"
        )
        try:
            await self._session.aside(source, step="memory")
        except CellblockError:  # it is no memory any more
            await self._make()
            await self._session.aside(source, step="memory")
        self._inside = (list(observations), list(failed))

    async def _make(self) -> None:
        await self._session.aside(_CLASS, step="memory")
        self._inside = ([], [])

    async def _take(self) -> bool:
        """Make the host's texts those of the namespace; whether there are any."""
        match await self._read(_TEXTS):
            case [list(observations), list(failed), _]:  # as many as the namespace's own code says
                self._inside = await off_loop(LARGE, lambda: (newest(observations), newest(failed)))
                self._memory.observations, self._memory.failed_approaches = map(list, self._inside)
                return True
        return False

    async def _take_values(self) -> None:
        """Make the host's values those of the namespace; of one that cannot cross what stands for it.

        Names that share a value inside have a copy each here. All count on the session's account until the last is
        read; past its limit the others stay inside.
        """
        share, has_room = self._session._account.share(), True
        try:
            values = await self._read(_VALUES)
            if not (isinstance(values, dict) and share.take(await off_loop(LARGE, held, values))):
                names, values = await self._read(_NAMES), dict[str, object]()
                for name in map(_cut, names[:_MOST_ENTRIES] if isinstance(names, list) else ()):
                    value = await self._read(f"memory.variables[{name!r}]") if has_room else None
                    has_room = has_room and share.take(await off_loop(LARGE, held, value))
                    values[name] = value if has_room else _LEFT
        finally:
            share.close()  # from here on the caller holds them
        first = islice(values.items(), _MOST_ENTRIES)
        self._memory.variables = await off_loop(LARGE, lambda: {_cut(name): value for name, value in first})

    async def _read(self, source: str) -> object:
        """The value of an expression in the session; None where it fails."""
        try:
            return await self._session.aside(source, reads=True)
        except CellblockError:
            return None


def newest(texts: list[object]) -> list[str]:
    return list(map(_cut, texts[-_MOST_ENTRIES:]))


def _cut(told: object) -> str:
    text = text_of(told, max_chars=_MOST_CHARACTERS + 1)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
