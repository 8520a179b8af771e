"""A forked child that does something which this process must not, and says what came of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable


def in_child(action: Callable[[], object], *, uid: int | None = None) -> object:
    """What `action` returns in a child, by way of JSON: its exception as text, "died of N" where it says nothing.

    With `uid` the child is that user, in the group of the same number alone.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            answer = action()
        except BaseException as error:
            answer = repr(error)
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(said) if said else f"died of {status}"


def be_alone() -> None:
    """Wait until the kernel has ended the threads that libraries start in a fork, and have joined."""
    until = time.monotonic() + 10
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:
        time.sleep(0.001)
