"""Agents with a network: they reach what is listed, and a run that did is done again where that is given again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page_server import PageServer, page_server

from cellblock import CodeAgent, LogError, ScriptedModel
from cellblock.agent.replay import replay


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server() as server:
        yield server


_GET = "```python\nimport urllib.request\npage = urllib.request.urlopen('http://{}/').read().decode()\n```"


def test_an_agent_reaches_what_is_listed_and_its_run_is_done_again_with_it(server: PageServer, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    model = ScriptedModel([_GET.format(server.place), "```python\nfinal_answer(page)\n```"])
    result = CodeAgent(model, network=[server.place]).run("fetch it", log=log)
    assert (result.value, len(server.asked)) == ("ok", 1)
    with pytest.raises(LogError, match=f"could connect to {server.place}") as raised:
        replay(log)
    assert raised.value.hint == "give network= (--network HOST:PORT)"
    done = replay(log, network=[server.place])
    assert (done.same, len(server.asked)) == (True, 2)


def test_without_a_list_the_model_is_told_what_is_wrong(server: PageServer) -> None:
    model = ScriptedModel([_GET.format(server.place), "```python\nfinal_answer('page' in globals())\n```"])
    assert CodeAgent(model).run("fetch it").value is False
    assert "hint: the session has no network" in str(model.asked[1][-1])
    assert len(server.asked) == 0


def test_an_agent_of_private_data_reaches_nobody(server: PageServer) -> None:
    model = ScriptedModel([_GET.format(server.place), "```python\nfinal_answer('page' in globals())\n```"])
    result = CodeAgent(model, network=[server.place], private=True).run("fetch it")
    assert (result.value, len(server.asked)) == (False, 0)
    assert "hint: the session is private from the start (opened as private)" in str(model.asked[1][-1])


@pytest.mark.parametrize("listed", ["pypi.org", "https://pypi.org:443"])
def test_what_is_no_destination_is_refused_as_the_agent_is_made(listed: str) -> None:
    with pytest.raises(ValueError, match="is not a destination"):
        CodeAgent(ScriptedModel([]), network=[listed])
