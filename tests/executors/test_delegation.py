"""Where control groups can be made: in a hierarchy of version 2 that is laid out as files, and on this machine."""

import os
from pathlib import Path

import pytest

from cellblock.executors.process import delegation
from cellblock.executors.process.delegation import NotDelegated, Place

BOTH, ALL = ("memory", "pids"), ("memory", "pids", "cpu")


def group(folder: Path, *, controllers: str = "cpu memory pids", processes: str = "", root: bool = False) -> Path:
    """What the kernel shows of a group, as files."""
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text(processes)
    if not root:
        (folder / "cgroup.type").write_text("domain\n")
    return folder


def given(folder: Path) -> str:
    return (folder / "cgroup.subtree_control").read_text()


def refusal(folder: Path) -> str:
    with pytest.raises(NotDelegated) as caught:
        delegation._version_2(folder, BOTH)
    assert caught.value.remedy
    assert given(folder) == "" if (folder / "cgroup.subtree_control").exists() else True
    return str(caught.value).replace(str(folder), "it")


def test_an_empty_group_gives_its_controllers_on(tmp_path: Path) -> None:
    folder = group(tmp_path / "empty")
    assert delegation._version_2(folder, BOTH) == Place(folder, 2, ALL)
    assert given(folder) == "+memory +pids +cpu"


def test_processors_are_shared_where_there_is_a_controller_for_them(tmp_path: Path) -> None:
    folder = group(tmp_path / "without", controllers="memory pids")
    assert delegation._version_2(folder, BOTH) == Place(folder, 2, BOTH)
    assert given(folder) == "+memory +pids"


def test_what_is_given_already_is_not_given_again(tmp_path: Path) -> None:
    folder = group(tmp_path / "used")
    (folder / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert delegation._version_2(folder, BOTH) == Place(folder, 2, ALL)
    assert given(folder) == "cpu memory pids\n"


def test_a_process_that_is_alone_in_its_group_moves_below(tmp_path: Path) -> None:
    folder = group(tmp_path / "scope", processes=f"{os.getpid()}\n")
    assert delegation._version_2(folder, BOTH) == Place(folder, 2, ALL)
    assert (folder / "cellblock_host" / "cgroup.procs").read_text() == "0"
    assert given(folder) == "+memory +pids +cpu"


def test_a_group_with_others_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    folder = group(tmp_path / "shared", processes=f"1\n{os.getpid()}\n")
    assert refusal(folder) == "it holds 2 processes, so that groups below it get no controllers"
    assert not (folder / "cellblock_host").exists()


def test_the_root_may_have_processes_beside_groups(tmp_path: Path) -> None:
    folder = group(tmp_path / "root", processes="1\n2\n3\n", root=True)
    assert delegation._version_2(folder, BOTH) == Place(folder, 2, ALL)


def test_controllers_that_are_not_there_are_named(tmp_path: Path) -> None:
    assert refusal(group(tmp_path / "some", controllers="cpu pids")) == "it has no controller for memory"
    assert refusal(group(tmp_path / "none", controllers="")) == "it has no controller for memory and pids"


def test_a_directory_that_is_no_group_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "it is not a control group of version 2"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_group_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    folder = group(tmp_path / "others")
    (folder / "cgroup.procs").chmod(0o444)
    assert refusal(folder) == "it is not writable"


def test_the_named_group_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = group(tmp_path / "named")
    monkeypatch.setenv(delegation.VARIABLE, str(folder))
    assert delegation.places() == [Place(folder, 2, ALL)]


def test_this_machine_has_a_place_for_each_controller() -> None:
    try:
        places = delegation.places()
    except NotDelegated as reason:
        pytest.skip(f"{reason} ({reason.remedy})")
    found = [controller for place in places for controller in place.controllers]
    assert set(BOTH) <= set(found) <= set(ALL)
    assert len(found) == len(set(found))
    assert all(os.access(place.folder / "cgroup.procs", os.W_OK) for place in places)
