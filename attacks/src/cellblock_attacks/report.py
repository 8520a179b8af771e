"""The attacks made on this machine against canaries, and told class by class: `cellblock doctor --attack`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from cellblock.cli.terminal import Paint, write_data
from cellblock.errors import CellblockError, IsolationUnavailable
from cellblock.hosting.unique import unique_word
from cellblock.text import plain, read_json
from cellblock_attacks import reduced, tables
from cellblock_attacks.attack import Attack
from cellblock_attacks.language.programs import ESCAPES, Program, failed, files, programs, reached, wall_of
from cellblock_attacks.threats import BY_ID, THREATS

PROGRAM = ("-m", "cellblock_attacks", "--twice")
DEFAULT = ("W1", "W2", "W3", "W4", "W5", "W6", "W8", "W10")
"""Classes that lead out of a session. Those of the wire and of the runner's insides take longer than all of these."""

LOCAL = ("L1", "L2", "L3", "L4", "L5", "L6", "L8", "L9")
"""At the level local. Attempts at outliving the limits are not among them: each takes as long as it may."""

LANGUAGE = ("-W", "ignore", "-m", "cellblock_attacks.language", "guard")
_PATIENT = {"LIMIT": "4", "PATIENCE": "20"}
"""Seconds: none of these attempts is to come to its time limit, on a machine that does more either."""

_ENDING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One attack and what became of it.

    `reached`: what it got at outside of its session. `failed`: what else was not as it must be. `known`: why it is
    known to succeed, "" for an attack that must not.
    """

    name: str
    threat: str
    wall: str
    reached: Sequence[str] = ()
    failed: Sequence[str] = ()
    known: str = ""
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        return bool(self.known) or not (self.reached or self.failed)


def classes(words: list[str], trust_level: str = "isolated") -> tuple[str, ...]:
    """The ids that the command line names: none means the default, `all` each of them. ValueError: another word."""
    there = LOCAL if trust_level == "local" else _walled()
    if "all" in words:
        return there
    unknown = [word for word in words if word not in there]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a class of attacks at the level {trust_level}: there are {', '.join(there)} and all"
        )
    return tuple(name for name in there if name in words) or (LOCAL if trust_level == "local" else DEFAULT)


def _walled() -> tuple[str, ...]:
    tried = {attack.threat for attack in tables.ATTACKS}
    return tuple(threat.id for threat in THREATS if threat.id in tried)


def chosen(ids: Iterable[str], *, walls: str = "full") -> list[Attack]:
    """The attacks of these classes, one class after the other."""
    attacks = reduced.BY_NAME if walls == "reduced" else tables.BY_NAME
    wanted = list(ids)
    return sorted((one for one in attacks.values() if one.threat in wanted), key=lambda one: wanted.index(one.threat))


def made(attacks: list[Attack], *, trust_level: str, walls: str) -> Iterator[Tried]:
    """Make them, in a process of their own, as its sessions' host. Leaving early ends it.

    IsolationUnavailable where no session opens; CellblockError where the process ended before all were made.
    """
    by_name, canary = {attack.name: attack for attack in attacks}, f"canary-{unique_word(16)}"
    told = {"ATTACKED_TRUST_LEVEL": trust_level, "ATTACKED_WALLS": walls, "SECRET": canary}
    for outcome in _told([*PROGRAM, canary, *by_name], told, len(by_name)):
        attack = by_name[outcome["name"]]
        yield Tried(
            name=attack.name,
            threat=attack.threat,
            wall=attack.wall,
            reached=outcome["reached"],
            failed=outcome["failed"],
            known=attack.hole,
            seconds=outcome["seconds"],
        )


def made_locally(ids: tuple[str, ...]) -> Iterator[Tried]:
    """Make the attempts at the guard of these classes, each in a process. Leaving early ends it."""
    for path, attempts in attempts_of(ids).items():
        by_name = {attempt.name: attempt for attempt in attempts}
        began = time.monotonic()
        for found in _told([*LANGUAGE, str(path)], _PATIENT, len(attempts)):
            attempt = by_name[found["name"]]
            took, began = time.monotonic() - began, time.monotonic()
            if (threat := attempt.keys["threat"]) in ids:
                yield Tried(
                    name=attempt.name,
                    threat=threat,
                    wall=wall_of(attempt),
                    reached=tuple(reached(found)),
                    failed=tuple(failed(attempt, found)),
                    seconds=round(took, 2),
                )


def attempts_of(ids: tuple[str, ...]) -> dict[Path, list[Program]]:
    """The attempts that this Python can make, by file, of the files that hold some of these classes."""
    made = {
        path: [one for one in programs(path) if one.runs_here and "open" not in one.keys] for path in files(ESCAPES)
    }
    return {path: found for path, found in made.items() if any(one.keys["threat"] in ids for one in found)}


def _told(words: list[str], told: dict[str, str], count: int) -> Iterator[dict[str, Any]]:
    """Lines that a program prints, each a JSON object; CellblockError if it ends before it has printed so many."""
    left = count
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | told | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
            text=True,
            start_new_session=True,  # Ctrl-C is for us: it is told to end by a signal that it tidies up at
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                outcome: Any = read_json(line)
                if "failure" in outcome:
                    raise IsolationUnavailable(outcome["failure"], mechanism=outcome["mechanism"])
                left -= 1
                yield outcome
        finally:
            _end(process)
        if left:
            raise CellblockError(
                f"{left} of {count} attacks were not made: the program that makes them ended",
                hint=f"it said: {_last(errors)}",
            )


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING_SECONDS)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _last(errors: IO[bytes]) -> str:
    errors.seek(0)
    return plain(" ".join(errors.read()[-500:].decode(errors="replace").split())) or "nothing"


# --- telling ------------------------------------------------------------------------------------------------------


def report(ids: tuple[str, ...], *, trust_level: str, walls: str, as_json: bool) -> bool:
    """Make the attacks of these classes and tell what became of them; whether every wall held."""
    began = time.monotonic()
    if trust_level == "local":
        programs = [one for of_file in attempts_of(ids).values() for one in of_file]
        expected = Counter(one.keys["threat"] for one in programs if one.keys["threat"] in ids)
        runs = made_locally(ids)
    else:
        attacks = chosen(ids, walls=walls)
        expected = Counter(one.threat for one in attacks)
        runs = made(attacks, trust_level=trust_level, walls=walls)
    found: list[Tried] = []
    printer = None if as_json else _Printer(expected)
    for tried in runs:
        found.append(tried)
        if printer is not None:
            printer.tell(tried)
    ok = all(tried.held for tried in found)
    seconds = round(time.monotonic() - began, 1)
    if printer is not None:
        printer.end(found, seconds)
    else:
        write_data(_as_dict(found, trust_level, walls, seconds), indent=2)
    return ok


def _as_dict(found: list[Tried], trust_level: str, walls: str, seconds: float) -> dict[str, object]:
    by_class = {name: [tried for tried in found if tried.threat == name] for name in BY_ID}
    return {
        "ok": all(tried.held for tried in found),
        "trust_level": trust_level,
        "walls": walls,
        "seconds": seconds,
        "classes": [
            {
                "id": name,
                "title": BY_ID[name].title,
                "held": all(one.held for one in tried),
                "tried": [asdict(one) | {"held": one.held} for one in tried],
            }
            for name, tried in by_class.items()
            if tried
        ],
    }


def _short(tried: Tried) -> str:
    """An attack's name without that of its table."""
    return tried.name if tried.threat in LOCAL else tried.name.partition("-")[2]


