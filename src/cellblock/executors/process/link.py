"""The host's end of one worker: its socket, its text pipes, its pidfd, and one epoll over them all."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

import anyio

from cellblock.errors import SessionClosed
from cellblock.executors.process import memory
from cellblock.executors.process.cgroups import Group
from cellblock.executors.process.waits import SECONDS, readable
from cellblock.executors.protocol import WorkerGone
from cellblock.hosting import to_thread
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.unique import unique_bytes
from cellblock.hosting.waiting import ready
from cellblock.wire.codec import decode_event
from cellblock.wire.connection import Connection
from cellblock.wire.frames import PACKET_BYTES, Frame, ProtocolError
from cellblock.wire.messages import REPLIES, Awake, Event, Finished, Hello, Request
from cellblock.wire.schema import State
from cellblock.wire.text import NONCE_BYTES
from cellblock.worker import control

_INT = struct.Struct("i")
_ANCILLARY = control.STAMPED + socket.CMSG_SPACE(64 * 4)
_CLOEXEC = int(socket.MSG_CMSG_CLOEXEC)  # a plain int: flag enums cost microseconds
_CHUNK = 64 * 1024
_PIPE_CHUNKS = 2
"""Most chunks that a pipe holds, one more where reading began within a chunk."""
_MAX_NAMES = 100_000
_MAX_NAME_CHARS = 4_000_000
"""Of all names and their types together; what comes past that is not kept."""
_MAX_FOREIGN = 1000


First = TypeVar("First", Hello, Awake)

Ends = tuple[socket.socket, int, int]
"""A worker's ends of its socket and its pipes for stdout and stderr."""

Taken = tuple[socket.socket, int, int, bytes]
"""The host's ends, none of which blocks, and the nonce; the kernel stamps what comes on the socket."""


