"""What it costs init to remember files: it is counted by what they hold, however large or deep they are."""

import itertools
import os
import signal
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cellblock.wire import filelists
from cellblock.worker.init import filehistory
from cellblock.worker.init.filehistory import FileHistory

MB = 1 << 20


@pytest.fixture
def history(tmp_path: Path) -> Iterator[FileHistory]:
    """The files below `tree`; `store` has their chunks."""
    before = signal.getsignal(signal.SIGIO)
    for name in ("tree", "store"):
        (tmp_path / name).mkdir()
    yield FileHistory([str(tmp_path / "tree")], os.open(tmp_path / "store", os.O_RDONLY | os.O_DIRECTORY))
    signal.signal(signal.SIGIO, before)


def sparse(path: Path, size: int, *places: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)
        for place in places:
            file.seek(place)
            file.write(b"data")


@pytest.mark.threat("W7")
def test_holes_take_no_calls_and_no_room(history: FileHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = {"lseek": 0, "pread": 0, "pwrite": 0}

    def counting(name: str) -> None:
        call = getattr(os, name)

        def counted(*arguments: object) -> object:
            called[name] += 1
            return call(*arguments)

        monkeypatch.setattr(filehistory.os, name, counted)

    for name in called:
        counting(name)
    file, places = tmp_path / "tree" / "f", (5 * MB, 9000 * MB - 2)
    sparse(file, 10_000 * MB, *places)
    history.keep(1)
    assert called["lseek"] <= 6
    assert called["pread"] == 3
    assert len(os.listdir(tmp_path / "store")) == 3
    told = [told for _, told in filelists.read(history.listed(1))]
    assert [number for number, _, _ in told[0].chunks] == [5, 8999, 9000]
    file.unlink()
    history.keep(2)
    assert history.rewind(1) == []
    assert called["pwrite"] <= 6
    found = file.stat()
    assert (found.st_size, found.st_blocks * 512 < MB) == (10_000 * MB, True)
    with open(file, "rb") as read:
        assert [os.pread(read.fileno(), 6, place - 1) for place in places] == [b"\0data\0"] * 2


@pytest.mark.threat("W7")
def test_names_of_one_file_are_copied_once(history: FileHistory, tmp_path: Path) -> None:
    file = tmp_path / "tree" / "f"
    file.write_bytes(os.urandom(3 * MB))
    for number in range(50):
        os.link(file, tmp_path / "tree" / f"other{number}")
    history.keep(1)
    assert len(os.listdir(tmp_path / "store")) == 3
    data = file.read_bytes()
    file.write_bytes(b"new")
    history.keep(2)
    assert history.rewind(1) == []
    assert {one.read_bytes() for one in (tmp_path / "tree").iterdir()} == {data}
    assert len({one.stat().st_ino for one in (tmp_path / "tree").iterdir()}) == 1


def _write_at(looks: Iterator[int], moment: int, file: Path, data: bytes) -> None:
    if next(looks) == moment:
        file.write_bytes(data)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2 * MB, 4 * MB])
def test_names_of_a_file_that_is_written_meanwhile_are_one_state_of_it(
    history: FileHistory, tmp_path: Path, size: int, known: bool
) -> None:
    names = [tmp_path / "tree" / where / "f" for where in "abc"]
    for name in names:
        name.parent.mkdir()
    for moment in itertools.count():  # at which it is written, between two looks
        for name in names:
            name.unlink(missing_ok=True)
        names[0].write_bytes(os.urandom(3 * MB))
        for name in names[1:]:
            os.link(names[0], name)
        history.between = int
        if known:
            history.keep(2 * moment)
        looks, written = itertools.count(), os.urandom(size)
        history.between = partial(_write_at, looks, moment, names[0], written)
        history.keep(2 * moment + 1)
        rows = [told for name, told in filelists.read(history.listed(2 * moment + 1)) if name == "rows"]
        files = [(told.size, told.chunks) for told in rows if told.path.endswith("/f")]
        assert len(files) == 3
        assert files.count(files[0]) == 3
        assert all(number * MB < told.size for told in rows for number, *_ in told.chunks)
        history.between = int
        history.keep(2 * moment + 2)
        if next(looks) <= moment:
            break
        names[1].write_bytes(b"later")
        assert history.rewind(2 * moment + 2) == []
        assert {name.read_bytes() for name in names} == {written}


@pytest.mark.threat("W7")
def test_deep_paths_take_the_room_of_their_names(history: FileHistory, tmp_path: Path) -> None:
    deep = tmp_path / "tree" / "/".join(["d" * 200] * 15)
    deep.mkdir(parents=True)
    paths = [deep / f"{number}" for number in range(300)]
    for path in paths:
        path.touch()
    tracemalloc.start()
    try:
        for number in range(1, 6):
            history.keep(number)
            history.told(number, 0)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < sum(len(str(path)) for path in paths)
    assert held < most
    for path in paths[::2]:
        path.unlink()
    assert history.rewind(5) == []
    assert sorted(deep.iterdir()) == sorted(paths)


@pytest.mark.threat("W7")
def test_others_are_looked_at_while_many_files_are_remembered(history: FileHistory, tmp_path: Path) -> None:
    looks = list[int]()
    history.between = lambda: looks.append(1)
    for number in range(100):
        (tmp_path / "tree" / f"{number}").touch()
    sparse(tmp_path / "tree" / "f", 200 * MB, *range(0, 200 * MB, MB))
    history.keep(1)
    assert len(looks) >= 300
