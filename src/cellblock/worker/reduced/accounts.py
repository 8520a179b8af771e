"""Whom the processes of a session run as where the host is root: two accounts that own nothing else.

The worker and all it starts are the one, wholly. The keeper is real and saved user of the other, and acts as the
first: so it may signal and read what the session runs, and the session may not signal it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from cellblock.worker.confine import syscalls

CAP_SETGID, CAP_SETUID = 6, 7
_SETTING = 1 << CAP_SETGID | 1 << CAP_SETUID
_PR_SET_KEEPCAPS = 8


@dataclass(frozen=True, slots=True)
class Account:
    """User and group numbers, each used as both."""

    keeper: int
    session: int


def step_down(account: int) -> None:
    """From root to an account that keeps the right to take others, without the use of it until `keep` asks."""
    with contextlib.suppress(PermissionError):  # without CAP_SETPCAP it stays, and no_new_privs keeps it out of reach
        syscalls.drop_bounding_set()
    os.setgroups([])
    os.setresgid(account, account, account)
    syscalls.prctl(_PR_SET_KEEPCAPS, 1)
    os.setresuid(account, account, account)
    syscalls.prctl(_PR_SET_KEEPCAPS, 0)
    syscalls.set_capabilities(effective=0, permitted=_SETTING)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # a change of user clears it, and /proc/self would belong to root


def keep(account: Account) -> None:
    """From a stepped down process to the keeper of an account, for good."""
    syscalls.set_capabilities(effective=_SETTING, permitted=_SETTING)
    os.setresgid(account.keeper, account.session, account.keeper)
    os.setresuid(account.keeper, account.session, account.keeper)
    syscalls.clear_capabilities()


def become(account: Account) -> None:
    """From the keeper of an account to the account, for good."""
    os.setresgid(account.session, account.session, account.session)
    os.setresuid(account.session, account.session, account.session)
