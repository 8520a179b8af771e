"""A run done again from its log: the same, or what differs; what a log lacks is said."""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cellblock import CodeAgent, ExecutionLimits, Live, LogError, ModelError, Policy, ScriptedModel, TaskFailed
from cellblock.agent.replay import replay
from cellblock.errors import CellblockError
from cellblock.observe.log import read_log

pytestmark = pytest.mark.hostile


def fence(code: str) -> str:
    return f"```python\n{code}\n```"


def agent(*codes: str, **options: Any) -> CodeAgent:
    return CodeAgent(ScriptedModel(list(map(fence, codes))), **options)


class Shop:
    """Tools that are called once, and never by a replay."""

    def __init__(self) -> None:
        self.called: list[str] = []

    @property
    def tools(self) -> list[Callable[..., Any]]:
        def price(item: str, *, currency: str = "EUR") -> float:
            """What it costs."""
            self.called.append(item)
            if item == "gold":
                raise KeyError("gold")
            return len(item) * 1.5

        async def stock(item: str) -> dict[str, int]:
            """How many there are."""
            self.called.append(item)
            return {item: 3}

        return [price, stock]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", ["isolated", "local"])
def test_run_with_tools_errors_memory_and_an_exploration_is_the_same_again(tmp_path: Path, level: Any) -> None:
    shop, log = Shop(), tmp_path / "run.jsonl"
    result = agent(
        "import random\nprint(random.random(), items)\nhelp_text = price.__doc__\nprice('tea', currency='USD')",
        "explore('gold')\nfound = await stock('tea')\nprice('gold')",
        "try:\n    price('gold')\nexcept KeyError as error:\n    print('none:', error)",
        "memory.observations.append('tea is left')\nfinal_answer((items, memory.failed_approaches), 'eyes')",
        tools=shop.tools,
        trust_level=level,
    ).run("shop", inputs={"items": ["tea", {"n": 1.5}]}, log=log)
    assert result.verified_by == "eyes"
    assert shop.called == ["tea", "tea", "gold", "gold"]
    done = replay(log, trust_level=level)
    assert (done.differences, done.notes, done.cells, done.calls) == ([], [], 4, 4)
    assert shop.called == ["tea", "tea", "gold", "gold"]


