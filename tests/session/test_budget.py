"""What checkpoints may cost: memory beyond the session's own and room for files. The oldest are let go for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from family_tree import soon
from insides import ASK, Insides

from cellblock import CellblockError, ExecutionLimits, Session, Versioned

MB = 2**20
SLACK = 48 * MB
"""Interpreters, their page tables and what a watch may be late by, once a session rests."""

BLOCK = """
block = bytearray({megabytes} << 20)
def rewrite(value):
    for at in range(0, len(block), 4096):
        block[at] = value
"""


_insides: dict[Session, Insides] = {}


def within(session: Session, most: int) -> int:
    """What the session holds once that is no more than so many bytes, or after some seconds."""
    deadline = time.monotonic() + 5
    while (now := _insides[session].held()) > most and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


@pytest.fixture
def open_seen(open_session: Callable[..., Session]) -> Callable[..., Session]:
    """Opens a session of whose processes nothing is hidden from this one."""
    if os.getuid() != 0:
        pytest.skip("what frozen copies hold is hidden from an ordinary user")

    def open_one(**limits: object) -> Session:
        session = open_session(limits=ExecutionLimits(timeout_seconds=30, **limits))  # type: ignore[arg-type]
        _insides[session] = Insides(str(session.run(ASK).value))
        return session

    return open_one


@pytest.mark.sampled(0)
@pytest.mark.parametrize("budget", [None, 60])
def test_a_session_that_rewrites_much_with_each_cell_stays_within_its_limit_and_its_budget(
    open_seen: Callable[..., Session], budget: int | None
) -> None:
    session = open_seen(max_memory_mb=160, max_checkpoint_mb=budget)
    session.run(BLOCK.format(megabytes=100))
    most = (160 + (160 if budget is None else 100)) * MB + SLACK  # the newest is kept
    for value in range(8):
        assert session.run(f"rewrite({value})").ok
        assert within(session, most) <= most
    assert session.run("block[0]").value == 7


@pytest.mark.sampled(0)
def test_undo_within_the_budget_and_past_it(open_seen: Callable[..., Session]) -> None:
    session = open_seen(max_memory_mb=200, max_checkpoint_mb=100)
    session.run(BLOCK.format(megabytes=70))
    for value in range(4):
        session.run(f"rewrite({value})")
        within(session, 260 * MB)
    time.sleep(1)  # init counts at its own pace
    with pytest.raises(CellblockError) as caught:
        session.undo(4)
    assert str(caught.value) == (
        "4 steps cannot be undone, 1 can: the memory of older states came to more than "
        "ExecutionLimits(max_checkpoint_mb=…), 100 MB "
        "(raise ExecutionLimits(max_checkpoint_mb=…) before the session is opened)"
    )
    assert session.run("block[0]").value == 3  # nothing has happened, and this was another step
    session.undo(2)
    assert session.run("block[0]").value == 2


@pytest.mark.sampled(0)
def test_states_that_share_what_they_hold_are_not_let_go(open_seen: Callable[..., Session]) -> None:
    session = open_seen(max_memory_mb=200, max_checkpoint_mb=40)
    session.run(BLOCK.format(megabytes=100) + "rewrite(1)")
    for value in range(5):
        session.run(f"small = {value}\nsum(range(10 ** 5))")
        time.sleep(0.15)
    session.undo(5)
    assert session.run("'small' in globals(), block[0]").value == (False, 1)


@pytest.mark.sampled(0)
def test_what_a_cell_has_freed_is_what_the_copies_cost(open_seen: Callable[..., Session]) -> None:
    session = open_seen(max_memory_mb=200, max_checkpoint_mb=60)
    session.run(BLOCK.format(megabytes=100) + "rewrite(1)")
    session.run("x = 1")
    session.run("del block")
    session.run("x = 2")
    assert within(session, 100 * MB) <= 100 * MB
    with pytest.raises(CellblockError, match="can: the memory of older states"):
        session.undo(3)
    session.undo()
    assert session.run("x, 'block' in globals()").value == (1, False)


@pytest.mark.sampled(0)
def test_a_failure_goes_back_whatever_the_newest_state_costs(open_seen: Callable[..., Session]) -> None:
    session = open_seen(max_memory_mb=200, max_checkpoint_mb=1)
    session.run(BLOCK.format(megabytes=100) + "rewrite(1)")
    for _ in range(3):
        cell = session.run("import os, time\nrewrite(2)\ntime.sleep(0.5)\nos._exit(1)")
        assert (cell.rolled_back, cell.lost) == (True, ())
        cell = session.run("rewrite(3)\nimport time\ntime.sleep(0.3)\nmore = bytearray(10 ** 9)")
        assert cell.error is not None
        assert (cell.error.kind, cell.rolled_back, cell.lost) == ("memory", True, ())
        assert session.run("block[0]").value == 1


@pytest.mark.sampled(0)
def test_a_neighbour_keeps_all_its_states_beside_copies_that_are_dear(open_seen: Callable[..., Session]) -> None:
    dear, neighbour = open_seen(max_memory_mb=160, max_checkpoint_mb=40), open_seen()
    dear.run(BLOCK.format(megabytes=100))
    for value in range(6):
        dear.run(f"rewrite({value})")
        neighbour.run(f"x = {value}")
    neighbour.undo(5)
    assert neighbour.run("x").value == 0
    most = (160 + 100) * MB + SLACK
    assert within(dear, most) <= most


@pytest.mark.sampled(0)
def test_a_copy_that_is_killed_is_a_state_less_and_no_crash(open_seen: Callable[..., Session]) -> None:
    session = open_seen()
    for value in range(4):
        session.run(f"x = {value}")
    time.sleep(0.2)
    copies = sorted((one.inner[-1], one.pid) for one in _insides[session].others())[1:]
    for _, pid in copies[1:3]:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    cell = session.run("x = 4")
    assert (cell.ok, cell.lost, cell.text) == (True, (), "")
    with pytest.raises(CellblockError) as caught:
        session.undo(3)
    assert str(caught.value) == (
        "3 steps cannot be undone: the copy of the session from before that has ended, or could not be made "
        "(undo another number of steps)"
    )
    session.undo(2)
    assert session.run("x").value == 2


@pytest.mark.sampled(0)
def test_all_copies_end_when_their_session_does_and_none_is_left_over(open_seen: Callable[..., Session]) -> None:
    session = open_seen(max_memory_mb=100, max_checkpoint_mb=20)
    session.run(BLOCK.format(megabytes=40))
    for value in range(6):
        session.run(f"rewrite({value})")
    assert soon(lambda: len(_insides[session].others()) <= 3, True)
    session.run("x = 1")
    session.run("x = 2")
    assert soon(lambda: len(_insides[session].others()) <= 5, True)


# -------------------------------------------------------------------------------------------------------------- files


@pytest.mark.sampled(0)
def test_files_that_do_not_fit_twice_have_the_oldest_states_let_go(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=60, max_disk_mb=60))
    write = "with open('big', 'wb') as file:\n    for _ in range(25): _ = file.write(bytes([{0}]) * 2 ** 20)"
    for value in range(5):
        assert session.run(f"x = {value}\n" + write.format(value)).ok
    with pytest.raises(CellblockError) as caught:
        session.undo(3)
    assert str(caught.value) == (
        "3 steps cannot be undone, 1 can: the files of older states came to more than "
        "ExecutionLimits(max_disk_mb=…), 60 MB (raise ExecutionLimits(max_disk_mb=…) before the session is opened)"
    )
    session.undo()
    look = "data = open('big', 'rb').read()\nx, len(data), set(data)"
    assert session.run(look).value == (3, 25 * MB, {3})
    cell = session.run("open('big', 'wb').close()\nimport os\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert session.run(look).value == (3, 25 * MB, {3})


def test_files_that_leave_no_room_for_the_states_before_leave_the_names(open_session: Callable[..., Session]) -> None:
    """The state after a write by the host has the copy of the state before it."""
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_disk_mb=10))
    session.run("left = (n for n in range(9))")
    for value in range(3):
        session.files.write("big", bytes([value]) * 5_300_000)
    cell = session.run("import os\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert session.run("next(left), set(open('big', 'rb').read())").value == (0, {2})


@pytest.mark.sampled(0)
def test_a_file_that_fills_the_disk_comes_back(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=60, max_disk_mb=40))
    write = "with open('{1}', 'wb') as file:\n    for _ in range(38): _ = file.write(bytes([{0}]) * 2 ** 20)"
    assert session.run(write.format(1, "big")).ok
    assert session.run(write.format(2, "big")).ok
    assert session.run("import os\nos.rename('big', 'large')").ok
    cell = session.run("os.remove('large')\n" + write.format(3, "other") + "\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert session.run("os.listdir(), set(open('large', 'rb').read())").value == (["large"], {2})


@pytest.mark.sampled(0)
def test_more_small_files_than_the_history_has_room_for(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=60, max_files=300))
    write = "for n in range(250):\n    with open(f'part{{n}}', 'w') as file: _ = file.write('{0}')"
    for value in range(4):
        assert session.run(write.format(value)).ok
    cell = session.run("import os\nfor n in range(250): os.remove(f'part{n}')\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert session.run("{open(f'part{n}').read() for n in range(250)}").value == {"3"}


SPARSE = """
for name in "abcde":
    with open(name, "wb") as file:
        for place in range(15):
            _ = file.seek(place << 20)
            _ = file.write(b"{}")
