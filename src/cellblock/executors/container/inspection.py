"""What stands around a container, as the kernel tells of its first process before that does anything.

The engine was asked for all of it; whether it did it is another question.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cellblock.errors import IsolationUnavailable
from cellblock.executors.container.running import Running
from cellblock.walls import Applied

_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_NAMESPACES = ("pid", "mnt", "ipc", "uts", "net")


def inspected(running: Running) -> Applied:
    """The wall that a container is; IsolationUnavailable where a part of it is missing.

    Its first process waits meanwhile, in the namespaces that it was started in.
    """
    try:
        missing = sorted(_missing(Path("/proc") / str(running.pid)))
    except (OSError, KeyError, ValueError) as error:
        raise _refused(running, f"what stands around it cannot be read: {error}") from None
    if missing:
        raise _refused(running, f"it was started without {', '.join(missing)}")
    started = f"{running.engine.said}, {running.runtime}, {running.image}"
    detail = f"{started}; no network, read-only root, no capabilities, no new privileges, system call filter"
    return Applied(mechanism="container", detail=detail)


def _missing(process: Path) -> Iterator[str]:
    lines = (process / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if any(int(status[name], 16) for name in _CAPABILITIES):
        yield "dropping every capability"
    if status["NoNewPrivs"] != "1":
        yield "no-new-privileges"
    if status["Seccomp"] != "2":
        yield "a system call filter"
    for name in _NAMESPACES:
        if _is_ours(process, name):
            yield f"a {name} namespace of its own"
    devices = (process / "net" / "dev").read_text(encoding="utf-8").splitlines()[2:]
    if any(device.partition(":")[0].strip() != "lo" for device in devices):
        yield "taking away the network"
    if not _is_read_only(process):
        yield "a read-only root"


def _is_ours(process: Path, namespace: str) -> bool:
    return os.readlink(process / "ns" / namespace) == os.readlink(f"/proc/self/ns/{namespace}")


def _is_read_only(process: Path) -> bool:
    """Of the mount that was put over `/` last: its point is the fifth field, its options are the sixth."""
    mounts = (line.split() for line in (process / "mountinfo").read_text(encoding="utf-8").splitlines())
    options = [fields[5].split(",") for fields in mounts if fields[4] == "/"]
    return bool(options) and "ro" in options[-1]


def _refused(running: Running, reason: str) -> IsolationUnavailable:
    return IsolationUnavailable(
        f"a container of {running.engine.said} with {running.runtime} is not a wall: {reason}",
        mechanism="container",
        hint="use another runtime or engine: container=Container(runtime=…)",
    )
