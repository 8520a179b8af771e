"""Recordings: written while a model answers, and answered from afterwards."""

import copy
import json
import random
import re

import pytest

from cellblock.errors import ModelError
from cellblock.models import Reply, ScriptedModel, Tokens, ToolRequest, record, replayed

pytestmark = pytest.mark.anyio
FULL = Reply(
    text="größer\nsecond",
    requests=(ToolRequest("call_1", "search", {"q": "x"}, '{"q": "x"}'), ToolRequest("call_2", "search", None, "{")),
    tokens=Tokens(input=10, output=2, cached=4, cost=0.25),
    model="gpt",
    finish="tool_calls",
    reasoning="hm",
    attempts=2,
)
TOOLS = [{"type": "function", "function": {"name": "search"}}]


def asking(*texts):
    return [{"role": "user" if number % 2 == 0 else "assistant", "content": text} for number, text in enumerate(texts)]


async def test_a_recording_answers_as_the_model_did(tmp_path):
    path = tmp_path / "run.jsonl"
    async with record(ScriptedModel([FULL, "two"]), path) as model:
        first = await model.reply(asking("a"), TOOLS)
        second = await model.reply(asking("a", "b", "c"), [])
    pieces = []
    async with replayed(path) as again:
        assert again.name == model.name == "scripted"
        assert await again.reply(asking("a"), TOOLS, pieces.append) == first == FULL
        assert await again.reply(asking("a", "b", "c"), []) == second
    assert pieces == ["größer\n", "second"]


async def test_lines_within_an_answer_are_its_own(tmp_path):
    text = "".join(f"a{mark}" for mark in "\u2028\u2029\x85\x0b\x1c")
    async with record(ScriptedModel([text]), tmp_path / "run.jsonl") as model:
        first = await model.reply(asking("a"), [])
    async with replayed(tmp_path / "run.jsonl") as again:
        assert await again.reply(asking("a"), []) == first


async def test_what_was_asked_is_not_in_the_recording(tmp_path):
    path = tmp_path / "run.jsonl"
    await record(ScriptedModel(["fine"]), path).reply(asking("my password is hunter2"), [])
    assert "hunter2" not in path.read_text()
    assert "fine" in path.read_text()


async def test_replies_are_found_by_what_they_answer_and_each_is_given_once(tmp_path):
    path = tmp_path / "run.jsonl"
    model = record(ScriptedModel(["one", "two", "other"]), path)
    for text in ("a", "a", "b"):
        await model.reply(asking(text), [])
    again = replayed(path)
    assert [(await again.reply(asking(text), [])).text for text in ("b", "a", "a")] == ["other", "one", "two"]
    with pytest.raises(ModelError, match="the recording has ended after 3 replies"):
        await again.reply(asking("a"), [])


@pytest.mark.parametrize(
    ("asked", "tools", "said"),
    [
        (asking("a", "b", "other"), [], "call 1: message 3 (user) is not the one that was recorded"),
        (asking("a", "other", "c"), [], "call 1: message 2 (assistant) is not the one that was recorded"),
        (asking("a", "b"), [], "call 1: 2 messages, and 3 were recorded"),
        (asking("a", "b", "c"), TOOLS, "call 1: the tools are not those that were recorded"),
    ],
)
async def test_where_the_messages_part_from_the_recording_is_said(tmp_path, asked, tools, said):
    path = tmp_path / "run.jsonl"
    await record(ScriptedModel(["one"]), path).reply(asking("a", "b", "c"), [])
    with pytest.raises(ModelError) as caught:
        await replayed(path).reply(asked, tools)
    assert str(caught.value) == f"{said} (record it again if what is asked was meant to change)"
    assert caught.value.kind == "script"


async def test_an_error_of_the_model_is_recorded_and_raised_again(tmp_path):
    path = tmp_path / "run.jsonl"
    error = ModelError("busy", kind="rate", hint="later", status=429, attempts=3)
    model = record(ScriptedModel([error, "fine"]), path)
    with pytest.raises(ModelError):
        await model.reply(asking("a"), [])
    await model.reply(asking("a"), [])
    again = replayed(path)
    with pytest.raises(ModelError) as caught:
        await again.reply(asking("a"), [])
    assert vars(caught.value) == vars(error)
    assert str(caught.value) == "busy (later)"
    assert (await again.reply(asking("a"), [])).text == "fine"


