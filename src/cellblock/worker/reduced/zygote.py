"""The zygote of sessions without namespaces: it imports a profile's packages, and is copied for each session's keeper.

Executed by the host. As root it steps down to an account that owns nothing before any package's code runs. Landlock
keeps what the packages do as they are imported from writing anything but into a scratch directory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from functools import partial
from typing import NoReturn

from cellblock.hosting import sockets
from cellblock.hosting.account import READABLE, unreadable
from cellblock.hosting.machine import DEVICES
from cellblock.walls import Unavailable
from cellblock.worker import control, main
from cellblock.worker.border import report
from cellblock.worker.confine import landlock, layout, syscalls
from cellblock.worker.confine.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from cellblock.worker.ended import ended_children
from cellblock.worker.environment import enter_packages, environment
from cellblock.worker.family.zygote import preload
from cellblock.worker.forks import fork
from cellblock.worker.integrity import take_out
from cellblock.worker.reduced import accounts, filter, keeper, walls
from cellblock.worker.reduced.accounts import Account
from cellblock.worker.reduced.sight import WRITABLE_DEVICES, Sight

_MECHANISM = "zygote"


def serve(channel: socket.socket) -> None:
    """Preload, report, then make keepers until the host is gone. Never returns.

    The first message says what to import, what to expose, the directory that holds those of sessions (`base`), one
    in it to write to (`scratch`), and whom to step down to. Each further one is for one keeper: its directory, limits
    and account, with its control channel and the lock of its directory.
    """
    profile, _ = control.receive(channel)
    if profile is None:
        os._exit(0)
    modules = take_out()
    account = profile["account"]
    tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if isinstance(account, int):
        _step_down(channel, account)
    enter_packages()
    sys.path[:] = [entry for entry in sys.path if entry]
    seen = layout.exposure(_strings(profile["expose"]))
    scratch, base = str(profile["scratch"]), str(profile["base"])
    os.environ.update(environment(scratch, scratch))
    failed = _wall_in(seen, base)
    if failed is not None:
        _refuse(channel, failed)
    os.chdir(scratch)
    preload(channel, _strings(profile["preload"]), tasks)
    main.prepare(modules, guarded=bool(profile.get("guard")))
    program = filter.build()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    control.send(channel, {"ready": True})
    keepers: dict[int, Account | None] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _bury(keepers))
    while True:
        message, descriptors = control.receive(channel)
        if message is None:
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        own = _account(message["account"])
        try:
            keepers[fork(partial(_become_keeper, channel, message, descriptors, seen, own, program))] = own
        except OSError as error:
            with sockets.adopted(descriptors.pop(0)) as host:
                control.tell(host, report("keeper", error))
        for descriptor in descriptors:
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _step_down(channel: socket.socket, account: int) -> None:
    try:
        accounts.step_down(account)
    except OSError as error:
        remedy = "allow root to set users, groups and capabilities, or run as an ordinary user"
        _refuse(channel, Unavailable(mechanism="identity", reason=str(error), remedy=remedy))


def _refuse(channel: socket.socket, wall: Unavailable) -> NoReturn:
    control.send(channel, {"failed": wall.mechanism, "reason": wall.reason, "remedy": wall.remedy})
    os._exit(1)


def _wall_in(seen: layout.Exposure, base: str) -> Unavailable | None:
    """Keep the packages' own code, as it is imported, from what sessions are kept from; what failed, if any did."""
    try:
        if unread := unreadable():
            reason = f"{unread} cannot be read by the account that sessions run as"
            return Unavailable(mechanism="identity", reason=reason, remedy=READABLE)
        sight = Sight(seen, [base])
        wall = landlock.apply(
            read_only=[*sight.trees, *DEVICES],
            read_write=[base, "/proc"],  # the keepers answer and count by way of /proc
            files=WRITABLE_DEVICES,
            scope=False,
        )
    except OSError as error:
        return Unavailable(
            mechanism=_MECHANISM, reason=str(error), remedy="see whether the directory of TMPDIR is usable"
        )
    return wall if isinstance(wall, Unavailable) else None


def _become_keeper(
    channel: socket.socket,
    message: dict[str, object],
    descriptors: list[int],
    seen: layout.Exposure,
    account: Account | None,
    program: bytes,
) -> None:
    """In a child. The lock stays open as long as this process lives."""
    channel.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    home = str(message["home"])
    keeper.run(
        sockets.adopted(descriptors[0]),
        message,
        sight=Sight(seen, [f"{home}/workspace", f"{home}/tmp"]),
        account=account,
        program=program,
        scoped=syscalls.landlock_abi() >= walls.SCOPED_ABI,
    )


def _bury(keepers: dict[int, Account | None]) -> None:
    """Take the ends of keepers. What one that was killed has left behind comes to this process, and is ended."""
    lost: list[Account | None] = []
    for pid, status in ended_children():
        if pid in keepers:
            account = keepers.pop(pid)
            if os.waitstatus_to_exitcode(status):
                lost.append(account)
    for account in lost:
        _end_all(keepers, account)


def _end_all(keepers: dict[int, Account | None], account: Account | None) -> None:
    """Kill what is below this process and is no keeper, until nothing is."""
    while orphans := [child for child in keeper.children(os.getpid()) if child not in keepers]:
        if account is None:
            for orphan in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
        else:
            _kill_account(account)
        for orphan in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _kill_account(account: Account) -> None:
    def kill() -> None:
        accounts.keep(account)
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    os.waitpid(fork(kill), 0)


def _account(value: object) -> Account | None:
    match value:
        case [int(own), int(session)]:
            return Account(own, session)
    return None


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
