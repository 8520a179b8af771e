"""Runs programs at the level `local`, each in a process of its own with outer limits: tells what they took past theirs.

`python outer.py` imports what they need once, reads programs as lines of JSON, and forks a process for each.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 0.3
"""The time limit of each program."""
MEGABYTES = 64
"""Its memory limit."""
LATE, ABOVE = 0.5, 32
"""Seconds of the processor and megabytes that it may take past them."""
_KILLED_AFTER = 12.0
_ADDRESSES = 3 << 30


class Outer:
    """The process that runs programs. What one took past its limits is a text; "" where that is nothing."""

    def __enter__(self) -> Outer:
        command = [sys.executable, str(Path(__file__))]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_how: object) -> None:
        self._child.communicate()

    def past(self, program: str) -> str:
        """Run a program."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(program) + "\n")
        self._child.stdin.flush()
        told: str = json.loads(self._child.stdout.readline())
        return told


def _serve() -> None:
    from cellblock import Session

    with Session(trust_level="local") as session:  # imports what every other one needs
        session.run("import itertools, collections, struct, unicodedata, heapq, math, json, hashlib, re, decimal\n1")
    for line in sys.stdin:
        print(json.dumps(_told(json.loads(line))), flush=True)


def _told(program: str) -> str:
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        told = "the process that ran it failed"
        try:
            told = _measured(program)
        finally:
            os.write(writing, b"=" + told.encode())
            os._exit(0)
    os.close(writing)
    until = time.monotonic() + _KILLED_AFTER
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            break
        time.sleep(0.002)
    with open(reading, "rb") as file:
        told = file.read().decode()
    return told[1:] if told else "it was killed: no end in sight"


def _measured(program: str) -> str:
    from cellblock import ExecutionLimits, Session

    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    limits = ExecutionLimits(timeout_seconds=SECONDS, max_memory_mb=MEGABYTES)
    session = Session(trust_level="local", limits=limits)
    session.run("0")
    seconds = round(SECONDS + LATE + 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + int(time.process_time()), resource.RLIM_INFINITY))
    began, before = time.process_time(), _resident()
    cell = session.run(program)
    taken = time.process_time() - began
    grown = (_highest() - before) / (1 << 20)
    shown = cell.error and f"{cell.error.kind} {cell.error.type} {cell.error.message:.100}"
    if os.environ.get("OUTER_SHOWS"):
        return f"{taken:.2f} s, {grown:.0f} MB, {shown}"
    if taken > SECONDS + LATE:
        return f"{taken:.2f} s of the processor: {shown}"
    if grown > MEGABYTES + ABOVE:
        return f"{grown:.0f} MB: {shown}"
    return ""


def _resident() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


def _highest() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


if __name__ == "__main__":
    _serve()
