"""Sessions in containers with a kernel of their own, gVisor's, and in such of the host's as if that were another."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, IsolationUnavailable, Session, SessionClosed
from cellblock.container import Container
from cellblock.executors.container.engine import engine_of
from cellblock.executors.container.relayed.kernel import RelayedKernel, RelayedLauncher
from cellblock.executors.protocol import Curbed, Died, KernelSpec, Launcher
from cellblock.testing import ExecutorConformance
from cellblock.testing.executors import PATIENCE, begin, merged, rest, told

pytestmark = pytest.mark.containers

RUNSC = os.environ.get("CELLBLOCK_TEST_RUNSC") or shutil.which("runsc") or ""


def runtime_of(name: str) -> str:
    if name != "runsc":
        return name
    if not RUNSC:
        pytest.skip("needs gVisor's runsc (Debian: apt-get install runsc), or its path in CELLBLOCK_TEST_RUNSC")
    return RUNSC


class _OfImage(RelayedLauncher):
    """Opens kernels in containers of the tests' image."""

    def __init__(self, container: Container) -> None:
        super().__init__()
        self._container = container

    async def open(self, spec: KernelSpec) -> RelayedKernel:
        return await super().open(replace(spec, container=self._container))


class _Relayed(ExecutorConformance):
    gives_mounts = False
    goes_back = False
    saves = False
    runtime = ""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def launcher(self, image: str) -> Launcher:
        return _OfImage(Container(image=image, runtime=runtime_of(self.runtime)))


class TestInGVisor(_Relayed):
    runtime = "runsc"


class TestOnTheHostsKernel(_Relayed):
    runtime = "runc"


@pytest.fixture(params=["runc", "runsc"])
def container(request: pytest.FixtureRequest, image: str) -> Container:
    return Container(image=image, runtime=runtime_of(request.param))


@pytest.fixture
async def kernel(container: Container) -> AsyncIterator[RelayedKernel]:
    kernel = await _OfImage(container).open(KernelSpec())
    yield kernel
    await kernel.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def engine(*words: str) -> str:
    done = subprocess.run(engine_of().words(*words), capture_output=True, text=True, check=False, timeout=60)
    return done.stdout


def names() -> set[str]:
    return set(engine("ps", "--all", "--filter", "label=cellblock", "--format", "{{.Names}}").split())


# --- deaths ---


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["container", "command"])
async def test_what_is_killed_from_outside_ends_the_session_with_the_reason(kernel: RelayedKernel, how: str) -> None:
    turn = await begin(kernel, "print('begun')\nimport time\ntime.sleep(600)")
    started = kernel._keeper.started
    if how == "container":
        engine("kill", "--signal", "KILL", started.name)  # type: ignore[attr-defined]
    else:
        os.kill(started.process.pid, signal.SIGKILL)
    death = (await rest(turn))[-1]
    assert isinstance(death, Died)
    assert death.reason in (
        "ended: its container was killed (status 137): from outside, or for want of memory",
        "ended: the engine's command was ended by SIGKILL",
    )
    with pytest.raises(SessionClosed, match=r"container was killed|command was ended"):
        await kernel.recover()
    await kernel.close()
    assert started.name not in names()  # type: ignore[attr-defined]
    assert not os.path.exists(kernel._keeper.home)


