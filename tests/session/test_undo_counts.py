"""What `undo` counts as a step is the same in a session that lives, in one that slept, and in one opened again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import Session, Versioned


class Beside:
    """A session with a tool that writes files while a cell runs."""

    def __init__(self, state: Versioned | None) -> None:
        self._state = state
        self.open()

    def open(self) -> None:
        named = {} if self._state is None else {"name": "one", "state": self._state}
        self.session = Session(tools=[self.save], **named)  # type: ignore[arg-type]

    def save(self, *names: str) -> None:
        for name in names:
            self.session.files.write(name, b"")


STEPS: dict[str, Callable[[Session], object]] = {
    "cell": lambda session: session.run("rows.append('cell')"),
    "cell that raises": lambda session: session.run("rows.append('raised'); 1 / 0"),
    "cell that ends its process": lambda session: session.run("rows.append('ended'); import os; os._exit(1)"),
    "cell that changes nothing": lambda session: session.run("pass"),
    "shell": lambda session: session.shell("touch shell"),
    "file": lambda session: session.files.write("host", b""),
    "file that a cell's tool writes": lambda session: session.run("rows.append('tool'); save('beside')"),
    "files that a cell's tool writes": lambda session: session.run("rows.append('tool'); save('b', 'c')"),
    "files of a cell that raises": lambda session: session.run("rows.append('tool'); save('b'); 1 / 0"),
    "files of a cell that ends": lambda session: session.run("save('b'); import os; os._exit(1)"),
    "value": lambda session: session.__setitem__("value", 1),
    "source run aside": lambda session: session.aside("rows.append('aside')"),
    "source run aside as a step": lambda session: session.aside("rows.append('aside')", step="it"),
    "look at the names": lambda session: session.names(),
    "clearing": lambda session: session.clear(),
    "clearing of files too": lambda session: session.clear(files=True),
    "deletion": lambda session: session.delete(session.notebook[-1].id),
}


def _is_there(session: Session) -> tuple[object, list[str]]:
    return session.aside("globals().get('rows'), globals().get('value')", reads=True), session.files.list()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("steps", [1, 2, pytest.param(3, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("what", STEPS)
def test_undo_counts_the_same_steps_wherever_the_session_goes_on(tmp_path: Path, what: str, steps: int) -> None:
    found = []
    for how in ("without versions", "lives", "slept", "opened again"):
        state = Versioned(f"sqlite:///{tmp_path}/{how.replace(' ', '-')}.db")
        beside = Beside(None if how == "without versions" else state)
        beside.session.run("rows = []")
        beside.session.run("rows.append('first')")
        STEPS[what](beside.session)
        if how == "slept":
            beside.session.hibernate()
        elif how == "opened again":
            beside.session.close()
            beside.open()
        with beside.session as session:
            session.undo(min(steps, 2) if what in NO_STEP else steps)
            found.append((*_is_there(session), [cell.source for cell in session.notebook if not cell.undone]))
    assert found[1:] == [found[0]] * 3


NO_STEP = {
    "cell that ends its process",
    "files of a cell that ends",
    "source run aside",
    "look at the names",
    "deletion",
}