def test_a_recording_is_never_written_over(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("precious")
    with pytest.raises(ModelError, match=r"run\.jsonl is there already \(delete it to record it again\)"):
        record(ScriptedModel([]), path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("text", ["", "nonsense", '{"format": "other"}', "[]", '{"format": "cellblock replies 1"}'])
def test_a_file_that_is_no_recording_is_refused(tmp_path, text):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(ModelError, match="is not a recording of replies"):
        replayed(path)


@pytest.mark.parametrize("line", ["[]", "{}", '{"messages": [], "tools": "", "reply": {"text": "x"}}', "{"])
def test_a_line_that_is_no_reply_is_refused(tmp_path, line):
    path = tmp_path / "run.jsonl"
    path.write_text('{"format": "cellblock replies 1", "model": "m"}\n' + line + "\n")
    with pytest.raises(ModelError, match="is not a recording of replies"):
        replayed(path)


_OTHERS = [None, -1, 10**30, 1.5, float("nan"), True, "", "x\x1b[31m", "\ud800", [], {}, [[]], {"a": 1}, ["a"]]


def _damaged(order, rows):
    """The text of a recording with a value that is another or gone, or with other bytes."""
    new, here, keys = (made := copy.deepcopy(rows)), made, [order.randrange(len(rows))]
    while isinstance(here[keys[-1]], dict | list) and here[keys[-1]] and (len(keys) < 2 or order.random() < 0.7):
        here = here[keys[-1]]
        keys.append(order.choice(list(here) if isinstance(here, dict) else range(len(here))))
    if (kind := order.choice([*_OTHERS, KeyError])) is KeyError:
        del here[keys[-1]]
    else:
        here[keys[-1]] = kind
    text = "".join(json.dumps(row) + "\n" for row in new).encode()
    if order.random() < 0.5:
        at = order.randrange(len(text) + 1)
        text = text[:at] + order.choice([b"", b"\xff", b"[" * 3000, b"9" * 5000, b"\n", b"\0"]) + text[at + 2 :]
    return text


@pytest.mark.sampled(0)
@pytest.mark.threat("L9")
async def test_a_recording_that_is_damaged_anywhere_answers_or_is_told_by_its_line(tmp_path):
    path, order = tmp_path / "run.jsonl", random.Random(1)
    error = ModelError("busy", kind="rate", hint="later", status=429, attempts=3)
    model = record(ScriptedModel([FULL, error, "fine"]), path)
    for text in "abc":
        try:
            await model.reply(asking(text), TOOLS)
        except ModelError:
            assert text == "b"
    rows, told = [json.loads(line) for line in path.read_text().splitlines()], []
    for _ in range(300):
        path.write_bytes(_damaged(order, rows))
        try:
            again = replayed(path)
        except ModelError as error:
            told.append(error.args[0])
            continue
        for text in "abc":
            try:
                reply = await again.reply(asking(text), TOOLS)
            except ModelError:
                continue
            json.dumps([reply.text, reply.model, reply.finish], ensure_ascii=False).encode()
            assert type(reply.tokens + Tokens(input=1)) is Tokens
    assert 50 < len(told) < 300
    assert [one for one in told if not re.fullmatch(rf"{path} is not a .*: line \d is damaged: .*", one)] == []


@pytest.mark.threat("L9")
async def test_an_answer_that_no_json_holds_is_recorded_as_what_it_is_nearest_to(tmp_path):
    path = tmp_path / "run.jsonl"
    odd = Reply(requests=(ToolRequest("1", "f", {"a": 10**4000, "b": {1, 2}}, ""),))
    await record(ScriptedModel([odd]), path).reply(asking("a"), [])
    reply = await replayed(path).reply(asking("a"), [])
    assert reply.requests[0].arguments["b"] == "{1, 2}"


async def test_recordings_of_the_first_format_can_be_read(tmp_path):
    asked = "sha256-9017285104d1b249960a30732b8e92f6e2fb3acf8d8e4b2a16c116ad0c1ed211"
    lines = [
        {"format": "cellblock replies 1", "model": "gpt"},
        {"messages": [asked], "tools": "sha256-4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
         "reply": {"text": "hello", "requests": [], "tokens": {"input": 1, "output": 2, "cached": 0, "cost": None},
                   "model": "gpt", "finish": "stop", "reasoning": "", "attempts": 1}},
    ]  # fmt: skip
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reply = await replayed(path).reply([{"role": "user", "content": "hi"}], [])
    assert reply == Reply(text="hello", tokens=Tokens(input=1, output=2), model="gpt")


@pytest.mark.threat("L9")
async def test_a_count_of_tokens_that_no_answer_takes_is_none(tmp_path):
    path = tmp_path / "run.jsonl"
    await record(ScriptedModel(["a"]), path).reply(asking("a"), [])
    path.write_text(path.read_text().replace('"input": 0', '"input": ' + "9" * 4_300))
    assert (await replayed(path).reply(asking("a"), [])).tokens == Tokens()
