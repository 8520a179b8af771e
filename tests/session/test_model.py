"""Random steps against a model that replays them in plain Python: names, values and files agree after every one.

The model of a session is what was done to it and still holds. A step back leaves the last of that out, and a failure
that costs the session its process leaves out its cell; what is left is done again in a dictionary and a directory.
"""

from __future__ import annotations

import gc
import os
import random
import select
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cellblock import Cell, CellblockError, ExecutionLimits, Session

pytestmark = [  # steps leave files open
    pytest.mark.usefixtures("unmasked"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DEPTH = 4
LIMITS = ExecutionLimits(timeout_seconds=4, interrupt_grace_seconds=0.2, max_memory_mb=128, max_checkpoints=DEPTH)

PREPARATION = """
import os, random, shutil, ctypes, sqlite3
random.seed(7)
def counting(start):
    while True:
        yield start
        start += 1
class Box:
    def __init__(self): self.inside = []
    def __repr__(self): return f"Box({self.inside})"
box, numbers, table, made = Box(), [], {}, []
log = None
database = sqlite3.connect(":memory:")
_ = database.execute("create table t (a)")
"""

BOUND = ("box", "numbers", "table", *(f"v{number}" for number in range(6)))
"""The names that steps change, beside those that cannot be looked at: their effects show in these."""


class World:
    """A namespace and files, as plain Python makes them."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self._random = random.getstate()

    def run(self, source: str) -> str:
        """Execute a cell; the type of what it raised, "" where it raised nothing."""
        place, state = os.getcwd(), random.getstate()
        os.chdir(self.directory)
        random.setstate(self._random)
        try:
            exec(compile(source, "<model>", "exec"), self.namespace)
        except (Exception, SystemExit) as error:
            return type(error).__name__
        finally:
            self._random = random.getstate()
            random.setstate(state)
            os.chdir(place)
        return ""

    def shell(self, command: str) -> bool:
        done = subprocess.run(command, shell=True, cwd=self.directory, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def write(self, path: str, data: bytes) -> None:
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / path).write_bytes(data)

    def clear(self) -> None:
        for name in [name for name in self.namespace if not name.startswith("__")]:
            del self.namespace[name]

    def end(self) -> None:
        """Close what is open."""
        for name in ("log", "database"):
            if self.namespace.get(name) is not None:
                self.namespace[name].close()
        self.namespace.clear()

    def values(self) -> dict[str, object]:
        found = {name: self.namespace[name] for name in BOUND if name in self.namespace}
        return {name: repr(value) if name == "box" else value for name, value in found.items()}

    def files(self) -> dict[str, bytes]:
        paths = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in paths}


Step = Callable[[World], object]


@dataclass
class Pair:
    """A session and its model: every step is done to both, and what comes of it compared."""

    session: Session
    place: Path
    steps: list[Step] = field(default_factory=list)
    able: int = 0
    """How many of them can be undone."""
    story: list[str] = field(default_factory=list)
    worlds: int = 0
    seed: int | None = None
    """Of a branch, which executes no programs."""

    def __post_init__(self) -> None:
        self.given = len(self.steps)
        self.world = self._again()

    def _again(self) -> World:
        """All that holds, done anew."""
        self.worlds += 1
        world = World(self.place / str(self.worlds))
        for step in self.steps:
            step(world)
        return world

    def did(self, told: str, step: Step) -> object:
        self.steps.append(step)
        self.story.append(told)
        self.able = min(self.able + 1, DEPTH)
        return step(self.world)

    def run(self, source: str) -> None:
        cell = self.session.run(source)
        raised = self.did(f"run {source!r}", lambda world: world.run(source))
        told = cell.error.type if cell.error is not None else ""
        assert (told, cell.rolled_back, cell.lost) == (raised, False, ()), self.told(cell)

    def time_out(self, source: str) -> None:
        """A cell that is interrupted: what it did stays."""
        cell = self.session.run(f"{source}\nwhile True: pass")
        self.did(f"time out {source!r}", lambda world: world.run(source))
        kind = cell.error.kind if cell.error is not None else ""
        assert cell.rolled_back is False, self.told(cell)
        assert kind in ("timeout", "raised"), self.told(cell)

    def fail(self, source: str, end: str, kind: str) -> None:
        """A cell that costs the session its process, or its memory limit: nothing of it stays."""
        cell = self.session.run(
            f"try:\n    {source.replace(chr(10), chr(10) + '    ')}\nexcept (Exception, SystemExit): pass\n{end}"
        )
        self.story.append(f"fail {source!r} {end!r}")
        if kind == "memory":
            self.able = min(self.able, DEPTH - 1)  # it was a state for a moment
        assert cell.error is not None, self.told(cell)
        assert (cell.error.kind, cell.rolled_back, cell.lost) == (kind, True, ()), self.told(cell)

    def shell(self, command: str) -> None:
        cell = self.session.shell(command)
        assert cell.ok or cell.error.type == "CommandFailed", self.told(cell)  # type: ignore[union-attr]
        assert cell.ok == self.did(f"shell {command}", lambda world: world.shell(command)), self.told(cell)

    def set(self, name: str, value: object) -> None:
        self.session[name] = value
        source = f"{name} = {value!r}"
        self.did(f"set {source}", lambda world: world.run(source))

    def write(self, path: str, data: bytes) -> None:
        self.session.files.write(path, data)
        self.did(f"write {path} {len(data)} bytes", lambda world: world.write(path, data))

    def delete(self, path: str) -> None:
        if path in self.world.files():
            self.session.files.delete(path)
            self.did(f"delete {path}", lambda world: (world.directory / path).unlink())

    def clear(self) -> None:
        self.session.clear()
        self.did("clear", World.clear)
        self.run(PREPARATION)

    def kill(self) -> None:
        """End the process between two cells: nothing is lost. Does not go on before it has ended."""
        end = self.session._session._kernel._link.pidfd  # type: ignore[union-attr, attr-defined]
        self.session.kill()
        self.story.append("kill")
        select.select([end], [], [], 10)

    def undo(self, steps: int) -> None:
        self.story.append(f"undo {steps} of {self.able}")
        if steps > self.able:
            with pytest.raises(CellblockError, match=r"cannot be undone, |nothing can be undone"):
                self.session.undo(steps)
            return
        self.session.undo(steps)
        del self.steps[len(self.steps) - steps :]
        self.able -= steps
        self.world.end()
        self.world = self._again()
        if len(self.steps) <= self.given:
            self.begin()

    def begin(self) -> None:
        """What comes first: a branch's random stream is its own."""
        self.run(PREPARATION if self.seed is None else f"random.seed({self.seed})")

    def branch(self, seed: int) -> Pair:
        """A sibling with the same past; its random stream is its own from then on."""
        place = self.place.with_name(f"{self.place.name}-{seed}")
        sibling = Pair(self.session.branch(), place, list(self.steps), seed=seed)
        sibling.story = [*self.story, "branch"]
        sibling.begin()
        return sibling

    def compare(self) -> None:
        """What can be looked at without a step."""
        expected = self.world.values()
        names = self.session.names()
        assert {name for name in BOUND if name in names} == set(expected), self.told()
        for name, value in expected.items():
            found = names[name].preview if name == "box" else self.session[name]
            assert found == (str(value)[:120] if name == "box" else value), f"{name}\n{self.told()}"
        files = {path: self.session.files.read(path) for path in self.session.files.list()}
        assert files == self.world.files(), self.told()

    def compare_what_takes_a_step(self) -> None:
        """Generators, databases and the random stream go on from the same place."""
        source = "v0 = [next(one) for one in made], random.random(), database.execute('select a from t').fetchall()"
        self.run(source)
        self.run("v1 = sorted((path, sorted(below), os.stat(path).st_mode) for path, below, _ in os.walk('.'))")
        self.compare()

    def told(self, cell: Cell | None = None) -> str:
        return "\n".join([*self.story, "" if cell is None else cell.text])


ENDS = {
    "import os; os._exit(3)": "crashed",
    "import ctypes; ctypes.string_at(0)": "crashed",
    "import os; os.kill(os.getpid(), 9)": "crashed",
    "hoard = []\nwhile True: hoard.append(bytearray(2 ** 20))": "memory",
}
SLOW_ENDS = {"sum(range(10 ** 12))": "timeout", "import os; os.kill(os.getpid(), 19)": "timeout"}

NAMES = ("a", "b.txt", "d/c", "d/e/f", "g")


def change(chance: random.Random) -> str:
    """A cell, or part of one; some raise, after they have done something."""
    value, path, other = chance.randrange(100), chance.choice(NAMES), chance.choice(NAMES)
    number = chance.randrange(6)
    return chance.choice(
        [
            f"v{number} = {value}",
            f"v{number} = [{value}, 'é', None, 1.5]",
            f"v{number} = numbers",
            f"v{number} = random.random()",
            f"random.shuffle(numbers); v{number} = random.randrange(1000)",
            f"del v{number}",
            f"numbers.append({value})",
            f"numbers += [{value}] * 3; del numbers[:2]",
            f"table[{value % 5}] = numbers[-3:]",
            f"table.pop({value % 5})",
            f"box.inside.append({value})",
            f"box.inside, box.more = list(numbers), {value}",
            f"made.append(counting({value}))",
            f"v{number} = [next(one) for one in made]",
            f"v{number} = next(made[{value % 3}])",
            f"_ = database.execute('insert into t values ({value})'); database.commit()",
            f"v{number} = [row[0] for row in database.execute('select a from t')]",
            f"os.makedirs('d/e', exist_ok=True)\nopen({path!r}, 'w').write('{value}' * {value})",
            f"with open({path!r}, 'a') as file: _ = file.write('{value}')",
            f"with open({path!r}, 'r+b') as file: _ = file.seek({value}); _ = file.write(b'new')",
            f"v{number} = open({path!r}).read()",
            f"os.remove({path!r})",
            f"os.rename({path!r}, {other!r})",
            f"os.link({path!r}, {other!r})",
            "shutil.rmtree('d')",
            f"os.chmod({path!r}, 0o6{value % 8}4)",
            f"with open({path!r}, 'wb') as file: _ = file.truncate({value} << 16); _ = file.write(b'1')",
            "log = open('log', 'a')",
            f"log.write('{value},' * {value})",
            "log.flush()",
            "log.close()",
            f"numbers.append({value}); 1 / 0",
            f"v{number} = {value}; raise SystemExit(2)",
            f"box.inside.clear(); {{}}[{value}]",
            f"def deep(n): return deep(n + 1)\nnumbers.append({value})\ndeep(0)",
            f"v{number} = bytes(300_000).hex()[:{value}]; block = bytearray(2_000_000)",
        ]
    )


def step(pair: Pair, chance: random.Random, *, slow: bool) -> None:
    """One step, of whatever kind."""
    what = chance.random()
    if what < 0.55:
        pair.run(change(chance))
    elif what < 0.67:
        end = chance.choice(list(ENDS))
        pair.fail(change(chance), end, ENDS[end])
    elif what < 0.82:
        pair.undo(chance.choice((1, 1, 1, 2, 2, 3, 4, 5)))
    elif what < 0.86:
        pair.write(chance.choice(("a", "b.txt", "h/i")), chance.randbytes(chance.choice((0, 10, 3000))))
    elif what < 0.88:
        pair.delete(chance.choice(NAMES))
    elif what < 0.91:
        pair.set(f"v{chance.randrange(6)}", [chance.randrange(10), {"k": None}, "text"])
    elif what < 0.94 and pair.seed is None:
        path, other = chance.choice(NAMES), chance.choice(NAMES)
        pair.shell(
            chance.choice((f"cp {path} {other}", f"echo {other} >> b.txt", f"mkdir -p d && mv {path} d/", "false"))
        )
    elif what < 0.95:
        pair.clear()
    elif what < 0.97:
        pair.kill()
    elif slow and chance.random() < 0.3:
        pair.time_out(change(chance))
    elif slow and chance.random() < 0.3:
        end = chance.choice(list(SLOW_ENDS))
        pair.fail(change(chance), end, SLOW_ENDS[end])


def play(seed: int, steps: int, directory: Path, open_session: Callable[..., Session], *, slow: bool = False) -> None:
    """So many steps, in one session and its branches."""
    chance = random.Random(seed)
    limits = LIMITS if slow else replace(LIMITS, timeout_seconds=30)  # no cell is to be ended for its time
    first = Pair(open_session(limits=limits), directory / "model")
    first.begin()
    pairs = [first]
    for number in range(steps):
        pair = chance.choice(pairs)
        if len(pairs) < 4 and chance.random() < 0.05:
            pairs.append(pair.branch(seed + number))
        else:
            step(pair, chance, slow=slow)
        for one in pairs:
            one.compare()
    for one in pairs:
        one.compare_what_takes_a_step()
        one.world.end()
        if one is not first:
            one.session.close()


@pytest.fixture
def unmasked() -> Any:
    """Files of the model and of the session have the same modes."""
    before = os.umask(0o022)
    yield
    os.umask(before)
    gc.collect()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_session_is_what_its_model_is(seed: int, tmp_path: Path, open_session: Callable[..., Session]) -> None:
    play(seed, 25, tmp_path, open_session)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3, 43))
def test_a_session_is_what_its_model_is_for_long(
    seed: int, tmp_path: Path, open_session: Callable[..., Session]
) -> None:
    play(seed, 120, tmp_path, open_session, slow=True)
    shutil.rmtree(tmp_path)
