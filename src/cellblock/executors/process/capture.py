"""Reads what a scribe writes down, and a checkpoint's files, in a thread: chunks first, the snapshot last.

Security border: the scribe is code of the session's. It is stopped at its time and its size, its frames are judged
before they are read, and what it sends is hashed here.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

from cellblock.cell import Lost
from cellblock.errors import CaptureFailed
from cellblock.executors.process.checkpoints import inner_pid
from cellblock.executors.process.savedfiles import SavedFiles
from cellblock.executors.process.waits import processor_seconds, readable, stands_still
from cellblock.executors.suspects import Suspects
from cellblock.hosting import clock, sockets, to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.waiting import ready
from cellblock.snapshots import CHUNK_BYTES, HELD_OF_CHUNK, Snapshot, address_of
from cellblock.wire import saving
from cellblock.wire.frames import ProtocolError
from cellblock.worker import control
from cellblock.worker.saving.losses import unloadable

_MAKING_SECONDS = 10.0
_ANCILLARY = control.STAMPED + socket.CMSG_SPACE(64 * 4)
_CLOEXEC = int(socket.MSG_CMSG_CLOEXEC)

T = TypeVar("T")
Put = Callable[[bytes], object]
Take = Callable[[int], object]


def scribe_ends() -> tuple[socket.socket, socket.socket]:
    """The host's end of a scribe's stream, on which the kernel stamps who speaks, and the scribe's."""
    ours, theirs = sockets.pair(sockets.STREAM)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    watch_forks(ours)
    return ours, theirs


