"""The keeper of a session without namespaces: it makes its workers, answers for them, watches, and ends them all.

It does what a pid namespace's init does otherwise. All processes of the session are below it, since it adopts
those whose parents end; and one call reaches all of them and nobody else, `kill(-1)`: from inside of a Landlock domain
that scopes signals, or as an account that nobody else has. When the host closes its end, for whatever reason, it
kills them, removes the session's files, and goes. The session can neither signal nor trace it: it is outside of their
domain, or has another account.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import cast

from cellblock.worker import control, ended, main
from cellblock.worker.border import Border
from cellblock.worker.confine.syscalls import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl
from cellblock.worker.environment import environment
from cellblock.worker.forks import fork
from cellblock.worker.init import ending
from cellblock.worker.init.watch import BUSY_SECONDS, IDLE_SECONDS, UNSEEN, Excess, Watch
from cellblock.worker.reduced import accounts, disk, walls
from cellblock.worker.reduced.accounts import Account
from cellblock.worker.reduced.metadata import Attendant
from cellblock.worker.reduced.quota import Quota
from cellblock.worker.reduced.sight import Sight


def run(
    channel: socket.socket, message: dict[str, object], *, sight: Sight, account: Account | None, program: bytes,
    scoped: bool,
) -> None:  # fmt: skip
    """In a copy of the zygote: become a session's keeper. Never returns.

    `message` has the path of the session's directory and its limits. `scoped`: Landlock can keep signals in.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if account is not None:
        accounts.keep(account)
    if scoped:
        walls.outer()
    prctl(PR_SET_DUMPABLE, 0)
    _require_bounds()
    keeper = Keeper(channel, message, sight, account, program)
    keeper.sweep()  # whoever had the account before
    control.send(channel, {"ready": True})
    keeper.serve()
    os._exit(0)


def _require_bounds() -> None:
    """Make sure that a signal to everybody reaches this session alone: the zygote must be out of reach."""
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return
    raise RuntimeError("signals of this process reach others than its own")


