"""W1 from the host's side: what a session left in its files must not make the host read or write outside."""

from __future__ import annotations

import os
import threading
import time

from cellblock import Session
from cellblock_attacks.attack import Attack, Holds, Table, beginning, host_later, one_of
from cellblock_attacks.host import LIMITS, Host, refusal_of

_BENEATH = "openat2 with RESOLVE_BENEATH on the host's side"
_NOT_REGULAR = "the host opens without waiting and takes regular files alone"


_host = Table("host-files", "W1").host


@host_later
def _reads_link_to(host: Host, target: str) -> object:
    host.cell(f"if os.path.lexists('trap'): os.unlink('trap')\nos.symlink({target!r}.format(**facts), 'trap')")
    return refusal_of(host.session.files.read, "trap")


def _uses_linked_directory(host: Host) -> object:
    host.cell("if os.path.lexists('trap'): os.unlink('trap')\nos.symlink(facts['folder'], 'trap')")
    files = host.session.files
    answers = {
        refusal_of(files.read, "trap/secret"),
        refusal_of(files.write, "trap/secret", b"changed"),
        refusal_of(files.write, "trap/new", b"made"),
        refusal_of(files.write, "trap/new/deep", b"made"),
        refusal_of(files.delete, "trap/victim"),
    }
    return sorted({str(answer).split("' ")[-1] for answer in answers})


def _lists_no_link(host: Host) -> object:
    host.cell("os.makedirs('looked', exist_ok=True)\nopen('looked/real', 'w').close()")
    host.cell(
        "os.symlink(facts['folder'], 'looked/outside'); os.symlink('..', 'looked/loop'); os.mkfifo('looked/fifo')"
    )
    return [path for path in host.session.files.list() if path.startswith("looked/")]


def _takes_a_fifo(host: Host) -> object:
    host.cell("if not os.path.exists('fifo'): os.mkfifo('fifo')")
    files = host.session.files
    alone = [refusal_of(files.read, "fifo"), refusal_of(files.write, "fifo", b"x")]
    host.cell("held = os.open('fifo', os.O_RDWR)")
    both = [refusal_of(files.read, "fifo"), refusal_of(files.write, "fifo", b"x")]
    return sorted(set(map(str, alone + both)))


def _takes_a_socket(host: Host) -> object:
    host.cell("import socket\nlistener = socket.socket(socket.AF_UNIX)\nlistener.bind('trap.socket')")
    return refusal_of(host.session.files.read, "trap.socket")


def _meets_a_lease(host: Host) -> object:
    """A lease makes others' opens wait for its holder, for up to 45 s; the host must not."""
    host.cell("import fcntl, signal\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nopen('leased', 'w').close()")
    host.cell("leased = os.open('leased', os.O_RDONLY)")
    taken = host.cell("[attempt(fcntl.fcntl, leased, kind, fcntl.F_RDLCK) for kind in (fcntl.F_SETLEASE, 1040)]")
    began = time.monotonic()
    refusal_of(host.session.files.write, "leased", b"x")
    refusal_of(host.session.files.read, "leased")
    host.cell("os.close(leased)")
    return [taken, "at once" if time.monotonic() - began < 5 else "waited for the lease"]


def _open_four() -> None:
    for _ in range(4):
        Session(limits=LIMITS).close()


def _reads_while_mounts_change(host: Host) -> object:
    """A walk through `..` is interrupted by any mount on the machine: each session that opens makes dozens."""
    host.cell("os.makedirs('deep', exist_ok=True); open('plain', 'w').write('kept')")
    host.cell("if not os.path.lexists('deep/link'): os.symlink('../plain', 'deep/link')")
    opening = threading.Thread(target=_open_four)
    opening.start()
    found = set()
    while opening.is_alive():
        found.add(str(refusal_of(host.session.files.read, "deep/link")))
        opening.join(0.001)  # the processes of a session that opens need the processor too
    return sorted(found)


@host_later
def takes_rights_from(host: Host, directories: str) -> object:
    """A cell takes every right from the directories that the host goes through, then its process ends.

    `directories` is an expression of the cell's: their paths.
    """
    with Session(limits=LIMITS) as session:
        session.files.write("kept", b"kept")
        session.run(f"import os\nfor path in ({directories}): os.chmod(path, 0)")
        files = session.files
        calls = ((files.read, "kept"), (files.write, "new", b"x"), (files.delete, "kept"), (files.list,))
        refused = {str(refusal_of(*call)).split(":")[0] for call in calls}
        session.kill()
        session.run("pass")
        return [sorted(refused), bytes(files.read("kept")).decode(), files.list()]


_SWAPPER = """
import threading, time
os.makedirs("swap", exist_ok=True)
if not os.path.lexists("swapped"): os.symlink(facts["folder"], "swapped")
open("swap/secret", "w").close()
open("swap/victim", "w").close()
stop = threading.Event()
def swap():
    while not stop.is_set():
        call("renameat2", -100, b"swap", -100, b"swapped", 2)
swapper = threading.Thread(target=swap, daemon=True)
swapper.start()
"""


