"""Files of many small programs.

A program begins with a line `#: its-name`, may go on with lines `#: key: value`, and ends where the next one begins.
Its source is what follows, so its first line is line 1. Files end in `.py`, or in `.txt` where not every Python that is
supported can parse them, or they are data of the package.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cellblock.policy import RARE, Policy

HERE = Path(__file__).parent
ESCAPES, GIVEN = HERE / "escapes", HERE / "given"
"""Attempts to get out of a guarded session, and the modules of the host that they are given."""

_NAME = re.compile(r"#: ([A-Za-z0-9][\w.-]*)$")
_KEY = re.compile(r"#: ([a-z]+): (.+)$")


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program of a file, and what its header says of it."""

    name: str
    source: str
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs_here(self) -> bool:
        """True if this Python is one that the program is written for, and has the packages it is granted."""
        least = tuple(int(part) for part in self.keys.get("python", "3.11").split("."))
        return sys.version_info >= least and all(importlib.util.find_spec(name) for name in self.grants)

    @property
    def grants(self) -> tuple[str, ...]:
        """The packages that its policy trusts."""
        return tuple(self.keys["grants"].split(", ")) if "grants" in self.keys else ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The modules it imports."""
        return tuple(part.strip() for part in self.keys.get("needs", "").split(",") if part.strip())


def files(folder: Path) -> list[Path]:
    """The files of a corpus."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".py", ".txt"))


def programs(path: Path) -> list[Program]:
    """The programs of a file; ValueError for a header that cannot be read, or a name that is given twice."""
    found = list(_programs(path.read_text(encoding="utf-8")))
    names = [program.name for program in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path.name}: more than one program is called {', '.join(twice)}")
    return found


def _programs(text: str) -> Iterator[Program]:
    name, keys, lines = "", {}, []  # type: str, dict[str, str], list[str]
    for line in text.splitlines():
        if not line.startswith("#: "):
            lines.append(line)
        elif (key := _KEY.match(line)) and name and not lines:
            keys[key[1]] = key[2].strip()
        elif begins := _NAME.match(line):
            if name:
                yield _program(name, keys, lines)
            name, keys, lines = begins[1], {}, []
        else:
            raise ValueError(f"neither a name nor a key: {line}")
    if name:
        yield _program(name, keys, lines)


def _program(name: str, keys: dict[str, str], lines: list[str]) -> Program:
    return Program(name=name, source="\n".join(lines).rstrip() + "\n", keys=keys)


def policy_for(attempt: Program, vaults: Any, toolbox: Any) -> Policy:
    """An attempt's policy, with what it is given of the host's: a function, two classes, a module, and packages."""
    policy = Policy(trusted=attempt.grants, also=RARE).fn(vaults.greet).cls(vaults.Vault)
    return policy.cls(toolbox.Tool, subclassable=True).module(toolbox)


_ENDS = ("completed", "raised", "refused", "timeout", "memory")


def reached(found: Mapping[str, object]) -> Iterator[str]:
    """The things of the host's that an attempt got at, or changed."""
    if found["canary"] is not False:
        yield "a secret of the host came out"
    if found["changed"] != []:
        yield f"the host was changed: {found['changed']!r:.300}"


def failed(attempt: Program, found: Mapping[str, object]) -> Iterator[str]:
    """Faults beside that: it was not ended, or another rule refused it than the one that it is for."""
    if found["ended"] not in _ENDS:
        yield f"it ended so: {found['ended']}"
        return
    if found["left"] != 0:
        yield f"{found['left']} threads still ran its code afterwards"
    for key, what in (("refused", found["rules"]), ("ended", [found["ended"]])):
        if key in attempt.keys:
            said = attempt.keys[key].split(", ")
            if what != said and not (key == "ended" and found["ended"] in said):
                yield f"{key}: {what}, where {said} was expected"


def wall_of(attempt: Program) -> str:
    """The wall or the rule that answers it."""
    if "refused" in attempt.keys:
        return f"the guard's rule {attempt.keys['refused']}"
    return "the limits" if "ended" in attempt.keys else "nothing has to: it is harmless behind the guard"