class Captured:
    """A state that is being saved. `held` are what it holds open: they are closed with it."""

    _canceller = -1

    def __init__(
        self,
        stream: socket.socket,
        files: SavedFiles,
        listed: socket.socket,
        note: Callable[[SavedFiles], None],
        *,
        seconds: float,
        most: int,
        python: str,
        admitted: tuple[socket.socket, ...],
    ) -> None:
        """`listed` is init's channel, over which it tells the difference to `files`, or all: `note` is given
        what they are then, once there is room for the snapshot. `admitted` are what may be closed once there is a
        scribe. At most `most` bytes come in all.
        """
        self._cancel, self._canceller = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._stream, self._listed, self._admitted = stream, listed, admitted
        self._files, self._note, self._seconds, self._python = files, note, seconds, python
        self._conversation = saving.Conversation(most)
        self._deadline = clock.now() + _MAKING_SECONDS
        self._pid = 0
        self._work = ""
        self._suspects = Suspects()
        self._previous: Snapshot | None = None
        self._snapshot: Snapshot | None = None
        self._busy = self._closed = False
        self._closing = threading.RLock()
        stream.setblocking(False)

    async def meet(self) -> None:
        """Wait until there is a scribe that has put up its walls; CaptureFailed where there will be none."""
        try:
            await readable(self._stream.fileno(), _MAKING_SECONDS)
            await to_thread.run_sync(self._guarded, self._hear_hello)
        except TimeoutError:
            self.close()
            raise CaptureFailed(
                "the process that saves did not start", hint="see whether the machine is overloaded"
            ) from None

    async def begin(self, previous: Snapshot | None, suspects: Suspects | None = None) -> None:
        if self._previous is not None:
            raise CaptureFailed("it was begun before", hint="capture again")
        self._suspects = suspects or self._suspects
        self._previous = previous or Snapshot()

    async def read(self, put: Put, take: Take = int) -> Snapshot:
        if self._previous is None or self._snapshot is not None or self._closed:
            raise CaptureFailed("it was not begun, or closed", hint="begin first, and read once")
        return await self._in_thread(partial(self._guarded, partial(self._read_all, self._previous, put, take)))

    async def trial(self) -> tuple[Lost, ...]:
        if (found := self._snapshot) is None or self._closed:
            return ()
        try:
            return await self._in_thread(
                lambda: tuple(_unloadable(found, self._hear_trial({group.key for group in found.groups})))
            )
        except CaptureFailed:  # it was closed meanwhile
            return ()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do work on the stream, which is closed only after it, and none once it is closed."""

        def carried_out() -> T:
            with self._closing:
                if self._closed:
                    raise CaptureFailed("it was closed", hint="capture again")
                self._busy = True
            try:
                return work()
            finally:
                with self._closing:
                    self._busy = False
                    self._give_back()

        try:
            return await to_thread.run_sync(carried_out)
        except BaseException:
            self.close()
            raise

    def _hear_trial(self, keys: set[str]) -> dict[str, str]:
        """Why groups could not be loaded: their code failed, ended the process, or did not come to an end."""
        self._deadline = clock.now() + self._seconds
        failed: dict[str, str] = {}
        loading = self._work = ""
        try:
            while True:
                _, data = self._watched("ended the process that loaded it")
                loading, reasons = saving.read_tried(data)
                failed.update((key, reason) for key, reason in reasons.items() if key in keys)
                if not loading:
                    return failed
                self._work = f"load {loading}" if loading in keys else ""
        except (CaptureFailed, ProtocolError, OSError):
            if self._work in self._suspects.left_out:
                failed[loading] = self._suspects.left_out[self._work][0]
            return failed

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except ProtocolError as error:
            self.close()
            raise CaptureFailed(f"the process that saves broke the protocol: {error}", hint=_HINT) from None
        except CaptureFailed:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise CaptureFailed(f"it could not be read: {error}", hint="capture again") from error

    def _read_all(self, previous: Snapshot, put: Put, take: Take) -> Snapshot:
        has, taken = previous.addresses(), 0

        def take_next(size: int) -> None:
            nonlocal taken
            take(size)
            taken += size

        def put_next(data: bytes) -> None:
            if self._closed:
                raise _closed()
            take_next(HELD_OF_CHUNK)
            put(data)

        files = self._read_files(has, put_next, take_next)
        snapshot = self._read_names(previous, has, put_next, take_next)
        snapshot = replace(
            snapshot,
            files=files.found(),
            lost=(*snapshot.lost, *files.missed),
            environment={"python": self._python, **snapshot.environment},
        )
        take(snapshot.held() - taken)
        self._note(files)
        self._snapshot = snapshot
        return snapshot

    def _read_files(self, has: set[str], put: Put, take: Take) -> SavedFiles:
        self._await(self._listed, self._deadline)
        message, descriptors = control.receive(self._listed)
        if message is None or len(descriptors) != 2:
            raise CaptureFailed("its files are not kept any more", hint="run a cell, then capture again")
        listed, store = descriptors
        return self._files.followed_by(listed, store, has, put, take)

    def _read_names(self, previous: Snapshot, has: set[str], put: Put, take: Take) -> Snapshot:
        self._conversation.begin()
        self._deadline = clock.now() + self._seconds
        known = {address for group in previous.groups for address in group.addresses()}
        suspects, ends = self._suspects, "ended the process that saved it"
        take(HELD_OF_CHUNK * len(suspects.had))
        has |= suspects.had
        beginning = saving.pack_beginning(previous.index, known, suspects.had, suspects.left_out)
        with self._watching(ends):
            self._send(saving.frame(saving.BEGIN, len(beginning)) + beginning)
        index = b""
        while True:
            kind, data = self._watched(ends, take)
            if kind == saving.WORK:
                self._work, holds = saving.read_work(data)
                suspects.confirm(self._work, holds)
            elif kind == saving.CHUNK:
                if (address := address_of(data)) not in has:
                    put(data)
                    has.add(address)
                    suspects.had.add(address)
            elif kind == saving.INDEX:
                index = data
            elif kind == saving.RECORD:
                return saving.read_record(data, index, has.__contains__, take)
            else:
                raise CaptureFailed(f"names cannot be saved: {saving.read_failure(data)}", hint=_HINT)

    def _hear_hello(self) -> None:
        kind, data = self._frame()
        if kind == saving.FAILED:  # as where its checkpoint was killed: init then lets it make no rules
            failed = f"the process that saves could not wall itself in: {saving.read_failure(data)}"
            raise CaptureFailed(failed, hint="run a cell, then try again")
        saving.read_hello(data)
        self._know_scribe()

    def _know_scribe(self) -> None:
        """Tell init which process said hello, by the kernel's word: it is spared, and ended when the channel closes.

        A number that is another process's by now leads to none out of the session: init looks no further.
        """
        with contextlib.suppress(OSError):
            control.send(self._listed, {"scribe": inner_pid(self._pid)})
        for one in self._admitted:
            one.close()

    # ---------------------------------------------------------------------------------- the stream

    def _watched(self, ends: str, take: Take = int) -> tuple[bytes, bytes]:
        """A frame of a scribe that runs code of the session's."""
        with self._watching(ends):
            return self._frame(self._suspects.patience, take)

    @contextlib.contextmanager
    def _watching(self, ends: str) -> Iterator[None]:
        """Note in which piece of work, if any, a scribe that runs code of the session's ends or stands still."""
        try:
            yield
        except _Ended:
            if not ready(self._listed, event=0):  # else init is gone, and all of the session's processes with it
                self._suspects.ended(self._work, f"its code {ends}")
            raise
        except _StoodStill:
            self._suspects.stood_still(self._work)
            raise

    def _frame(self, patience: float = math.inf, take: Take = int) -> tuple[bytes, bytes]:
        """A frame. `take` gets the length of one that is longer than a chunk, before there is memory for it."""
        kind, length = self._conversation.expect(self._receive(saving.HEADER.size, patience))
        long = length if length > CHUNK_BYTES else 0
        take(2 * long)
        data = self._receive(length, patience)
        take(-long)
        return kind, data

    def _receive(self, length: int, patience: float) -> bytes:
        """So many bytes, whole; twice as many while they come. `patience` is how many seconds nothing may come."""
        data = bytearray(length)
        view = memoryview(data)
        while view:
            try:
                count, ancillary, _, _ = self._stream.recvmsg_into([view], _ANCILLARY, _CLOEXEC)
            except BlockingIOError:
                self._await_frame(patience)
                continue
            except ConnectionError:
                count, ancillary = 0, []
            self._look_at(ancillary)
            if not count:
                raise _ended()
            view = view[count:]
        return bytes(data)

    def _await_frame(self, patience: float) -> None:
        before, still = processor_seconds(self._pid), clock.now() + patience
        while still < self._deadline:
            try:
                self._await(self._stream, still)
                return
            except _Late:
                if stands_still(self._pid, before, patience):
                    raise _StoodStill("a value holds up the process that saves", hint=_HINT) from None
                still = clock.now() + patience
        self._await(self._stream, self._deadline)

    def _look_at(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        sender, offered = control.sent_with(ancillary)
        self._pid = self._pid or sender
        control.close_all(offered)

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._stream.send(view) :]
            except BlockingIOError:
                self._await(self._stream, self._deadline, select.POLLOUT)
            except ConnectionError:
                raise _ended() from None

    def _await(self, what: socket.socket, deadline: float, event: int = select.POLLIN) -> None:
        wait = select.poll()
        wait.register(what, event)
        wait.register(self._cancel, select.POLLIN)
        ready = wait.poll(max(0.0, deadline - clock.now()) * 1e3)
        if not ready:
            raise _Late("saving took longer than it may", hint=_HINT)
        if any(descriptor == self._cancel for descriptor, _ in ready):
            raise _closed()

    # ------------------------------------------------------------------------------------- ending

    def close(self) -> None:
        """See `Capture`. A scribe that still runs is ended."""
        with self._closing:
            if not self._closed:
                self._closed = True
                with contextlib.suppress(OSError):
                    os.write(self._canceller, b"x")
            self._give_back()

    @property
    def is_given_back(self) -> bool:
        """True once all that it held open is closed: it takes no room any more."""
        return self._canceller < 0

    @finalizer
    def __del__(self) -> None:
        if not self.is_given_back:
            self.close()

    def _give_back(self) -> None:
        """Once it is closed and nobody reads."""
        if not self._closed or self._busy or self._canceller < 0:
            return
        for one in (self._stream, self._listed, *self._admitted):
            one.close()
        os.close(self._cancel)
        os.close(self._canceller)
        self._canceller = -1


def _unloadable(snapshot: Snapshot, failed: dict[str, str]) -> Iterator[Lost]:
    """The names of groups that cannot be loaded, and of those that need one."""
    for group in snapshot.groups:  # each comes after those that it needs
        needed = next((one for one in group.needs if one in failed), None)
        if needed is not None:
            failed.setdefault(group.key, f"what it needs could not be loaded: {failed[needed]}")
    for name, kind, key in snapshot.saved():
        if key in failed:
            reason = f"it could not be loaded again: {failed[key]}"
            yield Lost(name=name, type=kind, reason=reason, remedy=unloadable(reason))


class _Ended(CaptureFailed):
    """The scribe is no more."""


class _Late(CaptureFailed):
    """The scribe was not done in time."""


class _StoodStill(CaptureFailed):
    """The scribe has said nothing for as long as it may."""


def _closed() -> CaptureFailed:
    return CaptureFailed("it was closed", hint="capture again")


def _ended() -> _Ended:
    return _Ended("the process that saves has ended", hint=_HINT)


_HINT = "see what the session's objects do when they are pickled"
