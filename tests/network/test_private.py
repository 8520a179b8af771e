"""Private sessions: what marks them, what follows from it, and that the mark stays."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cellblock import (
    AsyncSession,
    CellblockError,
    CodeAgent,
    ExecutionLimits,
    Policy,
    Private,
    ScriptedModel,
    Session,
    Versioned,
    tool,
)
from cellblock.executors.protocol import KernelSpec
from cellblock.session import session as module
from cellblock.session.privacy import matches
from cellblock.tools import about

pytestmark = pytest.mark.threat("W3")
_LIMITS = ExecutionLimits(timeout_seconds=20)
_GET = """
import urllib.error, urllib.request
try:
    said = urllib.request.urlopen("http://127.0.0.1:{}/x", timeout=5).read().decode()
except OSError as error:
    said = repr(error)
said"""
_CLOSED = "<HTTPError 403: 'the session holds private data: its network is closed for good'>"


class Listener:
    """A server on the host's loopback that counts what comes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.listed = [f"127.0.0.1:{self.port}"]
        self.get = _GET.format(self.port)
        self.hits = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                self.hits += 1
                with client:
                    client.recv(65536)
                    client.sendall(b"HTTP/1.1 200 ok\r\nContent-Length: 2\r\n\r\nok")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with contextlib.closing(Listener()) as one:
        yield one


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that all users may read."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        yield Path(made)


@tool(outward=True)
def mail(text: str) -> str:
    """Send it."""
    return f"sent {text}"


@tool(private=True)
def salaries() -> int:
    """What people earn."""
    return 1


def test_a_marked_session_loses_its_network_and_says_why(listener: Listener) -> None:
    with Session(network=listener.listed, limits=_LIMITS) as session:
        assert session.run(listener.get).value == "ok"
        assert session.private == ""
        session.mark_private("  loaded\npayroll.csv ")
        session.mark_private("again")
        assert session.private == "loaded payroll.csv"
        assert session.run(listener.get).value == _CLOSED
        assert [wall.detail for wall in session.capabilities.walls if wall.mechanism == "door"] == ["closed for good"]
    assert listener.hits == 1


def test_a_mark_in_the_middle_of_a_cell_holds_for_what_is_left_of_it(listener: Listener) -> None:
    with Session(network=listener.listed, tools=[salaries], limits=_LIMITS) as session:
        cell = session.run(f"{listener.get}\nfirst = said\nsalaries()\n{listener.get}\nfirst, said")
        assert cell.value == ("ok", _CLOSED)
        assert session.private == "salaries() was called"
    assert listener.hits == 1


def test_a_new_process_of_a_private_session_is_no_way_out(listener: Listener) -> None:
    limits = ExecutionLimits(timeout_seconds=20, max_checkpoints=0)
    with Session(network=listener.listed, limits=limits) as session:
        assert session.run("import os\nos._exit(1)").error is not None
        assert session.run(listener.get).value == "ok"
        session.mark_private("payroll")
        assert session.run("import os\nos._exit(1)").error is not None
        assert session.run(listener.get).value == _CLOSED
    assert listener.hits == 1


def test_a_branch_made_before_the_mark_goes_on(listener: Listener) -> None:
    with Session(network=listener.listed, limits=_LIMITS) as session, session.branch() as other:
        session.mark_private("payroll")
        assert (session.run(listener.get).value, other.run(listener.get).value) == (_CLOSED, "ok")
        assert other.private == ""


@pytest.mark.parametrize("level", ["isolated", "local"])
def test_outward_tools_are_refused_and_others_are_not(level: str) -> None:
    policy = Policy() if level == "local" else None
    with Session(trust_level=level, tools=[mail, salaries], policy=policy, limits=_LIMITS) as session:  # type: ignore[arg-type]
        assert session.run("mail('a')").value == "sent a"
        assert session.run("salaries()").value == 1
        error = session.run("mail('b')").error
        assert error is not None
        assert error.type == "PermissionError"
        assert error.message == "mail() reaches outside, which a session that holds private data cannot"
        assert session.run("salaries()").value == 1


def test_a_declaration_that_local_could_not_hold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mail\(\) is declared outward or private"):
        Session(trust_level="local", policy=Policy().fn(mail))


def test_declarations_are_kept_on_the_function() -> None:
    assert (about(mail).outward, about(mail).private) == (True, False)
    assert (about(salaries).outward, about(salaries).private) == (False, True)


def test_a_mount_that_is_declared_private_marks_the_session(shared: Path, listener: Listener) -> None:
    (shared / "may.csv").write_text("1")
    with Session(mounts={"pay": Private(shared)}, network=listener.listed, limits=_LIMITS) as session:
        assert session.private == "mount pay"
        assert session.run("open('pay/may.csv').read()").value == "1"
        assert session.run(listener.get).value != "ok"
    assert listener.hits == 0