def _races_a_swap(host: Host) -> object:
    """A directory and a link to the host's folder change places while the host works below the name."""
    host.cell(_SWAPPER)
    files = host.session.files
    answers: set[str] = set()
    began = time.monotonic()
    # until the host has met the link, which takes its time on a busy machine
    while (past := time.monotonic() - began) < 0.5 or (past < 10 and not any("FileRefused" in one for one in answers)):
        answers.add(str(refusal_of(files.write, "swap/planted", b"x")).split(" ")[0])
        answers.add(str(refusal_of(files.read, "swap/secret")))
        refusal_of(files.delete, "swap/victim")
        refusal_of(files.list)
    host.cell("stop.set(); swapper.join()")
    planted = os.path.exists(host.folder / "planted") or not os.path.exists(host.folder / "victim")
    leaked = any(host.canary in answer for answer in answers)
    return {"planted": planted, "leaked": leaked, "refused": any("FileRefused" in answer for answer in answers)}


def _names_outside(host: Host) -> object:
    names = (
        "/etc/passwd",
        "../../etc/passwd",
        "/workspace/../etc/passwd",
        "/tmp/../etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
    )
    return sorted(
        {
            str(refusal_of(host.session.files.read, name)).split("(")[0].replace(repr(name), "it").strip()
            for name in names
        }
    )


def _unusable_names(host: Host) -> object:
    names = ("", "a\0b", "x" * 5000, "\udcff\ud800")
    return sorted(
        {
            str(refusal_of(host.session.files.read, name)).split("(")[0].replace(f"{name!r:.80}", "it").strip()
            for name in names
        }
    )


ATTACKS: tuple[Attack, ...] = (
    _host(
        "link-to-a-file",
        _BENEATH,
        "FileRefused: 'trap' leads outside the session's files",
        _reads_link_to("/etc/passwd"),
    ),
    _host(
        "link-to-the-secret",
        _BENEATH,
        "FileRefused: 'trap' leads outside the session's files",
        _reads_link_to("{secret}"),
    ),
    _host(
        "relative-link",
        _BENEATH,
        "FileRefused: 'trap' leads outside the session's files",
        _reads_link_to("../../../../../..{secret}"),
    ),
    _host("link-while-mounts-change", "the walk is tried again", ["b'kept'"], _reads_while_mounts_change),
    _host(
        "directories-without-rights",
        "a session's own walls hold for the host as well; a new process gets them back",
        Holds(  # init gives itself rights for a moment, to remember what the files are
            lambda answer: (
                isinstance(answer, list)
                and answer[1:] == ["kept", ["kept"]]
                and set(answer[0]) <= {"FileRefused", "[]", "b'kept'"}
            ),
            "no error of another kind, and all as it was with the new process",
        ),
        takes_rights_from("'/session/workspace', '/session/tmp', '/session'"),
    ),
    _host(
        "magic-link",
        _BENEATH,
        one_of(
            "FileRefused: 'trap' leads outside the session's files",
            "FileRefused: 'trap' is a link that leads nowhere or outside",
        ),
        _reads_link_to("/proc/self/fd/0"),
    ),
    _host(
        "endless-link", _BENEATH, "FileRefused: 'trap' is a link that leads nowhere or outside", _reads_link_to("trap")
    ),
    _host("linked-directory", _BENEATH, ["leads outside the session's files"], _uses_linked_directory),
    _host("listing-follows-nothing", "entries are judged without following", ["looked/real"], _lists_no_link),
    _host("fifo", _NOT_REGULAR, ["FileRefused: 'fifo' is not a regular file"], _takes_a_fifo),
    _host("unix-socket", _NOT_REGULAR, "FileRefused: 'trap.socket' is not a regular file", _takes_a_socket),
    _host(
        "lease",
        "seccomp; and the host opens without waiting",
        [["EPERM", "EPERM"], "at once"],
        _meets_a_lease,
    ),
    _host("swapped-directory", _BENEATH, {"planted": False, "leaked": False, "refused": True}, _races_a_swap),
    _host(
        "names-outside",
        "paths are located below the session's root",
        ["FileRefused: it is not among the session's files"],
        _names_outside,
    ),
    _host(
        "unusable-names",
        "paths are checked before they are used",
        ["FileRefused: it is not a usable path"],
        _unusable_names,
    ),
    _host(
        "hard-link-made-inside",
        "links do not cross mounts",
        beginning("FileRefused: 'linked' does not exist"),
        lambda host: (
            host.cell("attempt(os.link, '/etc/passwd', 'linked')"),
            refusal_of(host.session.files.read, "linked"),
        )[1],
    ),
)
