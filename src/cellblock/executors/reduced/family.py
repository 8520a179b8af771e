"""The host's hold on a family without namespaces: one zygote, from which every session's keeper is made.

Sessions live without it: a keeper makes its workers from its own copy. One that has ended is replaced when the next
session is opened.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from cellblock.errors import IsolationUnavailable
from cellblock.executors.process.family import FamilyGone, Profile
from cellblock.executors.process.launching import await_end, start
from cellblock.executors.process.zygote import Progress, Zygote, needed, not_started
from cellblock.executors.reduced import homes, identity
from cellblock.hosting.forks import Lock
from cellblock.worker import control

_PACKAGE = Path(__file__).parents[2]


class Family:
    """A running zygote. All methods may be called from any thread."""

    def __init__(self, profile: Profile, progress: Progress | None = None) -> None:
        """Start it and wait until its packages are imported. Blocks; raises what it lacks."""
        self._lock = threading.Lock()
        account = identity.require()
        self.base = homes.base()
        homes.remove_stale(self.base)
        self._scratch, self._held = homes.make(self.base, account)
        more = {
            "expose": [str(_PACKAGE)],
            "base": self.base,
            "scratch": self._scratch,
            "account": account,
            "guard": profile.guarded,
        }
        channel, end = control.pair()
        self._zygote = Zygote(channel, profile.python, profile.preload, more)
        try:
            with end:
                self._process = start(profile.python, "reduced", [end])
            self._zygote.await_ready(progress)
        except OSError as error:
            self.close()
            raise not_started(profile.python, error) from error
        except EOFError:
            self.close()
            reason = f"start: {profile.python} ended before it was ready"
            raise IsolationUnavailable(reason, mechanism="start", hint=needed()) from None
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """True if it can make keepers."""
        return self._process.poll() is None

    def keep(self, message: dict[str, object], descriptors: Sequence[int]) -> None:
        """Ask for a keeper; `FamilyGone` when nobody is there to make it."""
        try:
            with self._lock:
                control.send(self._zygote.channel, message, descriptors)
        except OSError as error:
            raise FamilyGone from error

    def close(self) -> None:
        """End the zygote; sessions go on."""
        with self._lock:
            self._zygote.close()
            if self._held >= 0:
                os.close(self._held)
                self._held = -1
        process = getattr(self, "_process", None)
        if process is not None:
            await_end(process)
        homes.discard(self._scratch)


_families: dict[Profile, Family] = {}
_starting = Lock()


def family_of(profile: Profile, progress: Progress | None = None) -> Family:
    """The family of a profile, started if there is none that lives. Blocks while one starts."""
    with _starting:
        family = _families.get(profile)
        if family is None or not family.alive:
            if family is not None:
                family.close()
            family = _families[profile] = Family(profile, progress)
        return family


@atexit.register
def _close_all() -> None:
    while _families:
        with contextlib.suppress(OSError):
            _families.popitem()[1].close()


def _after_fork_in_child() -> None:
    for family in _families.values():
        if family._held >= 0:
            os.close(family._held)
    _families.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
