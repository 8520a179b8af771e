"""`pip install` in a session, from an index that its list names: what is installed is kept with its versions."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_server import page_server

from cellblock import ExecutionLimits, Session, Versioned

pytest.importorskip("pip", reason="this environment has no pip")

_LIMITS = ExecutionLimits(timeout_seconds=60)
_WHEEL = "pebble-1.0-py3-none-any.whl"
_MODULE = "class Pebble:\n    def __init__(self, weight):\n        self.weight = weight\n"


def _wheel() -> bytes:
    """A package of one module and one program."""
    about = "pebble-1.0.dist-info"
    files = {
        "pebble.py": _MODULE,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: pebble\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\npebble = pebble:Pebble\n",
    }
    rows = [f"{path},sha256={_hash(text)},{len(text)}" for path, text in files.items()]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**files, f"{about}/RECORD": "\n".join([*rows, f"{about}/RECORD,,", ""])}.items():
            archive.writestr(path, text)
    return made.getvalue()


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    """Where a package index of one package is."""
    link = f'<a href="/{_WHEEL}">{_WHEEL}</a>'.encode()
    with page_server({"/simple/pebble/": link, f"/{_WHEEL}": _wheel()}) as server:
        yield server.place


def _install(index: str) -> str:
    return f"python3 -m pip install --quiet --trusted-host 127.0.0.1 --index-url http://{index}/simple pebble"


@pytest.mark.sampled(0)
def test_an_installed_package_is_part_of_the_version_history(index: str, tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    missing, found = "No module named 'pebble'", "/session/tmp/.packages/"
    with Session("rocks", state=store, network=[index], limits=_LIMITS) as session:
        assert _message(session, "import pebble") == missing
        installed = session.shell(_install(index))
        assert (installed.text, installed.error, installed.usage.connections) == ("", None, 2)
        assert session.files.list() == []
        cell = session.run("import pebble\nstone = pebble.Pebble(3)\npebble.__file__")
        assert str(cell.value).startswith(found)
        assert session.shell("python3 -c 'import pebble' && command -v pebble").text.startswith(found)
        session.tag("installed")
        with session.branch("beside") as other:
            assert other.run("stone.weight, pebble.Pebble(4).weight").value == (3, 4)
        session.undo(3)
        assert _message(session, "import pebble") == missing
        session.checkout("installed")
        assert session.run("stone.weight").value == 3
    with Session("rocks", state=store, network=[], limits=_LIMITS) as session:  # without an index, it is there still
        assert session.run("stone.weight, pebble.Pebble(4).weight").value == (3, 4)
        assert session.shell("python3 -c 'import pebble'").error is None
        session.checkout("installed~3")
        assert _message(session, "import pebble") == missing


def test_a_process_that_takes_the_place_of_another_finds_the_packages(index: str) -> None:
    limits = ExecutionLimits(timeout_seconds=60, max_checkpoints=0)
    with Session(network=[index], limits=limits) as session:
        session.files.write("/tmp/.packages/kept.txt", "")
        session.mark_private("payroll")
        session.run("import os\nos._exit(1)")  # the next process has no door
        assert session.run("import sys\nany('.packages' in one for one in sys.path)").value is True


@pytest.mark.sampled(0)
@pytest.mark.parametrize("first", [True, False])
def test_a_session_that_is_resumed_has_the_variables_of_the_door_that_it_has_then(
    index: str, tmp_path: Path, first: bool
) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    told = "import os\nos.environ.get('https_proxy'), os.environ.get('PIP_NO_INDEX'), os.environ.get('OWN')"
    said = {True: ("http://127.0.0.1:3128", None), False: (None, "1")}
    for listed in (first, not first):
        with Session("rocks", state=store, network=[index] if listed else [], limits=_LIMITS) as session:
            assert session.run(told).value == (*said[listed], None if listed is first else "mine")
            session.run("os.environ['OWN'] = 'mine'")


def _message(session: Session, source: str) -> str:
    error = session.run(source).error
    return "" if error is None else error.message
