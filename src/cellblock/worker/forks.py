"""Forks for one piece of work: the child ends with it, and never goes on in the code of its parent."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def fork(work: Callable[[], object]) -> int:
    """The pid of a child that does this work and ends: with status 70, and a traceback on stderr, where it raises."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid
