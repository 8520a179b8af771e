"""`cellblock doctor`: opens a session, says which walls stand around it, and tries each from inside."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import anyio

from cellblock.cli.examination import Report, examine, examine_local
from cellblock.cli.exits import DONE, STOPPED, Unusable
from cellblock.cli.machine import Machine, inspect
from cellblock.cli.remedies import remedies
from cellblock.cli.terminal import Paint, write_data
from cellblock.hosting.forks import importing
from cellblock.walls import Applied, Unavailable

GIVEN_UP = (
    "sockets, /proc, /dev/shm, mounts, and multiprocessing's locks and pools: there are none inside",
    "the host's name, the numbers of its processes, and whether a path exists: they can be found out",
    "files in memory: a session's are on the host's disk, where the keeper watches how much they take",
    "a count of what the kernel keeps for pairs of sockets",
    "for an ordinary user, an account for each session: the limit of processes counts all that the user runs",
)
"""Losses of a session without namespaces."""
_LOCAL_WORKS = (
    "works here: a cell ran, and one that it does not let run was refused. It is a guard against mistakes and known "
    "escapes, in your own process; for code you do not trust use isolated, the default"
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        description="Opens a session, names the walls around it, and tries each of them from inside.",
    )
    add = parser.add_argument
    add("--json", action="store_true", help="print one JSON object")
    add("--profile", choices=tuple(PROFILES), help="print a profile for what surrounds the program, and end")
    add("--walls", choices=("full", "reduced"), help="which to try (full, and where those are not to be had, reduced)")
    add(
        "--attack", nargs="*", metavar="CLASS",
        help="make the attacks of the test suite, against canaries on this machine: of these classes of "
        "docs/security.md (W1 to W10; at the level local L1 to L9), of all, or of those that lead out of a session; "
        "pip install ./attacks in a checkout of cellblock installs them",
    )  # fmt: skip
    levels = ("isolated", "local", "sandboxed")
    add("--trust-level", choices=levels, default="isolated", help="what --attack attacks (isolated)")
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    """Examine and report; the exit status is 0 where every wall is up and every attempt was refused."""
    if arguments.profile:
        print(profile(arguments.profile), end="")
        return DONE
    if arguments.attack is not None:
        return _attack(arguments)
    if arguments.trust_level != "isolated":
        raise Unusable(f"--trust-level {arguments.trust_level} is for --attack")
    with importing():
        machine = inspect()
    report = anyio.run(examine, machine.landlock_abi, arguments.walls or "full")
    instead = local = None
    if not machine.is_linux:
        local = anyio.run(examine_local)
    elif arguments.walls is None and not report.walls_up:
        instead = anyio.run(examine, machine.landlock_abi, "reduced")
    if arguments.json:
        write_data(_as_dict(report, machine, instead, local), indent=2)
    else:
        print("\n".join(_as_text(report, machine, instead, local, Paint(sys.stdout))))
    return DONE if report.ok else STOPPED


def _attack(arguments: argparse.Namespace) -> int:
    try:
        from cellblock_attacks import report
    except ModuleNotFoundError as missing:
        if missing.name != "cellblock_attacks":
            raise
        raise Unusable("the attacks are not installed: pip install ./attacks in a checkout of cellblock") from None
    try:
        ids = report.classes(arguments.attack, arguments.trust_level)
    except ValueError as error:
        raise Unusable(str(error)) from None
    held = report.report(
        ids, trust_level=arguments.trust_level, walls=arguments.walls or "full", as_json=arguments.json
    )
    return DONE if held else STOPPED


def _as_dict(report: Report, machine: Machine, instead: Report | None, local: str | None) -> dict[str, object]:
    return {
        "ok": report.ok,
        "machine": asdict(machine),
        "python_inside": report.python,
        "walls": [{**asdict(wall), "applied": isinstance(wall, Applied)} for wall in report.walls],
        "tried": [asdict(finding) for finding in report.findings],
        "skipped": list(report.skipped),
        "failure": report.failure,
        "reduced": None if instead is None else {"ok": instead.ok, "failure": instead.failure},
        "local": None if local is None else {"ok": not local, "failure": local},
        "remedies": [asdict(remedy) for remedy in remedies(machine, report)],
    }


def _as_text(
    report: Report, machine: Machine, instead: Report | None, local: str | None, paint: Paint
) -> Iterator[str]:
    yes, no = paint.yes, paint.no
    for wall in report.walls:
        if isinstance(wall, Unavailable):
            yield f"{no if wall.needed else '-'} {wall.mechanism}: {wall.reason}"
            what = "below" if "cellblock doctor" in wall.remedy else wall.remedy
            yield f"    {'remedy' if wall.needed else 'to have it'}: {what}"
            continue
        tried = [finding for finding in report.findings if finding.mechanism == wall.mechanism]
        yield f"{yes if all(one.proved for one in tried) else no} {wall.mechanism}: {paint.dim(wall.detail)}"
        for one in tried:
            yield f"    {yes if one.proved else no} {one.tried}: {one.answer}"
    if report.failure and not report.walls:
        yield f"{no} {report.failure}"
    for line in report.skipped:
        yield f"    - not tried: {line}"
    yield ""
    yield from machine_lines(machine)
    for remedy in remedies(machine, report):
        yield ""
        yield f"to get more: {remedy.cause}"
        for command in remedy.commands:
            yield f"    $ {command}"
        if remedy.note:
            yield f"    {remedy.note}"
    yield ""
    proved = sum(one.proved for one in report.findings)
    if report.findings:
        yield f"{proved} of {len(report.findings)} attempts from inside were refused"
    else:
        yield "no session could be opened: it does not work here as it is"
    if instead is not None:
        yield from _instead_lines(instead)
    if local is not None:
        yield f'trust_level="local" {f"does not work here either: {local}" if local else _LOCAL_WORKS}'


def _instead_lines(reduced: Report) -> Iterator[str]:
    """Lines on the session without namespaces that would open where one with them does not."""
    if not reduced.ok:
        failed = next((f"{one.tried}: {one.answer}" for one in reduced.findings if not one.proved), reduced.failure)
        yield f'walls="reduced", which goes without namespaces, does not work here either: {failed}'
        return
    yield 'walls="reduced", which goes without namespaces, works here, if it is asked for: Session(walls="reduced"),'
    yield f"cellblock run --walls reduced. {len(reduced.findings)} attempts from inside were refused. It gives up:"
    for line in GIVEN_UP:
        yield f"    - {line}"


def machine_lines(machine: Machine) -> Iterator[str]:
    yield f"machine: {machine.system} {machine.kernel} {machine.architecture}" + "".join(
        (
            f", user {machine.user}" if machine.user >= 0 else "",
            f", WSL {machine.wsl}" if machine.wsl else "",
            f", in a container ({machine.container})" if machine.container else "",
        )
    )
    yield f"python: {machine.python_version} at {machine.python}"
    if not machine.is_linux:
        return
    switches = ", ".join(f"{name}={'absent' if value is None else value}" for name, value in machine.switches.items())
    yield f"switches: {switches}"
    yield f"user namespaces: {'refused with ' + machine.namespaces_refused if machine.namespaces_refused else 'given'}"
    around = ["a system call filter"] if machine.filtered else []
    around += [f"AppArmor's {machine.apparmor}"] if machine.apparmor else []
    around += ["a masked /proc"] if machine.proc_masked else []
    yield f"around this program: {', '.join(around) or 'nothing'}"
    yield f"Landlock: ABI {machine.landlock_abi}" if machine.landlock_abi else "Landlock: not offered"
    yield f"cgroups: {machine.cgroups}"


PROFILES = {
    "seccomp": "seccomp.json",
    "apparmor": "apparmor",
    "apparmor-container": "apparmor-container",
    "kubernetes": "kubernetes.yaml",
}


def profile(name: str) -> str:
    """A profile, with this interpreter's real path where one is named: AppArmor knows programs by it."""
    path = Path(__file__).parent / "profiles" / PROFILES[name]
    return path.read_text(encoding="utf-8").replace("@PYTHON@", os.path.realpath(sys.executable))