@pytest.mark.anyio
async def test_container_that_stands_still_is_removed_when_its_worker_is_to_be_killed(
    kernel: RelayedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.executors.container.relayed.pump._ANSWER_SECONDS", 1.0)
    turn = await begin(kernel, "import time\nprint(1)\ntime.sleep(600)")
    os.kill(kernel._keeper.started.process.pid, signal.SIGSTOP)
    kernel.kill()
    death = (await rest(turn))[-1]
    assert death == Died(reason="ended: its container did not answer within 1 s")
    await kernel.close()


@pytest.mark.anyio
async def test_cell_cannot_end_the_relay(kernel: RelayedKernel) -> None:
    for call in ("os.kill(1, 9)", "signal.pthread_kill", "os.kill(1, 15)", "open('/proc/1/mem', 'rb')"):
        last = (await told(kernel, f"import os, signal\n{call}"))[-1]
        if call != "signal.pthread_kill":
            assert last.failure is not None  # type: ignore[union-attr]
            assert last.failure.type == "PermissionError"  # type: ignore[union-attr]
    assert not isinstance((await told(kernel, "1"))[-1], Died)


# --- floods ---


@pytest.mark.anyio
async def test_flood_of_text_holds_up_neither_interrupts_nor_the_next_cell(kernel: RelayedKernel) -> None:
    turn = await begin(kernel, "import os, sys\nwhile True: os.write(1, b'x' * 65536)", max_output_bytes=1000)
    with anyio.fail_after(PATIENCE):
        await turn.next()
        kernel.interrupt()
    last = (await rest(turn))[-1]
    assert last.failure is not None  # type: ignore[union-attr]
    assert last.failure.type == "KeyboardInterrupt"  # type: ignore[union-attr]
    child = "import subprocess\nchild = subprocess.Popen(['sh', '-c', 'while :; do echo flood; done'])"
    assert not isinstance((await told(kernel, child))[-1], Died)
    for _ in range(5):
        assert not isinstance((await told(kernel, "1 + 1"))[-1], Died)


# --- limits ---


@pytest.mark.anyio
async def test_files_past_their_limit_are_written_no_more(container: Container) -> None:
    kernel = await _OfImage(container).open(KernelSpec(limits=ExecutionLimits(max_disk_mb=20)))
    fill = "import time\nfor n in range(400):\n    open(f'f{n}', 'wb').write(bytes(10**6)); time.sleep(0.01)"
    last = (await told(kernel, fill))[-1]
    if isinstance(last, Died):
        assert "max_disk_mb" in last.reason
    else:
        assert last.failure is not None  # type: ignore[union-attr]
        assert "File too large" in last.failure.message  # type: ignore[union-attr]
    await kernel.close()


@pytest.mark.anyio
async def test_processes_that_hold_too_much_together_are_killed_before_the_container_is(image: str) -> None:
    kernel = await _OfImage(Container(image=image, runtime=runtime_of("runsc"))).open(KernelSpec())
    bomb = """
import os, time
for number in range(10):
    if not os.fork():
        time.sleep(0.2 * number)
        held = bytearray(180_000_000)
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(600)
ended = [os.waitpid(-1, 0)[1] for _ in range(3)]
print(ended)
"""
    events = await told(kernel, bomb)
    assert any(isinstance(event, Curbed) and "all that its container has" in event.held for event in events)
    assert merged(events) == [("stdout", "[9, 9, 9]\n")]
    assert not isinstance((await told(kernel, "held = 1"))[-1], Died)
    await kernel.close()


# --- sessions ---


def test_session_names_what_it_has_and_what_it_lacks(image: str) -> None:
    container = Container(image=image, runtime=runtime_of("runsc"), cpus=1.5)
    with Session(trust_level="sandboxed", container=container) as session:
        found = {wall.mechanism: wall for wall in session.capabilities.walls}
        assert session.capabilities.trust_level == "sandboxed"
        assert list(found) == [
            "container", "cgroup", "checkpoints", "door", "mounts", "files", "rlimits", "capabilities", "seccomp",
        ]  # fmt: skip
        assert "1.5 processors" in found["cgroup"].detail  # type: ignore[union-attr]
        assert session.run("import os; os.uname().release, os.getcwd()").value == ("4.4.0", "/session/workspace")
        session.files.write("a.txt", b"of the host")
        assert session.run("open('/workspace/a.txt').read()").value == "of the host"
        session.run("open('/tmp/b.txt', 'w').write('of a cell')")
        assert session.files.read("/tmp/b.txt") == b"of a cell"
        with pytest.raises(CellblockError, match="over its engine's command"):
            session.undo()
        with pytest.raises(CellblockError, match="cannot be branched"):
            session.branch()
        assert session.run("x" * 10).error is not None
        killed = session.run("import os; os._exit(3)")
        assert killed.error is not None
        assert session.run("open('a.txt').read()").value == "of the host"


def test_session_calls_tools_of_the_host(image: str) -> None:
    def double(number: int) -> int:
        return 2 * number

    container = Container(image=image, runtime=runtime_of("runsc"))
    with Session(trust_level="sandboxed", container=container, tools=[double]) as session:
        assert session.run("double(21)").value == 42
        assert session.run("import math\nbig = bytes(3_000_000)\nlen(big)").value == 3_000_000
        session["big"] = b"x" * 2_000_000
        assert session.run("len(big)").value == 2_000_000
        assert session["big"] == b"x" * 2_000_000


@pytest.mark.anyio
async def test_network_is_refused_by_name(image: str) -> None:
    container = Container(image=image, runtime=runtime_of("runsc"))
    session = AsyncSession(trust_level="sandboxed", container=container, network=["example.org:443"])
    with pytest.raises(IsolationUnavailable, match="no door"):
        async with session:
            pass


@pytest.fixture
def without_python(image: str, tmp_path: Path) -> Iterator[str]:
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(__file__, "readme")
    name = "localhost/cellblock-without-python"
    subprocess.run(engine_of().words("import", str(tmp_path / "root.tar"), name), check=True, capture_output=True)
    yield name
    engine("rmi", name)


@pytest.mark.parametrize("name", ["runc", "runsc"])
def test_image_without_python_is_named(without_python: str, name: str) -> None:
    spec = KernelSpec(container=Container(image=without_python, runtime=runtime_of(name)))
    with pytest.raises(IsolationUnavailable) as refused:
        anyio.run(RelayedLauncher().open, spec)
    assert without_python in str(refused.value)
    assert "python3" in str(refused.value)


def test_image_that_is_missing_is_named(image: str) -> None:
    spec = KernelSpec(container=Container(image="localhost/cellblock-nowhere", runtime="runc"))
    with pytest.raises(IsolationUnavailable, match="has no image localhost/cellblock-nowhere"):
        anyio.run(RelayedLauncher().open, spec)


def test_container_ends_with_its_host(image: str, modules: Path, tmp_path: Path) -> None:
    program = f"""
import anyio, os, sys
from cellblock.container import Container
from cellblock.executors.container.relayed.kernel import RelayedLauncher
from cellblock.executors.protocol import KernelSpec
async def main():
    kernel = await RelayedLauncher().open(KernelSpec(container=Container(image={image!r}, runtime="runc")))
    print(kernel._keeper.started.name, flush=True)
    os.kill(os.getpid(), 9)
anyio.run(main)
"""
    done = subprocess.run(
        [os.sys.executable, "-c", program],  # type: ignore[attr-defined]
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )  # fmt: skip
    name = done.stdout.strip()
    assert name.startswith("cellblock-"), done.stderr
    deadline = time.monotonic() + PATIENCE
    while name in names():
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.1)
