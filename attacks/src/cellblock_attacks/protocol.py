"""W7: a worker, or a child of one, that says what the protocol does not allow, too much, or nothing."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import anyio

from cellblock import AsyncSession, ExecutionLimits, Opaque, Session
from cellblock_attacks.attack import Attack, Holds, Table, beginning, host_later, one_of, subset_of
from cellblock_attacks.host import LIMITS, Host, outcome_of, refusal_of
from cellblock_attacks.resources import BRIEF, TIMEOUT, peak_growth

_FORGE = """
import json, socket, struct, sys
from cellblock.wire import messages
from cellblock.wire.frames import PACKET_BYTES, Frame, packets
wire = socket.socket(fileno=os.dup(channel()))
def say(head, buffers=()):
    head = head if isinstance(head, bytes) else json.dumps(head).encode()
    for packet in packets(Frame(head, buffers)):
        wire.send(packet)
def request():  # its number
    frame = sys._getframe()
    while frame.f_code.co_name != "_carry_out":
        frame = frame.f_back
    return frame.f_locals["number"]
def packed(number=request(), duration=0.0, cpu=0.0, peak=0):
    return struct.pack("<cQddQ?", b"F", number, duration, cpu, peak, False)
FINISHED = {"is": "finished", "number": request(), "failure": None, "duration_ms": 0, "cpu_ms": 0, "memory_peak": 0,
    "gained": {}, "dropped": []}
DISPLAY = {"is": "display", "data": {"text/plain": "forged"}, "mimes": [], "is_result": True, "mark": 0}
TOOL = {"is": "tool", "call": 0, "request": request(), "name": "n", "mark": 0}
"""
_MARKS = """
import gc
from cellblock.wire.text import mark as mark_of
nonce = next(one._nonce for one in gc.get_objects() if type(one).__name__ == "Streams")
def mark(letter, number=0): return mark_of(nonce, letter, number)
"""
_STOP = "threading.Thread(target=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGSTOP))).start()"
_WAIT = "\nimport time\ntime.sleep(5)"
_NUMBERED = "a reply names the request it answers"
_ANOTHER = "a reply to another request"
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


_host = Table("protocol", "W7").host


@host_later
def _then(host: Host, cell: str, after: str = "1+1") -> object:
    """The answer to a cell in a session of its own, and to `after` and `1+1` after it."""
    with Session(limits=BRIEF) as session:
        return [outcome_of(session, source) for source in (host.prelude + _FORGE + cell, after, "1+1")]


_RECOVERS = Holds(lambda answers: isinstance(answers, list) and answers[-1] == 2, "a session that answers again")


@host_later
def _answers_in_time(host: Host, cell: str, *more: str, before: str = "") -> object:
    """Tell if the time limit ends a cell whose process does not do its part; the kill is the test's own."""
    session = Session(limits=BRIEF)
    answers = [outcome_of(session, host.prelude + _FORGE + before)] if before else []
    if before:
        time.sleep(0.3)
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


