"""Files that hold what users do are made by one module, for their owner alone."""

from __future__ import annotations

import ast
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import cellblock
from cellblock import CodeAgent, Session, Versioned
from cellblock.cli import main
from cellblock.cli.keyboard import History
from cellblock.models import ScriptedModel, record
from cellblock.private import open_private, private_directory, write_private

SOURCE = Path(cellblock.__file__).parent
NOT_OF_USERS = {
    "guard", "testing", "wire", "worker",  # behind the walls, or on behalf of tests
    "executors", "hosting",  # a session's own files, cgroups, an image's contents, /proc
    "private.py",
    "cli/probes.py", "cli/examination.py",  # cells that doctor runs, and bait for them
    "cli/__init__.py",  # /dev/null
    "integrations/e2b/files.py",  # a cell's source
}  # fmt: skip
WRITING = {"write_text", "write_bytes", "mkdir", "makedirs", "mkstemp", "mkdtemp", "NamedTemporaryFile"}


@pytest.fixture(autouse=True)
def _no_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


def _modes(directory: Path) -> dict[str, int]:
    """Modes of all below a directory, by path; those of directories are seen less their x."""
    found = {}
    for path in directory.rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        found[str(path.relative_to(directory))] = mode & ~0o100 if path.is_dir() else mode
    return found


@pytest.mark.sampled(0)
@pytest.mark.threat("W5")
def test_what_commands_agents_and_stores_write_is_their_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "where"
    where.mkdir(0o700)
    monkeypatch.chdir(where)
    url = f"sqlite:///{where}/new/cells.db?objects={where}/objects/of/mine"
    private_directory(where / "new")
    with Session("q3", state=Versioned(url)) as session:
        session.run("import os\nx = os.urandom(300_000)")
        during = {name for name in _modes(where) if name.startswith("new/")}
        open_modes = _modes(where)
    agent = CodeAgent(record(ScriptedModel(["```python\nfinal_answer(1)\n```"]), where / "replies"))
    agent.run("q", log=where / "log", files={"a": b"private"})
    History(where / "state" / "deeper" / "history").add("x = 1")
    (tmp_path / "in.ipynb").write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
            {"cell_type": "code", "id": "a", "source": "1", "metadata": {}, "outputs": [], "execution_count": None}]})
    )  # fmt: skip
    (tmp_path / "in.py").write_text("import os\nos.makedirs('deep/er')\nopen('deep/er/out.txt', 'w').write('x')\n")
    (where / "old.html").write_text("readable by others")
    for words in (
        ["run", str(tmp_path / "in.py"), "--save", "kept"],
        ["notebook", "run", str(tmp_path / "in.ipynb"), "--save", "out.ipynb"],
        ["notebook", "run", str(tmp_path / "in.ipynb"), "--save", "old.html"],
        ["sessions", "export", "q3", "q3.html", "--store", url],
        ["demo", "--fast", "--out", "shown"],
    ):
        assert main(words) == 0, (words, capfd.readouterr().err)
    modes = _modes(where)
    assert {"log", "replies", "state/deeper/history", "out.ipynb", "old.html", "q3.html"} <= modes.keys()
    assert {"kept/deep/er/out.txt", "shown/cellblock-demo.ipynb"} <= modes.keys()
    assert {"new/cells.db", "new/cells.db-wal", "new/cells.db-shm"} == during
    assert sum(name.startswith("objects/of/mine/") for name in modes) > 3
    assert {name: oct(mode) for name, mode in {**open_modes, **modes}.items() if mode != 0o600} == {}


def test_nothing_else_makes_files() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if name.split("/")[0] in NOT_OF_USERS or name in NOT_OF_USERS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _makes_a_file(node):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node.func)}")
    assert found == []


def _makes_a_file(call: ast.Call) -> bool:
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if named in WRITING:
        return True
    if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int):  # a descriptor
        return False
    given = [*call.args, *(word.value for word in call.keywords)]
    modes = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if named == "open" and any(set(mode) & set("wxa+") and len(mode) < 4 for mode in modes):
        return True
    return "O_CREAT" in ast.unparse(call)


def test_file_that_is_there_becomes_private_and_a_link_is_not_followed(tmp_path: Path) -> None:
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_text("old")
    there.chmod(0o666)
    link.symlink_to(there)
    for mode in ("a", "r+", "x"):
        with pytest.raises(OSError, match=r"symbolic link|File exists"):
            open_private(link, mode)  # type: ignore[arg-type]
    assert stat.S_IMODE(there.stat().st_mode) == 0o666
    with os.fdopen(open_private(there, "a"), "w") as file:
        file.write(" and new")
    assert (there.read_text(), stat.S_IMODE(there.stat().st_mode)) == ("old and new", 0o600)
    write_private(link, "another")
    assert (link.read_text(), link.is_symlink(), there.read_text()) == ("another", False, "old and new")


def test_file_that_its_group_could_read_becomes_private(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "there").chmod(0o640)
    os.close(open_private(tmp_path / "there", "r+"))
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o600


def test_file_that_is_written_whole_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so is its name, before the call returns: in a loss of power neither goes."""
    done: list[tuple[str, bytes]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        done.append(("directory", b"") if path == tmp_path else ("file", path.read_bytes()))

    def replaced(old: str, new: Path) -> None:
        replace(old, new)
        done.append(("name", new.read_bytes()))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_private(tmp_path / "page", "new")
    assert done == [("file", b"new"), ("name", b"new"), ("directory", b"")]


def test_file_that_cannot_be_written_whole_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("old")
    with pytest.raises(AttributeError):
        write_private(tmp_path / "page", 1)  # type: ignore[arg-type]
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    assert (tmp_path / "page").read_text() == "old"


@pytest.mark.sampled(0)
def test_directory_below_many_is_made_and_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    deep = tmp_path / "/".join("a" * 600)
    private_directory(deep)
    assert deep.is_dir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"exists|Not a directory"):
            private_directory(path)
