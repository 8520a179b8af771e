"""`cellblock demo`: every cell ends as it is meant to, and the notebook it leaves opens."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock.cli.storyboard import sales_csv

nbformat = pytest.importorskip("nbformat")

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


def test_small_demo_contains_everything_it_tries(cellblock: Cellblock, tmp_path: Path) -> None:
    done = cellblock("demo", "--fast", "--out", "made", environment={"PYTHONIOENCODING": "utf-8"})
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b""), done.stdout.decode()
    assert [line[0] for line in lines[:10]] == ["\u2713"] * 10
    assert lines[-1] == "contained: 6 attempts on the host, 2 cells that would not have ended"
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "cellblock-demo.html", "cellblock-demo.ipynb",
    ]  # fmt: skip


@pytest.mark.sampled(0)
def test_whole_demo_leaves_a_notebook_a_page_and_a_chart(cellblock: Cellblock, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    done = cellblock("demo", "--out", "made")
    assert (done.returncode, done.stderr, b"\x1b" in done.stdout) == (0, b"", False), done.stdout.decode()
    notebook = nbformat.read(tmp_path / "made" / "cellblock-demo.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    ends = [next((o["ename"] for o in cell.outputs if o["output_type"] == "error"), "") for cell in cells]
    assert ends == ["", "", "KeyError", "", "", "", "TimeoutError", ""]
    (back,) = (cell for cell in notebook.cells if cell.cell_type == "raw")
    assert (notebook.cells.index(back), back.source[:26]) == (7, "# rolled back (MemoryError")
    assert (tmp_path / "made" / "cellblock-demo.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "KeyError" in (tmp_path / "made" / "cellblock-demo.html").read_text()
    for name in ("ipynb", "html", "png"):
        assert str(tmp_path / "made" / f"cellblock-demo.{name}").encode() in done.stdout


@pytest.mark.sampled(0)
def test_secret_of_the_host_is_in_nothing_the_demo_writes(cellblock: Cellblock, tmp_path: Path) -> None:
    done = cellblock("demo", "--fast", "--out", "made", environment={"CELLBLOCK_TEST_TOKEN": "t0ken-of-the-host"})
    written = b"".join(path.read_bytes() for path in (tmp_path / "made").iterdir())
    assert (done.returncode, b"t0ken-of-the-host" in written + done.stdout) == (0, False)
    assert b"a secret of the host" not in written


def test_out_that_is_a_file_is_a_usage_error(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = cellblock("demo", "--fast", "--out", "taken")
    assert (done.returncode, done.stderr) == (2, b"cellblock: --out 'taken': Not a directory\n")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_out_that_cannot_be_written_is_a_usage_error(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    done = cellblock("demo", "--fast", "--out", "closed")
    assert (done.returncode, done.stderr) == (2, b"cellblock: --out 'closed': nothing can be written there\n")


def test_sales_are_the_same_every_time() -> None:
    assert sales_csv() == sales_csv()
    assert sales_csv(2).splitlines()[0] == b"date,shop,product,quantity,price"
    assert 4000 < sales_csv().count(b"\n") < 4100
