"""A program that kills: a versioned session's program, or one of its processes, at random moments, and compares.

    python kills.py URL SEED KILLS SECONDS

Each life of the session is a fork of this process, which has opened nothing itself. It takes operations over a pipe and
acknowledges each. Killed, it is followed by another, which must hold what was acknowledged: no step less, none twice.
Prints what it did as JSON; `wrong` must be empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from family_tree import below
from versioned_model import ENDS, LOOK, SLOW, UNSAVED, Model, ends, steps_of

from cellblock import CellblockError, ExecutionLimits, Session, Versioned

NAMES = [f"x{n}" for n in range(4)]
PATIENCE = 60.0
Change = Callable[[Model], None]
_recent: deque[str] = deque(maxlen=40)
"""What was said and done last, for who looks into a failure."""


def main(url: str, seed: int, kills: int, seconds: float) -> int:
    """Kill so many times, or for so long."""
    luck, done, wrong = random.Random(seed), Counter[str](), list[str]()
    model, life = Model(), Life(url)
    until = time.monotonic() + seconds
    while sum(done.values()) < kills and time.monotonic() < until and not wrong:
        try:
            life, model = _once(url, luck, life, model, done)
        except (Wrong, TimeoutError) as error:
            wrong.append(f"{type(error).__name__}: {error}")
            wrong += _recent
    with contextlib.suppress(ProcessLookupError):  # it had ended by itself, which is among the wrongs
        life.kill()
    print(json.dumps({"kills": done, "steps": model.steps, "wrong": wrong}))
    return bool(wrong)


def _once(url: str, luck: random.Random, life: Life, model: Model, done: Counter[str]) -> tuple[Life, Model]:
    """Some operations and a kill."""
    for _ in range(luck.randrange(4)):
        model = _acknowledged(life, model, *_operation(luck, model))
    operation, change = _operation(luck, model)
    how = luck.choice(["program", "program, busy", "process", "process, busy"])
    done[how] += 1
    if how == "program":
        time.sleep(luck.random() * 0.03)
        life.kill()
        return (again := Life(url)), _one_of(again, model)
    if how == "program, busy":
        life.send(operation)
        time.sleep(luck.random() * 0.05)
        life.kill()
        return (again := Life(url)), _one_of(again, model, *_outcomes(model, change))
    if how == "process":
        life.strike(luck)
        time.sleep(luck.choice([0, 0, 0.001, 0.01, 0.05]))
        life.send(operation)
    else:
        life.send(operation)
        time.sleep(luck.random() * 0.02)
        life.strike(luck)
    answer = life.answer()
    outcomes = _outcomes(model, change) if answer.get("failed") else [_after(model, change, answer)]
    try:
        return life, _one_of(life, *([model] if answer.get("failed") else []), *outcomes)
    except Wrong as wrong:
        raise Wrong(f"{how}: {operation} gave {answer}: {wrong}") from None


class Wrong(Exception):
    """The session is not as it must be."""


def _acknowledged(life: Life, model: Model, operation: dict[str, object], change: Change) -> Model:
    """The model after an operation that nobody disturbs."""
    life.send(operation)
    answer = life.answer()
    if operation["do"] == "hibernate" and str(answer.get("failed")).startswith("CaptureFailed"):
        return model  # a checkpoint was killed before it was saved: the session goes on
    if not answer.get("done"):
        raise Wrong(f"{operation}: {answer}")
    return _after(model, change, answer)


def _after(model: Model, change: Change, answer: dict[str, Any]) -> Model:
    after = model.copy()
    if answer.get("rolled_back"):
        after.step(is_step=False)
    else:
        change(after)
    return after


def _outcomes(model: Model, change: Change) -> list[Model]:
    """What an operation that was not acknowledged may have led to: all of it, or a cell that changed nothing."""
    return [_after(model, change, {}), _after(model, change, {"rolled_back": True})]


def _one_of(life: Life, *models: Model) -> Model:
    """The model that the session is as."""
    life.send({"do": "look"})
    seen = life.answer()
    if seen.get("failed"):  # what was killed before it was looked at
        life.send({"do": "look"})
        seen = life.answer()
    for model in models:
        if seen == _seen(model):
            return model
    raise Wrong(f"{seen} is none of {list(map(_seen, models))}")


def _seen(model: Model) -> dict[str, object]:
    return {**model.seen(), "log": _log(one.is_step for one in model.commits), "lost": []}


def _log(steps: Iterable[object]) -> str:
    """A mark for each commit, oldest first: whether it is a step that can be undone."""
    return "".join("s" if step else "-" for step in steps)


_ODD = 0.03
"""The share of cells that bind a value which is slow to save or ends who does, or take it away again."""


def _operation(luck: random.Random, model: Model) -> tuple[dict[str, object], Change]:
    """An operation, and what it does to a model."""
    name, other, value = luck.choice(NAMES), luck.choice(NAMES), luck.randrange(1000)

    def step(change: Callable[..., None], *arguments: object, is_step: bool = True) -> Change:
        def changed(model: Model) -> None:
            change(model, *arguments)
            model.step(is_step)

        return changed

    def ran(source: str, change: Callable[..., None], *arguments: object) -> tuple[dict[str, object], Change]:
        return {"do": "run", "source": source}, step(change, *arguments)

    choices: list[tuple[dict[str, object], Change]] = [
        ran(f"{name} = [{value}]", Model.bind, name, [value]),
        ran(f"{name}.append({value})", Model.append, name, value),
        ran(f"{name}.append({value})", Model.append, name, value),
        ran(f"{name} = {other}", Model.share, name, other),
        ran(f"globals().pop({name!r}, None)", Model.bind, name, None),
        ran(f"open({name!r}, 'w').write('{value}')", Model.write, name, str(value)),
        ran(f"import time; time.sleep(0.01); {name} = [{value}]", Model.bind, name, [value]),
        (
            {"do": "aside", "source": f"{name} = [{value}, 0]"},
            step(Model.bind, name, [value, 0], is_step=False),
        ),
        ({"do": "set", "name": name, "value": [value]}, step(Model.bind, name, [value])),
        ({"do": "write", "name": name, "text": str(value)}, step(Model.write, name, str(value))),
        ({"do": "hibernate"}, lambda model: None),
    ]
    if luck.random() < _ODD:
        choices = [
            ran(f"{SLOW}\n{name} = [{value}, 'slow']", Model.bind, name, [value, "slow"]),
            ran(f"{ends(luck.choice(ENDS), value)}\n{name} = [{value}, 'ends']", Model.bind, name, [value, "ends"]),
            ran(f"slow = ends = None\n{name} = [{value}, 'none']", Model.bind, name, [value, "none"]),
        ]
    if model.steps:
        steps = luck.randint(1, min(model.steps, 6))
        choices.append(({"do": "undo", "steps": steps}, lambda model: model.undo(steps)))
    if len(model.commits) > 1:
        commits = luck.randint(1, min(len(model.commits) - 1, 6))
        choices.append(({"do": "checkout", "commits": commits}, lambda model: model.checkout(commits)))
    return luck.choice(choices)


class Life:
    """One program that has the session open."""

    def __init__(self, url: str) -> None:
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(PATIENCE)
        self.pid = os.fork()
        if not self.pid:
            self._channel.close()
            _live(url, theirs)
        theirs.close()
        self._lines = self._channel.makefile("r")

    def send(self, what: dict[str, object]) -> None:
        _recent.append(f"{time.monotonic():.3f} {what}")
        self._channel.sendall(json.dumps(what).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line.endswith("\n"):
            raise Wrong("the program ended by itself")
        _recent.append(f"{time.monotonic():.3f} {line[:300]}")
        found: dict[str, Any] = json.loads(line)
        return found

    def kill(self) -> None:
        """The program itself."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._lines.close()
        self._channel.close()

    def strike(self, luck: random.Random) -> None:
        """One of the processes that the program has started, or that those have."""
        if found := below(self.pid):
            struck = luck.choice(found)
            _recent.append(f"{time.monotonic():.3f} kills {found.index(struck) + 1} of {len(found)}: {struck.name}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(struck.pid, signal.SIGKILL)


def _live(url: str, channel: socket.socket) -> None:
    """The other end: open the session and do what is said, until killed."""
    try:
        session = Session("one", state=Versioned(url), limits=ExecutionLimits(timeout_seconds=20, max_checkpoints=3))
        for line in channel.makefile("r"):
            try:
                answer = _do(session, json.loads(line))
            except CellblockError as error:
                answer = {"failed": f"{type(error).__name__}: {error}"}
            channel.sendall(json.dumps(answer).encode() + b"\n")
    finally:
        os._exit(1)


def _do(session: Session, what: dict[str, Any]) -> dict[str, Any]:
    match what["do"]:
        case "run":
            cell = session.run(what["source"])
            return {"done": True, "rolled_back": cell.rolled_back, "lost": [one.name for one in cell.lost]}
        case "aside":
            session.aside(what["source"])
        case "set":
            session[what["name"]] = what["value"]
        case "write":
            session.files.write(what["name"], what["text"])
        case "undo":
            session.undo(what["steps"])
        case "checkout":
            session.checkout(steps_of(session.log(limit=10_000))[what["commits"]].id)
        case "hibernate":
            session.hibernate()
        case "look":
            files = {name: session.files.read(name).decode() for name in session.files.list()}
            resumed = session.resumed
            lost = [one.name for one in resumed.lost if one.name not in UNSAVED] if resumed is not None else []
            commits = reversed(steps_of(session.log(limit=10_000)))
            log = _log(one.kind != "aside" and not one.detail.get("rolled_back") for one in commits)
            return {"names": session.aside(LOOK, reads=True), "files": files, "log": log, "lost": lost}
    return {"done": True}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
