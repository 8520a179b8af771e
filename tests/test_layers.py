"""What importing costs: the rows that run inside a wall load the standard library alone."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import cellblock

PACKAGE = Path(cellblock.__file__).parent
ROWS_INSIDE = ["worker", "wire", "values", "guard"]
ABOVE = {"pool"}
WORDS = sorted({path.stem for path in PACKAGE.glob("[a-z]*.py")} - ABOVE)


def loaded_by(module: str) -> set[str]:
    """Packages outside the standard library that `import module` loads into a fresh interpreter."""
    program = (
        "import sys, json\n"
        "before = set(sys.modules)\n"
        f"import {module}\n"
        "print(json.dumps([m.partition('.')[0] for m in set(sys.modules) - before]))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout)) - sys.stdlib_module_names


def test_importing_cellblock_loads_nothing_else():
    assert loaded_by("cellblock") == {"cellblock"}


def test_models_load_nothing_but_anyio_until_one_is_connected():
    of_anyio = {"anyio", "idna", "sniffio", "typing_extensions"}
    assert loaded_by("cellblock.models") - of_anyio == {"cellblock"}


@pytest.mark.parametrize("name", [*ROWS_INSIDE, *WORDS])
def test_what_runs_inside_a_wall_imports_only_the_standard_library(name):
    if find_spec(f"cellblock.{name}") is None:
        pytest.skip(f"cellblock.{name} does not exist yet")
    assert loaded_by(f"cellblock.{name}") == {"cellblock"}


def test_doctor_alone_looks_for_the_attacks():
    naming = [path for path in PACKAGE.rglob("*.py") if "cellblock_attacks" in path.read_text()]
    assert naming == [PACKAGE / "cli" / "doctor.py"]


def test_the_engine_reads_its_own_clocks_alone() -> None:
    """A program that stops or sets `time.monotonic`, as `freezegun` does, stops no limit and ends no lease."""
    read = re.compile(r"\btime\.(monotonic|time)\(\)|from time import .*\b(monotonic|time)\b")
    inside = ("worker", "guard", "cli", "hosting/clock.py")  # and what ends with its command
    named = {path: path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    found = [name for path, name in named.items() if not name.startswith(inside) and read.search(path.read_text())]
    assert found == []
