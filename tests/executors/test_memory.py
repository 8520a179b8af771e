"""Memory of a worker is reached by its number, which another process may have once the worker has ended."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator

import pytest

from cellblock.executors.process import memory

pytestmark = [pytest.mark.hostile, pytest.mark.threat("W2")]


@pytest.fixture
def ended() -> Iterator[int]:
    """A pidfd of a process that is no more; its number may be anybody's."""
    with subprocess.Popen(["true"]) as process:
        pidfd = os.pidfd_open(process.pid)
        process.wait()
    yield pidfd
    os.close(pidfd)


def test_nothing_is_written_to_the_process_that_has_the_workers_number(ended: int) -> None:
    room = ctypes.create_string_buffer(b"kept")
    with pytest.raises(OSError, match="its process has ended"):
        memory.store([(0, ctypes.addressof(room), 4)], [b"lost"], os.getpid(), ended)
    with pytest.raises(OSError, match="its process has ended"):
        memory.store_at(ctypes.addressof(room), [b"lost"], os.getpid(), ended)
    assert room.value == b"kept"
