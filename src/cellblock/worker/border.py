"""The border of a supervisor: what goes wrong in one step of its loop is told, and ends neither it nor its session."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Mapping

_MOST_REASON = 300
_REMEDY = "see whether the machine is overloaded; if it is not, report this"
_BLIND = 3


class Border:
    """Carries out the steps of one process. `tell` takes what is told of those that fail: never waits."""

    def __init__(self, tell: Callable[[Mapping[str, object]], object]) -> None:
        self._tell = tell
        self._told: set[tuple[str, type[Exception]]] = set()
        self._blind = 0

    def carry_out(self, what: str, step: Callable[[], object], *, asked: bool = False) -> bool:
        """Take a step; True if it was done. A failure is told once of its kind, and always to a host that `asked`."""
        try:
            step()
        except Exception as error:
            if asked or (what, type(error)) not in self._told:
                self._told.add((what, type(error)))
                with contextlib.suppress(OSError):
                    self._tell(report(what, error))
            return False
        return True

    def look(self, step: Callable[[], object], unseen: Callable[[], object]) -> None:
        """Look at what the session holds. The third time in a row that fails, `unseen` is to end what holds it."""
        if self.carry_out("look", step):
            self._blind = 0
            return
        self._blind += 1
        if self._blind >= _BLIND:
            self.carry_out("end", unseen)


def report(what: str, error: BaseException) -> dict[str, object]:
    """Message about a failure; the host names the resource that an error number is about."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__}: {error!s:.{_MOST_REASON}} ({os.path.basename(place.filename)}:{place.lineno})"
    number = {"errno": error.errno} if isinstance(error, OSError) and error.errno else {}
    return {"failed": what, "reason": reason, "remedy": _REMEDY, **number}
