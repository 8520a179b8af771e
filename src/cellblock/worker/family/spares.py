"""Sessions made before they are asked for. They live in the family: the host holds nothing of them until it takes one.

A spare is a shell with a worker in it that has said hello. The nursery keeps its descriptors; a child of the nursery
makes it, so that nothing else waits meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import time
from collections.abc import Callable, Mapping

from cellblock.worker import control
from cellblock.worker.family.children import Children
from cellblock.worker.forks import fork

MAKING_SECONDS = 60.0
RETRY_SECONDS = 5.0
QUIET_SECONDS = 0.005
"""None is made while sessions are asked for in shorter pauses than this: they come first."""

Message = Mapping[str, object]
MakeShell = Callable[[Message, socket.socket], None]


class _Spare:
    """A sandbox made ahead, as its maker told it, and the descriptors: init's channel and pidfd, the root, its door's
    listener where it has one, the worker's socket and pipes."""

    def __init__(self, told: Message, descriptors: list[int]) -> None:
        self.told = told
        self.descriptors = descriptors

    @property
    def alive(self) -> bool:
        _, init, *_, worker, _, _ = self.descriptors
        poll = select.poll()
        poll.register(init, select.POLLIN)
        poll.register(worker, 0)  # only for its other end's close
        return not poll.poll(0)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


class _Shelf:
    """Spares of one kind: `asked` for good, one until it is taken or `once_until`.

    `waiting` are told once there are those asked for.
    """

    def __init__(self, kind: Message) -> None:
        self.kind = kind
        self.asked = 0
        self.once_until = -math.inf
        self.spares: list[_Spare] = []
        self.waiting: list[socket.socket] = []

    def wanted(self, now: float) -> int:
        return max(self.asked, int(now < self.once_until))


