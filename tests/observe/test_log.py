"""The log as a file: a line an event, readable at every moment, whatever stands in a text."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import threading
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from cellblock import LogError
from cellblock.observe.log import EventLog, read_log
from cellblock.observe.redaction import Redactor
from cellblock.session.account import Account

AWKWARD = "a\u2028b\x85c\ud800d\x1be\r\nf"


def test_texts_with_odd_line_ends_and_lone_surrogates_are_read_back(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    log.write("run", format=1, task=AWKWARD)
    log.write("reply", text=[AWKWARD, 1.5, None, True, {"a": (1, 2)}])
    log.close()
    run, reply = read_log(tmp_path / "log")
    assert (run["task"], reply["text"]) == (AWKWARD, [AWKWARD, 1.5, None, True, {"a": [1, 2]}])


def test_log_is_whole_after_each_event_and_takes_none_once_it_is_closed(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    log.write("run", format=1)
    assert len(read_log(tmp_path / "log")) == 1
    log.close()
    log.write("tool", name="late")
    assert (len(log), len(read_log(tmp_path / "log"))) == (1, 1)
    assert (log[0], log[-1:], repr(log)) == (log.events[0], log.events, f"<EventLog of 1 events in {tmp_path / 'log'}>")


def test_log_that_its_disk_does_not_take_ends_with_its_last_whole_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = False

    class Disk(FileIO):
        def write(self, data: Any) -> int:
            if full and len(data) < 50:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data[:20])

    monkeypatch.setattr("cellblock.observe.log.FileIO", Disk)
    log = EventLog(tmp_path / "log")
    log.write("run", format=1)
    full = True
    with pytest.raises(LogError, match="cannot be written: No space left on device"):
        log.write("reply", text="a" * 200)
    full = False
    with pytest.raises(LogError, match="cannot be written"):
        log.write("end", reason="LogError")
    log.close()
    assert (len(log), [one["event"] for one in read_log(tmp_path / "log")]) == (1, ["run"])


@pytest.mark.parametrize("there", [b"", b'{"event": "run", ', b"notes", None])
def test_what_is_at_a_path_stays_as_it_is(tmp_path: Path, there: bytes | None) -> None:
    path = tmp_path / "log"
    if there is None:
        os.mkfifo(path, 0o644)
    else:
        path.write_bytes(there)
        path.chmod(0o644)
    with pytest.raises(LogError, match="there is a log at"):
        EventLog(path)
    assert path.stat().st_mode & 0o777 == 0o644
    assert there is None or path.read_bytes() == there


@pytest.mark.anyio
async def test_events_count_on_an_account_until_the_log_is_closed() -> None:
    account = Account()
    log = EventLog()
    log.held = account.share()
    log.write("run", text="a" * 10_000)
    assert 10_000 < account.held < 15_000
    await log.add("reply", lambda: {"text": "b" * 100_000})
    assert 110_000 < account.held < 120_000
    log.close()
    assert account.held == 0
    assert [event["event"] for event in log] == ["run", "reply"]


@pytest.mark.anyio
@pytest.mark.parametrize("size", [0, 10**6])
async def test_an_event_is_in_the_log_before_those_that_follow_whoever_is_cancelled(size: int) -> None:
    log, goes_on = EventLog(), threading.Event()

    def told() -> dict[str, str]:
        goes_on.wait(10 if size else 0)
        return {"text": "a"}

    adding = asyncio.create_task(log.add("reply", told, size=size))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    adding.cancel()
    goes_on.set()
    with contextlib.suppress(asyncio.CancelledError):
        await adding
    await log.add("end", size=0)
    assert [event["event"] for event in log] == ["reply", "end"]


def test_threads_that_write_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    log.write("run", format=1)
    threads = [
        threading.Thread(target=lambda: [log.write("tool", text="x" * 5_000) for _ in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert {one["event"] for one in read_log(tmp_path / "log")[1:]} == {"tool"}
    assert len(read_log(tmp_path / "log")) == 201


def test_log_that_is_gone_on_with_loses_its_torn_line_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EventLog(path)
    log.write("run", format=1)
    log.write("reply", text="one")
    log.close()
    path.write_bytes(path.read_bytes() + b'{"event": "cell", "te')
    log = EventLog.read(path).reopened(Redactor())
    assert [one["event"] for one in log] == ["run", "reply"]
    log.write("resume")
    log.close()
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["run", "reply", "resume"]


def test_path_that_cannot_be_written_or_is_taken_is_told(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine")
    with pytest.raises(LogError, match=r"there is a log at .* already"):
        EventLog(tmp_path / "log")
    with pytest.raises(LogError, match=r"no log can be written to .*: No such file or directory"):
        EventLog(tmp_path / "none" / "log")
    with pytest.raises(LogError, match="line 1, is not a line of a run's log"):
        EventLog.read(tmp_path / "log")
    assert (tmp_path / "log").read_text() == "mine"


@pytest.mark.parametrize(
    "text", [bytes(64 * 2**20 + 1), b"{}\n" * 250_001, b" " * (8 * 2**20 + 1) + b"\n"], ids=["bytes", "events", "line"]
)
def test_log_that_is_too_large_is_refused_before_it_is_taken_apart(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "log").write_bytes(b'{"event": "run", "format": 1}\n' + text)
    with pytest.raises(LogError, match="is too large: more than 64 MB, 250,000 events or 8 MB in one"):
        read_log(tmp_path / "log")
