"""The filter of sessions without namespaces: what the isolated one refuses is refused, and more."""

from __future__ import annotations

import errno

import pytest

from cellblock.worker.confine import seccomp
from cellblock.worker.confine.bpf import SUPERVISED, length
from cellblock.worker.confine.syscall_numbers import NUMBERS
from cellblock.worker.reduced import filter as reduced
from cellblock.worker.reduced.metadata import CALLS

_BY_PATH = """stat lstat newfstatat statx statfs access faccessat faccessat2 readlink readlinkat chmod fchmodat
    fchmodat2 chown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr getxattr lgetxattr listxattr
    llistxattr removexattr lremovexattr setxattrat getxattrat listxattrat removexattrat truncate"""
"""What tells of a path or changes what is known of a file: Landlock's documentation lists them as not covered."""


def test_nothing_that_isolated_refuses_is_let_through() -> None:
    isolated, here = seccomp.policy(shared_memory=False), reduced.policy()
    assert isolated.keys() <= here.keys()
    refused = {name for name, answer in isolated.items() if isinstance(answer, int) and answer > 0}
    loosened = {name for name in refused if not (isinstance(here[name], int) and here[name] > 0)}
    assert loosened == set()


def test_rules_of_isolated_hold_where_the_keeper_does_not_answer() -> None:
    isolated, here = seccomp.policy(shared_memory=False), reduced.policy()
    for name, answer in isolated.items():
        if isinstance(answer, tuple) and isinstance(here[name], tuple) and name not in ("socket", "socketpair"):
            assert here[name][: len(answer)] == answer


@pytest.mark.parametrize("name", _BY_PATH.split())
def test_call_about_a_path_is_the_keepers_or_refused(name: str) -> None:
    answer = reduced.policy()[name]
    assert answer == SUPERVISED if name in CALLS else answer in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


@pytest.mark.parametrize("machine", sorted(NUMBERS))
def test_filter_fits_the_kernel(machine: str) -> None:
    assert 300 < length(reduced.build(machine)) < 4096
