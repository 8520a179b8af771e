"""Sessions of the level `sandboxed`, in containers for real: the executors' contract, and what a container adds."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_server import page_server

from cellblock import (
    CodeAgent,
    Container,
    IsolationUnavailable,
    Policy,
    ScriptedModel,
    Session,
    SessionClosed,
    Versioned,
    keep_ready,
)
from cellblock.executors import DockerExecutor
from cellblock.executors.container.launcher import ContainerLauncher, Pool
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.protocol import KernelSpec, Launcher
from cellblock.testing import ExecutorConformance

pytestmark = pytest.mark.containers


class _OfImage(ContainerLauncher):
    """Opens kernels in containers of the tests' image."""

    def __init__(self, container: Container) -> None:
        super().__init__(Pool())
        self._container = container

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        return await super().open(replace(spec, container=self._container))


class TestContainerLauncher(ExecutorConformance):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def launcher(self, image: str) -> Launcher:
        return _OfImage(Container(image=image))


@pytest.fixture
def box(image: str) -> Iterator[Callable[..., Session]]:
    """Opens sessions in containers of the tests' image, and closes them."""
    with ExitStack() as opened:

        def one(name: str | None = None, *, more: Mapping[str, Any] | None = None, **options: Any) -> Session:
            container = Container(image=image, **(more or {}))
            return opened.enter_context(Session(name, trust_level="sandboxed", container=container, **options))

        yield one


def _containers() -> list[str]:
    done = subprocess.run(
        ["podman", "ps", "--all", "--filter", "label=cellblock", "--format", "{{.Names}}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in done.stdout.split() if name.startswith(f"cellblock-{os.getpid()}-")]


def _await_none() -> None:
    deadline = time.monotonic() + 20
    while found := _containers():
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_session_says_what_stands_around_it(box: Callable[..., Session]) -> None:
    capabilities = box(more={"cpus": 1.5}).capabilities
    assert capabilities.trust_level == "sandboxed"
    walls = {wall.mechanism: wall for wall in capabilities.walls}
    assert next(iter(walls)) == "container"
    assert walls["container"].detail.endswith(
        "no network, read-only root, no capabilities, no new privileges, system call filter"
    )
    assert {"namespaces", "root", "rlimits", "capabilities", "landlock", "seccomp"} <= set(walls)
    assert walls["cgroup"].detail.endswith("1.5 processors")


def test_what_the_machine_has_is_not_inside(box: Callable[..., Session], tmp_path: Path) -> None:
    canary = secrets.token_hex(16)
    (tmp_path / "secret").write_text(canary)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        session = box()
        cell = session.run(
            "import os, socket\n"
            f"seen = [path for path in ({str(tmp_path)!r}, '/root', '/home', '/run/cellblock', '/work', '/var/lib')\n"
            "        if os.path.exists(path)]\n"
            "try:\n"
            f"    socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "    reached = True\n"
            "except OSError: reached = False\n"
            f"seen, reached, {canary[:8]!r} in str(os.environ)"
        )
        assert cell.value == ([], False, False), cell.text
        with pytest.raises(TimeoutError):
            listener.accept()


def test_container_is_gone_with_its_session(box: Callable[..., Session]) -> None:
    session = box()
    branch = None
    try:
        session.run("x = 1")
        branch = session.branch()
        assert len(_containers()) == 1
        session.close()
        assert branch.run("x").value == 1  # it lives on in there
        assert len(_containers()) == 1
    finally:
        if branch is not None:
            branch.close()
    _await_none()


def test_container_is_gone_with_a_host_that_is_killed(image: str) -> None:
    program = (
        "import sys, time\nfrom cellblock import Session\n"
        f"session = Session(trust_level='sandboxed', container={image!r})\n"
        "session.run('1')\nprint('open', flush=True)\ntime.sleep(100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "open\n"
        finally:
            host.kill()
        named = ["podman", "ps", "--all", "--filter", f"name=cellblock-{host.pid}-", "--quiet"]
        deadline = time.monotonic() + 20
        while left := subprocess.run(named, capture_output=True, text=True, check=True).stdout:
            assert time.monotonic() < deadline, left
            time.sleep(0.2)


def test_container_that_is_killed_from_outside_ends_its_session_and_says_so(box: Callable[..., Session]) -> None:
    session = box()
    session.run("x = 1")
    (name,) = _containers()
    subprocess.run(["podman", "kill", name], check=True, capture_output=True)
    with pytest.raises(SessionClosed) as caught:
        session.run("x")
    assert caught.value.hint == "open a new session"


def test_session_that_lasts_is_resumed_in_another_container(box: Callable[..., Session], tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path / 'store.db'}")
    session = box("work", state=state)
    session.run("x = 41\nopen('kept.txt', 'w').write('here')")
    session.flush()
    (name,) = _containers()
    subprocess.run(["podman", "kill", name], check=True, capture_output=True)
    session.close()
    again = box("work", state=state)
    assert again.run("x + 1, open('kept.txt').read()").value == (42, "here")
    assert again.capabilities.trust_level == "sandboxed"


def test_checkpoints_and_mounts_and_tools(box: Callable[..., Session], tmp_path: Path) -> None:
    source = Path(f"/var/tmp/cellblock-mounted-{os.getpid()}")
    source.mkdir()
    try:
        (source / "data.csv").write_text("a\n1\n")

        def twice(x: int) -> int:
            return 2 * x

        session = box(mounts={"in": source}, tools=[twice])
        assert session.run("open('in/data.csv').read(), twice(4)").value == ("a\n1\n", 8)
        session.run("x = 1")
        session.run("x = 2")
        session.undo()
        assert session["x"] == 1
    finally:
        shutil.rmtree(source)


def test_kept_ready_opens_sooner_than_a_container_starts(image: str) -> None:
    container = Container(image=image)
    began = time.perf_counter()
    keep_ready(1, trust_level="sandboxed", container=container)
    started = time.perf_counter() - began
    try:
        began = time.perf_counter()
        with Session(trust_level="sandboxed", container=container) as session:
            opened = time.perf_counter() - began
            assert session.run("1 + 1").value == 2
        assert opened < started / 3
    finally:
        keep_ready(0, trust_level="sandboxed", container=container)


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("--read-only", "a read-only root"),
        ("--cap-drop=ALL", "dropping every capability"),
        ("--security-opt=no-new-privileges", "no-new-privileges"),
        ("--network=none", "taking away the network"),
    ],
)
def test_engine_that_leaves_out_a_wall_is_found_out(image: str, tmp_path: Path, left_out: str, said: str) -> None:
    """A program between us and podman, which drops an option that we gave."""
    engine = tmp_path / "podman"
    words = left_out.split("=")
    engine.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"words, left_out = sys.argv[1:], {words!r}\n"
        "at = next((n for n in range(len(words)) if words[n : n + len(left_out)] == left_out), None)\n"
        "if at is not None: del words[at : at + len(left_out)]\n"
        "if at is not None and left_out[0] == '--network': words[at:at] = ['--network', 'host']\n"
        "os.execv('/usr/bin/podman', ['podman', *words])\n"
    )
    engine.chmod(0o755)
    with pytest.raises(IsolationUnavailable) as caught:
        Session(trust_level="sandboxed", container=Container(image=image, engine=str(engine)))
    assert caught.value.mechanism == "container"
    assert said in str(caught.value)
    _await_none()


