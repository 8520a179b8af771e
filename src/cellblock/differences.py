"""Differences between two versions of a session: names, files and the steps that led from one to the other."""

from __future__ import annotations

from dataclasses import dataclass

from cellblock.text import cut, line, name, row

_MOST, _MOST_MESSAGE = 10_000, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name of the session: its type, its own size in bytes, and the beginning of its repr."""

    type: str
    size: int
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameChange:
    """A name that is not what it was, or shares objects with one that is not. None: it was not there."""

    name: str
    before: Name | None
    after: Name | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file, directory or link that is not what it was, its path relative to `workspace/` or `tmp/` as it begins.

    Sizes in bytes; None: it was not there.
    """

    path: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken:
    """One step: the id of its commit, its kind, the number of its cell and the first line of its source."""

    commit: str
    kind: str
    number: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """From one commit to another. `steps` are those that only the second comes from, oldest first.

    Not `exact`: the state of one of the two was not saved; what is told is of the one before it that was.
    """

    before: str
    after: str
    names: tuple[NameChange, ...] = ()
    files: tuple[FileChange, ...] = ()
    steps: tuple[StepTaken, ...] = ()
    exact: bool = True

    def __bool__(self) -> bool:
        return bool(self.names or self.files or self.steps)

    def __str__(self) -> str:
        lines = [f"{step.kind} [{step.number}] {row(cut(step.message, _MOST_MESSAGE))}" for step in self.steps]
        lines += [f"{_mark(one.before, one.after)} {name(one.name)}{_values(one)}" for one in self.names]
        lines += [f"{_mark(one.before, one.after)} {name(one.path)}{_sizes(one)}" for one in self.files]
        return "\n".join(lines) or "nothing differs"


def _mark(before: object, after: object) -> str:
    return "+" if before is None else "-" if after is None else "~"


def _values(one: NameChange) -> str:
    values = [value for value in (one.before, one.after) if value is not None]
    return ": " + " → ".join(f"{line(value.preview, _MOST)} ({line(value.type)})" for value in values)


def _sizes(one: FileChange) -> str:
    return f": {' → '.join(f'{size} bytes' for size in (one.before, one.after) if size is not None)}"
