"""The options of commands that open a session, checked before anything runs: `Unusable` names what is wrong."""

from __future__ import annotations

import argparse
import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellblock.cli.exits import Unusable
from cellblock.container import Container
from cellblock.limits import ExecutionLimits
from cellblock.session.arguments import python_of
from cellblock.state import Versioned
from cellblock.text import whole_number
from cellblock.url import parsed
from cellblock.walls import TrustLevel

if TYPE_CHECKING:
    from cellblock.cli.opening import Setup

_MEMORY_MB = 1 << 20
_OUTPUT_BYTES = 1 << 30
SHOWN_BYTES = 1_000_000
"""Text of a cell that a person is shown; a model's default is less."""
MOST_STEPS = 999_999
"""Steps that a command takes back at most."""

LEVELS: tuple[TrustLevel, ...] = ("isolated", "sandboxed")
_DEFAULT = ExecutionLimits()

Parser = argparse.ArgumentParser | argparse._ArgumentGroup


def add_session(
    parser: argparse.ArgumentParser,
    output_default: str = str(SHOWN_BYTES),
    *,
    files: bool = True,
    levels: tuple[TrustLevel, ...] = LEVELS,
) -> None:
    """Add the options of a session; `files` are those that are copied in first, `levels` those that it can run at."""
    group = parser.add_argument_group("the session")
    add = group.add_argument
    add("--timeout", type=seconds, default=_DEFAULT.timeout_seconds, metavar="S", help="seconds a cell may take (30)")
    add(
        "--memory", type=whole(_MEMORY_MB), default=_DEFAULT.max_memory_mb, metavar="MB",
        help="memory a session may use (256)",
    )  # fmt: skip
    add(
        "--output", type=whole(_OUTPUT_BYTES), metavar="BYTES",
        help=f"text kept of a cell, the middle is cut ({output_default})",
    )  # fmt: skip
    add_place(group, levels)
    add("--preload", type=_names, default=(), metavar="A,B", help="import these packages before the session starts")
    add("--python", metavar="PATH", help="the interpreter inside (the one that runs cellblock; an image's python3)")
    add_inputs(group, files=files)
    add_network(group)


def add_kept(parser: argparse.ArgumentParser) -> None:
    """Add the options for a session that a store keeps."""
    add = parser.add_argument_group("a session that is kept").add_argument
    add("--session", metavar="NAME", help="go on with the session of this name, made if there is none, and keep it")
    add("--store", type=store_url, metavar="URL", help="where: sqlite:///FILE, … ($CELLBLOCK_STORE, else yours)")
    add("--user", metavar="USER", help="whose it is (default)")