@pytest.mark.parametrize(
    ("patterns", "why"),
    [
        (["pay"], "mount pay"),
        (["*.secret"], "pay/deep/a.secret"),
        (["deep"], "pay/deep"),
        (["deep/*"], "pay/deep/a.secret"),
        (["*.other"], ""),
    ],
)
def test_a_mount_with_what_matches_marks_the_session(shared: Path, patterns: list[str], why: str) -> None:
    (shared / "deep").mkdir()
    (shared / "deep" / "a.secret").write_text("1")
    with Session(mounts={"pay": shared}, private=patterns, limits=_LIMITS) as session:
        assert session.private == why


@pytest.mark.parametrize(
    ("name", "source", "pattern", "why"),
    [
        ("d.csv", "latest.csv", "payroll*", "mount d.csv"),
        ("d", "newest", "current", "mount d"),
        ("d", "newest", "hr", "mount d"),
        ("d", "newest", "hr/*", "d/x.csv"),
        ("d", "current", "current/x*", "d/x.csv"),
        ("d", "hr", "hr/*", "d/x.csv"),
        ("d", "hr", "{}/hr/*", "d/x.csv"),
        ("d", "newest", "{}/hr", "mount d"),
        ("d", "hr", "d/x.csv", "d/x.csv"),
        ("d", "hr", "/workspace/d/*", "d/x.csv"),
        ("/workspace/d", "hr", "/d", "mount /workspace/d"),
        ("/data/d", "hr", "/data/d/*", "/data/d/x.csv"),
        ("d", "hr", "**/x.csv", "d/x.csv"),
        ("d", "hr", "/x.csv", ""),
        ("d", "newest", "payroll*", ""),
    ],
)
def test_a_mount_matches_by_its_name_its_source_and_where_that_leads(
    shared: Path, name: str, source: str, pattern: str, why: str
) -> None:
    (shared / "hr").mkdir()
    (shared / "hr" / "x.csv").write_text("1")
    (shared / "payroll-2026.csv").write_text("1")
    for link, target in (("latest.csv", "payroll-2026.csv"), ("current", "hr"), ("newest", "current")):
        (shared / link).symlink_to(target)
    patterns = [pattern.format(shared)]
    with Session(mounts={name: shared / source}, private=patterns, limits=_LIMITS) as session:
        assert session.private == why


def test_a_written_file_that_matches_marks_the_session_first(listener: Listener) -> None:
    with Session(private=["payroll*"], network=listener.listed, limits=_LIMITS) as session:
        session.files.write("other.csv", "1")
        assert session.run(listener.get).value == "ok"
        session.files.write("in/payroll.csv", "1")
        assert session.private == "file in/payroll.csv"
        assert session.run(listener.get).value == _CLOSED


@pytest.mark.parametrize(
    ("path", "pattern", "does"),
    [
        ("payroll.csv", "payroll*", True),
        ("in/payroll.csv", "*.csv", True),
        ("/data/hr/a/b.csv", "hr", True),
        ("./hr/../hr/b.csv", "hr/*", True),
        ("hr.csv", "hr", False),
        ("a/b", "b/a", False),
        ("hr/x.csv", "/hr/*", True),
        ("hr/x.csv", "/workspace/hr/*", True),
        ("hr/x.csv", "/session/workspace/hr", True),
        ("hr/x.csv", "/workspace", True),
        ("/workspace/hr/x.csv", "hr/*", True),
        ("/workspace/hr/x.csv", "/hr/*", True),
        ("/workspace/hr/x.csv", "workspace/*/x.csv", True),
        ("/tmp/x.csv", "/session/tmp/*", True),
        ("in/hr/x.csv", "/hr/*", False),
        ("workspaces/x.csv", "/workspace/x.csv", False),
    ],
)
def test_patterns_match_from_the_end_and_on_the_way(path: str, pattern: str, does: bool) -> None:
    assert matches(path, [pattern]) is does


def test_the_mark_is_in_exports() -> None:
    with Session(private=True, limits=_LIMITS) as session:
        session.run("1")
        session.mark_private("ignored: it is already")
        assert session.notebook.to_ipynb()["metadata"]["cellblock"] == {"private": "opened as private"}  # type: ignore[index]
        assert "private data: opened as private" in session.notebook.to_html()
        with session.branch() as other:
            assert other.notebook.private == "opened as private"


def test_the_mark_is_in_the_store(tmp_path: Path, listener: Listener) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("pay", state=store, network=listener.listed, limits=_LIMITS) as session:
        session.run("x = 1")
        assert session.run(listener.get).value == "ok"
        session.mark_private("payroll")
        session.checkout("HEAD~2")
        assert session.run(listener.get).value != "ok"
    with Session("pay", state=store, network=listener.listed, limits=_LIMITS) as session:
        assert session.private == "payroll"
        assert session.notebook.private == "payroll"
        assert session.run(listener.get).value != "ok"
        session.hibernate()
        assert session.run(listener.get).value != "ok"
        with session.branch("apart") as other:
            assert (other.private, other.run(listener.get).value == "ok") == ("payroll", False)
    with Session("apart", state=store, network=listener.listed, limits=_LIMITS) as session:
        assert session.private == "payroll"
        assert session.run(listener.get).value != "ok"
    assert listener.hits == 1


