"""Start of a worker: in a shell, as a copy of the zygote, it walls itself in and says hello."""

from __future__ import annotations

import _sitebuiltins
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from resource import RLIMIT_DATA
from types import ModuleType
from typing import Any, NoReturn

from cellblock.hosting import sockets
from cellblock.walls import Applied, Unavailable
from cellblock.wire.messages import Hello
from cellblock.worker import control, exits, late, shell
from cellblock.worker.channel import Channel
from cellblock.worker.checkpoint.seeds import sow
from cellblock.worker.confine import capabilities, landlock, layout, rlimits, root, seccomp
from cellblock.worker.environment import ENVIRONMENT, lead_to_door, lead_to_packages
from cellblock.worker.integrity import Integrity
from cellblock.worker.interrupts import interrupt, keep_interrupts
from cellblock.worker.meter import Meter
from cellblock.worker.references import refer
from cellblock.worker.requests import Worker
from cellblock.worker.streams import Streams

_STACK_BYTES = 2 * 2**20
"""A thread's stack. It counts as memory in full; at the usual 8 MB thirty threads would fill the default limit.
With 1 MB CPython 3.13 overflows it in C recursion that its own limit allows."""

_UNBOUNDED = 2**31

_filters: dict[bool, bytes] = {}
_integrity = Integrity([])


@dataclass(frozen=True, slots=True)
class Room:
    """Place that a worker moves into: its directory, its variables, the walls it is to put around itself, and which
    limit of memory is among them."""

    workspace: str
    environment: Mapping[str, str]
    confine: Callable[[dict[str, int]], list[Applied | Unavailable]]
    memory: int = RLIMIT_DATA


def prepare(modules: list[ModuleType], *, guarded: bool, saved: bool = False) -> None:
    """In the zygote: what every worker needs and can share, with the guard if it is `guarded`; `modules` are ours."""
    global _integrity
    for supervised in (False, True):
        _filters[supervised] = seccomp.build(shared_memory=False, supervised=supervised)
    late.runner.extend(modules)
    if guarded:
        late.load(late.GUARD).prepare()
    _integrity = Integrity(late.runner)
    settle(saved=saved)


def settle(*, saved: bool) -> None:
    """Have the collector leave alone what workers share; with what saving them takes, if they are to be `saved`."""
    if saved:
        for name in late.SAVING:
            late.load(name)
    gc.collect()
    gc.freeze()


def run(
    setup: dict[str, Any],
    connection: int,
    stdout: int,
    stderr: int,
    supervisor: int = -1,
    *,
    room: Room | None = None,
) -> None:
    """In a new process: take the descriptors, wall in, say hello, and serve once there is a session. Never returns.

    `supervisor` leads to init, which is to answer the calls that reach other processes; there is none without
    checkpoints. `room` is by default the root that an init has made.
    """
    room = room or Room(layout.WORKSPACE, ENVIRONMENT, partial(_confine, supervisor=supervisor))
    _take_descriptors(stdout, stderr)
    os.umask(0o022)
    os.setsid()
    os.chdir(room.workspace)
    shell.settle(room.workspace)
    os.environ.clear()
    os.environ.update(room.environment)
    lead_to_door(setup["limits"]["door"])
    lead_to_packages(layout.PACKAGES, door=bool(setup["limits"]["door"]))
    sys.argv[:] = [""]
    _sitebuiltins.Quitter.__call__ = _leave  # type: ignore[method-assign]
    sys.path.append(room.workspace)
    sys.dont_write_bytecode = True
    threading.stack_size(_STACK_BYTES)
    signal.signal(signal.SIGINT, interrupt)  # the host may interrupt from the hello on
    keep_interrupts()
    refer("@interrupt", interrupt)
    refer("@unraisable", sys.unraisablehook)
    ours = sockets.adopted(connection)
    channel = Channel(ours)
    meter = Meter(room.memory)  # before the walls: /proc is read-only behind them
    walls = room.confine(setup["limits"])
    channel.send(
        Hello(
            python=sys.version.split()[0],
            walls=tuple((wall.mechanism, wall.detail) for wall in walls if isinstance(wall, Applied)),
            missing=tuple(
                (wall.mechanism, wall.reason, wall.remedy) for wall in walls if isinstance(wall, Unavailable)
            ),
        )
    )
    worker = Worker(channel, Streams(bytes.fromhex(setup["nonce"])), meter, _integrity)
    beginning, _ = control.receive(ours)
    if beginning is None:
        os._exit(0)
    sow(int(str(beginning["seed"])))
    worker.begin(
        value_bytes=setup["limits"]["value_bytes"],
        beside=beginning["beside"] is True,
        sealed=beginning["sealed"] is True,
        saved=beginning.get("saved") is True,
        scoped=beginning.get("scoped") is True,
    )
    _serve(worker)


def _leave(self: object, code: object = None) -> NoReturn:
    """`exit()` and `quit()` of a cell: they end it. Python's own close stdin first, which later cells have too."""
    raise SystemExit(code)


def _serve(worker: Worker) -> None:
    """Serve until the end. Nothing that a cell set to run at an exit is run, nothing it started is waited for."""
    leave, status = os._exit, exits.CHANGED
    try:
        status = worker.serve()
    except MemoryError:
        status = exits.MEMORY
    except BaseException:
        traceback.print_exc()
    finally:
        leave(status)


def _take_descriptors(stdout: int, stderr: int) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for wanted, number in enumerate((null, stdout, stderr)):
        os.dup2(number, wanted)
        os.close(number)


def _confine(limits: dict[str, int], supervisor: int) -> list[Applied | Unavailable]:
    """Every wall that a process can put around itself; the system call filter last, since it forbids the rest."""
    door = sockets.adopted(supervisor) if supervisor >= 0 else None
    limited = rlimits.apply(
        data_bytes=limits["memory_bytes"],
        data_headroom_bytes=rlimits.DATA_HEADROOM_BYTES + rlimits.LOADING_TIMES * limits["memory_bytes"],
        processes=limits["processes"],
        processes_headroom=_UNBOUNDED if limits["checkpoints"] else 0,  # init has the soft one in hand
        file_bytes=limits["file_bytes"],
        open_files=None,
    )
    walls: list[Applied | Unavailable] = [
        capabilities.apply(),
        landlock.apply(
            read_only=["/"],  # /proc too: memory written through /proc/self/mem is counted by no limit
            read_write=[
                *root.own(),
                layout.STAND,
            ],  # not what holds them, so that none can be removed
            files=["/dev/full", "/dev/null"],  # not /dev/zero: mapped shared and written, it is memory no limit counts
            # Without a door a session may run servers for itself: its network namespace holds nothing else.
            connect_ports=[limits["door"]] if limits["door"] else None,
        ),
        seccomp.apply(_filters[door is not None], door),
    ]
    if door is not None:
        door.close()
    open_files = rlimits.limit_open_files(limits["open_files"])  # the filter's listener has been sent
    return [replace(limited, detail=f"open files {open_files}, {limited.detail}"), *walls]
