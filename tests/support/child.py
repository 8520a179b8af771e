"""A forked child that does something which this process must not, and says what came of it."""

from __future__ import annotations

import json
import os
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