def test_what_differs_is_told_with_its_step(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent("n = 41\nn", "print('n is', n)", "final_answer(n)").run("n", log=log)
    log.write_text(log.read_text().replace("n = 41", "n = 42"))
    told = [(one.step, one.what, one.logged, one.replayed) for one in replay(log).differences]
    assert told == [
        (1, "text", "41", "42"),
        (1, "value", "41", "42"),
        (2, "text", "n is 41", "n is 42"),
        (3, "answer", '{"value": 41, "verified_by": null}', '{"value": 42, "verified_by": null}'),
        (None, "value", "41", "42"),
    ]


def test_tool_that_changes_what_it_was_given_is_logged_and_found_again_by_what_that_was(tmp_path: Path) -> None:
    def drain(items: list[str]) -> int:
        """How many there were."""
        count = len(items)
        items.clear()
        return count

    log = tmp_path / "run.jsonl"
    agent("print(drain(['a', 'b']))", "final_answer(1)", tools=[drain]).run("count", log=log)
    assert [event["arguments"] for event in read_log(log) if event["event"] == "tool"] == [
        [[["a", "b"]], {"dict": [[], []]}]
    ]
    done = replay(log)
    assert (done.differences, done.notes, done.calls) == ([], [], 1)


def test_call_that_the_log_does_not_have_fails_and_calls_nothing(tmp_path: Path) -> None:
    shop, log = Shop(), tmp_path / "run.jsonl"
    agent("price('tea')", "final_answer(1)", tools=shop.tools).run("shop", log=log)
    log.write_text(log.read_text().replace("price('tea')", "price('tee')"))
    done = replay(log)
    calls = [(one.logged, one.replayed) for one in done.differences if one.what == "call"]
    assert calls == [("", "price('tee')"), ("price('tea')", "")]
    assert shop.called == ["tea"]


def test_answer_that_a_host_refused_is_refused_again(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    def even(value: object) -> object:
        if value != 4:
            raise ValueError(f"{value} is not 4")
        return {"even": value}

    result = agent("final_answer(3)", "final_answer(4)").run("even", accept=even, log=log)
    assert result.value == {"even": 4}
    assert replay(log).differences == []


@pytest.mark.sampled(0)
def test_verified_failed_partial_and_broken_off_runs_are_the_same_again(tmp_path: Path) -> None:
    agent("final_answer(1)", "assert False", "final_answer(2)", "assert True", verify_completion=True).run(
        "two", log=tmp_path / "verified"
    )
    with pytest.raises(TaskFailed):
        agent("x = 1", "task_fail('no data')").run("fail", log=tmp_path / "failed")
    agent("1", "2", limits=ExecutionLimits(max_steps=2)).run("limit", log=tmp_path / "partial")
    with pytest.raises(ModelError):
        agent("x = 1").run("broken off", log=tmp_path / "broken")
    for name, cells in {"verified": 4, "failed": 2, "partial": 2, "broken": 1}.items():
        done = replay(tmp_path / name)
        assert (done.differences, done.cells) == ([], cells)


@pytest.mark.sampled(0)
def test_cell_that_ended_its_process_or_met_its_time_limit_is_the_same_again(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    codes = ["x = 1", "import os\nos._exit(3)", "while True: pass", "final_answer(x)"]
    agent(*codes, limits=ExecutionLimits(timeout_seconds=0.3)).run("end", log=log)
    assert replay(log).differences == []


@pytest.mark.sampled(0)
def test_attempts_are_done_again_each_by_its_own_replies(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    # the three take turns, in whatever order: each answer tells which reply it was
    codes = ["x = 1", "x = 1", "x = 1", "final_answer(1)", "final_answer(5)", "final_answer(3)"]
    result = agent(*codes).run("best", attempts=3, verifier=lambda one: one.value, log=log)
    assert result.value == 5
    assert (replay(log).differences, replay(log).cells) == ([], 6)


def test_runs_in_one_session_are_done_again_one_after_the_other(tmp_path: Path) -> None:
    with agent("x = [1]", "final_answer(x)", "x.append(2)", "final_answer(x)", state=Live()) as one:
        one.run("first", log=tmp_path / "first")
        one.run("second", log=tmp_path / "second")
    assert replay(tmp_path / "first", tmp_path / "second").differences == []
    with pytest.raises(LogError, match="continued the session of earlier runs"):
        replay(tmp_path / "second")


def test_inputs_of_a_program_and_large_ones_are_asked_for(tmp_path: Path) -> None:
    log, rows = tmp_path / "run.jsonl", [float(n) for n in range(200_000)]
    agent("final_answer(sum(rows))").run("sum", inputs={"rows": rows}, log=log)
    with pytest.raises(LogError, match="does not hold the input 'rows'"):
        replay(log)
    assert replay(log, inputs={"rows": rows}).differences == []
    assert log.stat().st_size < 20_000


@pytest.mark.sampled(0)
def test_tables_and_files_are_in_the_log_while_they_are_small(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    log = tmp_path / "run.jsonl"
    frame = pandas.DataFrame({"a": [1.5, 2.5] * 40})
    files = {"a.csv": b"x\n1\n", "b.bin": b"\xff\0\xfe" * 100}
    agent("final_answer((df.a.sum(), open('a.csv').read(), open('b.bin', 'rb').read()))").run(
        "sum", inputs={"df": frame}, files=files, log=log
    )
    assert replay(log).differences == []


def test_large_file_is_given_and_known_by_its_digest(tmp_path: Path) -> None:
    log, data = tmp_path / "run.jsonl", tmp_path / "large.csv"
    data.write_text("x\n" + "1\n" * 400_000)
    agent("final_answer(len(open('large.csv').read()))").run("count", files={"large.csv": data}, log=log)
    with pytest.raises(LogError, match=r"'large.csv' is not in .* \(give it"):
        replay(log)
    assert replay(log, files={"large.csv": data}).differences == []
    data.write_text("x\n")
    done = replay(log, files={"large.csv": data})
    assert done.notes == ["the file 'large.csv' is not the one that the run had"]
    assert not done.same


def test_answer_of_a_tool_that_is_too_large_for_the_log_is_told(tmp_path: Path) -> None:
    def lines() -> list[str]:
        """Many lines."""
        return ["x" * 100] * 5_000

    log = tmp_path / "run.jsonl"
    agent("found = lines()", "final_answer(len(found))", tools=[lines]).run("count", log=log)
    done = replay(log)
    assert done.notes == ["step 1: the answer of lines() is not in the log: too large for a log"]
    assert not done.same


class Basket:
    def size(self) -> int:
        return 3


def test_run_with_classes_of_its_program_is_done_again_by_its_agent(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    def make() -> CodeAgent:
        one = agent("final_answer(Basket().size())", trust_level="local", policy=Policy(modules=["math"]))
        one.cls(Basket)
        return one

    make().run("size", log=log)
    with pytest.raises(LogError, match="used what only its program has: Basket"):
        replay(log)
    assert make().replay(log).differences == []


def test_weaker_walls_and_mounts_are_never_taken_from_a_log(tmp_path: Path) -> None:
    log, data = tmp_path / "run.jsonl", tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("hello")
    agent("final_answer(open('d/a.txt').read())", mounts={"d": data}).run("read", log=log)
    with pytest.raises(LogError, match="saw the mount 'd'"):
        replay(log)
    assert replay(log, mounts={"d": data}).differences == []
    log.write_text(log.read_text().replace('"walls": "full"', '"walls": "reduced"'))
    with pytest.raises(LogError, match="had walls='reduced'"):
        replay(log, mounts={"d": data})


def test_functions_that_a_policy_grants_are_not_called_by_a_replay(tmp_path: Path) -> None:
    log, paid = tmp_path / "log.jsonl", []

    def pay(to: str) -> str:
        paid.append(to)
        return to

    code = "```python\nimport math\nfinal_answer(pay('ana'))\n```"
    own = CodeAgent(ScriptedModel([code]), policy=Policy(modules=["math"]).fn(pay))
    assert own.run("q", log=log).value == "ana"
    with pytest.raises(LogError, match="the policy grants pay, which a replay would call"):
        replay(log, agent=own)
    done = replay(log, agent=own, policy=Policy(modules=[]))
    assert any("math" in one.replayed for one in done.differences)
    assert paid == ["ana"]


@pytest.mark.parametrize("none", [[], ()])
def test_a_replay_without_a_network_has_none_though_its_agent_has(tmp_path: Path, none: Any) -> None:
    log = tmp_path / "log.jsonl"
    code = "```python\nimport os\nfinal_answer('http_proxy' in os.environ or 'HTTP_PROXY' in os.environ)\n```"
    CodeAgent(ScriptedModel([code])).run("q", log=log)
    agent = CodeAgent(ScriptedModel([]), network=["127.0.0.1:9"])
    assert not replay(log, agent=agent).same
    assert replay(log, agent=agent, network=none).same


def test_level_trusted_packages_and_higher_limits_are_never_taken_from_a_log(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    policy = Policy(trusted=["numpy"])
    agent("final_answer(1)", trust_level="local", policy=policy).run("one", log=log)
    with pytest.raises(LogError, match="had trust_level='local'"):
        replay(log)
    with pytest.raises(LogError, match="trusted numpy"):
        replay(log, trust_level="local")
    assert replay(log, trust_level="local", policy=policy).differences == []
    log = tmp_path / "high.jsonl"
    high = ExecutionLimits(timeout_seconds=600, max_memory_mb=100)
    agent("final_answer(1)", limits=high, preload=["decimal"]).run("one", log=log)
    done = replay(log)
    assert done.differences == []
    assert done.notes == ["not taken from the log: timeout_seconds=600, preload=['decimal']"]
    done = replay(log, limits=ExecutionLimits(timeout_seconds=900))
    assert done.notes == ["not taken from the log: preload=['decimal']"]


def test_image_is_never_taken_from_a_log(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent("final_answer(1)").run("one", log=log)
    log.write_text(
        log.read_text()
        .replace('"trust_level": "isolated"', '"trust_level": "sandboxed"')
        .replace('"image": null', '"image": "theirs"')
    )
    with pytest.raises(LogError, match="was in the image 'theirs'"):
        replay(log)


TOOL = '{"name": "a b", "doc": null, "is_async": false, "parameters": [], "returns": null}'
KEPT = '{"event": "decision", "step": null, "kind": "attempt kept", "reason": "1 of 2", "scores": ["x"]}\n'

DEEP = "[" * 450 + "]" * 450


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "", "line 1, is not a line of a run's log"),
        (lambda text: "x = 1\n" + text, "line 1, is not a line of a run's log"),
        (lambda text: text.replace('"format": 1', '"format": 9', 1), "is a log of format 9, not 1"),
        (lambda text: text.replace('"event": "reply"', "", 1), "line 3, is not a line of a run's log"),
        (lambda text: text.replace('"step": 1', '"step": 7', 1), "is damaged: ValueError: cell of step 1"),
        (lambda text: text.replace('"inputs": {}', '"inputs": {"a": {"set": 3}}', 1), "is damaged: MalformedValue"),
        (lambda text: text.replace('"limits": {', '"limits": {"nope": 1, ', 1), "is damaged: TypeError"),
        (lambda text: text.replace('"tools": []', '"tools": [{"name": 3}]', 1), "is damaged: KeyError"),
        (lambda text: text + text.splitlines()[2] + "\n", "is damaged: ValueError: another reply in step 1"),
        (lambda text: text.replace('"inputs": {}', '"inputs": {"a b": 1}', 1), "its log is damaged: ValueError: 'a b'"),
        (lambda text: text.replace('"tools": []', f'"tools": [{TOOL}]', 1), "is damaged: ValueError: 'a b' cannot be"),
        (
            lambda text: text.replace('"attempts": 1', '"attempts": 2', 1) + KEPT,
            "is damaged: TypeError: the event 'attempt kept' does not hold what one of its kind does",
        ),
        (lambda text: text.replace('"undoes": null', '"undoes": []', 1), "is damaged: TypeError: the event 'cell'"),
        (lambda text: text.replace('"failure": null', '"failure": {}', 1), "is damaged: TypeError: the event 'cell'"),
        (lambda text: text.replace('"verified_by": null', '"verified_by": [1]', 1), "is damaged: TypeError: the event"),
        (lambda text: text.replace('"inputs": {}', f'"inputs": {{"a": {DEEP}}}', 1), "line 1, is not a line of a run"),
        (lambda text: text.replace('"undoes": null', f'"undoes": {DEEP}', 1), "line 4, is not a line of a run's log"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, change: Callable[[str], str], said: str) -> None:
    log = tmp_path / "run.jsonl"
    agent("final_answer(1)").run("one", log=log)
    log.write_text(change(log.read_text()))
    with pytest.raises(LogError, match=said):
        replay(log)


@pytest.mark.sampled(0)
def test_run_of_too_many_steps_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent("final_answer(1)").run("one", log=log)
    run, begin, reply, *_ = log.read_text().splitlines()
    replies = [reply.replace('"step": 1', f'"step": {number}') for number in range(10_001)]
    log.write_text("\n".join((run, begin, *replies, "")))
    with pytest.raises(LogError, match="more than 10,000 steps"):
        replay(log)


_WRONG = [{"trust_level": "none"}, {"walls": "none"}, {"network": ["a b"]}, {"mounts": {"a": 3}}]


@pytest.mark.parametrize("wrong", _WRONG)
def test_wrong_argument_of_a_replay_is_no_damage_of_its_log(tmp_path: Path, wrong: Any) -> None:
    log = tmp_path / "run.jsonl"
    agent("final_answer(1)").run("one", log=log)
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        replay(log, **wrong)


def _damaged(order: random.Random, rows: list[Any]) -> list[Any]:
    """A copy of a log's events with one value of another kind, or without it."""
    new: Any = copy.deepcopy(rows)
    here, keys = new, [order.randrange(len(rows))]
    while isinstance(here[keys[-1]], dict | list) and here[keys[-1]] and (len(keys) < 2 or order.random() < 0.5):
        here = here[keys[-1]]
        keys.append(order.choice(list(here) if isinstance(here, dict) else range(len(here))))
    kinds = [None, -1, 10**30, 1.5, float("nan"), True, "", "x\x1b[31m", "\ud800", [], {}, [[]], {"a": 1}, ["a"]]
    if (kind := order.choice([*kinds, KeyError])) is KeyError:
        del here[keys[-1]]
    else:
        here[keys[-1]] = kind
    return new  # type: ignore[no-any-return]


def _tell_damaged_logs(tmp_path: Path, order: random.Random, count: int) -> None:
    def look(number: int) -> int:
        """Look."""
        return number + 1

    log = tmp_path / "run.jsonl"
    codes = ("x = look(1)\n1/0", "explore('y')", "final_answer(look(2))", "final_answer(look(2))")
    one = agent(*codes, tools=[look], verify_completion=True)
    one.run("one", log=log, inputs={"a": [1]}, files={"f": b"x"})
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    outcomes: Counter[bool] = Counter()
    for number in range(count):
        damaged = _damaged(order, rows)
        path = tmp_path / f"damaged{number}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in damaged))
        try:
            replay(path)
            outcomes[True] += 1
        except CellblockError:
            outcomes[False] += 1
    assert outcomes[True]
    assert outcomes[False]


@pytest.mark.sampled(0)
def test_log_that_is_damaged_is_told_or_replayed(tmp_path: Path) -> None:
    _tell_damaged_logs(tmp_path, random.Random(1), 60)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_log_that_is_damaged_anywhere_is_told_or_replayed(tmp_path: Path) -> None:
    seed = date.today().toordinal()
    print(f"seed {seed}")
    _tell_damaged_logs(tmp_path, random.Random(seed), 1000)


@pytest.mark.sampled(0)
def test_attempts_beyond_those_of_the_caller_are_never_taken_from_a_log(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent("final_answer(1)").run("one", log=log)
    for attempts in (0, 17, 10**9):
        log.write_text(re.sub('"attempts": [0-9]+', f'"attempts": {attempts}', log.read_text()))
        with pytest.raises(LogError, match=f"was of {attempts} attempts"):
            replay(log)
    log.write_text(log.read_text().replace(f'"attempts": {attempts}', '"attempts": 17'))
    assert replay(log, attempts=17).cells == 1


def test_log_whose_last_line_is_torn_is_replayed_up_to_it(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent("x = 1", "final_answer(x)").run("one", log=log)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:5]) + lines[5][:30])
    assert json.loads(lines[4])["event"] == "reply"
    done = replay(log)
    assert (done.differences, done.cells) == ([], 1)
    assert done.notes == ["step 2 had not ended: not replayed"]


def test_secret_that_was_taken_out_is_told(tmp_path: Path) -> None:
    log, key = tmp_path / "run.jsonl", "sk-" + "a1B2" * 8
    agent(f"print(len({key!r}))", "final_answer(1)").run("one", log=log)
    assert key not in log.read_text()
    assert read_log(log)[2]["text"] == fence("print(len('[redacted]'))")
    done = replay(log)
    assert done.notes == ["secrets were taken out of the log: what had them was replayed without"]
    assert [(one.step, one.logged, one.replayed) for one in done.differences] == [(1, "35", "10")]
