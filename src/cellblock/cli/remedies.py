"""Remedies that give a machine the walls it lacks: the cause of each lack, and the exact commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cellblock.cli.examination import Report
from cellblock.cli.machine import Machine
from cellblock.hosting.conditions import found
from cellblock.walls import Applied

_OPTIONS = {"docker": "systempaths=unconfined", "podman": "unmask=/proc/*"}
_SECCOMP, _APPARMOR = "cellblock-seccomp.json", "cellblock-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A cause, the commands against it, and a note."""

    cause: str
    commands: tuple[str, ...] = ()
    note: str = ""


def remedies(machine: Machine, report: Report) -> list[Remedy]:
    """Remedies that give this machine more than the report found, most needed first."""
    if machine.system != "Linux":
        linux, other = "trust_level='isolated' needs Linux", "a Linux virtual machine, with cellblock in it"
        if machine.system == "Windows":
            return [Remedy(cause=linux, commands=("wsl --install",), note=f"or {other}")]
        return [Remedy(cause=linux, note=other)]
    if machine.wsl == 1:
        upgrade = ("wsl.exe --list --verbose", "wsl.exe --set-version DISTRIBUTION 2")
        return [Remedy(cause="WSL 1 has no Linux kernel, and WSL 2 has one", commands=upgrade)]
    details = " ".join(wall.detail for wall in report.walls if isinstance(wall, Applied))
    return [
        *(Remedy(cause=one.args[0], note=one.hint) for one in found() if one.args[0] != report.failure),
        *_switches(machine),
        *(_container(machine, details if report.walls_up else None) if machine.container else _apparmor(machine)),
        *_landlock(machine),
        *(_masked(machine) if "without /proc" in details else ()),
    ]


def _switches(machine: Machine) -> Iterator[Remedy]:
    """User namespaces that the system itself, not a container around, keeps back."""
    for name, most in machine.switches.items():
        if name.startswith("user.max_") and most == 0:
            kind = name.removeprefix("user.max_").removesuffix("_namespaces")
            yield Remedy(cause=f"{kind} namespaces are switched off", commands=(f"sudo sysctl -w {name}=10000",))
    if machine.switches["kernel.unprivileged_userns_clone"] == 0 and machine.user:
        command = "sudo sysctl -w kernel.unprivileged_userns_clone=1"
        yield Remedy(cause="user namespaces are kept for root", commands=(command,))


def _apparmor(machine: Machine) -> Iterator[Remedy]:
    if machine.switches["kernel.apparmor_restrict_unprivileged_userns"] == 1 and machine.user:
        yield Remedy(
            cause="AppArmor keeps user namespaces from programs without a profile",
            commands=(
                "cellblock doctor --profile apparmor | sudo tee /etc/apparmor.d/cellblock",
                "sudo apparmor_parser -r /etc/apparmor.d/cellblock",
            ),
            note="or for every program: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )


def _container(machine: Machine, details: str | None) -> Iterator[Remedy]:
    """Remedies for the start of the container. `details`: those of the walls, None where no session opened."""
    if details is None:
        missing = "refuses namespaces, mounts or a new root"
    elif "host name as outside" in details:
        missing = "refuses sethostname: sessions see the container's host name"
    else:
        return
    if machine.container == "kubernetes":
        yield Remedy(
            cause=f"the pod's seccomp profile {missing}",
            commands=(
                "cellblock doctor --profile seccomp > /var/lib/kubelet/seccomp/cellblock.json   # on each node",
                "cellblock doctor --profile kubernetes > pod.yaml   # its securityContext is what a pod needs",
            ),
        )
        return
    engine = machine.container if machine.container in _OPTIONS else "podman"
    options = [f"--security-opt seccomp={_SECCOMP}"]
    profiles = [f"cellblock doctor --profile seccomp > {_SECCOMP}"]
    if machine.apparmor or machine.switches["kernel.apparmor_restrict_unprivileged_userns"] == 1:
        options.append(f"--security-opt apparmor={_APPARMOR}")
        profiles += [
            f"cellblock doctor --profile apparmor-container | sudo tee /etc/apparmor.d/{_APPARMOR}",
            f"sudo apparmor_parser -r /etc/apparmor.d/{_APPARMOR}",
        ]
    yield Remedy(
        cause=f"the container's seccomp profile{' or AppArmor' if len(options) > 1 else ''} {missing}",
        commands=(*profiles, f"{engine} run {' '.join(options)} ..."),
        note=f"the profiles are files of the machine that runs {engine}; "
        f"where cellblock is only in the image: {engine} run --rm IMAGE cellblock doctor --profile seccomp",
    )


def _landlock(machine: Machine) -> Iterator[Remedy]:
    if machine.landlock_abi == 0:
        note = 'Linux >= 5.13 with CONFIG_SECURITY_LANDLOCK, booted with "landlock" in lsm='
        if machine.wsl == 2:
            note += "; in WSL 2 by kernelCommandLine= below [wsl2] of .wslconfig, and wsl.exe --shutdown"
        yield Remedy(cause="no Landlock", note=note)
    elif machine.landlock_abi < 6:
        note = "Linux >= 6.12 has ABI 6, which also scopes signals"
        yield Remedy(cause=f"Landlock ABI {machine.landlock_abi}", note=note)


def _masked(machine: Machine) -> Iterator[Remedy]:
    """Remedies for a /proc with covered files."""
    if not machine.proc_masked:
        return
    cause = "/proc is masked: sessions have no /proc, and what all their processes hold together is not watched"
    if machine.user == 0:
        note = "run as another user than root and unmask it; root could change the machine through an unmasked one"
        yield Remedy(cause=cause, note=note)
    elif machine.container in _OPTIONS:
        command = f"{machine.container} run --security-opt {_OPTIONS[machine.container]} --user 1000 ..."
        yield Remedy(cause=cause, commands=(command,))
    elif machine.container == "kubernetes":
        yield Remedy(cause=cause, note="procMount: Unmasked, with hostUsers: false")
