"""The host's side of a line: gives a kernel a socket and two pipes for each worker, as if that were a process here.

A thread for each session. Requests of the kernel come over a channel, with the descriptors of a worker's streams;
notices of the relay go back on it. A worker's end is a notice, and the closing of a descriptor that came with the
streams, after all that it wrote was passed on.

Security border: what comes on the line is of a container. Text and packets are passed on unread, messages are checked.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import weakref
from typing import TYPE_CHECKING

from cellblock.documents import fits
from cellblock.executors.container.engine import reason_in
from cellblock.hosting import clock, sockets
from cellblock.hosting.threads import begun
from cellblock.worker import control
from cellblock.worker.relayed.junction import Junction, Packets, Pipe
from cellblock.worker.relayed.line import PACKET, STDERR, STDOUT, Broken

if TYPE_CHECKING:
    from cellblock.executors.container.relayed.kernel import Contained

_ANSWER_SECONDS = 15.0
"""Time for a relay to answer a request; past it the container is removed."""
_ENDING_SECONDS = 20.0
_KEPT_BYTES = 8000
_CHUNK = 64 * 1024
_MOST_CURBS = 100_000
_ANSWERS = {"kill": "ended", "sweep": "swept", "end": "count"}

_MOST_BYTES = 16 * 1024
_MOST_TEXT = 4000
_HELD = re.compile(r"[0-9]{1,9} MB, nearly all that its container has")
"""Text about memory that is held, which goes into a cell's error."""

Notice = dict[str, object]

_NUMBER = range(2**31)
_SIGNALS = tuple(map(int, signal.valid_signals()))
_STATUS = (range(0, 2**16, 256), *_SIGNALS, *(number | 0x80 for number in _SIGNALS))
"""A wait status of an end: an exit code, or a signal that this machine knows, with a core or without."""
_ENDED: dict[object, object] = {"ended": _NUMBER, "status": _STATUS}
_FAILED: dict[object, object] = {"failed": str, "reason": str}
_NOTICES: tuple[dict[object, object], ...] = (
    {"ready": True},
    {"importing": str},
    {**_FAILED, "remedy": str},
    {**_FAILED, "remedy": str, "errno": _NUMBER},
    {**_FAILED, "module": str},
    {**_FAILED, "module": str, "remedy": str},
    _ENDED,
    {**_ENDED, "unread": True},
    {"curbed": str, "worker": bool, "unruly": bool},
    {"swept": True},
    {"count": _NUMBER},
    {"outgrown": str},
)
_NOTHING_ELSE: dict[object, object] = {...: ()}


