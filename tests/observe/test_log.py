"""The log as a file: a line an event, readable at every moment, whatever stands in a text."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from cellblock import LogError
from cellblock.observe.log import EventLog, read_log
from cellblock.observe.redaction import Redactor

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
