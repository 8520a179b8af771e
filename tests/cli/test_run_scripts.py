"""Scripts of the kinds that models write run as they would outside: the sample, and all it prints."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]

PRINTED = {
    "arguments": "arguments.py one two arguments.py __main__\n",
    "asyncio_server": "HELLO\nchild\n6\n",
    "multiprocessing_pools": (
        "fork [0, 1, 4, 9]\nspawn [0, 1, 4, 9]\nforkserver [0, 1, 4, 9]\n"
        "manager {'k': 1}\nshared memory 7\nexecutor [1, 2]\n"
    ),
    "sqlite_wal": "wal\n45\n",
    "subprocesses": "42\nfrom a shell\n3\n",
    "threads_and_queues": "10 328350\n",
    "matplotlib_figure": "drawn\n",
    "numpy_sums": "499999500000 40\n",
    "pandas_groups": "{'a': 4, 'b': 2}\n",
}
NEEDS = {"matplotlib_figure": "matplotlib", "numpy_sums": "numpy", "pandas_groups": "pandas"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", sorted(PRINTED))
def test_script_prints_what_it_prints_outside(cellblock: Cellblock, scripts: Path, name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    done = cellblock("run", scripts / f"{name}.py", "--", "one", "two")
    assert (done.returncode, done.stdout.decode(), done.stderr.decode().replace(_image(done), "")) == (
        0, PRINTED[name], "",
    )  # fmt: skip


def test_every_sample_script_is_run(scripts: Path) -> None:
    assert sorted(path.stem for path in scripts.glob("*.py")) == sorted(PRINTED)


def _image(done: subprocess.CompletedProcess[bytes]) -> str:
    """The note about a figure that nobody asked to keep."""
    return next((line for line in done.stderr.decode().splitlines(keepends=True) if "an image of" in line), "\0")
