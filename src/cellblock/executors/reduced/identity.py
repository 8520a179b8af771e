"""Whom sessions run as: where the host is root, a pair of accounts that no other session on this machine has.

A pair is taken by binding an abstract unix socket of its name, which the kernel gives back when the last holder ends:
that of the session's keeper. Numbers are of a range that no distribution gives to accounts or services.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from cellblock.errors import IsolationUnavailable
from cellblock.hosting import conditions
from cellblock.hosting.account import SANDBOX_UID, is_mapped
from cellblock.hosting.sockets import Socket
from cellblock.worker.confine import syscalls
from cellblock.worker.reduced.accounts import Account
from cellblock.worker.reduced.walls import SCOPED_ABI

_FIRST, _LAST = 60_578, 61_183


@dataclass(frozen=True, slots=True)
class Taken:
    """A pair of accounts, and the socket that holds it."""

    account: Account
    hold: socket.socket


def require() -> int | None:
    """The account that a family steps down to, None where it stays the host's user.

    `IsolationUnavailable` where nothing would keep a session from signalling its keeper and the host.
    """
    conditions.require(conditions.other_machine, conditions.without_dev, conditions.filtered)
    if os.getuid() != 0:
        abi = syscalls.landlock_abi()
        if abi < SCOPED_ABI:
            raise IsolationUnavailable(
                f"identity: without accounts of their own, sessions need Landlock ABI {SCOPED_ABI} to keep their "
                f"signals in; this is {abi}",
                mechanism="identity",
                hint="use Linux 6.12 or newer; run as root, in a container say, sessions have accounts of their own",
            )
        return None
    conditions.require(conditions.powerless)
    if not all(is_mapped(number) for number in (_FIRST, _LAST, SANDBOX_UID)):
        raise IsolationUnavailable(
            "identity: root may not run sessions as accounts of their own here",
            mechanism="identity",
            hint=f"give it the users up to {_LAST}, or run as an ordinary user: in a container, --user 1000",
        )
    return SANDBOX_UID


def take() -> Taken:
    """A pair that is free; `IsolationUnavailable` when none is."""
    for keeper in range(_FIRST, _LAST, 2):
        if keeper == SANDBOX_UID or keeper + 1 == SANDBOX_UID:
            continue
        hold = Socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            hold.bind(f"\0cellblock-account-{keeper}")
            return Taken(Account(keeper, keeper + 1), hold)
        except OSError:
            hold.close()
    raise IsolationUnavailable(
        f"identity: all {(_LAST - _FIRST) // 2} pairs of accounts are in use",
        mechanism="identity",
        hint="close sessions",
    )
