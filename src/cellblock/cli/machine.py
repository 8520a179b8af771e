"""This machine's features for a sandbox: the kernel's version and switches, and the container around this process."""

from __future__ import annotations

import errno
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from cellblock.executors.system import wsl
from cellblock.hosting.machine import MACHINE

_SWITCHES = (
    *(f"user.max_{kind}_namespaces" for kind in ("user", "mnt", "pid", "net", "ipc", "uts")),
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
)
_CGROUPS = Path("/sys/fs/cgroup")
_COVERS_NOTHING = "/proc/sys/fs/binfmt_misc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts read from this process and its kernel. A switch that the kernel does not have is None.

    `filtered`: a system call filter is on this process. `apparmor`: the profile it runs under, "" for none.
    `namespaces_refused`: the errno that a new user namespace answers, "" where there is one. `wsl`: the version of the
    Windows Subsystem for Linux, 0 for none. `user` is -1 on a system that numbers no users.
    """

    system: str
    kernel: str
    architecture: str
    python: str
    python_version: str
    user: int
    container: str
    switches: dict[str, int | None]
    landlock_abi: int
    cgroups: str
    filtered: bool = False
    apparmor: str = ""
    proc_masked: bool = False
    namespaces_refused: str = ""
    wsl: int = 0

    @property
    def is_linux(self) -> bool:
        """True if there is a Linux kernel: WSL 1 answers its calls without one."""
        return self.system == "Linux" and self.wsl != 1


def inspect() -> Machine:
    """Read the facts. Changes nothing."""
    found = {name: _read(f"/proc/sys/{name.replace('.', '/')}").strip() for name in _SWITCHES}
    return Machine(
        system=platform.system(),
        kernel=platform.release(),
        architecture=MACHINE or platform.machine(),
        python=sys.executable,
        python_version=platform.python_version(),
        user=os.getuid() if hasattr(os, "getuid") else -1,
        container=_container(),
        switches={name: int(value) if value.isdecimal() else None for name, value in found.items()},
        landlock_abi=_landlock_abi(),
        cgroups=_cgroups(),
        filtered="\nSeccomp:\t2" in _read("/proc/self/status"),
        apparmor=_apparmor(),
        proc_masked=_proc_masked(),
        namespaces_refused=_namespaces_refused(),
        wsl=wsl(),
    )


def _landlock_abi() -> int:
    from cellblock.worker.confine.syscalls import landlock_abi

    try:
        return landlock_abi()
    except OSError:
        return 0


def _apparmor() -> str:
    """The name of the profile without its mode; "" also where it is `unconfined`."""
    label = _read("/proc/self/attr/apparmor/current") or _read("/proc/self/attr/current")
    name = label.rstrip("\0\n").partition(" (")[0]
    return "" if name == "unconfined" else name


def _proc_masked() -> bool:
    """True if something covers a part of /proc: then the kernel mounts no new /proc for a session."""
    points = [line.split()[4] for line in _read("/proc/self/mountinfo").splitlines()]
    return any(point.startswith("/proc/") and point != _COVERS_NOTHING for point in points)


def _namespaces_refused() -> str:
    """The errno of a new user namespace, tried in a child, since a process cannot leave it again."""
    if sys.platform != "linux":
        return ""
    from cellblock.worker.confine.syscalls import CLONE_NEWUSER, unshare

    child = os.fork()
    if child == 0:
        try:
            unshare(CLONE_NEWUSER)
        except OSError as error:
            os._exit(error.errno or errno.EPERM)
        os._exit(0)
    answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return errno.errorcode.get(answer, "") if answer else ""


def _container() -> str:
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    return os.environ.get("container", "")  # noqa: SIM112  (systemd-nspawn and lxc write it so)


def _cgroups() -> str:
    """The version, and with version 2 if this process may make groups below its own."""
    if (_CGROUPS / "cgroup.controllers").exists():
        own = next((line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith("0::")), "/")
        group = Path(f"{_CGROUPS}{own}")
        writable = os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK)
        controllers = _read(str(group / "cgroup.controllers")).strip() or "none"
        return f"v2, {'delegated' if writable else 'not delegated'} (controllers: {controllers})"
    if _CGROUPS.is_dir() and any(_CGROUPS.iterdir()):
        return "v1"
    return "none mounted"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
