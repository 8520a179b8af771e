"""Children that are forked for one piece of work: each ends with it, whatever becomes of it."""

from __future__ import annotations

import subprocess
import sys

import pytest


def ran(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)


FORKS = """
import os
from cellblock.worker.forks import fork
def work():
    {}
status = os.waitstatus_to_exitcode(os.waitpid(fork(work), 0)[1])
os.write(1, f"{{status}} ".encode())
"""


@pytest.mark.parametrize(
    ("work", "status", "told"),
    [
        ("os.write(1, b'done '); return", "done 0 ", ""),
        ("raise OSError('no more')", "70 ", "OSError: no more"),
        ("raise SystemExit(3)", "70 ", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "70 ", "KeyboardInterrupt"),
    ],
)
def test_child_does_not_go_on_in_the_code_of_its_parent(work: str, status: str, told: str) -> None:
    done = ran(FORKS.format(work))
    assert (done.returncode, done.stdout) == (0, status)
    assert done.stderr.rstrip().endswith(told) if told else done.stderr == ""


MAKES = """
import os, signal, socket
from cellblock.worker import control
from cellblock.worker.family.children import Children
from cellblock.worker.family.spares import Spares

waits, goes_on = os.pipe()

def make_shell(kind, host):
    os.read(waits, 1)
    os._exit(0)

host, zygote = control.pair()
children = Children(host)
spares = Spares(children, make_shell)
children.hold(spares.close)
spares.use(zygote)
spares.keep({}, 1, None)
spares.work()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
spares.close()  # as the launcher's end does, while the child still makes its session
os.write(goes_on, b"1")
os.waitpid(-1, 0)
os.write(1, b"the launcher ")
"""


def test_child_that_makes_a_session_for_a_launcher_that_is_gone_ends_in_silence() -> None:
    done = ran(MAKES)
    assert (done.stdout, done.stderr, done.returncode) == ("the launcher ", "", 0)