class Spares:
    """Keeps as many as the host wants. Nothing here waits."""

    def __init__(self, children: Children, make_shell: MakeShell) -> None:
        self._children = children
        self._make_shell = make_shell
        self._shelves: dict[str, _Shelf] = {}
        self._events = select.epoll()
        self._maker: tuple[_Shelf, socket.socket] | None = None
        self._claimant: socket.socket | None = None
        """Who gets what the maker makes."""
        self._tokens = 0
        self._not_before = 0.0
        self.zygote: socket.socket | None = None
        """Who is asked for workers."""

    def fileno(self) -> int:
        """Readable when the maker has told something or has ended, for `take_in`."""
        return self._events.fileno()

    def use(self, zygote: socket.socket) -> None:
        """Have this zygote make the workers from now on."""
        if self.zygote is not None:
            self.zygote.close()
        self.zygote = zygote

    def keep(self, kind: Message, count: int, waiting: socket.socket | None) -> None:
        """Keep so many of a kind; `waiting` hears how it went."""
        shelf = self._shelves.setdefault(_key(kind), _Shelf(kind))
        shelf.asked = count
        if waiting is not None:
            shelf.waiting.append(waiting)
            self._not_before = 0.0
            self._answer(shelf)

    def keep_one(self, kind: Message, seconds: float) -> None:
        """Keep one that will be taken within so long, and not another in its place."""
        self._shelves.setdefault(_key(kind), _Shelf(kind)).once_until = time.monotonic() + seconds

    def hand_out(self, kind: Message, host: socket.socket) -> bool:
        """Give the host a spare of this kind, or the one that is being made; whether there was one."""
        self._not_before = max(self._not_before, time.monotonic() + QUIET_SECONDS)
        shelf = self._shelves.get(_key(kind))
        if shelf is None:
            return False
        shelf.once_until = -math.inf
        while shelf.spares:
            spare = shelf.spares.pop(0)
            if spare.alive:
                self._give(spare, shelf, host)
                return True
            spare.close()
        if self._is_made_for(shelf) and self._claimant is None:
            self._claimant = host.dup()
            return True
        return False

    def _give(self, spare: _Spare, shelf: _Shelf, host: socket.socket) -> None:
        try:
            control.send(host, {"spare": dict(spare.told)}, spare.descriptors)
        except ConnectionError:  # the host wants it no more
            shelf.spares.append(spare)
        else:
            spare.close()

    def take_in(self) -> list[tuple[Message, socket.socket]]:
        """Take what the maker has made, or its word why it could not; who waited for it in vain, and for what kind."""
        if self._maker is None:
            return []
        (shelf, channel), claimant = self._maker, self._claimant
        told, descriptors = control.receive(channel)
        self._maker = self._claimant = None
        channel.close()  # which the events forget with it
        told = told or {"failed": "spare", "reason": "its maker ended", "remedy": ""}
        if "failed" in told:
            self._give_up(shelf, told)
            return [] if claimant is None else [(shelf.kind, claimant)]
        spare = _Spare(told, descriptors)
        if claimant is None:
            shelf.spares.append(spare)  # one that is wanted no more is dropped when there is time
        else:
            with claimant:
                self._give(spare, shelf, claimant)
        self._answer(shelf)
        return []

    def _give_up(self, shelf: _Shelf, told: Message) -> None:
        """For now: it is tried again later."""
        self._not_before = time.monotonic() + RETRY_SECONDS
        for host in shelf.waiting:
            _say(host, told)
        shelf.waiting.clear()

    def work(self) -> float:
        """Drop what is too much, have made what is missing; the seconds until there may be something to do again."""
        now = time.monotonic()
        for key, shelf in list(self._shelves.items()):
            while len(shelf.spares) > shelf.wanted(now):
                shelf.spares.pop(0).close()
            if not shelf.wanted(now) and not shelf.waiting and not self._is_made_for(shelf):
                del self._shelves[key]
        lacking = [shelf for shelf in self._shelves.values() if len(shelf.spares) < shelf.wanted(now)]
        due = [shelf.once_until - now for shelf in self._shelves.values() if shelf.once_until > now]
        if lacking and self._maker is None:
            if self._not_before > now:
                due.append(self._not_before - now)
            else:
                try:
                    self._start(lacking[0])
                except OSError as error:  # no process is to be had
                    self._give_up(lacking[0], {"failed": "spare", "reason": str(error), "remedy": ""})
        return min(due, default=math.inf)

    def _is_made_for(self, shelf: _Shelf) -> bool:
        return self._maker is not None and self._maker[0] is shelf

    def _start(self, shelf: _Shelf) -> None:
        if self.zygote is None:
            return
        self._tokens -= 1  # the host's own are above 0
        channel, making = control.pair()
        with making, self.zygote.dup() as zygote:

            def make() -> None:
                channel.close()
                self._make(shelf.kind, making, zygote)

            self._children.fork(make)
        self._maker = shelf, channel
        self._events.register(channel, select.EPOLLIN)

    def _make(self, kind: Message, making: socket.socket, zygote: socket.socket) -> None:
        """In a child: a shell and a worker in it, made as the host would."""
        try:
            channel, report, descriptors = self._shell(kind, making, zygote)
            if "failed" in report:
                told: Message = report
            else:
                told, more = self._worker(kind, zygote, channel, init=descriptors[0])
                told, descriptors = {**told, "ready": report["ready"]}, [channel.detach(), *descriptors, *more]
        except BaseException as error:
            told, descriptors = {"failed": "spare", "reason": str(error), "remedy": ""}, []
        control.tell(making, told, descriptors)

    def _shell(
        self, kind: Message, making: socket.socket, zygote: socket.socket
    ) -> tuple[socket.socket, Message, list[int]]:
        channel, end = control.pair()
        with end:

            def make() -> None:
                for ours in (channel, making, zygote):
                    ours.close()
                self._make_shell(kind, end)

            step = fork(make)
        os.waitpid(step, 0)
        channel.settimeout(MAKING_SECONDS)
        report, descriptors = control.receive(channel)
        channel.setblocking(False)
        if report is None:
            raise OSError("its first process ended")
        return channel, report, descriptors

    def _worker(
        self, kind: Message, zygote: socket.socket, channel: socket.socket, *, init: int
    ) -> tuple[Message, list[int]]:
        nonce = os.urandom(int(str(kind["nonce_bytes"]))).hex()
        ours, worker = control.pair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        ours.setblocking(False)
        (stdout, stdout_end), (stderr, stderr_end) = os.pipe(), os.pipe()
        limits = kind["limits"]
        assert isinstance(limits, dict)
        with contextlib.ExitStack() as ends:
            given = [init, ends.enter_context(worker).fileno(), stdout_end, stderr_end]
            if limits["checkpoints"]:
                given.append(ends.enter_context(control.introduce(channel)).fileno())
            control.send(zygote, {"limits": limits, "nonce": nonce, "token": self._tokens}, given)
        for end, pipe in ((stdout_end, stdout), (stderr_end, stderr)):
            os.close(end)
            os.set_blocking(pipe, False)
        hello = select.poll()
        hello.register(ours, select.POLLIN)
        if hello.poll(MAKING_SECONDS * 1e3) != [(ours.fileno(), select.POLLIN)]:
            raise OSError("the worker did not start")
        return {"token": self._tokens, "nonce": nonce}, [ours.detach(), stdout, stderr]

    def _answer(self, shelf: _Shelf) -> None:
        if len(shelf.spares) >= shelf.asked:
            for host in shelf.waiting:
                _say(host, {"kept": shelf.asked})
            shelf.waiting.clear()

    def close(self) -> None:
        """In a child that is to hold nothing of these."""
        self._events.close()
        for one in (self._claimant, None if self._maker is None else self._maker[1]):
            if one is not None:
                one.close()
        if self.zygote is not None:
            self.zygote.close()
        for shelf in self._shelves.values():
            for host in shelf.waiting:
                host.close()
            for spare in shelf.spares:
                spare.close()


def _say(host: socket.socket, told: Message) -> None:
    with host:
        control.tell(host, told)


def _key(kind: Message) -> str:
    return json.dumps(kind, sort_keys=True)
