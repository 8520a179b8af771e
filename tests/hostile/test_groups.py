"""No group of processes reaches what a session keeps of itself: a cell neither joins one nor pulls one into its own."""

from __future__ import annotations

import pytest

from cellblock import Session

JOIN = """
import os
hit = []
for group in set(range(1, 80)) - {{os.getpgrp()}}:
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, group)
        except OSError:
            os._exit(0)
        os.kill(0, {signal})
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    if status:
        hit.append(group)
"""
PULL = """
import os
pulled = []
for process in range(1, 80):
    try:
        os.setpgid(process, os.getpgrp())
    except OSError:
        continue
    if process != os.getpid():
        pulled.append(process)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("signal", [9, 2, 19])
def test_a_cell_joins_no_group_of_what_is_kept(signal: int) -> None:
    with Session() as session:
        session.run("kept = 1")
        session.run("kept += 1")
        with session.branch() as branch:
            assert session.run(JOIN.format(signal=signal)).ok
            assert session.run("hit").value == []
            assert branch.run("kept").value == 2
            branch.undo()
            assert branch.run("kept").value == 2
        session.undo()
        session.undo()
        session.undo()
        assert session.run("kept").value == 1


@pytest.mark.sampled(0)
def test_a_cell_pulls_nothing_that_is_kept_into_its_group() -> None:
    with Session() as session:
        session.run("kept = 1")
        session.run("kept += 1")
        cell = session.run(PULL + "pulled\n")
        assert cell.value == []
        session.run("import os\nos.killpg(0, 9)")
        assert session.run("kept").value == 2
