"""What this machine offers to a sandbox: the kernel's version and switches, and what would give more."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

_SWITCHES = (
    "user.max_user_namespaces",
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
)
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts read from this process and its kernel. A switch that the kernel does not have is None."""

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

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def inspect() -> Machine:
    """Read the facts. Changes nothing."""
    return Machine(
        system=platform.system(),
        kernel=platform.release(),
        architecture=platform.machine(),
        python=sys.executable,
        python_version=platform.python_version(),
        user=os.getuid(),
        container=_container(),
        switches={name: _switch(name) for name in _SWITCHES},
        landlock_abi=_landlock_abi(),
        cgroups=_cgroups(),
    )


def advice(machine: Machine) -> list[str]:
    """What would give this machine more walls, most needed first. Empty where nothing is missing."""
    if machine.system != "Linux":
        return ["trust_level='isolated' needs Linux: use a Linux machine, or a Linux VM on this one"]
    lines = []
    if machine.switches["user.max_user_namespaces"] == 0:
        lines.append("user namespaces are switched off: sysctl -w user.max_user_namespaces=10000")
    if machine.switches["kernel.unprivileged_userns_clone"] == 0 and machine.user:
        lines.append("user namespaces are kept for root: sysctl -w kernel.unprivileged_userns_clone=1")
    if machine.switches["kernel.apparmor_restrict_unprivileged_userns"] == 1 and machine.user:
        lines.append(
            "AppArmor restricts user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, "
            f"or an AppArmor profile with `userns,` for {machine.python}"
        )
    if machine.landlock_abi == 0:
        lines.append('no Landlock: Linux >= 5.13 with CONFIG_SECURITY_LANDLOCK, booted with "landlock" in lsm=')
    elif machine.landlock_abi < 6:
        lines.append(f"Landlock ABI {machine.landlock_abi}: Linux >= 6.12 has ABI 6, which also scopes signals")
    return lines


def in_container(machine: Machine) -> list[str]:
    """What a container has to be given before a session can open in it. Empty outside of one."""
    if machine.container == "docker":
        return [
            "Docker refuses `unshare`, `mount` and `pivot_root` by its default seccomp profile: run with "
            "--security-opt seccomp=unconfined (or a profile that allows them), --security-opt apparmor=unconfined "
            "where AppArmor is on, and --security-opt systempaths=unconfined, or /proc stays masked inside"
        ]
    if machine.container == "kubernetes":
        return [
            "the pod needs securityContext.seccompProfile (type Unconfined, or Localhost with a profile that allows "
            "unshare, mount and pivot_root), and hostUsers: false with procMount: Unmasked for a /proc inside"
        ]
    if machine.container:
        return ["the container must allow unshare, mount and pivot_root (podman: --security-opt seccomp=unconfined)"]
    return []


def _switch(name: str) -> int | None:
    try:
        return int(Path("/proc/sys", *name.split(".")).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _landlock_abi() -> int:
    from cellblock.worker.confine.syscalls import landlock_abi

    try:
        return landlock_abi()
    except OSError:
        return 0


def _container() -> str:
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    return os.environ.get("container", "")  # noqa: SIM112  (systemd-nspawn and lxc write it so)


def _cgroups() -> str:
    """The version, and whether this process may make groups of its own below the one it is in."""
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