def test_image_that_is_missing_names_the_command(image: str) -> None:
    with pytest.raises(IsolationUnavailable) as caught:
        Session(trust_level="sandboxed", container="localhost/no-such-image")
    assert caught.value.mechanism == "image"
    assert "cellblock image build" in caught.value.hint


def test_interpreter_that_the_image_lacks_is_named(image: str) -> None:
    with pytest.raises(IsolationUnavailable) as caught:
        Session(trust_level="sandboxed", container=image, python="/opt/python9/bin/python9")
    assert (caught.value.mechanism, "/opt/python9" in str(caught.value)) == ("python", True)


def test_runtime_that_is_missing_is_named(image: str) -> None:
    with pytest.raises(IsolationUnavailable, match="no-such-runtime"):
        Session(trust_level="sandboxed", container=Container(image=image, runtime="no-such-runtime"))


def test_documents_executor_runs_over_a_dict(image: str) -> None:
    names: dict[str, Any] = {"x": 20}
    with DockerExecutor(image) as executor:
        result = executor.run("y = x * 2 + 2\nprint(y)", names)
    assert (result.output, result.error, names["y"]) == ("42", None, 42)


def test_session_that_lasts_goes_on_in_another_container_when_its_own_is_killed(
    box: Callable[..., Session], tmp_path: Path
) -> None:
    session = box("work", state=Versioned(f"sqlite:///{tmp_path / 'store.db'}"))
    session.run("x = 41\nopen('kept.txt', 'w').write('here')")
    session.flush()
    (name,) = _containers()
    subprocess.run(["podman", "kill", name], check=True, capture_output=True)
    cells = [session.run("x + 1, open('kept.txt').read()") for _ in range(2)]  # the first may tell of the end instead
    assert cells[-1].value == (42, "here"), [cell.text for cell in cells]
    assert _containers() not in ([], [name])


def test_agent_works_and_explores_in_a_container(image: str) -> None:
    says = [
        "```python\nexplore('the shape')\nrows[0]['sold'] + rows[1]['gone']\n```",
        "```python\nfinal_answer(sum(row['sold'] for row in rows))\n```",
    ]
    agent = CodeAgent(ScriptedModel(says), trust_level="sandboxed", container=image)
    result = agent.run("How many were sold?", inputs={"rows": [{"sold": 2}, {"sold": 5}]})
    assert (result.value, len(result.steps)) == (7, 2)


def test_door_leads_out_of_a_container_to_what_is_listed_alone(box: Callable[..., Session]) -> None:
    with page_server() as server:
        get = f"import urllib.request\nurllib.request.urlopen('http://{server.place}/{{}}').read()"
        session = box(network=[server.place])
        cell = session.run(get.format("a"))
        assert (cell.value, cell.usage.connections) == (b"ok", 1), cell.text
        session.mark_private("payroll")
        assert session.run(get.format("b")).error is not None
        assert box().run(get.format("c")).error is not None
    assert server.asked == ["/a"]


def test_policy_is_laid_over_a_session_in_a_container(box: Callable[..., Session]) -> None:
    session = box(policy=Policy())
    cell = session.run("import os")
    assert cell.error is not None
    assert "os is not granted" in cell.error.message
    assert session.run("import math\nmath.isqrt(49)").value == 7
