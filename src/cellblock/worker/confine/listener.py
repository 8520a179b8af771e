"""The listener of a supervised system call filter: calls that wait in the kernel for an answer.

A call is taken by `receive` and let go by `allow`, `give` or `refuse`. Its arguments are registers, which the process
that waits cannot change meanwhile; what a pointer leads to could be, and is not to be judged here.
"""

import errno
import fcntl
import struct
from dataclasses import dataclass

from cellblock.hosting.machine import MACHINE
from cellblock.worker.confine.syscall_numbers import NUMBERS

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")  # id, pid, flags; struct seccomp_data: number, arch, place, arguments
_ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
_RECEIVE, _SEND, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_GO_ON = 1
_SWITCH_TO_WHO_WAITS = struct.pack("=Q", 1)
_GONE = (errno.ENOENT, errno.EINTR, errno.ENOTCONN)

_names = {number: name for name, number in NUMBERS.get(MACHINE, {}).items()}


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that waits: its name, the thread that makes it, and its registers."""

    id: int
    name: str
    caller: int
    arguments: tuple[int, ...]

    def number(self, place: int) -> int:
        """An argument of C's type `int`."""
        low = self.arguments[place] & 0xFFFFFFFF
        return low - 2**32 if low >> 31 else low


def prepare(listener: int) -> None:
    """Have the kernel go over to who waits for a call without a detour over another processor, where it can (6.6)."""
    try:
        fcntl.ioctl(listener, _SET_FLAGS, _SWITCH_TO_WHO_WAITS)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTTY):
            raise


def receive(listener: int) -> Call | None:
    """The next call; None where its process is gone. To be called when the listener is readable, else it waits."""
    room = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, room)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    id, caller, _, number, _, _, *arguments = _NOTIFICATION.unpack(room)
    return Call(id, _names.get(number, ""), caller, tuple(arguments))


def allow(listener: int, call: Call) -> None:
    """Let the call be carried out as if there were no filter."""
    _answer(listener, _ANSWER.pack(call.id, 0, 0, _GO_ON))


def require_waiting(listener: int, call: Call) -> None:
    """OSError where the thread that made the call waits no more: its number may be another's by now."""
    fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", call.id))


def give(listener: int, call: Call, value: int) -> None:
    """Have the call give a value, as if it had been carried out."""
    _answer(listener, _ANSWER.pack(call.id, value, 0, 0))


def refuse(listener: int, call: Call, error: int) -> None:
    """Have the call fail with an errno."""
    _answer(listener, _ANSWER.pack(call.id, 0, -error, 0))


def _answer(listener: int, answer: bytes) -> None:
    try:
        fcntl.ioctl(listener, _SEND, answer)
    except OSError as error:
        if error.errno not in _GONE:  # its process has ended meanwhile
            raise
