"""Ctrl-C: while a script runs, at the prompt, and while one of its cells runs."""

from __future__ import annotations

import math
import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING

from cellblock.errors import SessionClosed

if TYPE_CHECKING:
    from types import FrameType

    from cellblock.session.session import AsyncSession

_PATIENCE = 1.0
"""Seconds from the first Ctrl-C until another one counts as a second."""

_WAKES = (0.02, 0.1, 0.5)
"""Seconds between a Ctrl-C and each signal that has the main thread look for it once more."""

_GOES_ON = b"\ncellblock: the cell goes on; Ctrl-C again ends its process and takes back what it did\n"


class CtrlC:
    """The handler of SIGINT while a script runs: the first Ctrl-C interrupts the cell, the second ends its process."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._began = time.monotonic()
        self.count = 0
        self.seconds = 0.0
        """From the start to the last Ctrl-C."""

    def __enter__(self) -> CtrlC:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.seconds = time.monotonic() - self._began
        if self.count == 1:
            self._session.interrupt()
        else:
            self._session.kill()


class PromptCtrlC:
    """The handler of SIGINT of the prompt. It raises KeyboardInterrupt where nothing runs.

    The first Ctrl-C interrupts the cell that runs. One a second later and more warns, and the next kills: a hand that
    hits the keys twice must not cost the session its names.

    Python's line editing looks for a signal when one ends its wait for a key, and not before it waits: a Ctrl-C in
    between would be handled at the next key. A thread ends the wait, by a signal that means nothing.
    """

    def __init__(self) -> None:
        self._session: AsyncSession | None = None
        self._first = math.inf
        self._warned = False
        self.count = 0
        """Number of interrupts since the block began."""

    def __enter__(self) -> PromptCtrlC:
        self._before = signal.signal(signal.SIGINT, self._handle), signal.signal(signal.SIGURG, lambda *_: None)
        came, self._inlet = os.pipe()
        os.set_blocking(self._inlet, False)
        signal.set_wakeup_fd(self._inlet, warn_on_full_buffer=False)
        self._waker = threading.Thread(target=_wake, args=(came, threading.get_ident()))
        self._waker.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._inlet)
        self._waker.join()
        signal.signal(signal.SIGINT, self._before[0])
        signal.signal(signal.SIGURG, self._before[1])

    def begin(self, session: AsyncSession) -> None:
        """A block is about to be carried out in a session."""
        self._first, self._warned, self.count = math.inf, False, 0
        self._session = session

    def end(self) -> None:
        """The block has ended."""
        self._session = None

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._session is None:
            raise KeyboardInterrupt
        self.count += 1
        now = time.monotonic()
        self._first = min(self._first, now)
        try:
            if now - self._first < _PATIENCE:
                self._session.interrupt()
            elif not self._warned:
                self._warned = True
                self._session.interrupt()
                os.write(2, _GOES_ON)  # not through a stream that the interrupted code may be writing to
            else:
                self._session.kill()
        except SessionClosed:  # it is being opened
            raise KeyboardInterrupt from None


def _wake(came: int, thread: int) -> None:
    """Interrupt the wait of a thread some time after each SIGINT, until the pipe of the signals' numbers is closed."""
    delays: tuple[float, ...] = ()
    while True:
        if not select.select([came], [], [], delays[0] if delays else None)[0]:
            signal.pthread_kill(thread, signal.SIGURG)
            delays = delays[1:]
        elif not (numbers := os.read(came, 64)):
            os.close(came)
            return
        elif signal.SIGINT in numbers:
            delays = _WAKES
