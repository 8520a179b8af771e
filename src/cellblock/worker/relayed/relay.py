"""The first process of a container: it makes a session's workers, and passes their streams on over stdin and stdout.

Zygote, keeper and pump in one: all processes of the container are below it, `kill(-1)` reaches them and nobody else,
and when it ends, as it does when the host closes the line, the container does. It holds nothing that a session could
not have: were it taken over, the host would be told lies about that session.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NoReturn, cast

from cellblock.worker import control, ended, holdings, main
from cellblock.worker.border import Border
from cellblock.worker.confine import layout
from cellblock.worker.confine.syscalls import PR_SET_DUMPABLE, name_process, prctl
from cellblock.worker.environment import enter_packages, environment
from cellblock.worker.family.zygote import preload
from cellblock.worker.forks import fork
from cellblock.worker.init import ending
from cellblock.worker.integrity import take_out
from cellblock.worker.reduced.quota import Quota
from cellblock.worker.reduced.walls import stop_writing
from cellblock.worker.relayed import walls
from cellblock.worker.relayed.junction import Junction, Packets, Pipe
from cellblock.worker.relayed.line import PACKET, STDERR, STDOUT, Broken

TMP = "/tmp"
_MOST_FOREIGN = 1000
_BUSY_SECONDS, _IDLE_SECONDS = 0.05, 1.0
"""Between two looks at the files: while something runs, and while nothing does."""
_LEAST_LEFT_BYTES = 512 * 2**20
"""Memory that can be filled between two looks, with what that kernel takes for itself untold."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def serve() -> NoReturn:
    """Take the line, preload as its first message says, and serve until it ends."""
    if os.getpid() != 1:  # else it would end what is not its session's
        sys.exit("the relay has to be the first process of a container")
    prctl(PR_SET_DUMPABLE, 0)
    name_process("relay")
    junction = Junction(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what packages print as they are imported is not for the line
    profile: dict[str, object] | None = None
    with contextlib.suppress(EOFError):
        while profile is None:
            for message in junction.pass_on(None)[0]:
                profile = json.loads(message)
        _prepare(junction, profile)
        Relay(junction, profile).serve()
    os._exit(0)


class _Told:
    """A channel that sends over a junction."""

    def __init__(self, junction: Junction) -> None:
        self._junction = junction

    def sendmsg(self, parts: Sequence[bytes], *_: object) -> None:
        self._junction.send(b"".join(parts))
        self._junction.flush()


def _prepare(junction: Junction, profile: dict[str, object]) -> None:
    """Check the walls around this process before any code but the runner's is executed; import what workers share."""
    missing = walls.missing()
    if missing:
        remedy = "report this: the engine was asked for it"
        told = {"failed": "container", "reason": f"it was started without {', '.join(missing)}", "remedy": remedy}
        junction.send(control.packed(told))
        junction.flush()
        os._exit(1)
    modules = take_out()
    os.environ.update(environment(layout.WORKSPACE, TMP))
    tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    enter_packages()
    sys.path[:] = [entry for entry in sys.path if entry]
    preload(cast("socket.socket", _Told(junction)), cast("list[str]", profile["preload"]), tasks)
    main.prepare(modules, guarded=bool(profile.get("guard")))


class _Stamped(Packets):
    """A worker's socket, stamped by the kernel with who sends: packets of any other process are dropped, as what the
    worker started has the socket too."""

    def __init__(self, kind: int, connection: socket.socket, worker: int) -> None:
        super().__init__(kind, connection)
        self._worker = worker
        self._foreign = 0
        self.unread = False
        """True if the worker ended and had not read all of what it was sent, as the kernel tells."""

    def take(self, most: int) -> bytes:
        while True:
            try:
                data, ancillary, _, _ = self._connection.recvmsg(most, control.STAMPED)
            except ConnectionResetError:  # told once, and before what was said until then
                self.unread = True
                continue
            sender, _ = control.sent_with(ancillary)
            if sender == self._worker:
                return data
            if sender == 0:
                raise EOFError
            self._foreign += 1
            if self._foreign > _MOST_FOREIGN:  # who sends without end keeps the worker from being heard
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._worker, signal.SIGKILL)
                raise EOFError


