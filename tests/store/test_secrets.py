"""A store's password is shown nowhere: by no error, its frames and causes, and no repr, log, span or command line."""

from __future__ import annotations

import base64
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from failing_proxy import FailingProxy
from postgres_server import Server, server, why_none
from shown import shown_by

from cellblock import AsyncSession, CodeAgent, Session, SessionPool, Versioned
from cellblock.errors import CellblockError, StoreError
from cellblock.models import ScriptedModel
from cellblock.store import Store, blobs, open_store

TOKEN = "hunter2SecreT"
WHOLE = f"a/?#@%: {TOKEN}&=+'\"\\b"
"""A password of all that a URL has a meaning for."""

pytestmark = pytest.mark.threat("W5")


def assert_hidden(*texts: object) -> None:
    for text in texts:
        for form in (str(text), unquote(str(text))):
            lines = [line[:300] for line in form.splitlines() if TOKEN.lower() in line.lower()]
            assert lines == []
            for coded in (WHOLE, f"u:{WHOLE}", f"cellblock:{WHOLE}"):
                assert base64.b64encode(coded.encode()).decode()[4:-4] not in form


@pytest.fixture(autouse=True)
def all_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert_hidden(caplog.text, *(repr(record.__dict__) for record in caplog.records))


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks for the password."""
    if reason := why_none():
        pytest.skip(reason)
    with server(WHOLE) as running:
        yield running


def url_of(guarded: Server, *, password: str = WHOLE, user: str = "cellblock", database: str = "postgres") -> str:
    host = quote(str(guarded.directory), safe="")
    return f"postgresql://{user}:{quote(password, safe='')}@{host}/{database}"


UNQUOTED = {
    f"{before} and {char!r} before {after or 'nothing'!r}": f"postgresql://u:{before}{char}{TOKEN}{after}@127.0.0.1:1/db"
    for before in ("ab", "12")
    for char in "/?#@%: &=+\\[],;\u2100"
    for after in ("", "?x=y", "/x", "@x", "#x", "&x=y")
}
NO_URLS = {
    "libpq's own form": f"host=127.0.0.1 password={TOKEN}",
    "no scheme": f"u:{TOKEN}@h/db",
    "another scheme": f"mysql://u:{TOKEN}@h/db",
    "one slash": f"postgresql:/u:{TOKEN}@h/db",
    "a host of sqlite's": f"sqlite://u:{TOKEN}@h/x",
    "an option of sqlite's": f"sqlite:///x.db?password={TOKEN}",
    "a fragment": f"sqlite:///x.db#{TOKEN}",
    "an option of memory's": f"memory:?{TOKEN}=1",
    "a name of memory's": f"memory:{TOKEN}",
    "a schema": f"postgresql://h/db?schema={TOKEN};",
    "an unseen character": f"postgresql://u:{TOKEN}\0@h/db",
    "a NUL in a path": f"sqlite:///%00?objects=s3://u:{TOKEN}@b",
    "no bucket": f"sqlite:///x.db?objects=foo://AKIA:{TOKEN}@b/p",
    "a bucket with credentials": f"sqlite:///x.db?objects=s3://AKIA:{TOKEN}@b/p",
    "a bucket with a token": f"sqlite:///x.db?objects=https://a.blob.core.windows.net/c%3Fsig={TOKEN}",
    "a half of an address": f"postgresql://u:{TOKEN}@[::1/db",
}
UNREACHED = {
    "nothing listens": f"postgresql://u:{quote(WHOLE, safe='')}@127.0.0.1:1/db",
    "no such host": f"postgresql://u:{quote(WHOLE, safe='')}@nobody.invalid/db",
    "no such socket": f"postgresql://u:{quote(WHOLE, safe='')}@/db?host=/nowhere",
    "password=": f"postgresql://u@127.0.0.1:1/db?password={quote(WHOLE)}",
    "sslpassword=": f"postgresql://u@127.0.0.1:1/db?sslpassword={TOKEN}",
    "Password=": f"postgresql://u@127.0.0.1:1/db?Password={TOKEN}",
    "an option nobody knows": f"postgresql://u@127.0.0.1:1/db?{TOKEN}=1",
    "a mode nobody knows": f"postgresql://u:{TOKEN}@127.0.0.1:1/db?sslmode={TOKEN}",
    "several hosts": f"postgresql://u:{TOKEN}@127.0.0.1:1,127.0.0.1:2/db",
    "a user alone": f"postgresql://{TOKEN}@127.0.0.1:1/db",
}


@pytest.mark.parametrize("url", UNQUOTED.values(), ids=UNQUOTED)
def test_password_that_is_not_quoted_is_shown_by_no_error(url: str) -> None:
    assert_hidden(repr(Versioned(url)))
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert_hidden(shown_by(caught.value))


STATES: dict[str, Callable[[str], object]] = {
    "text": lambda url: url,
    "bytes": lambda url: url.encode(),
    "a list": lambda url: [url],
    "no length of time": lambda url: Versioned(url, hibernate_after=0),
    "bytes of a store": lambda url: Versioned(url.encode()),  # type: ignore[arg-type]
}
OPENED: dict[str, Callable[..., object]] = {
    "session": Session,
    "async session": AsyncSession,
    "agent": lambda name, state: CodeAgent(ScriptedModel([]), name=name, state=state),
}


@pytest.mark.parametrize("opens", OPENED.values(), ids=OPENED)
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_url_in_the_place_of_a_state_is_in_no_frame(
    opens: Callable[..., object], state: Callable[[str], object]
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        opens("report", state=state(f"postgresql://u:{TOKEN}@h/db"))
    assert_hidden(shown_by(caught.value))


@pytest.mark.parametrize("url", [*NO_URLS.values(), *UNREACHED.values()], ids=[*NO_URLS, *UNREACHED])
def test_url_that_opens_no_store_is_refused_without_its_secrets(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_hidden(repr(Versioned(url)))
    if url in UNREACHED.values():
        assert_hidden(repr(AsyncSession("x", state=Versioned(url))))
    ways: list[Callable[[], object]] = [
        lambda: open_store(url),
        lambda: Session("x", state=Versioned(url)),
        lambda: CodeAgent(ScriptedModel(["1"]), state=Versioned(url)).run("x"),
    ]
    if url in NO_URLS.values():
        ways += [lambda: AsyncSession("x", state=Versioned(url)), lambda: SessionPool(url)]
    for way in ways:
        with pytest.raises(StoreError) as caught:
            way()
        assert_hidden(shown_by(caught.value))
    monkeypatch.setenv("CELLBLOCK_STORE", url.replace("\0", "\1"))
    with pytest.raises(StoreError) as caught:
        open_store()
    assert_hidden(shown_by(caught.value))


def test_server_that_refuses_the_password_or_has_no_such_database(guarded: Server) -> None:
    said = {}
    for what, url in {
        "password": url_of(guarded, password=WHOLE + "x"),
        "user": url_of(guarded, user=f"{TOKEN}"),
        "database": url_of(guarded, database="absent"),
    }.items():
        with pytest.raises(StoreError) as caught:
            open_store(url)
        assert_hidden(shown_by(caught.value))
        said[what] = caught.value.args[0].partition("/postgres")[2] or caught.value.args[0].rpartition("absent")[2]
    assert said == {
        "password": " lets nobody in by this user and password",
        "user": " lets nobody in by this user and password",
        "database": " has no such database",
    }


@pytest.mark.sampled(0)
def test_open_store_and_what_fails_later(guarded: Server) -> None:
    url = url_of(guarded)
    store = open_store(url)
    assert_hidden(repr(store), store.url, repr(vars(store)), repr(store._database))
    assert store.url == f"postgresql://{quote(str(guarded.directory), safe='')}/postgres"
    held = store.hold("ana", "q3")
    with held.batch() as batch:
        batch.commit(kind="cell", trees={})
    guarded.kill()
    try:
        for call in (lambda: held.append({"n": 1}), lambda: store.sessions(), lambda: open_store(url)):
            with pytest.raises(StoreError) as caught:
                call()
            assert_hidden(shown_by(caught.value))
    finally:
        guarded.start()
    with pytest.raises(StoreError) as caught:
        held.branch("main")
    assert_hidden(shown_by(caught.value))
    held.release()
    store.close()
    with pytest.raises(StoreError, match="was closed") as caught:
        store.sessions()
    assert_hidden(shown_by(caught.value))


def test_statement_that_the_server_refuses_is_told_by_its_code(guarded: Server) -> None:
    with open_store(url_of(guarded)) as store:
        with pytest.raises(StoreError, match=r"the server reports UndefinedTable \(42P01\)") as caught:
            store._database.select("SELECT 1 FROM nothing_there")
        assert_hidden(shown_by(caught.value))
        assert caught.value.__cause__ is None


@pytest.mark.anyio
async def test_sessions_of_a_store_with_a_password(guarded: Server) -> None:
    """Neither the session, nor its errors, nor the processes that it starts show it."""
    state = Versioned(url_of(guarded))
    async with AsyncSession("q3", state=state) as session:
        await session.run("x = 1")
        assert_hidden(repr(session), repr(session.state), repr(vars(session)))
        assert_hidden(*_command_lines_below(os.getpid()))
        with pytest.raises(CellblockError) as caught:
            await AsyncSession("q3", state=state).open()
        assert_hidden(shown_by(caught.value))
        cell = await session.run("import os; print(dict(os.environ), open('/proc/1/environ').read())")
        assert_hidden(cell.text)


def _command_lines_below(pid: int) -> list[str]:
    """Of every process below one: its command line and its environment."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
            except OSError:  # it has ended
                continue
    below = {pid}
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
    found = []
    for one in below - {pid}:
        for file in ("cmdline", "environ"):
            try:
                found.append(Path(f"/proc/{one}/{file}").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    assert found
    return found


@pytest.mark.parametrize("command", [["sessions", "list"], ["mcp"]])
def test_password_on_a_command_line_is_refused(command: list[str]) -> None:
    for url in (f"postgresql://u:{TOKEN}@127.0.0.1:1/db", f"postgresql://u@127.0.0.1:1/db?sslpassword={TOKEN}"):
        done = subprocess.run(
            [sys.executable, "-m", "cellblock", *command, "--store", url], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2
        assert "set CELLBLOCK_STORE" in done.stderr
        assert_hidden(done.stdout, done.stderr)


@pytest.mark.parametrize("url", [*NO_URLS.values(), *UNREACHED.values()], ids=[*NO_URLS, *UNREACHED])
def test_command_line_tells_a_store_that_fails_without_its_secrets(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cellblock.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CELLBLOCK_STORE", url.replace("\0", "\1"))
    assert main(["sessions", "list"]) == 2
    assert_hidden(*capfd.readouterr())


@pytest.mark.sampled(0)
def test_spans_and_log_of_a_run_that_meets_stores_that_fail(guarded: Server, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    urls = [*NO_URLS.values(), url_of(guarded, password=WHOLE + "x"), url_of(guarded, database="absent")]

    def look(number: int) -> str:
        """Open a store."""
        with open_store(urls[number]) as store:
            return store.url

    lines = [f"try:\n    look({number})\nexcept Exception as error:\n    print(error)" for number in range(len(urls))]
    replies = ["```python\n" + "\n".join(lines) + "\n```", "```python\nlook(0)\n```", "```python\nfinal_answer(1)\n```"]
    state = Versioned(url_of(guarded))
    log = tmp_path / "log"
    with CodeAgent(
        ScriptedModel(replies), tools=[look], state=state, telemetry=provider, telemetry_content=True
    ) as agent:
        result = agent.run("x", log=log)
    assert result.value == 1
    spans = "".join(span.to_json() for span in exporter.get_finished_spans())
    for text in (spans, log.read_text()):
        assert "lets nobody in by this user and password" in text
        assert_hidden(text)


# --- buckets ---


@pytest.fixture
def s3_credentials() -> tuple[str, str]:
    return f"AKIA{TOKEN}", f"{TOKEN}{WHOLE}"


def _put(store: Store, number: int) -> None:
    with store.hold("ana", "q3") as held, held.batch() as batch:
        data = batch.put(os.urandom(70_000) + bytes([number]))
        batch.commit(kind="cell", trees={}, detail={"data": blobs(data)})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("failing", ["denied", "400", "404", "409", "cut", "refused", "reset", "garbage", "500"])
def test_bucket_that_repeats_what_it_was_given(bucket: str, proxy: FailingProxy, tmp_path: Path, failing: str) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db?objects={bucket}") as store:
        assert_hidden(repr(store))
        _put(store, 1)
        with proxy.failing(failing):
            calls: list[Callable[[], object]] = [
                lambda: _put(store, 2),
                lambda: store.gc(grace_seconds=0),
                lambda: store._place.delete("x/y"),  # type: ignore[union-attr]
            ]
            for call in calls:
                try:
                    call()
                except StoreError as error:
                    assert_hidden(shown_by(error))
            said = ""
            objects = store._objects(int(str(store._database.select("SELECT id FROM users")[0][0])))
            for address, _ in objects.listed():
                try:
                    objects.get(address)
                except StoreError as error:
                    said = shown_by(error)
        assert said
        assert_hidden(said)