def kept(arguments: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `AsyncSession` for a session that a store keeps, if one is asked for."""
    if arguments.session is None:
        for option in ("store", "user"):
            if getattr(arguments, option) is not None:
                raise Unusable(f"--{option} is for --session NAME")
        return {}
    return {"name": arguments.session, "user": arguments.user or "default", "state": Versioned(arguments.store)}


def add_network(parser: Parser, *, private: bool = True) -> None:
    """Add the options for the network, and with `private` those that close it."""
    add = parser.add_argument
    add(
        "--network", action="append", default=[], metavar="HOST:PORT",
        help="let it connect to this, by HTTP(S) or through the proxy that is set inside, as pypi.org:443; may be "
        "repeated; without it there is no network",
    )  # fmt: skip
    if private:
        add("--private", action="store_true", help="it holds private data: whatever is listed, it has no network")
        add(
            "--private-path", action="append", default=[], dest="private_paths", metavar="PATTERN",
            help="it becomes private with the first file or mount that matches, as 'payroll*'; may be repeated",
        )  # fmt: skip


def setup(
    arguments: argparse.Namespace, output_bytes: int = SHOWN_BYTES, more: Mapping[str, Any] | None = None
) -> Setup:
    """The session asked for, whose processes start; `output_bytes` of text without `--output`; or `Unusable`.

    `more` are other arguments of `AsyncSession`.
    """
    from cellblock.cli.opening import Setup

    return Setup({**session(arguments, output_bytes), **(more or {})}, inputs(arguments))


def session(arguments: argparse.Namespace, output_bytes: int) -> dict[str, Any]:
    """The arguments of `AsyncSession` that are asked for; see `setup`."""
    return {
        "limits": ExecutionLimits(
            timeout_seconds=arguments.timeout,
            max_memory_mb=arguments.memory,
            max_output_bytes=arguments.output or output_bytes,
        ),
        "preload": arguments.preload,
        "python": python(arguments),
        **place(arguments),
        "mounts": mounts(arguments),
        "network": network(arguments),
        "private": arguments.private or tuple(arguments.private_paths),
    }


def network(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The hosts that may be connected to."""
    from cellblock.network import destinations

    try:
        return tuple(map(str, destinations(arguments.network)))
    except ValueError as error:
        raise Unusable(f"--network: {str(error).removeprefix('network: ')}") from None


def add_place(parser: Parser, levels: tuple[TrustLevel, ...]) -> None:
    """Add the options for the place where a session runs."""
    add = parser.add_argument
    add(
        "--trust-level", choices=levels, default="isolated", metavar="LEVEL",
        help=f"{', '.join(levels[:-1])} or {levels[-1]}: the kernel's walls, or those in a container of podman or "
        "docker (isolated)",
    )  # fmt: skip
    add(
        "--walls", choices=("full", "reduced"), default="full",
        help="reduced: without namespaces, where the machine gives none (full); doctor says what that gives up",
    )  # fmt: skip
    add("--image", metavar="IMAGE", help="of the container ($CELLBLOCK_IMAGE, else what `cellblock image build` makes)")
    add("--engine", metavar="NAME", help="what runs the container: podman or docker (the first that is there)")
    add("--runtime", metavar="NAME", help="its OCI runtime: runc, crun, runsc, kata (the engine's own)")


def add_inputs(parser: Parser, *, files: bool = True) -> None:
    """Add the options for files of this machine: with `files`, those that are copied in."""
    add = parser.add_argument
    if files:
        add(
            "--file", action="append", default=[], dest="files", metavar="LOCAL[:NAME]",
            help="copy a file into the session first; may be repeated",
        )  # fmt: skip
    add(
        "--mount", action="append", default=[], dest="mounts", metavar="NAME=PATH",
        help="show a directory or file of this machine inside, read-only; may be repeated",
    )  # fmt: skip


def place(arguments: argparse.Namespace) -> dict[str, Any]:
    """The level and walls of a session, as arguments of `Session`."""
    level, walls = arguments.trust_level, arguments.walls
    named = {name: getattr(arguments, name) for name in ("image", "engine", "runtime")}
    if level != "sandboxed":
        if unusable := [name for name, value in named.items() if value]:
            raise Unusable(f"--{unusable[0]} is for --trust-level sandboxed")
        return {"trust_level": level, "walls": None if level == "local" else walls}
    try:
        container = Container(**{name: value for name, value in named.items() if value})
    except ValueError as error:
        raise Unusable(str(error)) from None
    return {"trust_level": level, "walls": walls, "container": container}


def python(arguments: argparse.Namespace) -> str | None:
    """The interpreter inside, as a session takes it."""
    try:
        found = python_of(arguments.python, arguments.trust_level or "isolated")
    except ValueError as error:
        raise Unusable(str(error).replace("python=", "--python: ", 1)) from None
    if found is not None and arguments.trust_level != "sandboxed" and shutil.which(found) is None:
        raise Unusable(f"--python: {arguments.python!r} is not a program")
    return found


def inputs(arguments: argparse.Namespace) -> dict[str, Path]:
    """Local files to copy, by their names inside."""
    return dict(_input(word) for word in arguments.files)


def mounts(arguments: argparse.Namespace) -> dict[str, str]:
    """Directories and files to show, by their names inside."""
    found: dict[str, str] = {}
    for word in arguments.mounts:
        name, equals, path = word.partition("=")
        if not (name and equals and path):
            raise Unusable(f"--mount {word!r} is not NAME=PATH")
        if name in found:
            raise Unusable(f"--mount {word!r}: {name!r} is given twice")
        found[name] = path
    return found


def _input(word: str) -> tuple[str, Path]:
    """The name inside and the local path of a `LOCAL[:NAME]`; a local name may hold colons itself."""
    local, name = Path(word), ""
    if not os.path.exists(local) and ":" in word:
        before, _, name = word.rpartition(":")
        local = Path(before)
    if not os.path.isfile(local):
        reason = "is not a file" if os.path.exists(local) else "does not exist"
        raise Unusable(f"--file {word!r}: {str(local)!r} {reason}")
    if not os.access(local, os.R_OK):
        raise Unusable(f"--file {word!r}: {str(local)!r} is not readable")
    return name or local.name, local


def _names(text: str) -> tuple[str, ...]:
    names = words(text)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise argparse.ArgumentTypeError(f"{name!r} is not the name of a package")
    return names


def seconds(text: str) -> float:
    """The type of an option: seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


def whole(most: int) -> Callable[[str], int]:
    """The type of an option: a whole number from 1 to `most`."""

    def read(text: str) -> int:
        if not (number := whole_number(text, most)):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return number

    return read


def store_url(text: str) -> str:
    """The type of an option: a store's URL without a password, as every user of a machine can read command lines."""
    found = parsed(text)
    if found is not None and (found.password or any("password" in name.lower() for name in found.options)):
        raise argparse.ArgumentTypeError("everybody can read a password there: set CELLBLOCK_STORE to the URL instead")
    return text


def words(text: str) -> tuple[str, ...]:
    """The type of an option: words with commas between."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def target(path: str, *, option: str = "--save ", script: bool = False) -> Path:
    """The path of a document to write, or of a `script`. `option` is the option, as errors name it."""
    target = Path(path)
    if target.suffix not in (".ipynb", ".html") and not (script and target.suffix == ".py"):
        raise Unusable(f"{option}{path!r} ends neither in .ipynb nor in .html{' nor in .py' if script else ''}")
    if not os.path.isdir(target.parent):
        raise Unusable(f"{option}{path!r}: there is no directory {str(target.parent)!r}")
    if os.path.isdir(target):
        raise Unusable(f"{option}{path!r} is a directory")
    there = _is_taken(target, option) and os.path.exists(target)
    return _writable(target, target if there else target.parent, option)


def directory(path: str) -> Path:
    """The directory of `--save`, which is made with its first file."""
    target = Path(path)
    known = next(one for one in (target, *target.absolute().parents) if _is_taken(one, "--save "))
    if not os.path.isdir(known):
        raise Unusable(f"--save {path!r}: {str(known)!r} is no directory")
    return _writable(target, known, "--save ")


def _is_taken(path: Path, option: str) -> bool:
    """True if a file, a directory or a link is at a path; `Unusable` for a path that the system does not take."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise Unusable(f"{option}{str(path)!r}: {getattr(error, 'strerror', error)}") from None
    return True


def _writable(target: Path, known: Path, option: str) -> Path:
    if not os.access(known, os.W_OK):
        raise Unusable(f"{option}{str(target)!r}: it cannot be written there")
    return target
