"""A session that lasts, against a model, while its program and its processes are killed at any moment.

What was acknowledged is there when it is opened again; what was under way has happened whole or not at all.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("lasting_driver.py")
NAMES = [f"x{n}" for n in range(4)]


class Model:
    """What the session should hold: names with the lists that they share, files, and every state that led here.

    With each state, whether what came after it was a step: a cell that was rolled back is a commit, and none.
    """

    def __init__(self) -> None:
        self.names: dict[str, list[object]] = {}
        self.files: dict[str, str] = {}
        self.past: list[tuple[dict[str, list[object]], dict[str, str], bool]] = []

    @property
    def steps(self) -> int:
        return sum(is_step for _, _, is_step in self.past)

    def step(self, is_step: bool = True) -> None:
        self.past.append((*copy.deepcopy((self.names, self.files)), is_step))

    def undo(self, steps: int) -> None:
        places = [place for place, (_, _, is_step) in enumerate(self.past) if is_step]
        self.back(len(self.past) - places[-steps])

    def back(self, commits: int) -> None:
        self.names, self.files, _ = copy.deepcopy(self.past[-commits])
        del self.past[-commits:]

    def seen(self) -> dict[str, Any]:
        names = [
            [name, value, sorted(other for other in self.names if self.names[other] is value)]
            for name, value in sorted(self.names.items())
        ]
        return {"names": names, "files": self.files, "log": len(self.past) + 1, "steps": self.steps}


class Driven:
    """The program that holds the session."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.opened = self.answer()

    def send(self, what: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else {}

    def ask(self, what: dict[str, object]) -> dict[str, Any]:
        self.send(what)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def a_process(self, luck: random.Random) -> int | None:
        """One that the program started, or that those have."""
        parents: dict[int, int] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
                except (OSError, IndexError):
                    continue
        found = {self.process.pid}
        while more := {one for one, parent in parents.items() if parent in found} - found:
            found |= more
        found.discard(self.process.pid)
        return luck.choice(sorted(found)) if found else None


def _operation(luck: random.Random, model: Model) -> tuple[dict[str, object], Any]:
    """What to do, and what does it to a model."""
    name, other, value = luck.choice(NAMES), luck.choice(NAMES), luck.randrange(1000)

    def new(model: Model) -> None:
        model.step()
        model.names[name] = [value]

    def append(model: Model) -> None:
        model.step()
        if name in model.names:
            model.names[name].append(value)

    def share(model: Model) -> None:
        model.step()
        if other in model.names:
            model.names[name] = model.names[other]

    def drop(model: Model) -> None:
        model.step()
        model.names.pop(name, None)

    def write(model: Model) -> None:
        model.step()
        model.files[name] = str(value)

    def crash(model: Model) -> None:
        model.step(is_step=name not in model.names)  # which is an error before it comes to that

    choices: list[tuple[dict[str, object], Any]] = [
        ({"do": "run", "source": f"{name} = [{value}]"}, new),
        ({"do": "run", "source": f"{name}.append({value})"}, append),
        ({"do": "run", "source": f"{name}.append({value})"}, append),
        ({"do": "run", "source": f"{name} = {other}"}, share),
        ({"do": "run", "source": f"globals().pop({name!r}, None)"}, drop),
        ({"do": "run", "source": f"open({name!r}, 'w').write('{value}')"}, write),
        ({"do": "run", "source": f"{name} = {name} + [0]; import os; os._exit(3)"}, crash),
        ({"do": "bind", "name": name, "value": [value]}, new),
        ({"do": "write", "name": name, "text": str(value)}, write),
    ]
    if model.past:
        commits = luck.randint(1, min(len(model.past), 7))
        choices.append(({"do": "checkout", "revision": f"HEAD~{commits}"}, lambda model: model.back(commits)))
    if model.steps:
        steps = luck.randint(1, min(model.steps, 7))
        choices.append(({"do": "undo", "steps": steps}, lambda model: model.undo(steps)))
    return luck.choice(choices)


def _agree(driven: Driven, *models: Model) -> Model:
    """The model that is as the session is."""
    seen = driven.ask({"do": "state"})
    for model in models:
        if seen == model.seen():
            return model
    raise AssertionError(f"{seen} is none of {[model.seen() for model in models]}")


def _run(url: str, seed: int, steps: int) -> int:
    luck = random.Random(seed)
    model, kills = Model(), 0
    driven = Driven(url)
    try:
        for _ in range(steps):
            operation, apply = _operation(luck, model)
            chance = luck.random()
            if chance < 0.75:
                answer = driven.ask(operation)
                assert answer.get("done"), (operation, answer)
                apply(model)
                continue
            after = copy.deepcopy(model)
            apply(after)
            if chance < 0.9:  # the program itself, with an operation under way
                driven.send(operation)
                time.sleep(luck.random() * 0.05)
                driven.kill()
                driven = Driven(url)
                begun = copy.deepcopy(model)  # a cell that had begun is a commit that changes nothing
                begun.step(is_step=False)
                model = _agree(driven, model, after, begun)
            else:  # one of its processes, in the middle or after
                answer = driven.ask(operation)
                assert answer.get("done"), (operation, answer)
                model = after
                if (process := driven.a_process(luck)) is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                    time.sleep(0.05)
                driven.kill()
                driven = Driven(url)
                model = _agree(driven, model)
            kills += 1
        _agree(driven, model)
    finally:
        driven.kill()
    return kills


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_acknowledged_is_there_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    assert _run(f"sqlite:///{tmp_path}/cells.db", seed, 25)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 106))
def test_what_was_acknowledged_is_there_whoever_is_killed_for_long(tmp_path: Path, seed: int) -> None:
    assert _run(f"sqlite:///{tmp_path}/cells.db", seed, 150)
