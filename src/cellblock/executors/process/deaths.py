"""How workers ended: what zygotes and the nursery tell, put together."""

from __future__ import annotations

DEATH_SECONDS = 5.0
"""In which the parent of a worker that is dead tells how it ended: that is the one source of it, and may be kept
waiting by a busy machine."""


class Deaths:
    """Wait statuses of workers, under the token that each was asked for with.

    A zygote tells which process it made for a token, and how its processes end; the nursery tells how those end
    whose zygote is gone. Both name processes by their pid in the family's pid namespace.
    """

    def __init__(self) -> None:
        self._expected: set[int] = set()
        self._living: dict[int, int] = {}
        self._ended: dict[int, int] = {}

    def expect(self, token: int) -> None:
        """Keep what is told of this worker until it is taken or forgotten."""
        self._expected.add(token)

    def forget(self, token: int) -> None:
        """Nobody will ask for this one."""
        self._expected.discard(token)
        self._ended.pop(token, None)

    def note(self, notice: dict[str, object]) -> None:
        """Take one notice; what is about no expected worker is dropped."""
        match notice:
            case {"attached": int(token), "pid": int(pid)}:
                self._living[pid] = token
            case {"unmade": int(token), "errno": int(number)} if token in self._expected:
                self._ended[token] = -number
            case {"ended": int(pid), "status": int(status)}:
                token = self._living.pop(pid, 0)
                if token in self._expected:
                    self._ended[token] = status

    def take(self, token: int) -> int | None:
        """The wait status of a worker; None while it is not known, below 0 the error number why there is none."""
        return self._ended.get(token)