class _Printer:
    """Prints a class once all its attacks were made, and on a terminal which one is being made."""

    def __init__(self, expected: Counter[str]) -> None:
        """`expected`: how many there are of each class."""
        self._expected = expected
        self._made: dict[str, list[Tried]] = {name: [] for name in expected}
        self._redraws = sys.stderr.isatty()
        self._paint = Paint(sys.stdout)

    def tell(self, tried: Tried) -> None:
        of_class = self._made[tried.threat]
        of_class.append(tried)
        if self._redraws:
            made, count = sum(map(len, self._made.values())), self._expected.total()
            print(f"\r\x1b[K{made} of {count}: {tried.name}", end="", file=sys.stderr, flush=True)
        if len(of_class) == self._expected[tried.threat]:
            self._tell_class(of_class)

    def end(self, found: list[Tried], seconds: float) -> None:
        wrong = [tried for tried in found if not tried.held]
        known = sum(bool(tried.known) for tried in found)
        told = f", {known} of which reach what is known and not promised" if known else ""
        if not wrong:
            print(f"every wall held: {len(found)} attacks in {seconds:.0f} s{told}")
            return
        through = sum(bool(tried.reached) for tried in wrong)
        print(f"{len(wrong)} of {len(found)} attacks did not meet their wall, {through} of which reached the host")
        print("please report it as SECURITY.md says, with `cellblock doctor --json` of this machine")

    def _tell_class(self, tried: list[Tried]) -> None:
        if self._redraws:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        threat = BY_ID[tried[0].threat]
        sign = self._paint.yes if all(one.held for one in tried) else self._paint.no
        print(f"{sign} {threat.id}, {threat.title}: {len(tried)} attacks")
        by_wall: dict[str, list[Tried]] = {}
        for one in tried:
            by_wall.setdefault(one.wall, []).append(one)
        for wall, of_wall in by_wall.items():
            print(f"    {self._paint.yes if all(one.held for one in of_wall) else self._paint.no} {wall}")
            names = ", ".join(_short(one) for one in of_wall if one.held and not one.known)
            for line in textwrap.wrap(names, 100, break_on_hyphens=False):
                print(f"        {self._paint.dim(line)}")
            for one in of_wall:
                for fault in (one.known,) if one.known else (*one.reached, *one.failed):
                    mark = "known" if one.known else "REACHED" if fault in one.reached else "FAILED"
                    print(f"        {mark} {one.name}: {plain(fault)}")
        sys.stdout.flush()