def _offers_descriptors(host: Host) -> object:
    """Descriptors of a pipe sent along with messages: the host keeps none of them."""
    offer = """
import array
mine = [os.dup(offered[0]) for _ in range(200)]
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
    pipe = host.cell("offered = os.pipe()\nos.fstat(offered[0]).st_ino")
    answer = host.cell(_FORGE + offer)
    host.cell("pass")
    return {"answer": answer, "kept": list(_pipes()).count(pipe)}


def _pipes() -> Iterator[object]:
    """The inode of each descriptor of the host that is an end of a pipe."""
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile
            if stat.S_ISFIFO((found := os.stat(f"/proc/self/fd/{number}")).st_mode):
                yield found.st_ino


def _child_floods(host: Host) -> object:
    """Children send packets without end: they are ended with the process, and other sessions are served meanwhile."""
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
        work.join()
        return {
            "answer": answers,
            "served": served == {2},
            "then": outcome_of(session, "1+1"),
        }


_WITHOUT_END = {
    "displays": "while True: say(DISPLAY)",
    "large-displays": "large = json.dumps(DISPLAY | {'data': {'a/b': 'x' * (7 << 20)}}).encode()\n"
    "while True: say(large)",
    "displays-of-many-parts": "many = json.dumps(DISPLAY | {'data': {'a/b': ['ab'] * 500_000}}).encode()\n"
    "while True: say(many)",
    "displays-of-64-buffers": "while True: say(DISPLAY | {'mimes': ['image/png'] * 64}, (b'',) * 64)",
    "a-frame-slowly": "wire.send(b'\\0' + bytes(PACKET_BYTES))\nimport time\nwhile True: time.sleep(0.01)",
    "almost-a-whole-frame": "for _ in range(1500): wire.send(b'\\0' + bytes(PACKET_BYTES))\nwhile True: pass",
    "text": "while True: os.write(1, b'x' * 65536)",
    "text-of-errors": "while True: os.write(2, b'x' * 65536)",
    "text-from-stream-to-stream": _MARKS
    + "line = (mark(b'E') + b'x' + mark(b'O') + b'y') * 1000\nwhile True: os.write(1, line)",
    "places": _MARKS + "while True: os.write(1, b''.join(mark(b'M', n) for n in range(1000)))",
    "text-behind-a-place": _MARKS + "os.write(1, mark(b'M', 1 << 63))\nwhile True: os.write(1, b'x' * 65536)",
    "half-a-mark": _MARKS + "while True: os.write(1, mark(b'M')[:-1])",
    "marks-of-no-kind": _MARKS + "while True: os.write(1, mark(b'?', 7) * 3000)",
}
"""Messages that a worker may send without end."""


@host_later
def _goes_on_without_end(host: Host, cell: str) -> object:
    """The end of a cell that goes on so, what the host took for it, and whether others were served meanwhile."""
    limits = replace(BRIEF, max_output_bytes=200_000)
    with Session(limits=limits) as session:
        answers: list[object] = []

        def act() -> None:
            work = threading.Thread(target=lambda: answers.append(outcome_of(session, host.prelude + _FORGE + cell)))
            work.start()
            answers.append([outcome_of(host.neighbour, "1+1") for _ in range(10)])
            work.join()

        grown = peak_growth(host, act)
        served, answer = sorted(answers, key=lambda one: not isinstance(one, list))
        return [answer, served == [2] * 10, "bounded" if grown < 300 else f"{grown} MB", outcome_of(session, "1+1")]


def _names_without_end(host: Host) -> object:
    """A reply that tells of more names than a session has, from a worker that then ends: how many are lost."""
    many = "say(FINISHED | {'gained': {f'{n:08d}': 'x' * 30 for n in range(120_000)}})\nos._exit(0)"
    for _ in range(5):  # the end may be seen before all of the reply is
        with Session(limits=replace(LIMITS, max_checkpoints=0)) as session:
            outcome_of(session, host.prelude + _FORGE + many)
            lost = session.run("1+1").lost
        if lost:
            break
    return [
        len(lost) <= 100_000,
        sum(len(one.name) + len(one.type) for one in lost) <= 4_000_000,
        len(lost) > 10_000,
    ]


def _stopped_before_names(host: Host) -> object:
    """The worker stops between two cells; a look at its names, which the one after it gives, and the next cell."""
    stop = "import signal, threading, time\n" + _STOP
    with Session(limits=BRIEF) as session:
        outcome_of(session, host.prelude + _FORGE + stop)
        time.sleep(0.2)
        return [type(session.names()).__name__, outcome_of(session, "1+1")]


@host_later
def _stopped_before(host: Host, then: Callable[[Session], object]) -> object:
    """The worker stops between two cells; what something else than a cell then says, and the next cell."""
    with Session(limits=BRIEF) as session:
        outcome_of(session, host.prelude + _FORGE + "import signal, threading, time\nkept = 1\n" + _STOP)
        time.sleep(0.2)
        return [str(refusal_of(then, session))[:40], outcome_of(session, "1+1")]


def _replies_before_the_request(host: Host) -> object:
    """A thread replies to the request that will be next; that one's answer, what was lost, and the answer after."""
    cell = """
import threading, time
reply = FINISHED | {"number": request() + 1}
threading.Thread(target=lambda: (time.sleep(0.05), say(reply, (b"99",)))).start()
"""
    with Session(limits=BRIEF) as session:
        outcome_of(session, "kept = 1")
        outcome_of(session, host.prelude + _FORGE + cell)
        time.sleep(0.3)
        answered = session.run("1+1")
        reasons = {one.reason for one in answered.lost}
        return [answered.error or answered.value, *sorted(reasons), outcome_of(session, "1+1")]


