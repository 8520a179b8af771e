"""Answers, in init, the calls of a session's processes that reach another process, or map a file to be shared.

Out of their reach are init and the frozen copies of the worker. A copy is known to init by its pid once it is ready;
before that, and where that is late, it is told by this: it hides itself (it is not dumpable), as a process that is
forked from one that does so does from its first moment. Other processes that hide themselves are out of reach of all
but themselves, their children and their parents. In a branch all hide: there a copy is told by its blocked signals.

A file that was mapped to be shared may change and leave no time of change. Whoever remembers the files is told which
one it may be, before it is mapped; init of a branch, by a signal, that it may be any.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
from collections.abc import Collection
from contextlib import suppress

from cellblock.hosting import sockets
from cellblock.worker import holdings, procfs
from cellblock.worker.confine import listener as calls
from cellblock.worker.confine.listener import Call
from cellblock.worker.confine.namespaces import DOORS, ROOMS
from cellblock.worker.confine.seccomp import RULE_SETS, TARGETS
from cellblock.worker.init.filehistory import FileHistory

_BRANCHING = frozenset(("setns", "seccomp"))
_OF_SCRIBES = frozenset(("seccomp", *RULE_SETS))
MAPPED = signal.SIGUSR1
"""Tells init of a branch that a file of it is about to be mapped to be shared."""
_SIGCHLD = b"17"  # what a child's end raises; that of a copy which is a child of the worker's raises nothing


class Supervisor:
    """Holds the listeners of the filters that are in force.

    `copies` are those of the worker that are known; `parting` is one, of this session or a branch, that makes a branch;
    `saving` are those that make a scribe.
    """

    def __init__(self, poll: select.poll, history: FileHistory) -> None:
        """`history` is told of each file that may be written through memory."""
        self._poll = poll
        self._history = history
        self._doors: dict[int, socket.socket] = {}
        self._listeners: set[int] = set()
        self.worker = self.parting = 0
        self.copies: Collection[int] = ()
        self.saving: Collection[int] = ()

    def expect(self, door: int) -> None:
        """A filter's listener is to come in over a socket; the calls that arrive on it are answered from then on."""
        self._doors[door] = sockets.adopted(door)
        self._poll.register(door, select.POLLIN)

    def serve(self, descriptor: int, happened: int) -> None:
        """Take the listener, or answer the one call, for which a descriptor became ready."""
        if descriptor in self._doors:
            self._take(descriptor)
        elif descriptor in self._listeners:
            if happened & select.POLLIN:
                self._answer(descriptor)
            else:  # no process is left under the filter
                self._listeners.discard(descriptor)
                self._poll.unregister(descriptor)
                os.close(descriptor)

    def _take(self, number: int) -> None:
        self._poll.unregister(number)
        with self._doors.pop(number) as door:
            _, listeners, _, _ = socket.recv_fds(door, 64, 1, socket.MSG_CMSG_CLOEXEC)
        for listener in listeners:
            calls.prepare(listener)
            self._listeners.add(listener)
            self._poll.register(listener, select.POLLIN)

    def _answer(self, listener: int) -> None:
        call = calls.receive(listener)
        if call is None:
            return
        try:
            error = self._judge(call)
        except Exception:  # what cannot be judged is refused; why is told
            calls.refuse(listener, call, errno.EPERM)
            raise
        if error:
            calls.refuse(listener, call, error)
        else:
            calls.allow(listener, call)

    def _judge(self, call: Call) -> int:
        """The errno that the call fails with; 0 to let it be carried out."""
        if call.name in _OF_SCRIBES and self._is_scribe(call.caller):
            return 0
        if call.name in RULE_SETS:
            return errno.ENOSYS
        if call.name == "mmap":
            self._tell_mapping(call)
            return 0
        if call.name in _BRANCHING:
            return 0 if self._is_branching(call) else errno.EPERM
        if holdings.nested(call.caller):
            return 0 if _is_to_itself(call) or _is_in_reach(call) else errno.EPERM
        place = TARGETS.get(call.name)
        if place is None:
            return errno.EPERM
        target = abs(call.number(place))  # below 0 it is a group: that of a copy has the copy's number
        return errno.EPERM if target and self._is_out_of_reach(target, call.caller) else 0

    def _tell_mapping(self, call: Call) -> None:
        if holdings.nested(call.caller):
            for init in holdings.known_as(1):  # of any branch: which one it is nobody tells
                with suppress(ProcessLookupError):
                    os.kill(init, MAPPED)
            return
        try:
            if (file := holdings.open_to_write(call.caller, call.number(4))) is not None:
                self._history.suspect(file)
        except PermissionError:  # it hides its files
            self._history.suspect_all()

    def _is_branching(self, call: Call) -> bool:
        """True if a frozen copy is making a branch, and it is the copy's child, or may be its child's: that enters the
        branch's other namespaces, and is within its pid namespace, which it ends with.

        `setns` itself needs a descriptor of a namespace and rights over it, which only what the host sends to a copy
        gives.
        """
        if not self.parting:
            return False
        if holdings.depth(call.caller) > holdings.depth(self.parting):
            return call.name != "setns" or call.number(1) in ROOMS
        return call.name == "setns" and call.number(1) in DOORS and holdings.parent(call.caller) == self.parting

    def _is_scribe(self, caller: int) -> bool:
        """True if it is a child of a frozen copy that makes a scribe, which then walls itself in further."""
        return bool(self.saving) and holdings.parent(caller) in self.saving

    def _is_out_of_reach(self, target: int, caller: int) -> bool:
        if target == 1 or target in self.copies:
            return True
        if target in (caller, self.worker):
            return False
        if holdings.nested(target):
            return True
        return _hides(target) and not _are_of_one_family(target, caller)


def _is_to_itself(call: Call) -> bool:
    """True if a process of a branch means itself, by its number there."""
    own = {"tkill": b"NSpid:"}.get(call.name, b"NStgid:")
    place = 0 if call.name in ("tgkill", "rt_tgsigqueueinfo") else TARGETS[call.name]
    return abs(call.number(place)) in (0, holdings.number_inside(call.caller, own))


def _is_in_reach(call: Call) -> bool:
    """True if what a process of a branch means by a number there is neither the branch's init nor a frozen copy of its
    worker. All of them hide themselves.
    """
    number, init = abs(call.number(TARGETS[call.name])), _init_of(call.caller)
    return number != 1 and not any(
        _init_of(one) == init and holdings.is_copy(one) and not _are_of_one_family(one, call.caller)
        for one in holdings.known_as(number)
    )


def _init_of(process: int) -> int:
    """The first process of the branch that this one is of; -1 where it is gone."""
    while process > 0 and holdings.number_inside(process, b"NSpid:") != 1:
        process = holdings.parent(process)
    return process


def _hides(process: int) -> bool:
    """True if it is not dumpable, so that no other may look at it. Not told where the host masks `/proc`."""
    try:
        os.readlink(procfs.path(f"{process}/exe"))
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _are_of_one_family(target: int, caller: int) -> bool:
    """True if a process that hides itself is the caller, or the caller's parent or ordinary child."""
    of_caller, of_target = holdings.stat(caller), holdings.stat(target)
    if not of_caller or not of_target:
        return False
    process = holdings.process_of(caller)
    is_parent, is_child = int(of_caller[1]) == target, int(of_target[1]) == process and of_target[35] == _SIGCHLD
    return is_parent or is_child or process == holdings.process_of(target)
