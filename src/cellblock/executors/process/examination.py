"""Looks at a branch's process from outside, before anything is done with it: what it says of itself may be anything."""

from __future__ import annotations

import contextlib
import os

from cellblock.errors import CellblockError, IsolationUnavailable

_RIGHTS = ("CapInh", "CapPrm", "CapEff", "CapAmb")
_SPACES = ("user", "pid", "mnt", "net", "ipc", "uts")


def examine(branch: int, copy: int, processes: int) -> None:
    """Raise for a process that is not apart from the frozen copy it was made of, and from every other process of that
    session, or has any right.

    All are known by their numbers in `processes`, the `/proc` of the parent's session: the host's own may hide them.
    What the kernel tells everybody is always looked at. Namespaces and descriptors it shows of a process that hides
    itself only to who has the right to trace it: to a host that is root.
    """
    branched, origin = (f"/proc/self/fd/{processes}/{process}" for process in (branch, copy))
    of_branch, of_parent = _status(branched), _status(origin)
    if not of_parent:
        raise _ended()
    if any(int(of_branch.get(name, "1"), 16) for name in _RIGHTS):
        raise _refused("it has kept capabilities")
    depth = _depth(of_parent)
    if _depth(of_branch) != depth + 1:
        raise _refused("it is not in a pid namespace of its own")
    if int(of_branch.get("Seccomp_filters", "0")) != int(of_parent.get("Seccomp_filters", "0")) + 1:
        raise _refused("its system call filter is not in front of it")
    try:
        with contextlib.suppress(PermissionError):
            for space in _SPACES:
                if os.readlink(f"{branched}/ns/{space}") == os.readlink(f"{origin}/ns/{space}"):
                    raise _refused(f"it is in the {space} namespace of the session it was branched from")
            shared = _open_files(branched) & _open_files_of(processes, depth)
            if shared:
                raise _refused(f"it holds what the session it was branched from holds: {sorted(shared)[0]:.100}")
    except (FileNotFoundError, ProcessLookupError):
        raise _ended() from None


def _ended() -> CellblockError:
    return CellblockError("the session's process, or the branch's, ended meanwhile", hint="branch it again")


def _status(process: str) -> dict[str, str]:
    try:
        with open(f"{process}/status", encoding="ascii", errors="replace") as file:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}


def _depth(status: dict[str, str]) -> int:
    """Number of pid namespaces that a process is in."""
    return len(status.get("NSpid", "").split())


def _open_files(process: str) -> set[str]:
    """Sockets and pipes, which alone are told apart by their names. A thread that has ended, as the first may have,
    shows none of those that the others have.
    """
    found = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"{process}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for name in os.listdir(f"{process}/task/{thread}/fd"):
                    with contextlib.suppress(FileNotFoundError):
                        found.add(os.readlink(f"{process}/task/{thread}/fd/{name}"))
    return {one for one in found if one.startswith(("socket:", "pipe:"))}


def _open_files_of(processes: int, depth: int) -> set[str]:
    """Of all processes of a session, which are in so many pid namespaces: those of its branches are in more."""
    found = set[str]()
    for number in filter(str.isdigit, os.listdir(f"/proc/self/fd/{processes}")):
        process = f"/proc/self/fd/{processes}/{number}"
        with contextlib.suppress(OSError):  # it hides them, or has ended
            if _depth(_status(process)) == depth:
                found |= _open_files(process)
    return found


def _refused(reason: str) -> IsolationUnavailable:
    return IsolationUnavailable(f"branch: {reason}", mechanism="branch", hint="report this, with the kernel's version")