class Link:
    """Owns the descriptors. Reading never blocks; waiting is for `readable`."""

    def __init__(self, taken: Taken | None = None) -> None:
        """With a worker's ends to be sent, or over those of a worker that there is."""
        if taken is None:
            taken, self.ends = _new()
        self._socket, self.stdout, self.stderr, self.nonce = taken
        self.socket = self._socket.fileno()
        watch_forks(self._socket)
        self.token = 0
        self.pid = 0
        self.pidfd = -1
        self.notices = self.alarm = -1
        self.group: Group | None = None
        self.alarmed = False
        self.names: dict[str, str] = {}
        self._name_chars = 0
        self.closed = False
        self.beside = False
        """True if large buffers go from memory to memory."""
        self.parted = 0
        """Of a branch's first worker its number in the parent session, whose init hears of its end; else 0."""
        self.left = False
        """True where something of the cells lives on, as of the worker's last word."""
        self.unread = self.heard = False
        """Since the last request was sent: whether the kernel has told that the worker ended and had not read all of
        what it was sent, and whether anything came of the worker. Without both the request may have been carried out.
        """
        self.killed = False
        """True if the worker was killed: its end may not be seen yet."""
        self._waiting = 0
        self._connection = Connection()
        self._unsent: Iterator[bytes] = iter(())
        self._packet: bytes | None = None
        self._rights: list[tuple[int, int, bytes]] = []
        self._packets: deque[bytes] = deque()
        self.large: Frame | None = None
        """An event that has come whole and is to be read in a thread, before anything that came after it."""
        self._foreign = 0
        self._epoll = select.epoll()
        for descriptor in (self.socket, self.stdout, self.stderr):
            self._epoll.register(descriptor, select.EPOLLIN)

    def succeed(self, connection: socket.socket) -> Link:
        """A link to a copy of this one's worker, over the same pipes, emptied. This one is closed."""
        for pipe in (self.stdout, self.stderr):
            for _ in range(_PIPE_CHUNKS):  # more is of processes that live on, and may never end
                self.read(pipe)
        taken = connection, self.stdout, self.stderr, self.nonce
        self.stdout = self.stderr = -1
        self.close()
        link = Link(taken)
        link.beside = self.beside
        return link

    @property
    def busy(self) -> bool:
        """True if a request is under way."""
        return self._connection.state is not State.IDLE

    @property
    def takes_another(self) -> bool:
        """True if the worker can be sent a request: none is under way, and none, or no reply, was sent in part."""
        return not (self.killed or self.busy or self._packet is not None)

    def close_ends(self) -> None:
        """Close the worker's ends, so that its own are the last."""
        connection, stdout, stderr = self.ends
        connection.close()
        os.close(stdout)
        os.close(stderr)

    def watch_notices(self, descriptor: int) -> None:
        """Wake for what init tells, too. The descriptor stays its owner's."""
        self.notices = descriptor
        self._epoll.register(descriptor, select.EPOLLIN)

    def watch_group(self, group: Group) -> None:
        """Wake when memory has been short in the session's control group. It stays its owner's."""
        self.group = group
        self.alarm = group.descriptor
        self._epoll.register(group.descriptor, group.mask)

    def hear_alarm(self) -> None:
        """Memory has been short: the kernel is killing a process, and its count of them tells when it has."""
        if self.group is not None:
            self.group.hear()
            self.alarmed = True

    def forget_notices(self) -> None:
        """Nothing more will come from init."""
        self._forget(self.notices)

    async def introduced(
        self, kind: type[First], seconds: float = SECONDS, *, rouse: Callable[[], object] | None = None
    ) -> First | None:
        """Wait for the worker's first message; the kernel says who sent it, and that is the worker's pid.

        `rouse`: see `readable`.

        None when nobody is left who could send it, or who did is gone already; TimeoutError when it does not come
        within so long.
        """
        with self._for_words(), anyio.fail_after(seconds):
            while True:
                packet, pid = self._receive()
                if packet == b"":
                    return None
                if packet is None:
                    await readable(self._epoll.fileno(), seconds, rouse=rouse)
                    continue
                first = self._connection.receive(packet)
                if isinstance(first, kind):
                    return first if self._recognise(pid) else None

    @contextlib.contextmanager
    def _for_words(self) -> Iterator[None]:
        """Around a wait for what the worker says, or its end: text and notices, which nobody reads meanwhile, do not
        end it. A pipe that is full has the worker wait for its reader.
        """
        known = (self.stdout, self.stderr, self.notices, self.alarm)
        others = [one for one in known if one >= 0 and self._forget(one)]
        try:
            yield
        finally:
            for one in others if not self._epoll.closed else ():
                self._epoll.register(one, self.group.mask if one == self.alarm and self.group else select.EPOLLIN)

    def _recognise(self, pid: int) -> bool:
        """Take this process for the worker, and wake when it ends; False if it has."""
        try:
            self.pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        self.pid = pid
        self._epoll.register(self.pidfd, select.EPOLLIN)
        return True

    def begin(self, seed: int, *, sealed: bool, saved: bool, scoped: bool) -> None:
        """Have the worker seed its generators, and take requests from now on; if it is `sealed`, a policy first.

        `saved`: its states are to be saved. `scoped`: a `with` at top level is a temporary scope.
        """
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended, which the first turn tells
            self.beside = memory.readable(self.pid)
            marks = {"beside": self.beside, "sealed": sealed, "saved": saved and memory.exact_pages(), "scoped": scoped}
            control.send(self._socket, {"seed": seed, **marks})

    async def asked(self, request: Request) -> Finished | None:
        """The answer to a request that comes before all turns; None when the worker is gone, or took too long."""
        try:
            with self._for_words(), anyio.fail_after(SECONDS):
                if not self.send(request):
                    await self.flush()
                while True:
                    self.pull()
                    event = self.receive()
                    if self.large is not None:
                        event = await self.read_large()
                    if isinstance(event, Finished):
                        return event
                    if event is None and self.ready(0) & {self.pidfd}:
                        return None
                    if event is None:
                        await anyio.wait_readable(self._epoll.fileno())
        except (WorkerGone, ProtocolError, TimeoutError):
            return None

    @property
    def alive(self) -> bool:
        """True if its process is there, as far as is known."""
        return self.pidfd < 0 or not ready(self.pidfd)

    async def readable(self) -> None:
        """Wait until something can be read or the worker is gone; `SessionClosed` when the link is closed meanwhile."""
        with self._in_use():
            await anyio.wait_readable(self._epoll.fileno())

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Around a wait: descriptors that someone waits for are closed only after that wait."""
        self.require_open()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if self.closed:
                self._give_back()
        self.require_open()

    def require_open(self) -> None:
        """Raise `SessionClosed` once the link is closed."""
        if self.closed:
            raise SessionClosed("the session was closed", hint="open a new one")

    def ready(self, seconds: float) -> set[int]:
        """Descriptors with something to read, after waiting so long for the first; blocks for that time.

        `SessionClosed` once the link is closed.
        """
        self.require_open()
        return {descriptor for descriptor, _ in self._epoll.poll(seconds)}

    def send(self, request: Request, end: socket.socket | None = None) -> bool:
        """Send a request as far as the socket takes it; whether that is all of it, or `flush` has to follow.

        With it goes the end for a checkpoint to be left behind after it, if one is given. `WorkerGone` if nothing
        could be sent; later it is found out by the worker's events.
        """
        self._rights = [] if end is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _INT.pack(end.fileno()))]
        self._unsent = iter(self._connection.send(request))
        if not isinstance(request, REPLIES):
            self.unread = self.heard = False
        self._packet = next(self._unsent)
        return self._push(first=True)

    async def flush(self, seconds: float | None = None) -> None:
        """Send what is left of the request. TimeoutError when the socket stays full for `seconds`."""
        while not self._push():
            with self._in_use(), anyio.fail_after(seconds):
                await anyio.wait_writable(self._socket)

    def _push(self, *, first: bool = False) -> bool:
        self.require_open()
        while self._packet is not None:
            try:
                self._socket.sendmsg((self._packet,), self._rights)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError) as error:
                self.unread |= isinstance(error, ConnectionResetError)
                self._packet = None
                if first:
                    raise WorkerGone from None
                return True
            self._packet, self._rights, first = next(self._unsent, None), [], False
        return True

    def pull(self) -> bool:
        """Take one packet off the socket, unread; whether there was one.

        Packets of any process but the worker are dropped: a child that the cell forked has the socket too. An honest
        one sends nothing, and one that sends without end keeps the worker from being heard: `receive` refuses that.
        """
        packet, pid = self._receive()
        if packet is None:
            return False
        if pid == 0:  # no sender: nobody holds the other end any more
            self._forget(self.socket)
            return False
        if pid == self.pid:
            self.heard = True
            self._packets.append(packet)
        else:
            self._foreign += 1
        return True

    def read(self, pipe: int) -> bytes:
        """Bytes in a pipe now, up to a chunk; b"" for nothing."""
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            self._forget(pipe)
        self.heard |= bool(data)
        return data

    def _forget(self, descriptor: int) -> bool:
        """Wait no more for a descriptor, which at its end is readable for ever; False where nobody did."""
        try:
            self._epoll.unregister(descriptor)
        except OSError:  # forgotten before
            return False
        return True

    def receive(self) -> Event | None:
        """The next whole event of the packets that were pulled, or None. What it tells of names is kept here.

        None as well while one waits to be read: see `read_large`.
        """
        if self._foreign > _MAX_FOREIGN:
            raise ProtocolError("processes other than the worker send messages")
        while self._packets and self.large is None:
            event = self._connection.assemble(self._packets.popleft())
            if isinstance(event, Frame):
                self.large = event
            elif (event := self._taken(event)) is not None:
                return event
        return None

    async def read_large(self) -> Event | None:
        """The large event that came last, read in a thread."""
        assert self.large is not None
        try:
            event, known = await to_thread.run_sync(self._read, self.large, limiter=anyio.CapacityLimiter(1))
        except ProtocolError:
            self.large = None
            raise
        self.large = None  # not before: a wait that is cancelled before the thread begins has read nothing
        return self._taken(event, known)

    def _read(self, frame: Frame) -> tuple[Event, tuple[dict[str, str], int] | None]:
        """An event, and what is known of names after it: of hundreds of thousands that takes its time, too."""
        event = decode_event(frame)
        return event, self._known_after(event) if isinstance(event, Finished) else None

    def _taken(self, event: Event | None, known: tuple[dict[str, str], int] | None = None) -> Event | None:
        event = self._connection.take(event)
        if isinstance(event, Finished):
            self.left = event.left
            self.names, self._name_chars = known or self._known_after(event)
        return event

    def _receive(self) -> tuple[bytes | None, int]:
        """One packet and its sender; None when there is none yet, b"" when there will be none.

        One byte past the largest packet is read, so that a larger one is malformed when its turn comes: not
        before the sender is known, as a child's is to be dropped.
        """
        try:
            packet, ancillary, _, _ = self._socket.recvmsg(PACKET_BYTES + 2, _ANCILLARY, _CLOEXEC)
        except BlockingIOError:
            return None, 0
        except ConnectionResetError:  # told once, and before what was said until then
            self.unread = True
            return self._receive()
        sender, offered = control.sent_with(ancillary)
        control.close_all(offered)  # nothing inside has a descriptor that we would take
        return packet, sender

    def adopt(self, names: dict[str, str]) -> None:
        """The names that the worker is known to have bound."""
        self.names = dict(names)
        self._name_chars = sum(len(name) + len(kind) for name, kind in names.items())

    def _known_after(self, event: Finished) -> tuple[dict[str, str], int]:
        """The names that are known after a request, and how many characters they and their types have."""
        if not (event.dropped or event.gained):
            return self.names, self._name_chars
        names, chars = dict(self.names), self._name_chars  # checkpoints hold the ones before
        for name in event.dropped:
            kind = names.pop(name, None)
            chars -= 0 if kind is None else len(name) + len(kind)
        for name, kind in event.gained.items():
            before = names.get(name)
            more = len(kind) - len(before) if before is not None else len(name) + len(kind)
            if not (chars + more > _MAX_NAME_CHARS or (before is None and len(names) >= _MAX_NAMES)):
                names[name] = kind
                chars += more
        return names, chars

    def close(self) -> None:
        """Give every descriptor back, at once or when the one who waits for them has been woken. Safe to call twice."""
        if self.closed:
            return
        self.closed = True
        if self._waiting:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        else:
            self._give_back()

    def _give_back(self) -> None:
        if self._waiting or self._epoll.closed:
            return
        self._epoll.close()
        self._socket.close()
        for pipe in (self.stdout, self.stderr):
            if pipe >= 0:
                os.close(pipe)
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


def _new() -> tuple[Taken, Ends]:
    ours, theirs = control.pair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    ours.setblocking(False)
    (stdout, stdout_end), (stderr, stderr_end) = os.pipe(), os.pipe()
    os.set_blocking(stdout, False)
    os.set_blocking(stderr, False)
    return (ours, stdout, stderr, unique_bytes(NONCE_BYTES)), (theirs, stdout_end, stderr_end)
