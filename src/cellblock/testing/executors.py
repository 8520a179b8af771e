"""Conformance kit of `executors.protocol`: tests to inherit.

    class TestMine(ExecutorConformance):
        @pytest.fixture
        def launcher(self) -> Launcher:
            return MyLauncher()

The tests are coroutines under anyio's pytest plugin, on the backends that the fixture `anyio_backend` names.
Each opens a kernel of its own. No test waits for a time to pass; a kernel that hangs fails after `PATIENCE`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from cellblock.errors import CaptureFailed, FileRefused, MountRefused, RestoreFailed, SessionClosed
from cellblock.executors.protocol import (
    Capture,
    Died,
    Kernel,
    KernelSpec,
    Launcher,
    Recovery,
    Turn,
    TurnEvent,
    WorkerGone,
    Written,
)
from cellblock.limits import ExecutionLimits
from cellblock.snapshots import CHUNK_BYTES, File, Snapshot, address_of
from cellblock.values import portable
from cellblock.walls import Applied
from cellblock.wire.messages import Clear, Display, Fetch, Finished, Request, Run, Shell, Survey

PATIENCE = 30.0
"""Seconds after which a call that should have returned is taken to hang."""

_LIMIT = 10_000
_UNTIL_TOLD = "print('begun')\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.005)\n"
"""A cell that goes on when the host writes the file `go`."""


_FILES_OF_A_CELL = """
import os
with open("whole", "w") as file: file.write("precious")
os.chmod("whole", 0o640)
os.link("whole", "twin")
os.symlink("whole", "link")
with open("sparse", "w") as file: file.truncate(3 * 2**20)
with open("shut", "w") as file: file.write("shut")
os.chmod("shut", 0o200)
os.mkdir("kept")
os.symlink("kept/made", "dangling")
"""
_ALL_FILES = """
import os
def look(path):
    one = os.lstat(path)
    held = open(path).read(8) if path in ("./whole", "./sparse") else ""
    return path, one.st_mode, one.st_nlink, one.st_size, one.st_blocks, one.st_mtime_ns if held else 0, held
[look(os.path.join(at, name)) for at, below, names in os.walk(".") for name in sorted(below + names)]
"""


@contextmanager
def _small_files(most: int) -> Iterator[None]:
    """This process may write no file of more than so many bytes."""
    from resource import RLIMIT_FSIZE, getrlimit, setrlimit  # which not every system has

    soft, hard = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        setrlimit(RLIMIT_FSIZE, (soft, hard))


def cell(source: str) -> Run:
    """A request to run `source`."""
    return Run(source=source, filename="<cell 1>", max_text=_LIMIT)


async def begin(kernel: Kernel, request: Request | str, *, max_output_bytes: int = _LIMIT) -> Turn:
    """Start a request."""
    request = cell(request) if isinstance(request, str) else request
    with anyio.fail_after(PATIENCE):
        turn = kernel.turn(request, max_output_bytes=max_output_bytes)
        if not turn.sent:
            await turn.send_rest(PATIENCE)
        return turn


async def following(turn: Turn) -> TurnEvent:
    """A turn's next event."""
    with anyio.fail_after(PATIENCE):
        return await turn.next()


async def rest(turn: Turn) -> list[TurnEvent]:
    """A turn's events up to its last one."""
    events = [await following(turn)]
    while not isinstance(events[-1], Finished | Died):
        events.append(await following(turn))
    return events


async def told(kernel: Kernel, request: Request | str, *, max_output_bytes: int = _LIMIT) -> list[TurnEvent]:
    """All events of a request."""
    return await rest(await begin(kernel, request, max_output_bytes=max_output_bytes))


async def finished(kernel: Kernel, request: Request | str) -> Finished:
    """The end of a request that must not kill the worker."""
    last = (await told(kernel, request))[-1]
    assert isinstance(last, Finished), last
    return last


async def dies(kernel: Kernel, source: str) -> None:
    """A request to a worker that was killed: refused whole, or ended by the death."""
    try:
        events = await told(kernel, source)
    except WorkerGone:
        return
    assert isinstance(events[-1], Died), events[-1]


async def value(kernel: Kernel, request: Request | str) -> object:
    """The value of a request that must succeed."""
    last = await finished(kernel, request)
    assert last.failure is None, last.failure
    return portable.unpack(last.buffers) if last.buffers else None


async def running(kernel: Kernel, source: str) -> Turn:
    """A turn whose cell has begun: `source` prints first."""
    turn = await begin(kernel, source)
    assert isinstance(await following(turn), Written)
    return turn


Open = Callable[..., Awaitable[Kernel]]
Chunks = dict[str, bytes]
"""Bytes by their addresses."""


async def saved(kernel: Kernel, previous: Snapshot | None = None) -> tuple[Chunks, Snapshot]:
    """The present state: what was sent of it, and the snapshot."""
    return await read(await kernel.capture(), previous)


async def read(capture: Capture, previous: Snapshot | None = None, *, begun: bool = False) -> tuple[Chunks, Snapshot]:
    """All of a capture."""
    chunks: Chunks = {}

    def put(data: bytes) -> None:
        address = address_of(data)
        assert address not in chunks
        chunks[address] = data

    try:
        with anyio.fail_after(PATIENCE):
            if not begun:
                await capture.begin(previous)
            snapshot = await capture.read(put)
        return chunks, snapshot
    finally:
        capture.close()


async def restored(
    kernel: Kernel, snapshot: Snapshot, chunks: Chunks, *, seconds: float = PATIENCE
) -> tuple[tuple[str, str, str, str], ...]:
    """Put a snapshot into a new kernel; what was lost on the way."""

    async def fetch(addresses: Sequence[str]) -> list[bytes]:
        return [chunks[address] for address in addresses]

    with anyio.fail_after(2 * PATIENCE):
        return await kernel.restore(snapshot, fetch, seconds=seconds)


