"""Agents with a network: they reach what is listed, and a run that did is done again where that is given again."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cellblock import CodeAgent, LogError, ScriptedModel
from cellblock.agent.replay import replay


class Page(http.server.BaseHTTPRequestHandler):
    """Answers with its count of requests."""

    hits = 0

    def do_GET(self) -> None:
        Page.hits += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words: object) -> None:
        """Says nothing."""


@pytest.fixture
def place() -> Iterator[str]:
    Page.hits = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


_GET = "```python\nimport urllib.request\npage = urllib.request.urlopen('http://{}/').read().decode()\n```"


def test_an_agent_reaches_what_is_listed_and_its_run_is_done_again_with_it(place: str, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    model = ScriptedModel([_GET.format(place), "```python\nfinal_answer(page)\n```"])
    result = CodeAgent(model, network=[place]).run("fetch it", log=log)
    assert (result.value, Page.hits) == ("ok", 1)
    with pytest.raises(LogError, match=f"could connect to {place}") as raised:
        replay(log)
    assert raised.value.hint == "give network= (--network HOST:PORT)"
    done = replay(log, network=[place])
    assert (done.same, Page.hits) == (True, 2)


def test_without_a_list_the_model_is_told_what_is_wrong(place: str) -> None:
    model = ScriptedModel([_GET.format(place), "```python\nfinal_answer('page' in globals())\n```"])
    assert CodeAgent(model).run("fetch it").value is False
    assert "Hint: the session has no network" in str(model.asked[1][-1])
    assert Page.hits == 0


def test_an_agent_of_private_data_reaches_nobody(place: str) -> None:
    model = ScriptedModel([_GET.format(place), "```python\nfinal_answer('page' in globals())\n```"])
    result = CodeAgent(model, network=[place], private=True).run("fetch it")
    assert (result.value, Page.hits) == (False, 0)
    assert "Hint: the session is private from the start (opened as private)" in str(model.asked[1][-1])


@pytest.mark.parametrize("listed", ["pypi.org", "https://pypi.org:443"])
def test_what_is_no_destination_is_refused_as_the_agent_is_made(listed: str) -> None:
    with pytest.raises(ValueError, match="is no destination"):
        CodeAgent(ScriptedModel([]), network=[listed])
