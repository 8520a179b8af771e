"""The corpora on every supported version of Python that is found here, whichever runs this suite.

`CELLBLOCK_PYTHONS` names interpreters, divided by colons; others are looked for on PATH and where pyenv and uv put
them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import corpus
import pytest
from pythons import VERSIONS, interpreters

HERE = Path(__file__).parent
NEEDED = ("cellblock", "cellblock_attacks", "anyio", "idna", "sniffio", "typing_extensions")
"""What an interpreter borrows of this one: packages of Python alone."""


@pytest.fixture(scope="module")
def borrowed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path with the packages that cellblock needs, and no others, which may be of another version's code."""
    folder = tmp_path_factory.mktemp("borrowed")
    for name in NEEDED:
        if (spec := importlib.util.find_spec(name)) is not None and spec.origin is not None:
            origin = Path(spec.origin)
            held = origin.parent if origin.name == "__init__.py" else origin
            (folder / held.name).symlink_to(held)
    return str(folder)


def _tried(version: str, borrowed: str, *words: str) -> list[dict[str, object]]:
    if version == ".".join(map(str, sys.version_info[:2])):
        pytest.skip(f"{version} runs this suite: its other tests are these")
    if version not in interpreters():
        pytest.skip(f"no Python {version} was found: name one in CELLBLOCK_PYTHONS")
    done = subprocess.run(
        [interpreters()[version], "-W", "ignore", "-X", "utf8", *words],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), borrowed]), "PYTHONHASHSEED": "0", "HOME": "/tmp"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_guard_changes_nothing_of_the_programs_of_the_corpus(version: str, borrowed: str) -> None:
    files = [str(path) for path in corpus.files(corpus.PARITY)]
    *differences, count = _tried(version, borrowed, str(HERE / "compared.py"), *files)
    assert differences == []
    assert isinstance(count, int)
    assert count > 700


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_grown_programs_do_as_under_that_python(version: str, borrowed: str) -> None:
    *differences, count = _tried(version, borrowed, str(HERE / "compared.py"), "--grown", "100")
    assert differences == []
    assert count == 100


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "file", [path for path in corpus.ESCAPES if path.stem != "L05_trusted"], ids=lambda path: path.stem
)
def test_attempts_reach_nothing_on_that_python(version: str, file: Path, borrowed: str) -> None:
    found = _tried(version, borrowed, "-m", "cellblock_attacks.language", "guard", str(file))
    assert [one for one in found if one["canary"] or one["changed"] or one.get("left", one["ended"])] == []
    assert found