class Relay:
    """The processes of a session. Single-threaded; never waits for the session."""

    def __init__(self, junction: Junction, profile: dict[str, object]) -> None:
        self._junction = junction
        self._border = Border(self._tell)
        places = [os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for place in (layout.WORKSPACE, TMP)]
        most = int(str(profile["disk_bytes"])), int(str(profile["files"]))
        self._quota = Quota(places, *most, partial(stop_writing, account=None), least=_BUSY_SECONDS)
        self._memory = walls.held_limit()
        self._program = walls.program()
        self._worker = self._token = 0
        self._ended: int | None = None
        self._connection: _Stamped | None = None
        self._ran: dict[int, int] = {}
        self._look_at = 0.0
        self._given_bytes = int(str(profile["memory_bytes"]))
        self._children = ended.watched()
        junction.watch(self._children)

    def serve(self) -> None:
        """Until the line ends, which is an EOFError."""
        self._tell({"ready": True})
        while True:
            messages, others = self._junction.pass_on(max(0.0, self._look_at - time.monotonic()))
            if others:
                self._border.carry_out("hear", self._bury)
            for message in messages:
                asked = json.loads(message)
                self._border.carry_out(str(asked["do"]), partial(self._do, asked), asked=True)
            self._border.carry_out("tell", self._tell_of_the_end)
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + _BUSY_SECONDS
                self._border.look(self._look, self._end_unseen)

    def _tell(self, notice: Mapping[str, object]) -> None:
        self._junction.send(control.packed(notice))
        self._junction.flush()

    def _do(self, message: dict[str, object]) -> None:
        match message["do"]:
            case "attach":
                self._attach(message)
            case "interrupt":
                self._signal(signal.SIGINT)
            case "kill":
                self._signal(signal.SIGKILL)
            case "sweep":
                self._sweep()
                self._tell({"swept": True})
            case "hold back":
                ending.hold_back(_then(message), self._worker)
            case "end":
                self._tell({"count": ending.end_since(_then(message), self._worker)})

    def _signal(self, number: signal.Signals) -> None:
        if self._worker:
            os.kill(self._worker, number)

    def _attach(self, message: dict[str, object]) -> None:
        self._token = int(str(message["token"]))
        ours, theirs = control.pair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # before there is anybody who sends
        (stdout, stdout_end), (stderr, stderr_end) = os.pipe(), os.pipe()
        self._worker = fork(partial(self._become_worker, message, theirs, stdout_end, stderr_end))
        theirs.close()
        os.close(stdout_end)
        os.close(stderr_end)
        streams = Pipe(STDOUT, stdout, takes=True), Pipe(STDERR, stderr, takes=True)
        self._connection = _Stamped(PACKET, ours, self._worker)
        self._junction.join(self._token, [self._connection, *streams])
        self._look_at = 0.0

    def _become_worker(self, message: dict[str, object], theirs: socket.socket, stdout: int, stderr: int) -> None:
        connection = theirs.detach()
        ended.settle(connection, stdout, stderr)
        prctl(PR_SET_DUMPABLE, 1)
        name_process("python")
        alone = _memory()[0] <= self._given_bytes  # this kernel is the container's own
        confine = partial(walls.confine, memory=self._memory, program=self._program, alone=alone)
        room = main.Room(layout.WORKSPACE, environment(layout.WORKSPACE, TMP), confine, self._memory)
        main.run(message, connection, stdout, stderr, room=room)

    def _bury(self) -> None:
        """Reap the worker and adopted processes."""
        ended.heard(self._children)
        for process, status in ended.ended_children():
            self._note(process, status)

    def _note(self, process: int, status: int) -> None:
        if process == self._worker:
            self._worker, self._ended = 0, status

    def _tell_of_the_end(self) -> None:
        """Report how the worker ended, after all that it left in its streams."""
        if self._ended is not None and self._junction.drain(self._token):
            unread = {"unread": True} if self._connection is not None and self._connection.unread else {}
            self._tell({"ended": self._token, "status": self._ended, **unread})
            self._junction.part(self._token)
            self._ended = None

    def _sweep(self) -> None:
        self._kill_all()
        self._junction.part(self._token)
        self._ended = None
        for place in (layout.WORKSPACE, TMP):  # after a cell did its worst
            os.chmod(place, 0o700)

    def _kill_all(self) -> None:
        """Kill every other process of the container, and wait for the last."""
        with contextlib.suppress(ChildProcessError):
            while True:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                self._note(*os.waitpid(-1, 0))

    def _look(self) -> None:
        processes = [process for process in holdings.processes() if process != 1] if self._worker else []
        before, self._ran = self._ran, {process: holdings.processor_time(process) for process in processes}
        busy = self._ran != before or self._quota.stopped
        if busy:
            self._look_at_memory(processes)
            if self._quota.due() and self._quota.hold(processes, self._tell, self._kill_all):
                os._exit(0)
        self._look_at = time.monotonic() + (_BUSY_SECONDS if busy else _IDLE_SECONDS)

    def _end_unseen(self) -> None:
        os.kill(-1, signal.SIGKILL)

    def _look_at_memory(self, processes: list[int]) -> None:
        """Kill the one that holds most before the container is at its limit, the worker last: past it all would end.

        A kernel of the container's own tells of its memory, and counts each page once. The host's tells of the whole
        machine: then nothing is known, and at the limit that kernel kills a process.
        """
        total, left = _memory()
        if total > self._given_bytes or left >= _LEAST_LEFT_BYTES or not processes:
            return
        victim = max(processes, key=lambda one: (one != self._worker, _resident(one)))
        held = f"{(total - left) >> 20} MB, nearly all that its container has"
        self._tell({"curbed": held, "worker": victim == self._worker, "unruly": False})  # before its end is seen
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)


def _memory() -> tuple[int, int]:
    """Bytes of memory in all, and those left, as this kernel tells."""
    fields = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields[name] = int(value.split()[0]) * 1024
    return fields["MemTotal"], fields.get("MemAvailable", fields["MemFree"])


def _resident(process: int) -> int:
    """Bytes of memory that a process has; 0 if it is gone."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def _then(message: dict[str, object]) -> float:
    """Time at which something began, by this kernel's clock: the host's may be another."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - cast("float", message["ago"])


def run() -> NoReturn:
    """Serve; errors are printed on stderr, which leads to the host."""
    try:
        serve()
    except (Broken, Exception):
        traceback.print_exc()
    os._exit(70)
