"""W7: a worker, or a child of one, that says what the protocol does not allow, too much, or nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from arena.attack import Attack, Holds, beginning, subset_of
from arena.host import LIMITS, Host, outcome_of, refusal_of
from arena.resources import BRIEF, peak_growth
from cellblock import Session

_FORGE = """
import json, socket, struct
from cellblock.wire import messages
from cellblock.wire.frames import PACKET_BYTES, Frame, packets
wire = socket.socket(fileno=os.dup(channel()))
def say(head, buffers=()):
    head = head if isinstance(head, bytes) else json.dumps(head).encode()
    for packet in packets(Frame(head, buffers)):
        wire.send(packet)
FINISHED = {"is": "finished", "failure": None, "duration_ms": 0, "cpu_ms": 0, "memory_peak": 0}
DISPLAY = {"is": "display", "data": {"text/plain": "forged"}, "mimes": [], "is_result": True, "mark": 0}
TOOL = {"is": "tool", "call": 0, "name": "n", "mark": 0}
"""
_WAIT = "\nimport time\ntime.sleep(5)"
_TABLE = "the table of what may be said when"
_CHECKED = "every field is checked before it is used"
_STAMPED = "the kernel stamps each packet with its sender"
_BROKE = "crashed: ProcessDied: the session's process broke the protocol: "


def _breach(name: str, wall: str, how: str, cell: str) -> Attack:
    """The worker's process says something: the session's process is ended for it."""
    return Attack(
        name=f"protocol-{name}",
        threat="W7",
        wall=wall,
        expect=beginning(_BROKE + how),
        cell=_FORGE + cell + _WAIT,
        dies=True,
    )


def _ignored(name: str, cell: str) -> Attack:
    """A forked child says something: the cell goes on as if it had not."""
    forked = (
        _FORGE
        + f"""
child = os.fork()
if child == 0:
    try:
        {cell}
    finally:
        os._exit(0)
os.waitpid(child, 0)
wire.close()
"the cell's own"
"""
    )
    return Attack(name=f"protocol-child-{name}", threat="W7", wall=_STAMPED, expect="the cell's own", cell=forked)


def _host(name: str, wall: str, expect: object, host: Callable[[Host], object], *, hole: str = "") -> Attack:
    return Attack(name=f"protocol-{name}", threat="W7", wall=wall, expect=expect, host=host, hole=hole)


def _then(cell: str) -> Callable[[Host], object]:
    """The answer to a cell in a session of its own, and to `1+1` twice after it."""

    def run(host: Host) -> object:
        with Session(limits=BRIEF) as session:
            return [outcome_of(session, source) for source in (host.prelude + _FORGE + cell, "1+1", "1+1")]

    return run


_RECOVERS = Holds(lambda answers: isinstance(answers, list) and answers[-1] == 2, "a session that answers again")
_TIMEOUT = "timeout: TimeoutError: the cell ran longer than 1 s"


def _answers_in_time(cell: str, *more: str, before: str = "") -> Callable[[Host], object]:
    """Whether the time limit ends a cell whose process does not do its part; the kill is the test's own."""

    def run(host: Host) -> object:
        session = Session(limits=BRIEF)
        answers = [outcome_of(session, host.prelude + _FORGE + before)] if before else []
        if before:
            time.sleep(0.5)
        sources = (host.prelude + _FORGE + cell, *more)
        work = threading.Thread(target=lambda: answers.extend(outcome_of(session, one) for one in sources), daemon=True)
        work.start()
        work.join(3)
        if work.is_alive():
            session.kill()
            work.join(3)
            return "no answer in 3 s"
        session.close()
        return answers

    return run


def _offers_descriptors(host: Host) -> object:
    """Descriptors sent along with messages: the host keeps none of them."""
    offer = """
import array
mine = [os.dup(0) for _ in range(200)]
def offer(count):
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", mine[:count]))
    for packet in packets(Frame(json.dumps(DISPLAY).encode())):
        wire.sendmsg([packet], [rights])
for count in (1, 10, 64, 65, 200):
    offer(count)
child = os.fork()
if child == 0:
    offer(200)
    os._exit(0)
os.waitpid(child, 0)
for one in mine: os.close(one)
wire.close()
"offered"
"""
    before = sorted(os.listdir("/proc/self/fd"))
    answer = host.cell(_FORGE + offer)
    host.cell("pass")
    after = sorted(os.listdir("/proc/self/fd"))
    return {"answer": answer, "kept": len(after) - len(before)}


