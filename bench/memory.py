"""F7: what a session with pandas holds, beside a fresh Python that imported it.

Memory is PSS, each page divided by the number of processes that map it, and page tables. Each sample is a program
of its own (`python -m bench.memory COUNT`), so that the processes below it are those of its sessions and no others:
launcher, nursery, zygote, and the init and worker of each session. The host's own memory is not in it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import cellblock
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, Unavailable, Unit, require

_PRELOAD = ("pandas",)
_USE = (
    "import pandas as pd\nsales = pd.DataFrame({'month': [1, 2, 3] * 1000, 'units': range(3000)})",
    "best = sales.groupby('month').units.sum()\nprint(best)\nbest",
    "sales['share'] = sales.units / sales.units.sum()\nsales.describe()",
)
_ROOT = Path(__file__).resolve().parents[1]
_READY = b"ready\n"


def _one(plan: Plan) -> Samples:
    return _held(plan, 1)


def _ten(plan: Plan) -> Samples:
    return _held(plan, 10)


def _hundred(plan: Plan) -> Samples:
    return _held(plan, 100)


def _held(plan: Plan, count: int) -> Samples:
    """Bytes for each of so many used sessions, and bytes of a fresh Python."""
    require(*_PRELOAD)
    pairs = [(_of_sessions(count) / count, _of_fresh_python()) for _ in range(plan.rounds)]
    ours, theirs = zip(*pairs, strict=True)
    return Samples(subject=ours, reference=theirs)


def _of_sessions(count: int) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "bench.memory", str(count)], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip().rpartition("\n")[2])
    return float(done.stdout)


def _of_fresh_python() -> float:
    words = [
        sys.executable,
        "-c",
        "import pandas, sys; sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()",
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == _READY
        held = held_by(process.pid)
        process.communicate()
        return held


def held_by(process: int) -> int:
    """Bytes of a process: PSS and page tables; none of one that has ended since it was listed."""
    try:
        return _field(process, "smaps_rollup", "Pss:") + _field(process, "status", "VmPTE:")
    except PermissionError:
        raise Unavailable("run it as root: an ordinary user may not read the memory of a session's init") from None
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _field(process: int, file: str, name: str) -> int:
    for line in Path(f"/proc/{process}/{file}").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise Unavailable(f"/proc/{process}/{file} has no {name}")


def below(ancestor: int) -> list[int]:
    """Every process that descends from one, itself not included."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(words[1]), []).append(int(entry.name))
    found, pending = [], [ancestor]
    while pending:
        born = children.get(pending.pop(), [])
        found += born
        pending += born
    return found


async def _use(count: int) -> int:
    """Open sessions, run cells in each, and count what they hold while all of them stand."""
    sessions = [cellblock.AsyncSession(preload=_PRELOAD) for _ in range(count)]
    try:
        for session in sessions:
            await session.open()
            for source in _USE:
                cell = await session.run(source)
                assert cell.ok, cell.text
        return sum(map(held_by, below(os.getpid())))
    finally:
        for session in sessions:
            await session.close()


_FRESH = "a fresh Python that imported pandas"
MEASURES = (
    Measure(
        id="F7/1", what="memory of 1 used session, pandas preloaded", reference=_FRESH,
        goal=Reported(), rounds=3, take=_one, unit=Unit.MB,
    ),
    Measure(
        id="F7/10", what="the same, each of 10", reference=_FRESH,
        goal=Reported(), rounds=3, take=_ten, unit=Unit.MB,
    ),
    Measure(
        id="F7/100", what="the same, each of 100", reference=_FRESH,
        goal=Ratio(1 / 4), rounds=2, take=_hundred, unit=Unit.MB,
    ),
)  # fmt: skip

if __name__ == "__main__":
    try:
        print(asyncio.run(_use(int(sys.argv[1]))))
    except Unavailable as missing:
        sys.exit(str(missing))
