"""The steps by which a frozen copy of a session's worker becomes the worker of a branch.

The copy forks a process that enters the branch's user namespace, where it has every right, and leaves a child in the
branch's pid namespace. That joins the other namespaces, gives up every right again, and keeps nothing that the session
has too: descriptors are opened again by their paths, shared memory becomes its own. The copy goes on waiting.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cellblock.walls import Unavailable
from cellblock.worker.checkpoint import descriptors, owning
from cellblock.worker.confine import capabilities, layout, seccomp
from cellblock.worker.confine.namespaces import DOORS, ROOMS
from cellblock.worker.confine.syscalls import WAIT_SILENT, clone_silently, setns

_FILTER = seccomp.build_for_branch()


@dataclass(frozen=True, slots=True)
class Branch:
    """Start of a branch's worker; `mapped` are files that it had mapped."""

    connection: int
    next: int
    nonce: bytes
    seed: int
    gone: tuple[descriptors.Held, ...]
    anew: tuple[descriptors.Held, ...]
    mapped: tuple[str, ...]


def part(
    message: Mapping[str, object],
    ends: list[int],
    found: list[descriptors.Held],
    ours: tuple[int, ...],
    text: tuple[int, int],
) -> Branch | None:
    """In a frozen copy: make the worker of a branch. None in the copy; in the branch what it begins with.

    `ends` are its socket, the pipes for what it prints, the end for its first checkpoint, and its namespaces as
    `namespaces.NAMES` lists them; `text` are the pipes that the copy had, which are among `ours`, what the runner has
    for itself.
    """
    way = clone_silently()
    if way:
        for end in ends:
            os.close(end)
        os.waitpid(way, WAIT_SILENT)
        return None
    try:
        for door, kind in zip(ends[4:6], DOORS, strict=True):
            setns(door, kind)
        if clone_silently():
            os._exit(0)
        branch = _settle(message, ends, found, text)
        return replace(branch, gone=tuple(one for one in branch.gone if one.number not in ours))
    except BaseException:
        os._exit(1)


def _settle(
    message: Mapping[str, object], ends: list[int], found: list[descriptors.Held], text: tuple[int, int]
) -> Branch:
    mapped = owning.make_own(os.stat(layout.WORKSPACE).st_dev)
    places = descriptors.places(found, ends, dict(zip(text, ends[1:3], strict=True)))
    for space, kind in zip(ends[6:], ROOMS, strict=True):
        setns(space, kind)
    for space in ends[4:]:
        os.close(space)
    wall = capabilities.apply()
    taken = descriptors.move(places)
    os.chdir(layout.WORKSPACE)
    for pipe in ends[1:3]:
        os.close(pipe)
    for one in (wall, seccomp.apply(_FILTER)):
        if isinstance(one, Unavailable):
            raise OSError(one.reason)
    connection, following = (descriptors.out_of_the_way(end, found) for end in (ends[0], ends[3]))
    nonce = bytes.fromhex(str(message["nonce"]))
    seed = int(str(message["seed"]))
    return Branch(connection, following, nonce, seed, tuple(taken.lost), tuple(taken.anew), tuple(mapped))
