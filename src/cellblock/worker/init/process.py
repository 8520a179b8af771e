"""The first process of a session: holds its namespaces, and ends it.

When the host closes its end, for whatever reason, this process exits and the kernel kills the rest of the
session's pid namespace. Nothing the session runs can signal it: it is outside their Landlock domain,
the kernel drops unhandled signals to the first process of a namespace, and signals are sent by its leave.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time
from typing import cast

from cellblock.worker import control, holdings, procfs
from cellblock.worker.confine import capabilities, layout, namespaces, root
from cellblock.worker.confine.syscalls import PR_SET_DUMPABLE, prctl
from cellblock.worker.init import ending, sockets
from cellblock.worker.init.budget import Budget
from cellblock.worker.init.expected import Copies
from cellblock.worker.init.filehistory import FileHistory
from cellblock.worker.init.quota import Quota
from cellblock.worker.init.supervisor import Supervisor
from cellblock.worker.init.watch import IDLE_SECONDS, Watch
from cellblock.worker.peak import Peak

_MAX_MISSED = 20
_MAX_PATH = 200


def run(
    channel: socket.socket,
    *,
    disk_bytes: int,
    files: int,
    memory_bytes: int,
    checkpoint_bytes: int,
    late: tuple[str, ...],
    mounts: bool,
    nested: bool = False,
) -> None:
    """Furnish the session, report, then serve until the host is gone. Never returns.

    With `mounts` it waits for the host to send them on the channel. Stays attachable (dumpable) until told to seal:
    joining its namespaces needs that; nothing hostile runs before. One that is `nested` in another session is never
    attachable: it is entered by descriptors of its namespaces, which it gives to the host.
    """
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    os.setsid()
    try:
        name = namespaces.name_host("cellblock")
        namespaces.raise_loopback()
        entered = root.enter(disk_bytes=disk_bytes, files=files, late=late, nested=nested)
        sockets.bound()
        if entered.processes >= 0:
            procfs.use(entered.processes)
    except OSError as error:
        remedy = namespaces.REMEDY if error.errno == errno.EPERM else ""
        control.send(channel, {"failed": "root", "reason": str(error), "remedy": remedy})
        os._exit(1)
    places = _place_mounts(channel) if mounts else []
    home = os.open(layout.HOME, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    store = root.store(disk_bytes=disk_bytes, files=files, nested=nested)
    self = os.pidfd_open(os.getpid())
    capabilities.apply()
    for path in places:
        _require_readable(channel, path)
    spaces = namespaces.opened() if nested else []
    control.send(channel, {"ready": entered.detail + name}, [self, home, *spaces])
    for descriptor in (self, home, *spaces):
        os.close(descriptor)
    watch, budget, quota = Watch(memory_bytes), Budget(checkpoint_bytes), Quota()
    history = FileHistory((layout.WORKSPACE, layout.TMP, layout.SHM), store, watch.mapped)
    reaper = Reaper(channel)
    signal.signal(signal.SIGCHLD, lambda *_: reaper.reap())
    readable = select.poll()
    readable.register(channel, select.POLLIN)
    supervisor = Supervisor(readable)

    def found(process: int, number: int, channel: int) -> None:
        if process == watch.worker:  # whatever a cell says
            os.close(channel)
        else:
            budget.add(process, number, channel)
            watch.exempt(budget.frozen)
            quota.make(len(watch.frozen))

    def let_go(number: int, limit: str) -> None:
        """End the copies, and forget the files, of every checkpoint up to one."""
        budget.release(number)
        history.forget_through(number)
        control.tell(channel, {"let go": number, "for": limit})

    copies = Copies(readable, found)
    peak: Peak | None = None
    look_at = time.monotonic() + IDLE_SECONDS
    while True:
        ready = readable.poll(max(0.0, look_at - time.monotonic()) * 1000)
        if time.monotonic() >= look_at:  # calls that come without a pause must not put it off
            pause, excess = watch.look()
            for number in budget.gone():
                control.tell(channel, {"gone": number})
            sooner, too_old = budget.look(watch.running, watch.worker)
            if too_old is not None:
                let_go(too_old, "max_checkpoint_mb")
            if peak is not None:
                peak.find()
            look_at = time.monotonic() + (pause if sooner is None else min(pause, sooner))
            if excess is not None:
                worker = excess.process == watch.worker
                control.tell(channel, {"curbed": excess.held, "worker": worker})  # before its death is seen
                if worker:
                    ending.end_all(watch.frozen)  # none of the others will outlive it
                else:
                    _kill(excess.process)
        for descriptor, _ in ready:
            copies.hear(descriptor)
        if all(descriptor != channel.fileno() for descriptor, _ in ready):  # else it may say who the worker is now
            supervisor.copies = watch.frozen
            for descriptor, happened in ready:
                supervisor.serve(descriptor, happened)
            continue
        message, descriptors = control.receive(channel)
        if message is None:
            os._exit(0)
        if message["do"] == "supervise":
            supervisor.expect(descriptors.pop())
        own = message["do"] in ("export", "import", "part")
        for descriptor in descriptors if not own else ():
            copies.expect(descriptor, _number(message["number"]))
        if message["do"] == "seal":
            watch.begin()
            budget.reserved = False
            supervisor.worker = watch.worker
            quota.of(watch.worker, _number(message["processes"]))
            prctl(PR_SET_DUMPABLE, 0)
        elif message["do"] == "keep":
            forgotten, number = _numbers(message["forgotten"]), _number(message["number"])
            budget.end(forgotten)
            watch.exempt(budget.frozen)
            quota.make(len(watch.frozen), making=True)
            budget.spared, budget.reserved = 2 if message["tentative"] else 1, False
            history.forget(forgotten)
            if (full := history.keep(number, spared=budget.spared - 1)) is not None:
                let_go(full, "max_disk_mb")
            if peak is not None:
                peak.find()
                peak.reset()
            control.send(channel, {"kept": number})
        elif message["do"] == "reserve":
            budget.reserved = True
            control.send(channel, {"reserved": True})
        elif message["do"] == "adopt":
            reaper.worker = supervisor.worker = _number(message["worker"])
            watch.follow(reaper.worker)
            budget.woken(reaper.worker)
            budget.reserved = False
            if peak is not None:
                peak.close()
            peak = Peak(reaper.worker)
            quota.of(reaper.worker, _number(message["processes"]))
            quota.make(len(watch.frozen), making=True)
        elif message["do"] == "sweep":
            spared = frozenset(_numbers(message["spared"]))
            copies.forget()
            watch.exempt(spared)
            budget.reserved = True
            budget.retain(spared)
            budget.forget(_numbers(message["forgotten"]))
            ending.end_all(spared)
            root.repair_home(nested=nested)
            history.forget(_numbers(message["forgotten"]))
            missed = history.rewind(_number(message["number"])) if "number" in message else []
            if not nested:
                prctl(PR_SET_DUMPABLE, 1)
            control.send(channel, {"swept": True, "missed": [path[:_MAX_PATH] for path in missed[:_MAX_MISSED]]})
        elif message["do"] == "hold back":
            watch.exempt(frozenset(_numbers(message["frozen"])))
            ending.hold_back(cast("float", message["since"]), watch.worker, watch.frozen)
        elif message["do"] == "end":
            watch.exempt(frozenset(_numbers(message["frozen"])))
            count = ending.end_since(cast("float", message["since"]), watch.worker, watch.frozen)
            control.send(channel, {"count": count})
        elif message["do"] == "export":
            _export(socket.socket(fileno=descriptors[0]), history, _number(message["number"]))
        elif message["do"] == "exported":
            history.release()
        elif message["do"] == "import":
            failed = history.take_over(*descriptors)
            control.send(channel, {"imported": [path[:_MAX_PATH] for path in failed[:_MAX_MISSED]]})
        elif message["do"] == "part":
            supervisor.parting = _number(message["copy"])
            with socket.socket(fileno=descriptors[0]) as answer:
                control.tell(answer, {"parting": supervisor.parting})
        elif message["do"] == "hollow":
            copies.forget()
            watch.exempt(frozenset())
            budget.retain(frozenset())
            ending.end_all()
        elif message["do"] == "branches":
            quota.give(_number(message["processes"]), watch.own_processes())


def _place_mounts(channel: socket.socket) -> list[str]:
    """Take the trees that the host sends in one message with their places, and mount them; the places."""
    message, descriptors = control.receive(channel)
    if message is None:
        os._exit(0)
    places = [str(place) for place in cast("list[object]", message["places"])]
    try:
        root.place(dict(zip(places, descriptors, strict=True)))
    except OSError as error:
        _refuse(channel, error.filename or "", error.strerror or str(error), readable=True)
    for tree in descriptors:
        os.close(tree)
    return places


def _require_readable(channel: socket.socket, path: str) -> None:
    """Without capabilities this process reads what the cells will read, and nothing else."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        _refuse(channel, path, error.strerror or str(error), readable=False)


def _refuse(channel: socket.socket, path: str, reason: str, *, readable: bool) -> None:
    control.send(channel, {"failed": "mounts", "place": path, "reason": reason, "readable": readable})
    os._exit(1)


def _export(answer: socket.socket, history: FileHistory, number: int) -> None:
    """Give the host the files of a checkpoint, and this session's namespaces: what a branch is made of."""
    holdings.expect_branches()
    with answer:
        try:
            ends = [history.export(number), os.dup(history.store), *namespaces.opened()]
        except OSError as error:  # no /proc on this host
            control.tell(answer, {"exported": False, "reason": str(error)})
            return
        control.send(answer, {"exported": True}, ends[:4])
        for end in ends:
            os.close(end)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


class Reaper:
    """Collects the processes that init adopts, and tells how the one ended that is the worker."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.worker = 0

    def reap(self) -> None:
        """Collect every process that has ended."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self.worker:
                control.tell(self._channel, {"ended": process, "status": status})


def _number(value: object) -> int:
    return int(str(value))


def _numbers(value: object) -> list[int]:
    return [_number(one) for one in value] if isinstance(value, list) else []