def _thread_replies_for_the_next(host: Host) -> object:
    """A thread waits for the next cell and replies in its place; the answers of that one and of the two after it."""
    cell = """
import threading, time
main, mine = threading.main_thread().ident, request()
def reply():
    while True:
        time.sleep(0.001)
        frame = sys._current_frames()[main]
        while frame is not None and frame.f_code.co_name != "_carry_out": frame = frame.f_back
        if frame is not None and frame.f_locals["number"] > mine:
            say(FINISHED | {"number": frame.f_locals["number"]}, (b"42",))
            return
threading.Thread(target=reply, daemon=True).start()
"""
    with Session(limits=LIMITS) as session:
        outcome_of(session, host.prelude + _FORGE + cell)
        return [outcome_of(session, one) for one in ("import time\ntime.sleep(0.5)\n1", "1+1", "1+1")]


def _children_speak_between(host: Host) -> object:
    """Packets of a child between those of a display of many packets: what the cell showed."""
    with Session(limits=LIMITS) as session:
        cell = session.run(
            host.prelude
            + _FORGE
            + """
class Large:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": b"\\x89PNG\\r\\n\\x1a\\n" + bytes(900_000)}
child = os.fork()
if child == 0:
    for n in range(300): wire.send(b'\\0' + bytes(PACKET_BYTES) if n % 2 else b'F' + bytes(32))
    os._exit(0)
for _ in range(5): display(Large())
os.waitpid(child, 0)
wire.close()
"whole"
"""
        )
        sizes = {len(session.read_output(output.uri)) for output in cell.outputs if output.uri}
        return [cell.value, len(cell.outputs), sizes == {900_008}]


def _reader_walks_away(host: Host) -> object:
    """A caller leaves a stream in the middle; the session's next cells run all the same."""
    with Session(limits=BRIEF) as session:
        for _ in session.stream("print('first')\nimport time\ntime.sleep(5)"):
            break
        refusal_of(session.run, "1+1")  # may report the death of the process that was left
        return refusal_of(outcome_of, session, "1+1")


_LEFT = {
    "prints without end": "while True: print('x' * 1000)",
    "displays without end": "while True: display('x')",
    "calls without end": "for number in range(10**6): say(TOOL | {'call': number})",
    "catches interrupts": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "stops itself": "import signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "ends itself": "os._exit(3)",
    "replies twice": "say(FINISHED)\nsay(FINISHED)\nimport time\ntime.sleep(5)",
    "half a frame": "wire.send(b'\\0' + bytes(PACKET_BYTES))\nimport time\ntime.sleep(5)",
    "replies when interrupted": "import time\ntry: time.sleep(5)\nexcept KeyboardInterrupt: say(FINISHED, (b'9',))",
}


def _leaves_each(host: Host) -> object:
    """A caller leaves each of these cells after its first output; those after which the session does not go on."""
    stuck = {}
    with Session(limits=BRIEF) as session:
        for name, cell in _LEFT.items():
            session.files.write("kept", name)
            for _ in session.stream(host.prelude + _FORGE + "print('first')\n" + cell):
                break
            answers = [refusal_of(outcome_of, session, "1+1") for _ in range(2)]
            kept = session.files.read("kept").decode()
            if answers[-1] != 2 or kept != name:
                stuck[name] = answers
    return stuck


def _cancels_at_each_moment(host: Host) -> object:
    """Cells that end the process are cancelled at moments of its replacement; the answers of the session after."""
    found = set()

    async def act() -> None:
        for step in range(16):
            async with AsyncSession(limits=BRIEF) as session:
                with anyio.move_on_after(0.001 * step):
                    await session.run("import os\nos._exit(3)")
                try:
                    found.add(str((await session.run("1+1")).value))
                except Exception as error:
                    found.add(f"{type(error).__name__}: {error}")

    anyio.run(act)
    return sorted(found)