def _child_floods(host: Host) -> object:
    """Children send packets without end: the cell's time limit holds, and other sessions are served."""
    flood = """
import signal
for _ in range(4):
    if os.fork() == 0:
        while True: wire.send(b"x")
signal.pause()
"""
    with Session(limits=BRIEF) as session:
        answers: list[object] = []
        work = threading.Thread(target=lambda: answers.append(outcome_of(session, host.prelude + _FORGE + flood)))
        work.start()
        served = {outcome_of(host.neighbour, "1+1") for _ in range(20)}
        during = work.is_alive()
        work.join()
        return {
            "answer": answers,
            "served": served == {2},
            "during the flood": during,
            "then": outcome_of(session, "1+1"),
        }


def _reader_walks_away(host: Host) -> object:
    """A caller leaves a stream in the middle; the session's next cells run all the same."""
    with Session(limits=BRIEF) as session:
        for _ in session.stream("print('first')\nimport time\ntime.sleep(5)"):
            break
        refusal_of(session.run, "1+1")  # may report the death of the process that was left
        return refusal_of(outcome_of, session, "1+1")


def _is_interrupted_in_large_displays(host: Host) -> object:
    """The time limit falls into a display of many packets: an interrupt, so the session keeps its names."""
    limits = replace(LIMITS, timeout_seconds=0.3)
    show = """
class Large:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": b"\\x89PNG\\r\\n\\x1a\\n" + bytes(900_000)}
while True: display(Large())
"""
    with Session(limits=limits) as session:
        outcome_of(session, "kept = 1")
        return [(outcome_of(session, show), outcome_of(session, "kept"))[1] for _ in range(6)]


def _amplifies(head: str) -> Callable[[Host], object]:
    def run(host: Host) -> object:
        with Session() as session:
            return peak_growth(host, lambda: session.run(host.prelude + _FORGE + head))

    return run


_BOUNDED = Holds(lambda grown: isinstance(grown, int) and grown < 400, "less than 400 MB more on the host")