class Keeper:
    """One session's processes and files. Single-threaded; never waits for what the session does."""

    def __init__(
        self,
        channel: socket.socket,
        message: dict[str, object],
        sight: Sight,
        account: Account | None,
        program: bytes,
    ) -> None:
        self._channel = channel
        self._border = Border(self._tell)
        self._sight = sight
        self._account = account
        self._program = program
        self._workspace, self._tmp = sight.own
        self._home = os.open(str(message["home"]), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        most = int(str(message["disk_bytes"])), int(str(message["files"]))
        self._quota = Quota([self._home], *most, partial(walls.stop_writing, account=account), least=BUSY_SECONDS)
        self._watch = Watch(int(str(message["memory_bytes"])), self._processes)
        self._worker = self._token = 0
        self._attendant: Attendant | None = None
        self._expected: socket.socket | None = None
        self._look_at = 0.0
        self._uncounted = False
        self._children = ended.watched()
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._poll.register(self._children, select.POLLIN)

    def serve(self) -> None:
        """Serve until the host is gone; then end the session and remove its files."""
        while True:
            pause = max(0.0, self._look_at - time.monotonic())
            for descriptor, events in self._poll.poll(pause * 1000):
                if descriptor == self._channel.fileno():
                    message, descriptors = control.receive(self._channel)
                    if message is None:
                        self._end()
                        return
                    self._border.carry_out(str(message["do"]), partial(self._do, message, descriptors), asked=True)
                    control.close_all(descriptors)
                    continue
                self._border.carry_out("hear", partial(self._hear, descriptor, events))
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + IDLE_SECONDS
                self._border.look(self._look, partial(self._curb, Excess(UNSEEN, self._worker)))

    def _hear(self, descriptor: int, events: int) -> None:
        if descriptor == self._children:
            self._bury()
        elif self._expected is not None and descriptor == self._expected.fileno():
            self._take_listener()
        elif self._attendant is not None and descriptor == self._attendant.listener:
            if events & select.POLLIN:
                self._attendant.attend()
            else:
                self._dismiss()

    def _do(self, message: dict[str, object], descriptors: list[int]) -> None:
        if message["do"] == "attach":
            self._attach(message, descriptors)
        elif message["do"] == "sweep":
            self.sweep()
            self._repair()
            control.send(self._channel, {"swept": True})
        elif message["do"] == "hold back":
            ending.hold_back(cast("float", message["since"]), self._worker, processes=self._processes)
        elif message["do"] == "end":
            count = ending.end_since(cast("float", message["since"]), self._worker, processes=self._processes)
            self._bury()  # the next cell may have as many processes again
            self._watch.continued()
            control.send(self._channel, {"count": count})

    # --- workers ---

    def _attach(self, message: dict[str, object], descriptors: list[int]) -> None:
        self._token = int(str(message["token"]))
        expected, end = control.pair()

        def work() -> None:
            ended.settle(end.fileno(), *descriptors)
            for ours in (self._channel, expected):
                ours.detach()  # or its number, which is another's soon, would be closed with it
            walls.settle(self._account)
            confine = partial(
                walls.confine, sight=self._sight, account=self._account, program=self._program, keeper=end
            )
            room = main.Room(self._workspace, environment(self._workspace, self._tmp), confine)
            main.run(message, *descriptors, room=room)

        with end:
            self._worker = fork(work)
        self._expected = expected
        self._poll.register(expected, select.POLLIN)

    def _take_listener(self) -> None:
        assert self._expected is not None
        self._poll.unregister(self._expected)
        _, descriptors = control.receive(self._expected)
        self._expected.close()
        self._expected = None
        for listener in descriptors:
            self._attendant = Attendant(listener, self._sight)
            self._watch.begin(self._worker)
            self._poll.register(listener, select.POLLIN)

    def _bury(self) -> None:
        """Take the ends of the worker and of all that was adopted; tell how the worker ended."""
        ended.heard(self._children)
        for process, status in ended.ended_children():
            self._note(process, status)

    def _note(self, process: int, status: int) -> None:
        if process != self._worker:
            return
        self._worker = 0
        self._tell({"ended": self._token, "status": status})

    def _tell(self, notice: Mapping[str, object]) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # a host that does not listen must not stop us
            control.send(self._channel, notice, flags=socket.MSG_DONTWAIT)

    # --- ends ---

    def sweep(self) -> None:
        """Kill every process of the session, and wait for the last. Processes that fork meanwhile do not slip through.

        The call takes the kernel's lock of the process list, and a fork under way fails on the signal it brings.
        """
        wait = select.poll()
        wait.register(self._children, select.POLLIN)
        while True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if process:
                self._note(process, status)
                continue
            wait.poll(BUSY_SECONDS * 1000)
            ended.heard(self._children)
        self._dismiss()

    def _dismiss(self) -> None:
        """Nobody is left who could ask."""
        if self._attendant is not None:
            self._poll.unregister(self._attendant.listener)
            os.close(self._attendant.listener)
            self._attendant = None

    def _repair(self) -> None:
        """Make the session's directories usable again after a cell did its worst."""
        for path in self._sight.own:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
            os.chmod(path, 0o700)

    def _end(self) -> None:
        self.sweep()
        disk.empty(self._home)

    # --- what the session holds ---

    def _processes(self) -> list[int]:
        """All of the session, each after the one that started it."""
        found = [self._worker] if self._worker else []
        found += [child for child in children(os.getpid()) if child != self._worker]
        for process in found:
            found += children(process)
        return found

    def _look(self) -> None:
        pause, excess = self._watch.look()
        self._look_at = time.monotonic() + pause
        if excess is not None:
            self._curb(excess)
        self._uncounted = self._uncounted or pause != IDLE_SECONDS or self._quota.stopped
        if self._uncounted and self._quota.due():
            self._uncounted = False
            if self._quota.hold(self._processes(), self._tell, self.sweep):
                self._end()
                os._exit(0)

    def _curb(self, excess: Excess) -> None:
        self._tell(excess.told(self._worker))  # before its end is seen
        with contextlib.suppress(ProcessLookupError):  # none of the others will outlive the worker
            os.kill(-1 if excess.process == self._worker else excess.process, signal.SIGKILL)


def children(process: int) -> Iterator[int]:
    """Direct children of each thread of a process."""
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return
    for thread in threads:
        yield from map(int, _read(f"/proc/{process}/task/{thread}/children").split())


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESRCH, errno.EACCES):
            return ""
        raise
