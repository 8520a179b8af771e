"""One attack: what runs, the row of the register it belongs to, and the answer that names the wall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec

from cellblock_attacks.host import WALLS, Host

P = ParamSpec("P")


def host_later(attack: Callable[Concatenate[Host, P], object]) -> Callable[P, Callable[[Host], object]]:
    """Split a function of the host and more: a row of a table gives it the rest, and the host comes when it attacks."""
    return lambda *args, **more: lambda host: attack(host, *args, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A cell, or a function that attacks from the host's side of the session.

    `expect` is what the cell's last expression must be, or a failed cell's "kind: type: message", or what the
    function returns; a `Holds` accepts more than one answer. `wall` names what gives that answer. `dies`: the
    session's process ends, so names are lost and files stay. `lasting`: what it changes would spoil the
    attacks after it, so the process is ended afterwards. `hole`: the wall does not hold yet, and why.
    """

    name: str
    threat: str
    wall: str
    expect: object
    cell: str = ""
    host: Callable[[Host], object] | None = None
    dies: bool = False
    lasting: bool = False
    hole: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Makes attacks of one class, unless a row says another, whose names begin with the table's."""

    name: str
    threat: str

    def cell(self, name: str, wall: str, expect: object, cell: str, **more: Any) -> Attack:
        return Attack(
            **{"threat": self.threat, **more}, name=f"{self.name}-{name}", wall=wall, expect=expect, cell=cell
        )

    def host(self, name: str, wall: str, expect: object, host: Callable[[Host], object], **more: Any) -> Attack:
        return Attack(
            **{"threat": self.threat, **more}, name=f"{self.name}-{name}", wall=wall, expect=expect, host=host
        )


@dataclass(frozen=True, slots=True)
class Holds:
    """An expectation that is a test of the answer; `says` is shown when it fails."""

    test: Callable[[object], bool]
    says: str

    def __eq__(self, other: object) -> bool:
        return self.test(other)

    def __hash__(self) -> int:
        return hash(self.says)

    def __repr__(self) -> str:
        return f"<{self.says}>"


def one_of(*answers: object) -> Holds:
    """Any of these answers: kernels and file systems differ in which wall is met first."""
    return Holds(lambda answer: answer in answers, f"one of {answers}")


def subset_of(*answers: str) -> Holds:
    """A list that holds nothing but these answers, and at least one of them."""
    return Holds(
        lambda found: isinstance(found, list) and bool(found) and set(found) <= set(answers),
        f"a list of {answers} alone",
    )


def beginning(text: str) -> Holds:
    """An answer that begins so."""
    return Holds(lambda answer: isinstance(answer, str) and answer.startswith(text), f"beginning {text!r}")


_PRELUDE = '''
import ctypes, errno, os, sys
def name_of(error):
    return errno.errorcode.get(error.errno, repr(error))
def attempt(function, *args, **options):
    try:
        return function(*args, **options)
    except OSError as error:
        return name_of(error)
def call(name, *args):
    from cellblock.hosting.machine import MACHINE
    from cellblock.worker.confine.syscall_numbers import NUMBERS
    number = NUMBERS[MACHINE].get(name)
    if number is None:
        return "absent"
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    return errno.errorcode[ctypes.get_errno()] if result < 0 else f"returned {result}"
def read(path):
    with open(path, "rb") as file:
        return file.read().decode(errors="replace")
def pids():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
def hides(pid):
    """Whether a process does not let others look at it, as init and checkpoints do not."""
    return attempt(os.readlink, f"/proc/{pid}/exe") == "EACCES"
def package():
    """Where the package is in here: the directory that the runner's files are in."""
    frame = sys._getframe()
    while "/cellblock/worker/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_code.co_filename.partition("/cellblock/worker/")[0]
def channel():
    """The worker's end of the wire; its other socket is for the checkpoint after this cell."""
    import sys
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("self"), "_channel"):
        frame = frame.f_back
    return frame.f_locals["self"]._channel.connection.fileno()
'''


_ADOPT = """
if "cellblock" not in sys.modules:
    import importlib.util
    place = package() + "/cellblock"
    found = importlib.util.spec_from_file_location(
        "cellblock", place + "/__init__.py", submodule_search_locations=[place])
    sys.modules["cellblock"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(sys.modules["cellblock"])
"""


def prelude(facts: dict[str, object]) -> str:
    """Source that cells of attacks may use; `facts` are paths, ports and pids of the host.

    The runner's own modules cannot be imported: a cell gets fresh ones of the package, from where it is.
    """
    reach = "if package() not in sys.path: sys.path.append(package())"
    if WALLS == "reduced":  # where the package lies is not listed there
        reach = _ADOPT
    return f"{_PRELUDE}\nfacts = {facts!r}\n{reach}\n"
