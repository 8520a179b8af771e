"""What an agent knows while it works: the host's own, and lent to the model's code as the name `memory`.

The host's is the truth: what the loop adds is put into the namespace before a cell that may look, and what a cell did
to it is read back afterwards. So it outlives everything that is rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cellblock.errors import CellblockError
from cellblock.session.session import AsyncSession

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
_READ = "[memory.observations, memory.failed_approaches, memory.variables]"
_READ_TEXTS = "[memory.observations, memory.failed_approaches, {}]"


@dataclass(slots=True)
class AgentMemory:
    """What an agent has noted: values that it keeps, what it observed, and what did not work, oldest first."""

    variables: dict[str, object] = field(default_factory=dict)
    observations: list[str] = field(default_factory=list)
    failed_approaches: list[str] = field(default_factory=list)

    def observe(self, text: str) -> None:
        """Note what was learned."""
        self.observations.append(_cut(text))

    def fail(self, text: str) -> None:
        """Note what did not work."""
        self.failed_approaches.append(_cut(text))

    def copy(self) -> AgentMemory:
        return AgentMemory(dict(self.variables), list(self.observations), list(self.failed_approaches))


class Lent:
    """A memory as it stands in a session's namespace.

    Costs a cell nothing unless its source, or an earlier one, says `memory`.
    """

    def __init__(self, memory: AgentMemory, session: AsyncSession) -> None:
        self._memory = memory
        self._session = session
        self._inside: tuple[list[str], list[str]] | None = None
        self._spoken_of = False

    async def begin(self, *, again: bool) -> None:
        """Bind the name; in a session that had it before, `again`, what it holds there is taken up."""
        if again and await self._take():
            self._spoken_of = True
            return
        await self._session.aside(_CLASS)
        self._inside = ([], [])

    async def before(self, source: str) -> None:
        """Put into the namespace what the host has noted, where the source may look."""
        self._spoken_of = self._spoken_of or "memory" in source
        if self._spoken_of:
            await self.put()

    async def after(self) -> None:
        """Read what a cell has changed. What is no memory any more is made one again before the next cell."""
        if self._spoken_of and not await self._take():
            self._inside = None

    def went_back(self) -> None:
        """The namespace is an older one: what the host has is put in again when somebody looks."""
        self._inside = ([], ["the namespace is an older one"])

    async def put(self) -> None:
        """Have the namespace hold what the host has."""
        if self._inside is None:
            await self._session.aside(_CLASS)
        observations, failed = self._memory.observations, self._memory.failed_approaches
        if self._inside != (observations, failed):
            await self._session.aside(f"memory.observations = {observations!r}\nmemory.failed_approaches = {failed!r}")
            self._inside = (list(observations), list(failed))

    async def _take(self) -> bool:
        """Make the host's memory what the namespace holds; whether there is one."""
        match await self._read(_READ) or await self._read(_READ_TEXTS):
            case [list(observations), list(failed), dict(variables)]:
                self._inside = (_texts(observations), _texts(failed))
                self._memory.observations, self._memory.failed_approaches = map(list, self._inside)
                if variables:
                    kept = list(variables.items())[:_MOST_ENTRIES]
                    self._memory.variables = {str(name): value for name, value in kept}
                return True
        return False

    async def _read(self, source: str) -> object:
        """What the source gives; None where it cannot be had, or cannot cross."""
        try:
            found = await self._session.aside(source)
        except CellblockError:
            return None
        return found if isinstance(found, list) else None


def _texts(found: list[object]) -> list[str]:
    return [_cut(one if isinstance(one, str) else repr(one)) for one in found[-_MOST_ENTRIES:]]


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