def _close(capture: Capture, _: bytes) -> None:
    capture.close()


def merged(events: list[TurnEvent]) -> list[tuple[str, str]]:
    """Stream or "display", and text, in order; neighbours of one stream joined."""
    out: list[tuple[str, str]] = []
    for event in events:
        if isinstance(event, Written):
            if out and out[-1][0] == event.stream:
                out[-1] = (event.stream, out[-1][1] + event.text)
            else:
                out.append((event.stream, event.text))
        elif isinstance(event, Display):
            out.append(("display", str(event.data["text/plain"])))
    return out


@pytest.mark.anyio
class ExecutorConformance:
    """The contract of a `Launcher` and of the kernels it opens."""

    goes_back = True
    """True if the kernels keep checkpoints. Those of an executor that keeps none tell of no steps, ever."""

    saves = True
    """True if the kernels can be captured and restored into."""

    reaches_system = True
    """True if cells use files, processes and the system's modules. Where they do not, what takes those is left out."""

    @pytest.fixture
    def launcher(self) -> Launcher:
        """The launcher under test."""
        raise NotImplementedError("give a fixture `launcher`")

    @pytest.fixture
    async def opened(self, launcher: Launcher, anyio_backend: object) -> AsyncIterator[Open]:
        """Opens a kernel by the fields of its `KernelSpec`, and closes it when the test has ended."""
        async with AsyncExitStack() as kernels:

            async def opened(**spec: Any) -> Kernel:
                kernel = await launcher.open(KernelSpec(**spec))
                kernels.push_async_callback(kernel.close)
                return kernel

            yield opened

    @pytest.fixture
    async def kernel(self, opened: Open) -> Kernel:
        """A kernel of default limits."""
        return await opened(seed=1)

    @pytest.fixture
    def system(self) -> None:
        """For tests whose cells reach the system."""
        if not self.reaches_system:
            pytest.skip("cells of this executor reach nothing of the system")

    @pytest.fixture
    def checkpoints(self) -> None:
        """For tests that go back."""
        if not self.goes_back:
            pytest.skip("kernels of this executor cannot go back")

    @pytest.fixture
    def saving(self) -> None:
        """For tests that save."""
        if not self.saves:
            pytest.skip("kernels of this executor cannot be saved")

    @pytest.fixture
    def mountable(self, tmp_path: Path) -> Path:
        """A directory that any user may read and write, modes alone considered."""
        place = tmp_path / "mountable"
        place.mkdir()
        place.chmod(0o777)
        return place

    # --- turns ---

    async def test_finished_is_the_last_event_and_the_only_one_of_its_kind(self, kernel: Kernel) -> None:
        for source in ("", "1", "print(1)", "1/0", "display(1)", "def (", "raise SystemExit(3)"):
            events = await told(kernel, source)
            assert [type(event) for event in events].count(Finished) == 1
            assert not any(isinstance(event, Died) for event in events)

    async def test_state_stays_from_turn_to_turn(self, kernel: Kernel) -> None:
        await finished(kernel, "x = [1]\ndef f(): return x")
        await finished(kernel, "f().append(2)")
        assert await value(kernel, "x") == [1, 2]

    async def test_last_expression_is_the_value_and_none_is_no_value(self, kernel: Kernel) -> None:
        assert await value(kernel, "(1, 'a', b'b', 2.5, {'k': {1, 2}})") == (1, "a", b"b", 2.5, {"k": {1, 2}})
        assert not (await finished(kernel, "None")).buffers
        assert not (await finished(kernel, "x = 1")).buffers

    async def test_value_that_cannot_travel_arrives_as_opaque(self, kernel: Kernel) -> None:
        got = await value(kernel, "lambda: 1")
        assert isinstance(got, portable.Opaque)
        assert got.type == "function"

    async def test_result_is_displayed_and_marked(self, kernel: Kernel) -> None:
        shown = [event for event in await told(kernel, "display('a')\n'b'") if isinstance(event, Display)]
        assert [(event.data["text/plain"], event.is_result) for event in shown] == [("'a'", False), ("'b'", True)]

    async def test_failure_tells_type_message_and_the_cells_own_lines(self, kernel: Kernel) -> None:
        failure = (await finished(kernel, "def f():\n    return 1/0\nf()")).failure
        assert failure is not None
        assert (failure.type, failure.message, failure.kind) == ("ZeroDivisionError", "division by zero", "raised")
        lines = failure.traceback.splitlines()
        assert lines[1] == '  File "<cell 1>", line 3, in <module>'
        assert '  File "<cell 1>", line 2, in f' in lines
        assert lines[-1] == "ZeroDivisionError: division by zero"

    async def test_failed_turn_keeps_what_it_did_before(self, kernel: Kernel) -> None:
        assert (await finished(kernel, "x = 1\n1/0")).failure is not None
        assert await value(kernel, "x") == 1

    async def test_cost_of_a_turn_is_told(self, kernel: Kernel) -> None:
        spent = 0.0
        for _ in range(100):  # some kernels count a processor's time in hundredths of a second
            last = await finished(kernel, "sum(range(200_000))")
            assert last.duration_ms > 0
            spent += last.cpu_ms
            if spent:
                return
        raise AssertionError("no processor time is told")

    # --- text ---

    async def test_text_and_displays_come_in_the_order_they_were_made(self, kernel: Kernel) -> None:
        source = (
            "import sys\nprint('a')\nprint('b', file=sys.stderr)\ndisplay('c')\n"
            "print('d', end='')\ndisplay('e')\nprint('f')\nsys.stderr.write('g')\n'h'"
        )
        assert merged(await told(kernel, source)) == [
            ("stdout", "a\n"),
            ("stderr", "b\n"),
            ("display", "'c'"),
            ("stdout", "d"),
            ("display", "'e'"),
            ("stdout", "f\n"),
            ("stderr", "g"),
            ("display", "'h'"),
        ]

    @pytest.mark.usefixtures("system")
    async def test_text_arrives_while_the_cell_runs(self, kernel: Kernel) -> None:
        turn = await running(kernel, _UNTIL_TOLD)
        kernel.files.write("go", b"")
        assert isinstance((await rest(turn))[-1], Finished)

    @pytest.mark.usefixtures("system")
    async def test_waiting_for_an_event_may_be_cancelled_and_taken_up_again(self, kernel: Kernel) -> None:
        turn = await running(kernel, _UNTIL_TOLD + "print('gone on')\n42")
        for _ in range(3):
            with anyio.move_on_after(0.01) as scope:
                await turn.next()
            assert scope.cancelled_caught
        kernel.files.write("go", b"")
        events = await rest(turn)
        assert merged(events) == [("stdout", "gone on\n"), ("display", "42")]

    async def test_output_past_the_limit_is_cut_and_every_byte_counted(self, kernel: Kernel) -> None:
        for source, total in (("print('a' * 99_999)", 100_000), ("for n in range(10_000): print('a' * 9)", 100_000)):
            texts = [event for event in await told(kernel, source, max_output_bytes=1000) if isinstance(event, Written)]
            kept = sum(len(event.text) for event in texts)
            assert 1000 <= kept <= 2000
            assert kept + sum(event.cut for event in texts) == total
            assert texts[0].cut == 0

    async def test_output_past_the_limit_keeps_its_order(self, kernel: Kernel) -> None:
        source = "for n in range(4):\n    print(f'{n}' * 100_000)\n    display(n)\nprint('then')\n'result'"
        events = merged(await told(kernel, source, max_output_bytes=1000))
        ends = [(stream, text.strip()[-4:]) for stream, text in events]
        between = [pair for n in range(4) for pair in (("stdout", f"{n}" * 4), ("display", f"{n}"))]
        assert ends == [*between, ("stdout", "then"), ("display", "ult'")]
        assert sum(len(text) for stream, text in events if stream == "stdout") <= 1500

    async def test_output_within_the_limit_is_whole(self, kernel: Kernel) -> None:
        events = await told(kernel, "print('a' * 999)", max_output_bytes=1000)
        assert merged(events) == [("stdout", "a" * 999 + "\n")]
        assert all(event.cut == 0 for event in events if isinstance(event, Written))

    @pytest.mark.usefixtures("system")
    async def test_character_is_whole_however_it_was_written(self, kernel: Kernel) -> None:
        source = "import sys\nraw = sys.stdout.buffer\nfor n in 'é€😀'.encode(): raw.write(bytes([n])), raw.flush()"
        assert merged(await told(kernel, source)) == [("stdout", "é€😀")]

    # --- interrupts and deaths ---

    async def test_interrupt_raises_keyboard_interrupt_in_the_cell_and_keeps_names(self, kernel: Kernel) -> None:
        turn = await running(kernel, "x = 1\nprint('begun')\nwhile True: pass")
        kernel.interrupt()
        last = (await rest(turn))[-1]
        assert isinstance(last, Finished)
        assert last.failure is not None
        assert last.failure.type == "KeyboardInterrupt"
        assert await value(kernel, "x") == 1

    async def test_interrupt_between_turns_touches_no_later_turn(self, kernel: Kernel) -> None:
        for number in range(5):
            kernel.interrupt()
            assert await value(kernel, f"{number}") == number

    @pytest.mark.usefixtures("system")
    async def test_what_a_cell_past_its_time_started_ends_and_the_worker_lives(self, kernel: Kernel) -> None:
        source = "import subprocess\none = subprocess.Popen(['sleep', '1000'])\nprint('begun')\nwhile True: pass"
        turn = await running(kernel, source)
        kernel.time_out()
        assert isinstance((await rest(turn))[-1], Finished)
        with anyio.fail_after(PATIENCE):
            assert await kernel.end_started() == 1
            assert await kernel.end_started() == 0
        assert await value(kernel, "one.wait(10)") == -9

    async def test_kill_ends_the_turn_with_died(self, kernel: Kernel) -> None:
        turn = await running(kernel, "print('begun')\nwhile True: pass")
        kernel.kill()
        assert isinstance((await rest(turn))[-1], Died)

    @pytest.mark.usefixtures("system")
    async def test_kill_ends_a_cell_that_refuses_interrupts(self, kernel: Kernel) -> None:
        source = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\nwhile True: pass"
        turn = await running(kernel, source)
        kernel.interrupt()
        kernel.kill()
        assert isinstance((await rest(turn))[-1], Died)

    async def test_kill_between_turns_ends_the_next_one_or_refuses_it(self, kernel: Kernel) -> None:
        await finished(kernel, "x = 1")
        kernel.kill()
        await dies(kernel, "x")

    @pytest.mark.usefixtures("system")
    async def test_text_written_before_a_death_is_told(self, kernel: Kernel) -> None:
        events = await told(kernel, "import os\nprint('last words')\nos._exit(3)")
        assert merged(events) == [("stdout", "last words\n")]
        assert events[-1] in (Died(status=3), Died())

    async def test_what_was_being_sent_when_the_session_was_closed_is_refused(self, kernel: Kernel) -> None:
        request = Run(source="x = 1  #" + " " * 500_000, filename="long", max_text=1)
        turn = kernel.turn(request, max_output_bytes=_LIMIT)
        await kernel.close()
        with pytest.raises(SessionClosed):
            await (turn.next() if turn.sent else turn.send_rest(1))

    async def test_kernel_recovers_as_often_as_it_dies(self, kernel: Kernel) -> None:
        for number in range(3):
            kernel.kill()
            await dies(kernel, "1")
            await kernel.recover()
            assert await value(kernel, f"{number}") == number

    async def test_memory_limit_ends_the_cell_and_not_the_host(self, opened: Open) -> None:
        kernel = await opened(limits=ExecutionLimits(max_memory_mb=64))
        last = (await told(kernel, "b = b'x' * 500_000_000"))[-1]
        if isinstance(last, Died):
            await kernel.recover()
        else:
            assert isinstance(last, Finished)
            assert last.failure is not None
            assert last.failure.kind == "memory"
        assert await value(kernel, "1") == 1

    # --- going back ---

    @pytest.mark.usefixtures("system")
    async def test_recovery_without_checkpoints_empties_names_and_keeps_files(self, opened: Open) -> None:
        kernel = await opened(limits=ExecutionLimits(max_checkpoints=0))
        await finished(kernel, "x = 1\nopen('kept', 'w').write('1')")
        assert (kernel.steps, len(kernel.states)) == (0, 1)
        assert isinstance((await told(kernel, "open('kept', 'a').write('2')\nimport os\nos._exit(3)"))[-1], Died)
        recovery = await kernel.recover()
        assert (recovery.exact, recovery.fresh, [row[:2] for row in recovery.lost]) == (False, True, [("x", "int")])
        assert kernel.names == {}
        assert await value(kernel, "open('kept').read(), 'x' in globals()") == ("12", False)

    @pytest.mark.usefixtures("system", "checkpoints")
    async def test_recovery_is_to_before_the_request_that_died(self, kernel: Kernel) -> None:
        for step in range(3):
            recovery = await self._die(kernel, "x = -1\nopen('kept', 'w').write('no')\nopen('new', 'w').close()")
            assert (recovery.exact, recovery.lost) == (True, ())
            assert kernel.names == ({"x": "int"} if step else {})
            assert kernel.files.list() == (["kept"] if step else [])
            if step:
                assert await value(kernel, "x, open('kept').read()") == (step, str(step))
            await finished(kernel, f"x = {step + 1}\nopen('kept', 'w').write(str(x))")

    @pytest.mark.usefixtures("checkpoints")
    async def test_recovery_brings_back_what_cannot_be_pickled(self, kernel: Kernel) -> None:
        await finished(kernel, "numbers = (n for n in range(9)); next(numbers)\ndouble = lambda n: 2 * n")
        await self._die(kernel, "next(numbers); double = None")
        assert await value(kernel, "next(numbers), double(2)") == (1, 4)

    @pytest.mark.usefixtures("checkpoints")
    async def test_recovery_after_a_kill_between_turns_loses_nothing(self, kernel: Kernel) -> None:
        for number in range(3):
            await finished(kernel, f"x = {number}")
            kernel.kill()
            recovery = await kernel.recover()
            assert (recovery.exact, recovery.lost) == (True, ())
            assert await value(kernel, "x") == number

    @pytest.mark.usefixtures("system", "checkpoints")
    async def test_steps_are_requests_that_change_the_session_whether_they_fail_or_not(self, kernel: Kernel) -> None:
        steps: list[tuple[Request | str, dict[str, str]]] = [
            ("x = 1", {"x": "1"}),
            ("x = 2\n1/0", {"x": "2"}),
            (kernel.binding("y", 3), {"x": "2", "y": "3"}),
            (Shell(command="echo > made; exit 1"), {"x": "2", "y": "3", "made": "a file"}),
            (Clear(), {"made": "a file"}),
        ]
        states = [kernel.states]
        for request, _ in steps:
            await finished(kernel, request)
            states.append(kernel.states)
            for other in (Survey(max_names=10, max_preview=10), Fetch(name="x")):
                await finished(kernel, other)
            assert kernel.states == states[-1]
            assert kernel.steps == len(states) - 1
        assert [len(found) for found in states] == [1, 2, 3, 4, 5, 6]
        assert all(found[:-1] == before for before, found in pairwise(states))
        for _, seen in reversed(steps[:-1]):
            assert (await kernel.recover(1)).exact
            present = states[kernel.steps]
            assert kernel.states == present
            rows = await value(kernel, Survey(max_names=10, max_preview=10))
            assert isinstance(rows, list)
            assert {row[0]: row[3] for row in rows} | dict.fromkeys(kernel.files.list(), "a file") == seen

    @pytest.mark.usefixtures("checkpoints")
    async def test_state_has_a_number_that_no_later_one_has(self, kernel: Kernel) -> None:
        seen = set(kernel.states)
        for _ in range(3):
            for number in range(3):
                await finished(kernel, f"x = {number}")
                assert kernel.states[-1] not in seen
                seen.add(kernel.states[-1])
            await kernel.recover(2)
            assert await value(kernel, Fetch(name="x")) == 0

    @pytest.mark.usefixtures("system", "checkpoints")
    async def test_as_many_steps_are_kept_as_the_limit_says(self, opened: Open) -> None:
        kernel = await opened(limits=ExecutionLimits(max_checkpoints=3))
        for number in range(6):
            await finished(kernel, f"x = {number}\nopen('x', 'w').write(str(x))")
        assert kernel.steps == 3
        recovery = await kernel.recover(3)
        assert (recovery.exact, recovery.fresh, kernel.steps) == (True, False, 0)
        assert await value(kernel, "x, open('x').read()") == (2, "2")

    @pytest.mark.usefixtures("system", "checkpoints")
    async def test_changes_of_files_by_the_host_are_a_step_once_they_are_noted(self, kernel: Kernel) -> None:
        await finished(kernel, "x = 1")
        kernel.note_files()
        assert kernel.steps == 1
        await kernel.change_files(partial(kernel.files.write, "a", b"1"))
        await kernel.change_files(partial(kernel.files.write, "b", b"1"))
        assert kernel.steps == 1
        kernel.note_files()
        assert kernel.steps == 2
        await self._die(kernel, "open('a', 'w').write('2')")
        assert kernel.files.read("a", max_bytes=10) == b"1"
        await kernel.change_files(partial(kernel.files.delete, "a"))
        kernel.note_files()
        await kernel.recover(1)
        assert kernel.files.list() == ["a", "b"]
        await kernel.recover(1)
        assert kernel.files.list() == []
        assert await value(kernel, "x") == 1

    async def _die(self, kernel: Kernel, source: str) -> Recovery:
        if self.reaches_system:
            events = await told(kernel, f"{source}\nimport os\nos._exit(3)")
        else:
            turn = await running(kernel, f"{source}\nprint('begun')\nwhile True: pass")
            kernel.kill()
            events = await rest(turn)
        assert isinstance(events[-1], Died), events[-1]
        return await kernel.recover()

    # --- saving and restoring ---

    @pytest.mark.usefixtures("saving", "system")
    async def test_saved_state_is_restored_names_and_files(self, opened: Open, kernel: Kernel) -> None:
        made = (
            "import os\nx = [1]\ny = x\nclass C: pass\nc = C()\nc.x = x\ndef f(): return k\nk = 7\n"
            "big = b'z' * 3_000_000\n"
        )
        files = (
            "os.mkdir('d')\nos.chmod('d', 0o711)\nopen('d/a', 'w').write('a')\nos.link('d/a', 'b')\n"
            "os.chmod('b', 0o640)\nos.symlink('d/a', 'l')\nos.utime('b', ns=(5, 5_000_000_007))\nos.mkfifo('p')\n"
            "open('/tmp/t', 'w').write('t')\n"
            "with open('s', 'wb') as s:\n    s.truncate(5_000_000)\n    s.seek(2_500_000)\n    s.write(b'q' * 10)\n"
            "del s\n"
        )
        assert (await finished(kernel, made + files)).failure is None
        chunks, snapshot = await saved(kernel)
        assert all(address_of(data) == address and 0 < len(data) <= CHUNK_BYTES for address, data in chunks.items())
        assert snapshot.addresses() <= chunks.keys()
        assert snapshot.lost == ()
        other = await opened(seed=2)
        assert await restored(other, snapshot, chunks) == ()
        assert (other.steps, set(other.names) - {"os"}) == (0, {"x", "y", "C", "c", "f", "k", "big"})
        held = "y is x and c.x is x and type(c) is C, f(), (k := 8), f(), big == b'z' * 3_000_000"
        assert await value(other, held) == (True, 7, 8, 8, True)
        assert await value(
            other,
            "(open('b').read(), os.stat('b').st_nlink, os.stat('b').st_mode & 0o777, os.stat('b').st_mtime_ns,"
            " os.stat('d').st_mode & 0o777, os.readlink('l'), open('/tmp/t').read(), os.stat('p').st_mode >> 12,"
            " os.path.getsize('s'), os.stat('s').st_blocks < 100, open('s', 'rb').read()[2_499_999:2_500_011])",
        ) == ("a", 2, 0o640, 5_000_000_007, 0o711, "d/a", "t", 1, 5_000_000, True, b"\0qqqqqqqqqq\0")

    @pytest.mark.usefixtures("saving")
    async def test_names_are_restored_with_what_they_share_and_what_they_call(
        self, opened: Open, kernel: Kernel
    ) -> None:
        await finished(kernel, "x = [1]\ny = {'x': x}\nk = 7\ndef f(n): return n + k")
        chunks, snapshot = await saved(kernel)
        other = await opened(seed=2)
        assert await restored(other, snapshot, chunks) == ()
        await finished(other, "x.append(2)\nk = 8")
        assert await value(other, "x, y, f(1)") == ([1, 2], {"x": [1, 2]}, 9)

    @pytest.mark.usefixtures("saving", "system", "checkpoints")
    async def test_restored_state_is_one_to_come_back_to(self, opened: Open, kernel: Kernel) -> None:
        await finished(kernel, "x = [1]\nopen('kept', 'w').write('1')")
        chunks, snapshot = await saved(kernel)
        other = await opened()
        await restored(other, snapshot, chunks)
        assert (await self._die(other, "x.append(2)\nopen('kept', 'w').write('2')")).exact
        assert await value(other, "x, open('kept').read()") == ([1], "1")

    @pytest.mark.usefixtures("saving", "system")
    async def test_what_a_snapshot_before_holds_is_not_sent_again(self, kernel: Kernel) -> None:
        await finished(kernel, "a, b = b'a' * 2_000_000, [1]\nopen('f', 'wb').write(b'f' * 2_000_000)")
        _, first = await saved(kernel)
        assert (await saved(kernel, first))[0] == {}
        await finished(kernel, "b.append(2)\nopen('g', 'w').write('g')")
        sent, second = await saved(kernel, first)
        assert sum(map(len, sent.values())) < 10_000
        assert first.addresses() < second.addresses() | first.addresses()
        assert second.addresses() - first.addresses() == sent.keys()

    @pytest.mark.usefixtures("saving", "system")
    async def test_state_is_saved_as_it_was_when_it_was_captured(self, opened: Open, kernel: Kernel) -> None:
        """Also when it was changed, and let go of, before it was read."""
        await finished(kernel, "x = [1]\nopen('f', 'w').write('1')")
        capture = await kernel.capture()
        for number in range(8):
            await finished(kernel, f"x[0] = -{number}\nopen('f', 'w').write('-')")
        chunks, snapshot = await read(capture)
        other = await opened()
        await restored(other, snapshot, chunks)
        assert await value(other, "x, open('f').read()") == ([1], "1")

    @pytest.mark.usefixtures("saving", "system", "checkpoints")
    async def test_state_before_the_request_under_way_is_captured(self, launcher: Launcher, kernel: Kernel) -> None:
        await finished(kernel, "x = [1]")
        turn = await running(kernel, "x.append(2)\nopen('f', 'w').close()\n" + _UNTIL_TOLD)
        _, snapshot = await saved(kernel)
        assert (set(kernel.names), [one.path for one in snapshot.files]) == ({"x"}, [])
        kernel.files.write("go", b"")
        assert isinstance((await rest(turn))[-1], Finished)

    @pytest.mark.usefixtures("saving", "system", "checkpoints")
    async def test_saving_goes_on_while_the_session_dies_and_recovers(self, opened: Open, kernel: Kernel) -> None:
        await finished(kernel, "x = [1]")
        capture = await kernel.capture()
        await capture.begin(None)
        await self._die(kernel, "x.append(2)")
        chunks, snapshot = await read(capture, begun=True)
        other = await opened()
        await restored(other, snapshot, chunks)
        assert await value(other, "x") == await value(kernel, "x") == [1]

    @pytest.mark.usefixtures("saving")
    async def test_so_many_states_are_saved_at_once_and_no_more(self, kernel: Kernel) -> None:
        captures = []
        for number in range(3):
            await finished(kernel, f"x = {number}")
            captures.append(await kernel.capture())
        with pytest.raises(CaptureFailed, match="3 states are being saved"):
            await kernel.capture()
        captures[1].close()
        captures[1].close()
        captures[1] = await kernel.capture()
        previous, seen = None, []
        for capture in captures:
            _, previous = await read(capture, previous)
            seen.append([one.preview for one in previous.names if one.name == "x"])
        assert seen == [["0"], ["2"], ["2"]]

    @pytest.mark.usefixtures("saving")
    async def test_closed_capture_is_read_no_more_and_gives_everything_back(self, kernel: Kernel) -> None:
        await finished(kernel, "x = b'x' * 5_000_000")
        await saved(kernel)
        before = _descriptors()
        for begun in (False, True):
            capture = await kernel.capture()
            if begun:
                await capture.begin(None)
                with pytest.raises(CaptureFailed):
                    await capture.read(partial(_close, capture))
            capture.close()
            with pytest.raises(CaptureFailed):
                await capture.read(len)
            assert _descriptors() == before
        assert await value(kernel, "len(x)") == 5_000_000

    @pytest.mark.usefixtures("saving", "system")
    async def test_close_wakes_who_reads_a_capture(self, kernel: Kernel) -> None:
        await finished(kernel, "class Slow:\n    def __reduce__(self):\n        while True: pass\nslow = Slow()")
        capture = await kernel.capture()
        await capture.begin(None)

        async def close() -> None:
            await anyio.sleep(0.1)
            capture.close()

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(close)
                with pytest.raises(CaptureFailed, match="closed"):
                    await read(capture, begun=True)
        assert await value(kernel, "1") == 1

    @pytest.mark.usefixtures("saving")
    async def test_what_cannot_be_saved_is_told_and_the_rest_is_saved(self, opened: Open, kernel: Kernel) -> None:
        await finished(kernel, "x = 1\nheld = [(n for n in ())]")
        chunks, snapshot = await saved(kernel)
        assert [(one.name, bool(one.reason), bool(one.remedy)) for one in snapshot.lost] == [("held", True, True)]
        other = await opened()
        await restored(other, snapshot, chunks)
        assert await value(other, "x, 'held' in globals()") == (1, False)

    @pytest.mark.usefixtures("saving")
    async def test_only_a_kernel_that_has_run_nothing_is_restored_into(self, kernel: Kernel) -> None:
        await finished(kernel, "x = 1")
        chunks, snapshot = await saved(kernel)
        with pytest.raises(RestoreFailed):
            await restored(kernel, snapshot, chunks)
        assert await value(kernel, "x") == 1

    @pytest.mark.usefixtures("saving")
    async def test_bytes_that_cannot_be_had_end_the_restore_and_are_told_as_they_are(
        self, opened: Open, kernel: Kernel
    ) -> None:
        await finished(kernel, "x = [1]")
        _, snapshot = await saved(kernel)
        other = await opened()
        with pytest.raises(KeyError):
            await restored(other, snapshot, {})

    @pytest.mark.usefixtures("saving")
    async def test_paths_that_no_session_has_are_not_restored(self, opened: Open) -> None:
        link = File(path="workspace/l", kind="link", mode=0o777, modified_ns=0, target="/")
        for path in ("/etc/x", "workspace/../x", "workspace//x", "other/x", "workspace/l/x", "workspace/x\0", ".", ""):
            file = File(path=path, kind="file", mode=0o644, modified_ns=0)
            kernel = await opened()
            with pytest.raises(RestoreFailed):
                await restored(kernel, Snapshot(files=(link, file), environment={"format": "1", "magic": ""}), {})
            await kernel.close()

    @pytest.mark.usefixtures("saving", "system")
    async def test_code_of_a_snapshot_that_does_not_end_is_ended(self, opened: Open, kernel: Kernel) -> None:
        await finished(
            kernel,
            "class Slow:\n    def __setstate__(self, state):\n        while True: pass\nslow = Slow()\nslow.x = 1",
        )
        chunks, snapshot = await saved(kernel)
        other = await opened()
        with pytest.raises(RestoreFailed, match="longer than"):
            await restored(other, snapshot, chunks, seconds=1.0)

    # --- requests that are no cells ---

    async def test_bound_value_is_a_copy_and_fetched_as_portable(self, kernel: Kernel) -> None:
        ours = [1, {"a": b"b"}]
        await finished(kernel, kernel.binding("x", ours))
        ours.append("later")
        assert await value(kernel, "x[1]['a']") == b"b"
        assert await value(kernel, "x.append(2)\nx") == [1, {"a": b"b"}, 2]
        assert await value(kernel, Fetch(name="x")) == [1, {"a": b"b"}, 2]
        assert ours == [1, {"a": b"b"}, "later"]

    async def test_fetch_of_an_unbound_name_is_a_key_error(self, kernel: Kernel) -> None:
        failure = (await finished(kernel, Fetch(name="nothing"))).failure
        assert failure is not None
        assert failure.type == "KeyError"

    async def test_survey_previews_names_inside(self, kernel: Kernel) -> None:
        await finished(kernel, "x = [1, 2]\nclass Sly:\n    def __repr__(self): raise ValueError('no')\ns = Sly()")
        rows = await value(kernel, Survey(max_names=10, max_preview=50))
        assert isinstance(rows, list)
        assert {row[0]: row[1] for row in rows} == {"Sly": "type", "s": "Sly", "x": "list"}
        assert [row[3] for row in rows if row[0] == "x"] == ["[1, 2]"]

    @pytest.mark.usefixtures("system")
    async def test_clear_empties_names_and_keeps_files(self, kernel: Kernel) -> None:
        await finished(kernel, "x = 1\nopen('kept', 'w').close()")
        await finished(kernel, Clear())
        assert await value(kernel, "'x' in globals(), __import__('os').path.exists('kept')") == (False, True)

    @pytest.mark.usefixtures("system")
    async def test_shell_runs_in_the_workspace_and_tells_a_status_that_is_not_0(self, kernel: Kernel) -> None:
        kernel.files.write("in.txt", b"a\nb\n")
        events = await told(kernel, Shell(command="wc -l < in.txt; echo no >&2"))
        assert sorted(merged(events)) == [("stderr", "no\n"), ("stdout", "2\n")]
        failure = (await finished(kernel, Shell(command="exit 7"))).failure
        assert failure is not None
        assert (failure.type, failure.message) == ("CommandFailed", "exit status 7")

    # --- what the host is told ---

    async def test_names_follow_what_cells_bind_change_and_delete(self, kernel: Kernel) -> None:
        seen = []
        for source in ("x = 1\ny = 'a'", "x = 2.5", "del y"):
            await finished(kernel, source)
            seen.append(dict(kernel.names))
        assert seen == [{"x": "int", "y": "str"}, {"x": "float", "y": "str"}, {"x": "float"}]

    @pytest.mark.usefixtures("system")
    async def test_capabilities_name_the_level_the_interpreter_and_each_wall_once(self, kernel: Kernel) -> None:
        told_of = kernel.capabilities
        assert told_of.trust_level
        assert told_of.python == await value(kernel, "__import__('platform').python_version()")
        names = [wall.mechanism for wall in told_of.walls]
        assert len(names) == len(set(names))
        for wall in told_of.walls:
            assert isinstance(wall, Applied) or (wall.reason and wall.remedy)

    @pytest.mark.usefixtures("system")
    async def test_same_seed_same_random_numbers_and_hashes(self, opened: Open) -> None:
        drawn = []
        for seed in (7, 7, 8):
            kernel = await opened(seed=seed)
            drawn.append(await value(kernel, "import random\n(random.random(), hash('text'))"))
            await kernel.close()
        assert drawn[0] == drawn[1] != drawn[2]

    # --- files ---

    @pytest.mark.usefixtures("system")
    async def test_files_of_the_host_and_of_cells_are_the_same_files(self, kernel: Kernel) -> None:
        kernel.files.write("deep/er/in.bin", b"\0in")
        assert await value(kernel, "open('deep/er/in.bin', 'rb').read()") == b"\0in"
        await finished(kernel, "open('out', 'w').write('out')")
        assert kernel.files.read("out", max_bytes=10) == b"out"
        assert kernel.files.list() == ["deep/er/in.bin", "out"]
        kernel.files.delete("out")
        assert await value(kernel, "__import__('os').path.exists('out')") is False

    @pytest.mark.usefixtures("system")
    @pytest.mark.parametrize("size", [1, 2**20, 10 * 2**20, 40 * 2**20])
    async def test_file_is_replaced_and_deleted_by_the_host_as_soon_as_it_was_written(
        self, kernel: Kernel, size: int
    ) -> None:
        async def change(function: Callable[..., object], *args: object) -> None:
            await kernel.change_files(partial(function, *args))
            kernel.note_files()

        looked = "import os\nopen('f', 'rb').read(1), os.path.getsize('f')"
        await change(kernel.files.write, "f", b"1" * size)
        await change(kernel.files.write, "f", b"2" * size)
        assert await value(kernel, looked) == (b"2", size)
        by_a_cell = f"with open('f', 'wb') as file: file.write(b'3' * {size})"
        await finished(kernel, by_a_cell)
        await change(kernel.files.write, "f", b"4")
        assert await value(kernel, looked) == (b"4", 1)
        await finished(kernel, by_a_cell)
        await change(kernel.files.delete, "f")
        assert kernel.files.list() == []
        if self.goes_back:
            await kernel.recover(1)
            assert await value(kernel, looked) == (b"3", size)

    @pytest.mark.usefixtures("system")
    async def test_write_by_the_host_that_is_refused_changes_nothing(self, kernel: Kernel) -> None:
        await finished(kernel, _FILES_OF_A_CELL)
        seen = await value(kernel, _ALL_FILES)
        with _small_files(2**20):
            for path in ("whole", "twin", "link", "sparse", "shut", "new", "a/b/new", "kept/new", "dangling"):
                with pytest.raises(FileRefused):
                    kernel.files.write(path, bytes(2**20 + 1))
        assert await value(kernel, _ALL_FILES) == seen
        for path in ("twin", "link", "sparse", "shut", "dangling"):
            kernel.files.write(path, path.encode())
        read = await value(kernel, "import os\n[open(p).read() for p in ('whole', 'twin', 'sparse', 'kept/made')]")
        assert read == ["link", "link", "sparse", "dangling"]
        assert await value(kernel, "[os.path.islink('link'), oct(os.stat('whole').st_mode)]") == [True, "0o100640"]

    @pytest.mark.usefixtures("system")
    async def test_paths_that_lead_outside_are_refused(self, kernel: Kernel) -> None:
        await finished(kernel, "import os\nos.symlink('/etc/hostname', 'link')\nos.symlink('/', 'root')")
        for path in ("../x", "/etc/hostname", "link", "root/etc/hostname", "a/../../../etc/hostname", "", "a\0b"):
            with pytest.raises(FileRefused):
                kernel.files.read(path, max_bytes=100)
            with pytest.raises(FileRefused):
                kernel.files.write(path, b"")

    gives_mounts = True
    """True if there are mounts; an executor without must refuse them."""

    async def test_mounted_directory_is_read_and_never_written(self, launcher: Launcher, mountable: Path) -> None:
        if not self.gives_mounts:
            with pytest.raises(MountRefused):
                await launcher.open(KernelSpec(mounts=(("in/data", str(mountable)),)))
            return
        (mountable / "there").write_text("theirs")
        kernel = await launcher.open(KernelSpec(mounts=(("in/data", str(mountable)),)))
        for _ in range(2):
            assert await value(kernel, "open('/workspace/in/data/there').read()") == "theirs"
            for attempt in ("open('in/data/there', 'a')", "open('in/data/new', 'w')", "os.remove('in/data/there')"):
                assert (await finished(kernel, f"import os\n{attempt}")).failure is not None
            with pytest.raises(FileRefused):
                kernel.files.write("in/data/new", b"")
            assert kernel.files.list() == []
            kernel.kill()
            await dies(kernel, "1")
            await kernel.recover()
        await kernel.close()
        assert [(path.name, path.read_text()) for path in mountable.iterdir()] == [("there", "theirs")]

    async def test_mount_that_cannot_be_given_opens_nothing(self, launcher: Launcher, mountable: Path) -> None:
        for name, source in (
            ("../out", mountable),
            ("", mountable),
            ("data", mountable / "missing"),
            ("data", "/proc"),
        ):
            with pytest.raises(MountRefused):
                await launcher.open(KernelSpec(mounts=((name, str(source)),)))

    # --- kernels beside one another, and their end ---

    @pytest.mark.usefixtures("system")
    async def test_kernels_share_neither_names_nor_files(self, opened: Open) -> None:
        one, two = await opened(), await opened()
        await finished(one, "x = 1\nopen('mine', 'w').close()\nopen('/tmp/mine', 'w').close()")
        seen = "import os\n('x' in globals(), os.path.exists('mine'), os.path.exists('/tmp/mine'))"
        assert await value(two, seen) == (False, False, False)
        await one.close()
        assert await value(two, "1") == 1

    @pytest.mark.usefixtures("system")
    async def test_kernels_run_at_the_same_time(self, launcher: Launcher) -> None:
        kernels = [await launcher.open(KernelSpec()) for _ in range(4)]
        turns = [await running(kernel, _UNTIL_TOLD + "42") for kernel in kernels]
        for kernel, turn in reversed(list(zip(kernels, turns, strict=True))):
            kernel.files.write("go", b"")
            assert isinstance((await rest(turn))[-1], Finished)
            await kernel.close()

    async def test_close_wakes_the_turn_that_waits(self, kernel: Kernel) -> None:
        turn = await running(kernel, "print('begun')\nwhile True: pass")

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kernel.close)  # begins once the turn is waited for
                with pytest.raises(SessionClosed):
                    await rest(turn)

    async def test_closed_kernel_refuses(self, kernel: Kernel) -> None:
        await kernel.close()
        with pytest.raises(SessionClosed):
            kernel.turn(cell("1"), max_output_bytes=_LIMIT)
        with pytest.raises(SessionClosed):
            await kernel.recover()
        with pytest.raises(SessionClosed):
            kernel.files.list()
        kernel.interrupt()
        kernel.kill()
        await kernel.close()

    @pytest.mark.usefixtures("system")
    async def test_close_gives_back_every_descriptor(self, launcher: Launcher) -> None:
        await (await launcher.open(KernelSpec())).close()  # what is shared by all kernels is open from here on
        before = _descriptors()
        for number in range(3):
            kernel = await launcher.open(KernelSpec())
            await finished(kernel, "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nopen('f', 'w')")
            if number == 1:
                kernel.kill()
                await dies(kernel, "1")
                await kernel.recover()
            await kernel.close()
        assert _descriptors() == before


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
