"""Values whose own code ends or holds up the process that saves or loads them: found one by one, then left out.

A process that saves or loads names announces each piece of work in which such code may run. Where it ends or stands
still, another is started, in which that piece fails without being begun; the rest of the state is saved or loaded.
"""

from __future__ import annotations

STILL_SECONDS = 5.0
"""The only limit of time: how long a piece of work may take without a sign of progress."""
_LEAST_SECONDS = 0.2
_MOST = 1000
"""Pieces of work that are left out of one state; then it is not saved, or not loaded."""
_MOST_UNKNOWN = 3
"""Ends that no piece of work is known for."""

Known = dict[str, tuple[str, str]]
"""Pieces of work to leave out: each with the reason and a fingerprint of the objects it concerns, "" where unknown."""


class Suspects:
    """The suspects of one state. `known` are those of the states before, and gets those that are confirmed here."""

    def __init__(self, known: Known | None = None) -> None:
        self._known: Known = {} if known is None else known
        self.left_out: Known = dict(self._known)
        self.confirmed: Known = {}
        self.had: set[str] = set()
        """Addresses of chunks that came before the process ended."""
        self.any = False
        """True if a process has ended or stood still."""
        self._blamed = self._still = self._unknown = 0
        self._tries_again = False

    @property
    def patience(self) -> float:
        """Seconds that the next piece of work may stand still: less after each that did."""
        return max(_LEAST_SECONDS, STILL_SECONDS / (self._still + 1) ** 2)

    def ended(self, work: str, reason: str) -> None:
        """Note that a process ended in a piece of work, "" where it is unknown.

        The first end may be somebody else's kill: nothing is left out for it.
        """
        if not self.any or not work or work in self.left_out:
            self._note_unknown()
        else:
            self._leave_out(work, reason)

    def stood_still(self, work: str) -> str:
        """Note that a process stood still in a piece of work; in words."""
        reason = f"did not come to an end within {self.patience:.3g} s"
        if work and work not in self.left_out:
            self._still += 1
            self._leave_out(work, f"its code {reason}")
        else:
            self._note_unknown()
        return reason

    def _note_unknown(self) -> None:
        self._unknown += 1
        self.any, self._tries_again = True, self._unknown < _MOST_UNKNOWN

    def _leave_out(self, work: str, reason: str) -> None:
        self._blamed += 1
        self.left_out[work] = reason, ""
        self.any, self._tries_again = True, self._blamed < _MOST

    def confirm(self, work: str, holds: str) -> None:
        """A piece of work was left out, of objects with this fingerprint: it is also left out of later states."""
        if holds and work in self.left_out:
            self.confirmed[work] = self.left_out[work][0], holds

    def settle(self) -> None:
        """The state is saved: what its writer did not leave out is tried again with the next state."""
        self._known.clear()
        self._known.update(self.confirmed)

    def tries_again(self) -> bool:
        """True if another process may get further than the last one that ended. Once for each."""
        again, self._tries_again = self._tries_again, False
        return again
