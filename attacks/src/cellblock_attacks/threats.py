"""Threats: classes of attacks, the levels that answer each, and the wall that does.

Tests cite a row by its id (`@pytest.mark.threat("W1")`); `tests/test_threats.py` fails when a row that is due
has no test. A row is a class, so one row needs many tests.
"""

from __future__ import annotations

from dataclasses import dataclass

LOCAL, ISOLATED, SANDBOXED = "local", "isolated", "sandboxed"
LEVELS = (LOCAL, ISOLATED, SANDBOXED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat:
    """One class of attack. `levels` are those that answer it, `wall` is what answers there.

    `not_due` says why no test has to cite it yet; "" means that one must. `reduced` is what is not promised against
    it where a session has no namespaces, "" for nothing.
    """

    id: str
    title: str
    levels: tuple[str, ...]
    wall: str
    not_due: str = ""
    reduced: str = ""

    @property
    def due(self) -> bool:
        """True if a test must cite this row."""
        return not self.not_due


_NO_SERVER = "the server does not exist yet"
_WALLED = (ISOLATED, SANDBOXED)


def _language(id: str, title: str, wall: str) -> Threat:
    return Threat(id=id, title=title, levels=(LOCAL,), wall=wall)


def _walls(id: str, title: str, wall: str, not_due: str = "", *, reduced: str = "") -> Threat:
    return Threat(id=id, title=title, levels=_WALLED, wall=wall, not_due=not_due, reduced=reduced)


def _stored(id: str, title: str, wall: str, not_due: str) -> Threat:
    return Threat(id=id, title=title, levels=LEVELS, wall=wall, not_due=not_due)


THREATS: tuple[Threat, ...] = (
    _language(
        "L1",
        "dunder and underscore attributes, by syntax or by a function that takes an attribute's name",
        "the guard's attribute rules, checked in the tree and again in the gates",
    ),
    _language(
        "L2",
        "frames, code objects, tracebacks, and what generators and coroutines show of themselves",
        "the guard's attribute rules",
    ),
    _language(
        "L3",
        "type objects and everything that leads from a value to its class and from there to all others",
        "the guard's attribute rules and its own class builder",
    ),
    _language(
        "L4",
        "imports: the import function, loaders, and modules met by way of granted ones",
        "the guard's import table, which hands out named members instead of modules",
    ),
    _language(
        "L5",
        "source or bytecode built at run time, evaluators inside packages that are not trusted, unpickling",
        "names that no table grants",
    ),
    _language(
        "L6",
        "the guard's own names: rebound, shadowed or looked at through any binding form",
        "names that a cell cannot spell",
    ),
    _language(
        "L7",
        "catching, delaying or outliving the exceptions that end a cell",
        "rewritten handlers, and a deadline outside of the cell's thread",
    ),
    _language(
        "L8",
        "changing objects of the host: arguments, module attributes, defaults, classes, builtins",
        "gates that refuse stores on what the cell did not make",
    ),
    _language(
        "L9",
        "objects that lie: subclasses of builtins, comparisons and hashes that run code inside the guard",
        "exact type tests before any method of a value is used",
    ),
    _language(
        "L10",
        "one call that takes forever or all memory inside C, where no step is counted",
        "gates around the builtins that can, and bounds on the source itself",
    ),
    _language(
        "L11",
        "what the process shares: caches of the library, registers of abstract classes, signatures, warnings",
        "parts of the library that are a world's own, and exact values where the program's own is called",
    ),
    _language(
        "L12",
        "references that leak: a raw class, code object, module or mark of the guard in the code's hands",
        "gates that go by identity and exact type: what no row knows cannot be called, read or inherited from",
    ),
    _walls(
        "W1",
        "files outside of the session's own, by path, link, mount, handle or another process's root",
        "a root that holds nothing of the host's, mounted read-only; Landlock; openat2 on the host's side",
        reduced="whether a path exists can be told from how opening it fails",
    ),
    _walls(
        "W2",
        "processes outside of the session: seen, signalled, traced; processes that outlive the session",
        "a pid namespace whose first process ends with the host; Landlock's signal scope; seccomp",
        reduced="whether a process of some number exists can be told; when keeper and zygote are killed at once, "
        "what they kept goes on",
    ),
    _walls(
        "W3",
        "the network: services of the host and of other sessions, sockets of every family, descriptors",
        "a network namespace with nothing but its own loopback, or the door in it; seccomp's list of socket families",
        reduced="the host's process number, which the other end of the worker's socket tells",
    ),
    _walls(
        "W4",
        "more privilege: capabilities, setuid files, namespaces, keys, kernel programs, the machine itself",
        "empty capability sets with no_new_privs; nosuid mounts; seccomp",
    ),
    _walls(
        "W5",
        "secrets of the host and of other sessions: environment, command lines, memory, files, core dumps",
        "a family started by exec with an environment of its own; pid and mount namespaces; rlimits",
        reduced="the host's name, and the numbers of its processes",
    ),
    _walls(
        "W6",
        "using up memory, processes, descriptors, disk, processor time or the host by way of output",
        "rlimits, a sized file system, a deadline on the host, bounded text and displays",
        reduced="files on the disk past their limit until they are counted, and those that are only mapped; "
        "what the kernel keeps for pairs of sockets; the room for pipes that a user has, shared with the host",
    ),
    _walls(
        "W7",
        "the protocol: forged, oversized, truncated and unexpected messages, and none at all",
        "the wire's table of states, sizes checked before decoding, senders stamped by the kernel",
    ),
    _walls(
        "W8",
        "what the host does with what came out: showing, exporting, naming, logging it",
        "outputs and names are data: never unpickled, never interpreted, escaped where they are shown",
    ),
    _walls(
        "W9",
        "the runner's insides: builtins, modules, streams, signal handlers and hooks changed under it",
        "a worker that keeps what it needs for itself; a host that survives any death of it",
    ),
    _walls(
        "W10",
        "state that leaks between branches, users, or back out of a future that was rolled back",
        "checkpoints and branches with processes, files and sockets of their own",
    ),
    _walls(
        "W11",
        "the host's time and memory: turns of its loop, waits, costs, what it holds, work after the end of a cell",
        "bounds of messages, bytes and time in each turn; one account of what a session makes its host hold",
    ),
    _stored(
        "D1",
        "dying at any step of a commit; a full, read-only, corrupted or older store; two hosts at once",
        "transactions, and compare-and-set on a session's version",
        "",
    ),
    _stored(
        "D2",
        "hostile names of sessions, users, files, tools and commits",
        "names checked where they enter, parameters instead of text in every query",
        "",
    ),
    _stored(
        "D3",
        "one user reaching what is another's; requests with no, a wrong or an old token; a browser as deputy",
        "ownership in every look-up, tokens, and checks of origin and host",
        "",
    ),
    _stored(
        "D4",
        "overload: many sessions, slow readers, huge requests, streams nobody reads",
        "limits that answer with an error, and bounded queues",
        _NO_SERVER,
    ),
)

BY_ID = {threat.id: threat for threat in THREATS}
