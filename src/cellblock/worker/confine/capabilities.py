"""Linux capabilities: this process gives up all of them and the ways to get one back."""

import errno

from cellblock.walls import Applied, Unavailable
from cellblock.worker.confine import syscalls

MECHANISM = "capabilities"


def apply() -> Applied | Unavailable:
    """Empty every capability set of this thread and set no_new_privs.

    The bounding set goes first, since emptying it takes CAP_SETPCAP. A process without that capability keeps
    its bounding set: with no_new_privs and the other sets empty, no exec can bring a capability back out of
    it.
    """
    try:
        bounding = _drop_bounding_set()
        _clear_ambient_set()
        syscalls.clear_capabilities()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    except OSError as error:
        return Unavailable(
            mechanism=MECHANISM,
            reason=str(error),
            remedy="run on Linux on x86_64 or aarch64, where the outer sandbox allows capset and prctl",
        )
    return Applied(
        mechanism=MECHANISM,
        detail=f"effective, permitted, inheritable, ambient empty; {bounding}; no_new_privs",
    )


def _drop_bounding_set() -> str:
    try:
        syscalls.drop_bounding_set()
    except PermissionError:
        return "bounding set kept (no CAP_SETPCAP)"
    return "bounding set empty"


def _clear_ambient_set() -> None:
    """gVisor's kernel has none. Where there is one it also loses what is neither permitted nor inheritable."""
    try:
        syscalls.prctl(syscalls.PR_CAP_AMBIENT, syscalls.PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