ATTACKS: tuple[Attack, ...] = (
    _breach(
        "garbage", "packets are parsed or refused", "malformed packet", "wire.send(os.urandom(50).join([b'z', b'']))"
    ),
    _breach("short-frame", "frames are parsed or refused", "frame shorter than its prefix", "wire.send(b'\\1abc')"),
    _breach(
        "lying-lengths",
        "frames are parsed or refused",
        "frame length does not match its prefix",
        "wire.send(b'\\1' + struct.pack('<IIQ', 1, 5, 1 << 60) + b'12345')",
    ),
    _breach(
        "too-many-buffers",
        "frames are parsed or refused",
        "frame shorter than its prefix says",
        "wire.send(b'\\1' + struct.pack('<II', 0xFFFFFFFF, 0))",
    ),
    _breach(
        "large-packet",
        "packets have a largest size",
        "malformed packet",
        "wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)\nwire.send(bytes(150_000))",
    ),
    _breach(
        "endless-frame",
        "frames have a largest size",
        "frame larger than 100663296 bytes",
        "while True: wire.send(b'\\0' + bytes(PACKET_BYTES))",
    ),
    _breach("not-json", _CHECKED, "event head is not JSON", "say(b'{')"),
    _breach("not-an-object", _CHECKED, "event head is not an object", "say([1])"),
    _breach("deep-nesting", _CHECKED, "event head is not JSON", "say(b'[' * 150_000)"),
    _breach("large-number", _CHECKED, "event head is not JSON", "say(b'9' * 100_000)"),
    _breach("unknown-event", _CHECKED, "unknown event 'shutdown'", "say({'is': 'shutdown'})"),
    _breach(
        "request-as-event",
        _CHECKED,
        "unknown event 'run'",
        "say({'is': 'run', 'source': '1', 'filename': 'f', 'max_text': 1})",
    ),
    _breach("event-of-no-name", _CHECKED, "unknown event", "say({'is': ['finished']})"),
    _breach("missing-field", _CHECKED, "event 'finished' has the wrong fields", "FINISHED.pop('cpu_ms')\nsay(FINISHED)"),
    _breach("extra-field", _CHECKED, "event 'finished' has the wrong fields", "say(FINISHED | {'__class__': 1})"),
    _breach("flag-of-another-type", _CHECKED, "expected a flag", "say(DISPLAY | {'is_result': 1})"),
    _breach(
        "not-a-number", _CHECKED, "expected an amount", "say(json.dumps(FINISHED | {'cpu_ms': float('nan')}).encode())"
    ),
    _breach("negative-amount", _CHECKED, "expected an amount", "say(FINISHED | {'cpu_ms': -1})"),
    _breach("flag-for-a-count", _CHECKED, "expected a count", "say(FINISHED | {'memory_peak': True})"),
    _breach(
        "unknown-kind-of-failure",
        _CHECKED,
        "expected a failure's kind",
        "say(FINISHED | {'failure': {'type': 'E', 'message': '', 'traceback': '', 'kind': 'refused'}})",
    ),
    _breach("unnamed-buffer", _CHECKED, "a display names each of its buffers", "say(DISPLAY, (b'x',))"),
    _breach(
        "buffers-of-none",
        _CHECKED,
        "event 'settled' carries no buffers",
        "say({'is': 'settled', 'gained': {}, 'dropped': []}, (b'x',))",
    ),
    _breach(
        "second-hello",
        _TABLE,
        "Hello is not allowed while busy",
        "say({'is': 'hello', 'python': '3', 'walls': [], 'missing': []})",
    ),
    _breach(
        "early-settling",
        _TABLE,
        "Settled is not allowed while busy",
        "say({'is': 'settled', 'gained': {}, 'dropped': []})",
    ),
    _breach(
        "half-a-frame-then-another",
        "a frame's bytes are counted",
        "frame length does not match its prefix",
        "wire.send(b'\\0' + struct.pack('<II', 0, 2).ljust(PACKET_BYTES, b'{'))\nsay(FINISHED)",
    ),
    _host(
        "forged-reply",
        "the cell may lie about itself; its next reply is a breach",
        Holds(
            lambda answers: isinstance(answers, list) and answers[0] == 99 and answers[2] == 2,
            "99, then a session that answers again",
        ),
        _then("say(FINISHED, (b'99',))\n1"),
    ),
    _host(
        "forged-reply-and-settling",
        "the cell may lie about itself; its next reply is a breach",
        _RECOVERS,
        _then("say(FINISHED)\nsay({'is': 'settled', 'gained': {'x' * 4096: 'y'}, 'dropped': []})\n1"),
    ),
    _host(
        "forged-value",
        "values are decoded by a table, when they are asked for",
        Holds(lambda answers: isinstance(answers, list) and answers[-1] == 2, "a session that answers again"),
        _then("say(FINISHED | {'tree': {'$': 'object', 'module': 'os', 'name': 'system'}})\n1"),
    ),
    _host(
        "deep-value",
        "depth is bounded when a value is decoded",
        _RECOVERS,
        _then("say(FINISHED | {'tree': eval('[' * 90 + ']' * 90)})\n1"),
    ),
    _ignored("reply", "say(FINISHED)"),
    _ignored("display", "say(DISPLAY)"),
    _ignored("garbage", "wire.send(b'zzz')"),
    _ignored(
        "large-packet", "wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20); wire.send(bytes(150_000))"
    ),
    _ignored("half-a-frame", "wire.send(b'\\0' + struct.pack('<II', 0, 2))"),
    _ignored(
        "shutdown-for-writing", "wire.sendmsg([b'z'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', 0))])"
    ),
    Attack(
        name="protocol-credentials-of-another",
        threat="W7",
        wall=_STAMPED,
        expect=subset_of("EPERM", "EINVAL"),
        cell=_FORGE
        + """
forged = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", pid, os.getuid(), os.getgid()))
    for pid in (1, 0)]
forged.append((socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", os.getpid(), 0, 0)))
answers = sorted({attempt(wire.sendmsg, [b"z"], [one]) for one in forged})
wire.close()
answers
""",
    ),
    Attack(
        name="protocol-credentials-of-the-parent",
        threat="W7",
        wall=_STAMPED,
        expect="EPERM",
        cell=_FORGE
        + """
inlet, outlet = os.pipe()
parent = os.getpid()
child = os.fork()
if child == 0:
    one = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", parent, os.getuid(), os.getgid()))
    os.write(outlet, str(attempt(wire.sendmsg, [b"z"], [one])).encode())
    os._exit(0)
os.waitpid(child, 0)
wire.close()
os.read(inlet, 100).decode()
""",
    ),
    Attack(
        name="protocol-marks-in-the-text",
        threat="W7",
        wall="a forged mark mislabels the cell's own text",
        expect="1 2 3",
        cell="""
import gc
from cellblock.wire import text
nonces = [one._nonce for one in gc.get_objects() if type(one).__name__ == "Streams"]
for letter, number in ((b"M", 2**63), (b"E", 0), (b"Z", 1), (b"M", 0)):
    for nonce in nonces: os.write(1, text.mark(nonce, letter, number) + b"text")
os.write(1, text.PREFIX + nonces[0] if nonces else b"")
"1 2 3"
""",
    ),
    _host(
        "offered-descriptors",
        "offered descriptors are closed at once",
        {"answer": "offered", "kept": 0},
        _offers_descriptors,
    ),
    _host(
        "children-flood-the-socket",
        "the event loop is given its turns",
        {
            "answer": [_TIMEOUT],
            "served": True,
            "during the flood": True,
            "then": 2,
        },
        _child_floods,
    ),
    _host(
        "stops-itself",
        "the kill after the time limit",
        [_TIMEOUT, 2],
        _answers_in_time("import signal\nos.kill(os.getpid(), signal.SIGSTOP)", "1+1"),
    ),
    _host(
        "never-replies",
        "the kill after the time limit",
        [_TIMEOUT, 2],
        _answers_in_time("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nwhile True: pass", "1+1"),
    ),
    _host(
        "calls-without-reading-replies",
        "the time limit covers what is sent down",
        Holds(
            lambda answers: isinstance(answers, list) and answers[1] == 2,
            "an end by the time limit, then a session that answers",
        ),
        _answers_in_time("for number in range(10**6): say(TOOL | {'call': number, 'name': 'n' * 4000})", "1+1"),
    ),
    _host(
        "stops-reading-between-cells",
        "the time limit covers what is sent down",
        Holds(lambda answers: isinstance(answers, list) and answers[-1] == 2, "a session that answers again"),
        _answers_in_time(
            "'" + "x" * 4_000_000 + "'; 1",
            "1+1",
            before="import signal, threading, time\n"
            "threading.Thread(target=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGSTOP))).start()",
        ),
    ),
    Attack(
        name="protocol-closes-every-descriptor",
        threat="W7",
        wall="the host sees the end of the socket",
        dies=True,
        expect=beginning("crashed: ProcessDied: the session's process left with status"),
        cell="os.closerange(0, 1024)",
    ),
    _host(
        "dies-after-its-reply",
        "a death is found by the next cell",
        _RECOVERS,
        _then("import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(3))).start()"),
    ),
    _host(
        "reader-walks-away",
        "a turn that was left is ended before the next begins",
        2,
        _reader_walks_away,
    ),
    _host(
        "interrupt-in-a-large-display",
        "an interrupt waits until a message is whole",
        [1] * 6,
        _is_interrupted_in_large_displays,
    ),
    _host(
        "large-tree",
        "the head of a message has a largest size",
        _BOUNDED,
        _amplifies(
            'say(b\'{"is":"finished","failure":null,"has_value":true,"duration_ms":0,"cpu_ms":0,'
            "\"memory_peak\":0,\"tree\":[' + b'[],' * (8 << 20) + b'1]}')"
        ),
    ),
    _host(
        "large-trees-in-displays",
        "displays are counted with all their parts",
        _BOUNDED,
        _amplifies(
            'for _ in range(8): say(b\'{"is":"display","data":{"a/b":[\' + b\'999,\' * (2 << 20) + b\'1]},'
            '"mimes":[],"is_result":false,"mark":0}\')'
        ),
    ),
)