_HOSTILE_VALUES = {
    "open lists": b"[" * (64 << 20),
    "open objects": b'{"":' * 300_000,
    "nested": b"[" * 900_000 + b"]" * 900_000,
    "nested below the bound of JSON": b"[" * 500 + b"]" * 500,
    "nothing": b"",
    "no UTF-8": b'"\xff\xfe"',
    "UTF-16": "[1]".encode("utf-16"),
    "half a surrogate": b'"\\ud800"',
    "NaN": b"NaN",
    "infinity": b"[1e999]",
    "a large number": b"9" * 100_000,
    "two members": b'{"int":"0xffffffffffffffffff","text":"00"}',
    "an unknown tag": b'{"object":["os","system"]}',
    "no tag": b"{}",
    "a buffer that is not there": b'{"bytes":0}',
    "a buffer below none": b'{"bytes":-1}',
    "two values": b"1 2",
    "equal keys": b'{"dict":[["a","a"],[1,2]]}',
    "a list as a key": b'{"dict":[[[1]],[1]]}',
    "an array of objects": b'{"array":["|O",[1],"0000000000000000"]}',
    "an array larger than its bytes": b'{"array":["<f8",[4611686018427387904],"0000000000000000"]}',
    "a large exponent": b'{"decimal":"1E+999999999"}',
}
"""First buffers that `pack` does not write."""


def _reads_hostile_values(host: Host) -> object:
    """Each of them as the value of a reply; what the host read that is not a malformed value."""
    believed = {}
    with Session(limits=replace(LIMITS, max_disk_mb=128, max_memory_mb=256)) as session:
        for name, text in _HOSTILE_VALUES.items():
            session.files.write("text", text)
            value = outcome_of(session, host.prelude + _FORGE + "say(FINISHED, (open('text', 'rb').read(),))")
            if not (isinstance(value, Opaque) and value.type == "malformed"):
                believed[name] = repr(value)[:200]
            while outcome_of(session, "1+1") != 2:  # the true reply of that cell is the breach
                continue
        many = "say(FINISHED, (b'[1]',) * 65536)"
        value = outcome_of(session, host.prelude + _FORGE + many)
        if value != Opaque("malformed", "a buffer that nothing names"):
            believed["buffers that nothing names"] = repr(value)[:200]
    return believed


@host_later
def _goes_on(host: Host, cell: str, *, limits: ExecutionLimits = LIMITS) -> object:
    """State of a session after a cell that is honest and says a lot: the error's type, and a name."""
    with Session(limits=limits) as session:
        session.run("kept = 1")
        ended = session.run(cell)
        return [ended.error and ended.error.type, outcome_of(session, "kept")]


_WIDE = replace(LIMITS, max_output_bytes=1_000_000, max_memory_mb=400)
_TOLD = "the worker keeps what it says within what the host reads"


@host_later
def _dies_idle(host: Host, how: str) -> object:
    """The process ends between two cells: the answer of the next one, and what the ones before have left."""
    with Session(limits=BRIEF) as session:
        outcome_of(session, "kept = 1")
        outcome_of(session, host.prelude + _FORGE + "import threading, time\n" + how)
        time.sleep(0.2)
        cell = session.run("1+1")
        answer = cell.value if cell.error is None else cell.error.message
        return [answer, outcome_of(session, "kept"), outcome_of(session, "1+1")]


_ENDS = "threading.Thread(target=lambda: (time.sleep(0.05), os._exit(3))).start()"


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
        return [(outcome_of(session, show), outcome_of(session, "kept"))[1] for _ in range(4)]


@host_later
def _amplifies(host: Host, forged: str) -> object:
    """Memory that a forged message takes on the host, its value read and its outputs kept."""
    with Session() as session:
        return peak_growth(host, lambda: session.run(host.prelude + _FORGE + forged).value)


def _below(megabytes: int) -> Holds:
    return Holds(
        lambda grown: isinstance(grown, int) and grown < megabytes, f"less than {megabytes} MB more on the host"
    )