class Pump:
    """Thread that passes on a session's streams. Owns the engine's command, a channel and the workers' descriptors."""

    def __init__(self, started: Contained, channel: socket.socket) -> None:
        self._started, self._channel = started, channel
        process = started.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._line_out, self._line_in, self._said_on = process.stdin, process.stdout, process.stderr
        self._junction = Junction(self._line_in.fileno(), self._line_out.fileno())
        self._deaths: dict[int, int] = {}
        self._dead: dict[int, Notice] = {}
        self._due: dict[str, float] = {}
        self._curbs = 0
        self._heard = b""
        self.reason = ""
        """Reason for the end of the session, once its channel is closed."""
        _pumps.add(self)
        self._thread = begun(self._run, name="cellblock-line")

    @property
    def said(self) -> str:
        """The end of the command's standard error, as one line."""
        return reason_in(ascii(self._heard.decode(errors="replace"))[1:-1].replace("\\n", " "))

    def await_end(self) -> None:
        """Wait until nothing of it is left, as is soon once the other end of its channel is closed."""
        self._thread.join()

    def _run(self) -> None:
        """Pass on what comes until either side ends, then clean up."""
        asked = False
        try:
            channel, said = self._channel.fileno(), self._said_on.fileno()
            self._channel.setblocking(False)
            os.set_blocking(said, False)
            for descriptor in (channel, said):
                self._junction.watch(descriptor)
            while not asked:
                asked = self._turn(channel, said)
        except EOFError:
            pass
        except Broken as error:
            self.reason = f"its container broke the protocol: {error}"
        except TimeoutError:
            self.reason = f"its container did not answer within {_ANSWER_SECONDS:.0f} s"
        except OSError as error:
            self.reason = f"the line to its container broke: {error}"
        finally:
            self._end(clean=asked)

    def _turn(self, channel: int, said: int) -> bool:
        """Pass on what is ready; True once the kernel has closed its end."""
        messages, others = self._junction.pass_on(self._patience())
        for data in messages:
            self._hear(notice_of(data))
        for token in [token for token in self._dead if self._junction.delivered(token)]:
            self._bury(token)
        if said in others and not self._read_said():
            self._junction.forget(said)
        return channel in others and not self._serve()

    def _patience(self) -> float | None:
        """Seconds to wait for an answer that is owed; TimeoutError once that is over."""
        if not self._due:
            return None
        now = clock.now()
        if not all(map(self._junction.delivered, self._deaths)):  # its end comes after what nobody has read yet
            self._due = dict.fromkeys(self._due, now + _ANSWER_SECONDS)
        left = min(self._due.values()) - now
        if left <= 0:
            raise TimeoutError
        return left

    def _serve(self) -> bool:
        """Carry out what the kernel asks; False when it has closed its end."""
        while True:
            try:
                message, descriptors = control.receive(self._channel)
            except BlockingIOError:
                self._junction.flush()
                return True
            if message is None:
                return False
            if descriptors:
                self._join(int(str(message["token"])), descriptors)
            answer = _ANSWERS.get(str(message.get("do")))
            if answer == "ended" and not self._deaths.keys() - self._dead.keys():
                answer = None  # it has ended
            if answer is not None:
                self._due[answer] = clock.now() + _ANSWER_SECONDS
            self._junction.send(control.packed(message))

    def _join(self, token: int, descriptors: list[int]) -> None:
        connection, stdout, stderr, death = descriptors
        self._deaths[token] = death
        packets = Packets(PACKET, sockets.adopted(connection))
        self._junction.join(token, (packets, Pipe(STDOUT, stdout, takes=False), Pipe(STDERR, stderr, takes=False)))

    def _hear(self, notice: Notice) -> None:
        match notice:
            case {"ended": int(token)}:
                if token not in self._deaths or token in self._dead:
                    raise Broken(f"the end of worker {token}, which there is not")
                self._dead[token] = notice
                self._due.pop("ended", None)
                return
            case {"curbed": _}:
                self._curbs += 1
                if self._curbs > _MOST_CURBS:
                    raise Broken("more processes killed than there can be")
            case {"swept": _}:
                self._due.pop("ended", None)
                for token in list(self._deaths):
                    self._part(token)
        self._tell(notice)

    def _tell(self, notice: Notice) -> None:
        self._due.pop(next(iter(notice)), None)
        try:
            control.send(self._channel, notice, flags=socket.MSG_DONTWAIT)
        except BlockingIOError:
            raise Broken("more messages than anybody asked for") from None
        except ConnectionError:  # the kernel is gone, which is read next
            return

    def _bury(self, token: int) -> None:
        """Report the end of a worker, all of whose output was passed on."""
        self._tell(self._dead.pop(token))
        self._part(token)

    def _part(self, token: int) -> None:
        self._dead.pop(token, None)
        self._junction.part(token)
        death = self._deaths.pop(token)
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it
            os.write(death, b"\0")  # closing it is not enough while a copy of this process has it
        os.close(death)

    def _read_said(self) -> bool:
        try:
            data = os.read(self._said_on.fileno(), _KEPT_BYTES)
        except BlockingIOError:
            return True
        self._heard = (self._heard + data)[-_KEPT_BYTES:]
        return bool(data)

    def _end(self, *, clean: bool) -> None:
        """Close the line, which ends the container; remove one that does not end."""
        process = self._started.process
        self._line_out.close()
        if self.reason or not self._await(process) or process.returncode < 0:
            self._started.remove()
            process.kill()
            process.wait()
        if not clean and not self.reason:
            self.reason = _how(process.returncode, self.said)
        self.let_go()

    def _await(self, process: subprocess.Popen[bytes]) -> bool:
        """True if the engine's command has ended in time. It is read from meanwhile, or it would wait for that."""
        deadline = clock.now() + _ENDING_SECONDS
        said = self._said_on.fileno()
        os.set_blocking(said, False)
        open_ones = {self._line_in.fileno(), said}
        while open_ones:
            ready, _, _ = select.select(open_ones, (), (), max(0.0, deadline - clock.now()))
            if not ready:
                return False
            for one in ready:
                if not (self._read_said() if one == said else os.read(one, _CHUNK)):
                    open_ones.remove(one)
        try:
            process.wait(max(0.0, deadline - clock.now()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def let_go(self) -> None:
        """Close every descriptor: at the end, and in a forked copy of this process."""
        for stream in (self._line_out, self._line_in, self._said_on):
            stream.close()
        self._junction.close()
        for death in (self._deaths.pop(token) for token in list(self._deaths)):
            os.close(death)
        self._channel.close()


def _how(status: int, said: str) -> str:
    """Description of the end of the engine's command."""
    if status < 0:
        return f"the engine's command was ended by {signal.Signals(-status).name}"
    if status in (137, 143):
        return f"its container was killed (status {status}): from outside, or for want of memory"
    return f"its container ended (status {status}): {said}"


def notice_of(data: bytes) -> Notice:
    """A notice that a row allows; `Broken` for anything else."""
    if len(data) > _MOST_BYTES:
        raise Broken(f"a message of {len(data)} bytes")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise Broken("a message that cannot be read") from None
    known = any(fits(told, row | _NOTHING_ELSE) for row in _NOTICES)
    if not known or any(isinstance(text, str) and len(text) > _MOST_TEXT for text in told.values()):
        raise Broken("a message that no relay sends")
    if "curbed" in told and not _HELD.fullmatch(told["curbed"]):
        raise Broken("a message that no relay sends")
    notice: Notice = told
    return notice


_pumps: weakref.WeakSet[Pump] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for pump in list(_pumps):
        pump.let_go()


os.register_at_fork(after_in_child=_after_fork_in_child)