"""


@pytest.mark.sampled(0)
def test_sparse_files_take_no_more_room_than_their_data(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=60, max_disk_mb=20))
    assert session.run(SPARSE.format(1)).ok
    cell = session.run(SPARSE.format(2) + "import os\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    cell = session.run(
        "import os\nfiles = [open(name, 'rb').read() for name in 'abcde']\n"
        "{(len(data), data.count(b'1')) for data in files}, sum(os.stat(name).st_blocks * 512 for name in 'abcde')"
    )
    assert cell.value == ({(14 * MB + 1, 15)}, 5 * 15 * 4096)


def test_a_hole_that_was_filled_is_a_hole_again(open_session: Callable[..., Session]) -> None:
    session = open_session()
    session.run("with open('f', 'wb') as file:\n    _ = file.write(b'1' * 4096)\n    _ = file.truncate(2 ** 20)")
    cell = session.run("import os\nwith open('f', 'rb+') as file: _ = file.write(b'2' * 2 ** 20)\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert session.run("import os\nopen('f', 'rb').read().count(b'1'), os.stat('f').st_blocks * 512").value == (
        4096,
        4096,
    )
    assert session.run("len(open('f', 'rb').read().strip(b'1').strip(bytes(1)))").value == 0


ODD = """
import os
def write(times):
    os.makedirs(deep := "/".join("d" * 200 for _ in range(15)), exist_ok=True)
    for name in (deep + "/" + "f" * 200, "sparse"):
        with open(name, "wb") as file:
            for place in (3, 8):
                _ = file.seek(place << 20)
                _ = file.write(b"data" * times)
            _ = file.truncate(400 << 20)
    if not os.path.exists("other"):
        os.link("sparse", "other")
