"""The host's hold on a shell: a session without a worker, of which init is the first process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from functools import partial

from cellblock.errors import IsolationUnavailable, SessionClosed
from cellblock.executors.process.demand import Kind
from cellblock.executors.process.family import Family, FamilyGone
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.forks import watch_forks
from cellblock.executors.process.link import Link
from cellblock.executors.process.mounts import Mount
from cellblock.executors.process.porter import send_trees, unplaced
from cellblock.executors.process.waits import SECONDS, Waits
from cellblock.executors.process.zygote import failure
from cellblock.walls import Applied
from cellblock.worker import control
from cellblock.worker.launch import SANDBOX_UID


class Shell:
    """Init's control channel and pidfd, and a descriptor of the session's files."""

    def __init__(
        self,
        family: Family,
        channel: socket.socket,
        descriptors: list[int],
        walls: tuple[Applied, ...],
        mounts: tuple[Mount, ...],
        worker: Link | None = None,
    ) -> None:
        watch_forks(channel)
        self.channel = channel
        self.init, root = descriptors
        self.walls = walls
        self.worker = worker
        """The worker in it, where it was made beforehand and nobody has taken it yet."""
        owner = SANDBOX_UID if os.getuid() == 0 else None
        self.files = ProcessFiles(root, owner, [mount.place for mount in mounts])
        self._curbed: str | None = None
        self._excess = ""
        self._family = family
        family.enter(self)

    @classmethod
    def make(cls, family: Family, kind: Kind, mounts: tuple[Mount, ...] = ()) -> Waits[Shell]:
        """Have the nursery make one, or give one that it has ready; `FamilyGone` when it ended before that."""
        channel, init_end = control.pair()
        watch_forks(channel)
        channel.setblocking(False)
        try:
            with init_end:
                family.make_shell(init_end, kind, mounts=bool(mounts))
            placed = (yield partial(send_trees, mounts, family.profile.python, channel)) if mounts else ()
            report, descriptors = yield from _received(channel)
            if report is None and not family.alive:
                raise FamilyGone
            report = report or {"failed": "shell", "reason": "its process ended", "remedy": ""}
            if "failed" in report:
                raise unplaced(mounts, report) if "place" in report else failure(report, family.profile.python)
        except BaseException:
            channel.close()
            raise
        match report:
            case {"spare": {"token": int(token), "nonce": str(nonce), "ready": str(detail)}}:
                channel.close()
                return cls._taken(family, token, bytes.fromhex(nonce), _root(detail), descriptors)
        return cls(family, channel, descriptors, (_root(str(report["ready"])), *placed), mounts)

    @classmethod
    def _taken(cls, family: Family, token: int, nonce: bytes, wall: Applied, descriptors: list[int]) -> Shell:
        """From the descriptors of a spare."""
        channel, init, root, worker, stdout, stderr = descriptors
        link = Link((socket.socket(fileno=worker), stdout, stderr, nonce))
        link.token = token
        family.took(token)
        return cls(family, socket.socket(fileno=channel), [init, root], (wall,), (), link)

    @property
    def ended(self) -> bool:
        """Whether init is gone, and with it every other process and all files."""
        wait = select.poll()
        wait.register(self.init, select.POLLIN)
        return bool(wait.poll(0))

    def tell(self, what: str, **more: float) -> None:
        """Send init a message."""
        with contextlib.suppress(ConnectionError):  # it is gone, which the worker's death tells
            control.send(self.channel, {"do": what, **more})

    def curbed(self) -> str | None:
        """What was held when a process but the worker was last killed for it, since this was last asked."""
        while True:
            try:
                notice, _ = control.receive(self.channel)
            except BlockingIOError:
                held, self._curbed = self._curbed, None
                return held
            if notice is None:
                raise EOFError
            self._note(notice)

    def _note(self, notice: dict[str, object]) -> None:
        if notice.get("worker"):
            self._excess = str(notice["curbed"])
        elif "curbed" in notice:
            self._curbed = str(notice["curbed"])

    def excess(self) -> str:
        """What was held when the worker was killed for it; "" if it was not."""
        with contextlib.suppress(EOFError):
            self.curbed()
        return self._excess

    def end_since(self, began: float) -> Waits[int]:
        """Kill what the worker has started since a time of CLOCK_BOOTTIME; how many processes that were."""
        self.tell("end", since=began)
        while True:
            answer, _ = yield from _received(self.channel)
            if answer is None:  # init is gone, and all that it would have ended
                return 0
            if isinstance(answer.get("ended"), int):
                return int(str(answer["ended"]))
            self._note(answer)

    def sweep(self) -> Waits[None]:
        """Kill every process of the session but init; `SessionClosed` when that is gone."""
        self.tell("sweep")
        self._excess = ""
        while True:
            answer, _ = yield from _received(self.channel)
            if answer is None:
                raise files_gone()
            if "swept" in answer:  # before it there may be notices of the watch
                return

    def close(self, *, kill: bool = True) -> None:
        """End init, and with it every process of the session."""
        with contextlib.suppress(ProcessLookupError):
            if kill:
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        if self.worker is not None:
            self.worker.close()
        self.channel.close()
        os.close(self.init)
        self.files.close()
        self._family.leave(self)


def files_gone() -> SessionClosed:
    """What a session is told whose init has ended."""
    return SessionClosed("its first process is gone, and its files with it", hint="open a new session")


def _root(detail: str) -> Applied:
    return Applied(mechanism="root", detail=detail)


def _received(channel: socket.socket) -> Waits[tuple[dict[str, object] | None, list[int]]]:
    """The next message on a channel that does not block."""
    try:
        yield channel.fileno()
    except TimeoutError:
        raise IsolationUnavailable(
            f"a session's first process did not answer within {SECONDS:.0f} s",
            mechanism="shell",
            hint="see whether the machine is overloaded",
        ) from None
    return control.receive(channel)
