"""A store that a session wrote once is read for ever: commits, cells, settings, the journal, the values."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import pytest

from cellblock import Session, Versioned
from cellblock.store import open_store

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
sys.path.append(str(HERE))

from golden_session import NAME, USER, tell  # noqa: E402 - a program beside this file

FORMATS = [1, 2]
_WRITTEN_BY = (3, 11)

pytestmark = pytest.mark.threat("D1")


def _url(number: int, directory: Path) -> str:
    path = directory / "golden.sqlite"
    path.write_bytes(lzma.decompress((GOLDEN / f"format-{number}.sqlite.xz").read_bytes()))
    return f"sqlite:///{path}"


@pytest.mark.parametrize("number", FORMATS)
def test_what_a_store_tells_of_a_session_of_every_format(number: int, tmp_path: Path) -> None:
    with open_store(_url(number, tmp_path)) as store:
        assert tell(store) == json.loads((GOLDEN / f"format-{number}.json").read_text())
        assert store.verify().ok


@pytest.mark.parametrize("number", FORMATS)
def test_a_session_of_every_format_goes_on(number: int, tmp_path: Path) -> None:
    state = Versioned(_url(number, tmp_path))
    written_here = sys.version_info[:2] == _WRITTEN_BY
    with Session(NAME, user=USER, state=state) as session:
        assert session.resumed is not None
        assert len(session.resumed.replayed) == 1
        files = "sorted(os.listdir('.')), os.listdir('d'), open('d/link').read(), open('host.bin', 'rb').read()"
        assert session.run(f"import os\n{files}").value == (
            ["d", "host.bin"],
            ["link", "a.txt"],
            "a" * 10,
            b"\0\1",
        )
        assert session.run("area.__name__, math.pi > 3").value == ("area", True)
        if written_here:
            last = "view is rows is Point.x and p.self is p, next(counter), area(0), text, answer, given, len(big)"
            assert session.run(last).value == (
                True, 2, 2, "ééé", {"how?": 4}, {"a": [1.5, None]}, 300_000,
            )  # fmt: skip
            assert session.run("ours, theirs, after").value == ("main", "branch", [1, 2, 3])
        else:
            told = {one.name: one.reason for one in session.resumed.lost}
            assert told["rows"] == "it was saved by another version of Python, which alone can read it"
            assert told["Point"] == "its definition failed: NameError: name 'rows' is not defined"
        session.checkout("files")
        assert session.run("os.path.exists('host.bin'), len(open('d/a.txt').read())").value == (False, 10)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("number", FORMATS)
def test_a_call_of_a_session_of_every_format_is_run_once(number: int, tmp_path: Path) -> None:
    cells = json.loads((GOLDEN / f"format-{number}.json").read_text())["cells"]
    state = Versioned(_url(number, tmp_path))
    for _ in range(2):
        with Session(NAME, user=USER, state=state) as session:
            for one in (cells[0], cells[-1]):
                assert session.run("raise SystemExit", call_id=one[0]).number == one[1]
            assert session.run("1", call_id="call").number == 93
            assert [cell.id for cell in session.notebook][: len(cells)] == [one[0] for one in cells]
