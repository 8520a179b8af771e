"""A versioned session in plain Python: names with the lists that they share, files, and the states that led here."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

State = tuple[dict[str, list[object]], dict[str, str]]


@dataclass
class Commit:
    """What was there when a commit was made, and whether it is a step."""

    saved: State
    is_step: bool


@dataclass
class Model:
    """What a session holds. A step is a commit; what was rolled back or run aside is one that undo does not count."""

    names: dict[str, list[object]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.commits:
            self.step()

    def bind(self, name: str, value: list[object] | None) -> None:
        """Bind a name, or unbind it."""
        self.names.pop(name, None)
        if value is not None:
            self.names[name] = list(value)

    def append(self, name: str, value: object) -> None:
        """Append to a list, if there is one of that name."""
        if name in self.names:
            self.names[name].append(value)

    def share(self, name: str, other: str) -> None:
        """Bind a name to another's list, if there is one."""
        if other in self.names:
            self.names[name] = self.names[other]

    def write(self, name: str, text: str | None) -> None:
        """Write a file, or delete it."""
        self.files.pop(name, None)
        if text is not None:
            self.files[name] = text

    @property
    def steps(self) -> int:
        """How many steps can be undone."""
        return sum(one.is_step for one in self.commits[1:])

    def step(self, is_step: bool = True) -> None:
        """A step has been taken, which led to what is there."""
        self.commits.append(Commit(self._state(), is_step))

    def undo(self, steps: int) -> None:
        """Go back to what was there before so many steps."""
        while steps:
            steps -= self.commits.pop().is_step
        self.names, self.files = copy.deepcopy(self.commits[-1].saved)

    def checkout(self, commits: int) -> None:
        """Go to what so many commits ago was saved."""
        del self.commits[len(self.commits) - commits :]
        self.names, self.files = copy.deepcopy(self.commits[-1].saved)

    def copy(self) -> Model:
        """Another that goes on apart."""
        return copy.deepcopy(self)

    def seen(self) -> dict[str, Any]:
        """What `LOOK` and a list of the files tell of a session that is as this."""
        names = [
            [name, value, sorted(other for other in self.names if self.names[other] is value)]
            for name, value in sorted(self.names.items())
        ]
        return {"names": names, "files": dict(self.files)}

    def _state(self) -> State:
        return copy.deepcopy((self.names, self.files))


LOOK = (
    "sorted(([n, v, sorted(m for m in list(globals()) if m[0] == 'x' and globals()[m] is v)] "
    "for n, v in list(globals().items()) if n[0] == 'x'), key=lambda row: row[0])"
)
"""An expression that tells the names of the model from inside: each with its value, and those that share it."""

SLOW = "import time\nclass Slow:\n    def __reduce__(self): time.sleep(0.3); return Slow, ()\nslow = Slow()"
"""Binds a value that takes so long to be saved that the states of cells which come fast are not."""
ENDS = ("__reduce__", "__setstate__")
"""Methods in which a value can end the process that saves it, or loads it again."""
UNSAVED = ("slow", "ends")
"""What these values are called: they are no names of the model, and may be lost."""
_SAVED_LATER = "# what threads and processes did after their cells"


def ends(how: str, which: int) -> str:
    """Binds a value, of a class by its number, that ends the process that saves or loads it in one of its methods."""
    body = "time.sleep(0.05); os._exit(3)"
    return f"import os, time\nclass Ends{which}:\n    def {how}(self, *_): {body}\nends = Ends{which}()\nends.state = 1"


def steps_of(log: list[Any]) -> list[Any]:
    """The commits of a log that lead to the newest, that first: those of what was merged left aside, and those that
    only hold the state of the one before.
    """
    known, chain = {one.id: one for one in log}, log[:1]
    while chain[-1].parents:
        chain.append(known[chain[-1].parents[0]])
    return [one for one in chain if one.message != _SAVED_LATER]