def found():
    names = ("/".join(["d" * 200] * 15) + "/" + "f" * 200, "sparse", "other")
    data = [os.pread(os.open(name, os.O_RDONLY), 10, 8 << 20).strip(b"\\0") for name in names]
    sizes = {(os.stat(name).st_size >> 20, os.stat(name).st_blocks * 512) for name in names}
    return data, sizes, os.path.samefile("sparse", "other")
"""


@pytest.mark.sampled(0)
def test_sparse_files_and_deep_ones_come_back_in_an_undo_a_branch_and_another_session(tmp_path: Path) -> None:
    wanted = ([b"data"] * 3, {(400, 2 * 4096)}, True)
    with Session("a", state=Versioned(f"sqlite:///{tmp_path}/cells.db")) as session:
        session.run(ODD + "write(1)")
        assert session.run("write(2); found()").value == ([b"datadata"] * 3, {(400, 2 * 4096)}, True)
        session.undo()
        assert session.run("found()").value == wanted
        with session.branch("other") as branch:
            assert branch.run("found()").value == wanted
    with Session("a", state=Versioned(f"sqlite:///{tmp_path}/cells.db")) as session:
        assert session.resumed is not None
        assert session.resumed.lost == ()
        assert session.run("found()").value == wanted


@pytest.mark.threat("W7")
def test_states_of_which_each_has_files_of_its_own_are_let_go_past_twice_the_most_files(
    open_session: Callable[..., Session],
) -> None:
    session = open_session(limits=ExecutionLimits(max_files=300))
    session.run("import os; os.mkdir('0')\nfor n in range(150): open(f'0/{n}', 'w').close()")
    for step in range(4):
        session.run(f"os.rename('{step}', '{step + 1}')")
    with pytest.raises(CellblockError) as refused:
        session.undo(4)
    assert str(refused.value) == (
        "4 steps cannot be undone, 2 can: the files that older states had to themselves came to more than "
        "ExecutionLimits(max_files=…), 300 (raise ExecutionLimits(max_files=…) before the session is opened)"
    )
    session.undo(2)
    assert session.run("[(name, len(os.listdir(name))) for name in os.listdir()]").value == [("2", 150)]