_ROOM = "the room that reading a value takes is estimated from its bytes"
_LARGE_VALUES = {
    "texts": (100, "say(FINISHED, (b'[' + b'\"ab\",' * 4_000_000 + b'1]',))"),
    "lists-at-the-bound": (400, "say(FINISHED, (b'[' + b'[[[[[[[[]]]]]]]],' * 175_000 + b'1]',))"),
    "paths": (
        300,
        """
parts = "/".join(f"{n:06d}" for n in range(3_000_000)).encode()
say(FINISHED, (b'{"path":["PosixPath","' + parts + b'"]}',))
""",
    ),
    "wide-text-at-the-bound": (
        400,
        "say(FINISHED, (b'{\"text\":0}', b'a' * (42 << 20) + '\U0001f600'.encode()))",
    ),
    "texts-and-numbers-at-the-bound": (
        700,
        """
text = b'[{"ints":0},' + b'"ab",' * 2_160_000 + b"1]"
say(FINISHED, (text, os.urandom(36 << 20)))
""",
    ),
}
"""Replies that are dearest to read, and what the host may take for each in MB: 256 at most for a value's tree, as many
for its buffers, and the message itself."""

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
    _breach("not-json", _CHECKED, "event is not JSON", "say(b'{')"),
    _breach("not-an-object", _CHECKED, "event head is not an object", "say([1])"),
    _breach("deep-nesting", _CHECKED, "event is not JSON", "say(b'[' * 150_000)"),
    _breach("large-number", _CHECKED, "event is not JSON", "say(b'9' * 100_000)"),
    _breach("unknown-event", _CHECKED, "unknown event 'shutdown'", "say({'is': 'shutdown'})"),
    _breach(
        "request-as-event",
        _CHECKED,
        "unknown event 'run'",
        "say({'is': 'run', 'source': '1', 'filename': 'f', 'max_text': 1})",
    ),
    _breach("event-of-no-name", _CHECKED, "unknown event", "say({'is': ['finished']})"),
    _breach(
        "missing-field", _CHECKED, "event 'finished' has the wrong fields", "FINISHED.pop('cpu_ms')\nsay(FINISHED)"
    ),
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
        "event 'hello' carries no buffers",
        "say({'is': 'hello', 'python': '3', 'walls': [], 'missing': []}, (b'x',))",
    ),
    _breach(
        "second-hello",
        _TABLE,
        "Hello is not allowed while busy",
        "say({'is': 'hello', 'python': '3', 'walls': [], 'missing': []})",
    ),
    _breach("reply-to-an-earlier-request", _NUMBERED, _ANOTHER, "say(FINISHED | {'number': request() - 1})"),
    _breach("reply-to-a-later-request", _NUMBERED, _ANOTHER, "say(FINISHED | {'number': request() + 1})"),
    _breach("packed-reply-to-a-later-request", _NUMBERED, _ANOTHER, "wire.send(packed(request() + 1))"),
    _breach("name-that-is-none", _CHECKED, "expected a name", "say(FINISHED | {'gained': {'x' * 4097: 'int'}})"),
    _breach("names-that-are-none", _CHECKED, "expected a list of names", "say(FINISHED | {'dropped': {'x': 1}})"),
    _breach("head-of-too-many-lists", _CHECKED, "event head is too large", "say(b'[[' + b'[],' * 300_000 + b'1]]')"),
    _breach(
        "head-of-too-many-bytes",
        _CHECKED,
        "event head is too large",
        "say(DISPLAY | {'data': {'text/plain': 'x' * (8 << 20)}})",
    ),
    _breach(
        "head-of-quotes-and-backslashes",
        _CHECKED,
        "event head is too large",
        "say(b'[' * 400_000 + bytes([34, 92]) * 4_000_000 + b'[')",
    ),
    _breach("packed-reply-cut-off", _CHECKED, "packed event of the wrong length", "wire.send(b'F' + bytes(20))"),
    _breach(
        "packed-reply-of-no-number",
        _CHECKED,
        "expected an amount",
        "wire.send(packed(duration=float('nan')))",
    ),
    _breach(
        "packed-reply-of-too-much",
        _CHECKED,
        "expected a count",
        "wire.send(packed(peak=1 << 63))",
    ),
    _breach("packed-names-that-are-no-json", _CHECKED, "event is not JSON", "wire.send(packed() + b'[[')"),
    _breach("packed-names-deeply-nested", _CHECKED, "event is not JSON", "wire.send(packed() + b'[' * 60_000)"),
    _breach("packed-names-missing", _CHECKED, "expected names", "wire.send(packed() + b'[{}]')"),
    _breach("packed-names-of-numbers", _CHECKED, "expected a name", "wire.send(packed() + b'[{}, [1], {}]')"),
    _breach(
        "packed-reply-too-large",
        _CHECKED,
        "packed event of the wrong length",
        "wire.send(packed() + b' ' * PACKET_BYTES)",
    ),
    _breach(
        "packed-reply-inside-a-frame",
        "a frame ends before another message begins",
        "a message inside a frame",
        "wire.send(b'\\0' + bytes(PACKET_BYTES))\nwire.send(packed())",
    ),
    _breach("packed-request", "packets are parsed or refused", "malformed packet", "wire.send(b'R' + bytes(8) + b'1')"),
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
        "forged-names",
        "the cell may lie about itself; its next reply is a breach",
        _RECOVERS,
        _then("say(FINISHED | {'gained': {'x' * 4096: 'y'}, 'dropped': ['kept_name']})\n1"),
    ),
    _host(
        "forged-value",
        "values are decoded by a table, when they are asked for",
        Holds(
            lambda answers: (
                isinstance(answers, list)
                and answers[0] == "Opaque(type='malformed', repr='a tag that no row names', reason='')"
                and answers[-1] == 2
            ),
            "a malformed value, then a session that answers again",
        ),
        _then("""say(FINISHED, (b'{"object":["os","system"]}',))\n1"""),
    ),
    _host(
        "deep-value",
        "depth is bounded when a value is decoded",
        Holds(
            lambda answers: (
                isinstance(answers, list)
                and answers[0] == "Opaque(type='malformed', repr='nested deeper than 64', reason='')"
                and answers[-1] == 2
            ),
            "a malformed value, then a session that answers again",
        ),
        _then("say(FINISHED, (b'[' * 90 + b']' * 90,))\n1"),
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
        "a few such packets are dropped, many are a breach",
        {
            "answer": [_BROKE + "processes other than the worker send messages"],
            "served": True,
            "then": 2,
        },
        _child_floods,
    ),
    _host(
        "stops-itself",
        "the kill after the time limit",
        [TIMEOUT, 2],
        _answers_in_time("import signal\nos.kill(os.getpid(), signal.SIGSTOP)", "1+1"),
    ),
    _host(
        "never-replies",
        "the kill after the time limit",
        [TIMEOUT, 2],
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
            before="import signal, threading, time\n" + _STOP,
        ),
    ),
    Attack(
        name="protocol-closes-every-descriptor",
        threat="W7",
        wall="the host sees the end of the socket",
        dies=True,
        expect=beginning("crashed: ProcessDied: the session's process ended itself: its runner failed"),
        cell="os.closerange(0, 1024)",
    ),
    _host(
        "dies-after-its-reply",
        "a death is found by the next cell",
        _RECOVERS,
        _then(
            "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(3))).start()",
            "import time\ntime.sleep(5)",  # it ends meanwhile
        ),
    ),
    *(
        _host(
            f"without-end-{name}",
            "the time limit; what the host keeps has a largest size",
            [TIMEOUT, True, "bounded", 2],
            _goes_on_without_end(cell),
        )
        for name, cell in _WITHOUT_END.items()
    ),
    _host(
        "without-end-names",
        "the names that the host keeps have a largest number and size",
        [True, True, True],
        _names_without_end,
    ),
    _host(
        "calls-that-come-with-the-reply",
        "an answer to a call of a request that has ended is not sent",
        Holds(
            lambda answers: isinstance(answers, list) and all(one[0] is None and one[-1] == 2 for one in answers),
            "no error of the host, and sessions that answer again",
        ),
        lambda host: [
            _then(
                _MARKS
                + """
both = [next(iter(packets(Frame(json.dumps(head).encode())))) for head in (TOOL, FINISHED)]
os.write(1, mark(b"M", 1 << 60) + b"text that waits")
for one in both: wire.send(one)
"""
            )(host)
            for _ in range(4)
        ],
    ),
    _host(
        "reply-before-the-request",
        _TABLE,
        one_of(
            [2, "a thread does not live on in a copy of its process", 2],  # a checkpoint has all else
            [2, "between two cells the session's process broke the protocol: Finished is not allowed while idle", 2],
        ),
        _replies_before_the_request,
    ),
    _host(
        "thread-replies-for-the-next-cell",
        "a cell's value is its own",
        [1, 2, 2],
        _thread_replies_for_the_next,
        hole="threads of a session have the socket as its runner has; of a lie no more is noticed than the true reply",
    ),
    _host(
        "forged-on-every-descriptor",
        "no other descriptor of the worker's is listened to",
        [Holds(lambda answer: isinstance(answer, int) and answer >= 3, "three descriptors and more"), 2, 2],
        _then(
            """
reached = 0
for number in range(64):
    for what in (packed(), b"\\1" + bytes(8), json.dumps(FINISHED).encode(), os.urandom(1000)):
        try:
            if not os.path.sameopenfile(number, wire.fileno()):
                os.set_blocking(number, False)
                reached += os.write(number, what) > 0
        except OSError: continue
wire.close()
reached // 4
"""
        ),
    ),
    _host(
        "stops-before-a-value-is-fetched",
        "the kill after the time limit",
        ["CellblockError: kept: TimeoutError: the ", 2],
        _stopped_before(lambda session: session["kept"]),
    ),
    _host(
        "stops-before-the-names-are-cleared",
        "the kill after the time limit",
        ["CellblockError: clear: TimeoutError: the", 2],
        _stopped_before(Session.clear),
    ),
    _host("stops-before-names", "the kill after the time limit", ["dict", 2], _stopped_before_names),
    _host("children-speak-between-packets", _STAMPED, ["whole", 6, True], _children_speak_between),
    _breach(
        "too-many-names-of-buffers",
        _CHECKED,
        "expected the names of buffers",
        "say(DISPLAY | {'mimes': ['image/png'] * 65}, (b'',) * 65)",
    ),
    _breach(
        "thread-speaks-between-packets",
        "a frame's bytes are counted",
        "",
        """
import threading
def speak():
    while True: wire.send(b'\\0' + bytes(PACKET_BYTES))
threading.Thread(target=speak).start()
while True: say(DISPLAY, (b'x' * 1_000_000,))
""",
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
        [1] * 4,
        _is_interrupted_in_large_displays,
    ),
    *(
        _host(f"large-value-of-{name}", _ROOM, _below(most), _amplifies(forged))
        for name, (most, forged) in _LARGE_VALUES.items()
    ),
    _host(
        "large-head",
        "the head of a message has a largest size, as it comes and as it is read",
        _below(150),
        _amplifies("say(DISPLAY | {'data': {'a/b': ['ab'] * 600_000}})"),
    ),
    _breach("head-of-too-many-texts", _CHECKED, "event head is too large", "say(b'[' + b'\"\",' * 700_000 + b'1]')"),
    _host(
        "large-trees-in-displays",
        "displays are counted with all their parts",
        _below(300),
        _amplifies("for _ in range(9): say(DISPLAY | {'data': {'a/b': ['ab'] * 600_000}})"),
    ),
    _host("hostile-values", "values are decoded by a table, when they are asked for", {}, _reads_hostile_values),
    _host("leaves-each", "a turn that was left is ended before the next begins", {}, _leaves_each),
    _host(
        "cancelled-while-the-process-is-replaced",
        "a replacement is not left half done",
        ["2"],
        _cancels_at_each_moment,
    ),
    _host(
        "many-names",
        _TOLD,
        [None, 1],
        _goes_on("globals().update({f'name_{n:012d}': n for n in range(400_000)})", limits=_WIDE),
    ),
    _host("long-error", _TOLD, ["ValueError", 1], _goes_on("raise ValueError('[' * 900_000)", limits=_WIDE)),
    _host("value-of-many-lists", _TOLD, [None, 1], _goes_on("[[[]]] * 200_000", limits=_WIDE)),
    _host(
        "long-markup",
        _TOLD,
        [None, 1],
        _goes_on("class Page:\n    def _repr_html_(self): return 'x' * 10_000_000\nPage()", limits=_WIDE),
    ),
    _host("dies-idle", "a death is found before the next cell", [2, 1, 2], _dies_idle(_ENDS)),
    *(
        _host(
            f"dies-idle-while-a-child-{name}",
            "a death is found before the next cell",
            [2, 1, 2],
            _dies_idle(how),
        )
        for name, how in (
            ("holds-the-socket", f"if os.fork() == 0: time.sleep(60)\n{_ENDS}"),
            ("sends", f"if os.fork() == 0:\n    while True: wire.send(b'x'); time.sleep(0.001)\n{_ENDS}"),
            ("receives", f"if os.fork() == 0:\n    while True: wire.recv(100_000)\n{_ENDS}"),
            ("shuts-the-socket", "if os.fork() == 0:\n    time.sleep(0.05)\n    wire.shutdown(2)\n    os._exit(0)"),
        )
    ),
    _host(
        "first-thread-leaves",
        "the kill after the time limit",
        [TIMEOUT, 1, 2],
        _answers_in_time(
            "1",
            "1+1",
            before="import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ncall('exit', 0)",
        ),
    ),
)