@pytest.mark.sampled(0)
@pytest.mark.parametrize("open_both", [True, False])
def test_a_merge_brings_the_mark(tmp_path: Path, listener: Listener, open_both: bool) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("plain", state=store, network=listener.listed, limits=_LIMITS) as session:
        session.run("x = 1")
        other = session.branch("other")
        other.mark_private("payroll")
        other.run("y = 2")
        if not open_both:
            other.close()
        assert session.private == ""
        session.merge(other if open_both else "other")
        assert session.private == "merged other: payroll"
        assert session.run("y").value == 2
        assert session.run(listener.get).value != "ok"
        other.close()
    with Session("plain", state=store, limits=_LIMITS) as session:
        assert session.private == "merged other: payroll"
    assert listener.hits == 0


def test_patterns_are_kept_in_the_store(tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("pay", state=store, private=["*.pay"], limits=_LIMITS):
        pass
    with Session("pay", state=store, private=["*.more"], limits=_LIMITS) as session:
        session.files.write("a.pay", "1")
        assert session.private == "file a.pay"


@pytest.mark.parametrize("private", ["payroll*", 1, [b"x"]])
def test_what_is_no_list_of_patterns_is_refused(private: object) -> None:
    with pytest.raises(TypeError, match="private"):
        Session(private=private)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["", " ", "/", "//", ".", "./", "..", "../hr", "a/.."])
def test_a_pattern_that_can_match_no_path_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="can match no path"):
        Session(private=["hr", pattern])


@pytest.mark.anyio
async def test_an_async_session_can_be_marked_before_it_is_open(listener: Listener) -> None:
    session = AsyncSession(network=listener.listed, limits=_LIMITS)
    await session.mark_private("payroll")
    async with session:
        assert (await session.run(listener.get)).value != "ok"
    assert listener.hits == 0


def test_a_mark_has_a_reason() -> None:
    with Session(limits=_LIMITS) as session, pytest.raises(ValueError, match="the reason why the session is private"):
        session.mark_private(" ")


def test_ready_sessions_have_doors_too(listener: Listener) -> None:
    from cellblock import keep_ready

    limits = ExecutionLimits(timeout_seconds=20, max_processes=77)
    keep_ready(1, limits=limits, network=["example.com:443"])
    try:
        with Session(network=listener.listed, limits=limits) as session:
            assert session.run(listener.get).value == "ok"
        with Session(limits=limits) as session:
            assert session.run(listener.get).value != "ok"
    finally:
        with contextlib.suppress(CellblockError):
            keep_ready(0, limits=limits, network=["example.com:443"])
    assert listener.hits == 1


def test_an_agent_s_session_refuses_outward_tools_once_it_is_private() -> None:
    says = [
        "```python\nmail('hello')\n```",
        "```python\nsalaries()\n```",
        "```python\ntry:\n    mail('41')\nexcept PermissionError as error:\n    final_answer(str(error))\n```",
    ]
    agent = CodeAgent(ScriptedModel(says), tools=[mail, salaries])
    assert agent.run("try").value == "mail() reaches outside, which a session that holds private data cannot"


@pytest.mark.sampled(0)
def test_a_merge_by_the_command_line_brings_the_mark(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    with Session("plain", state=Versioned(url), limits=_LIMITS) as session:
        session.run("x = 1")
        with session.branch("other") as other:
            other.mark_private("payroll")
            other.run("y = 2")
    words = [sys.executable, "-m", "cellblock", "sessions", "merge", "--store", url, "plain", "other"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with Session("plain", state=Versioned(url), limits=_LIMITS) as session:
        assert session.private == "merged other: payroll"


@pytest.mark.anyio
async def test_a_mark_while_the_session_opens_holds(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    session = AsyncSession(network=listener.listed, limits=_LIMITS)
    equip = module.equip

    async def marking(*arguments: object) -> None:
        await equip(*arguments)  # type: ignore[arg-type]
        await session.mark_private("payroll")

    monkeypatch.setattr(module, "equip", marking)
    async with session:
        assert (await session.run(listener.get)).value == _CLOSED
    assert listener.hits == 0


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_a_mark_while_a_branch_is_made_is_the_branch_s_too(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    async with AsyncSession("pay", state=state, network=listener.listed, limits=_LIMITS) as session:
        await session.run("x = 1")
        kernel = session._kernel
        assert kernel is not None
        branch = kernel.branch

        async def marking(spec: KernelSpec, state: int | None = None) -> object:
            made = await branch(spec, state)
            await session.mark_private("payroll")
            return made

        monkeypatch.setattr(kernel, "branch", marking)
        async with await session.branch("other") as other:
            assert (await other.run(listener.get)).value == _CLOSED
    async with AsyncSession("other", state=state, limits=_LIMITS) as other:
        assert other.private == "payroll"
    assert listener.hits == 0
