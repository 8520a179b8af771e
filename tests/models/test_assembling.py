"""Answers of endpoints that leave out, repeat or misplace what others send."""

from dataclasses import replace

import pytest

from cellblock.models import Tokens, ToolRequest
from cellblock.models.assembling import Assembly, arguments_of


def assembled(*deltas, part="delta"):
    """The assembly of one chunk for each delta."""
    assembly = Assembly()
    for delta in deltas:
        assembly.add({"choices": [{"index": 0, part: delta}]})
    return assembly


def call(**given):
    function = {name: given.pop(name) for name in ("name", "arguments") if name in given}
    return {"tool_calls": [given | {"function": function}]}


SEARCH = ToolRequest("a", "search", {"q": 1}, '{"q": 1}')
OPEN = ToolRequest("b", "open", {"n": 2}, '{"n": 2}')


@pytest.mark.parametrize(
    ("deltas", "requests"),
    [
        # as OpenAI sends them: an index, the id and the name once
        ([call(index=0, id="a", name="search", arguments=""), call(index=0, arguments='{"q"'),
          call(index=1, id="b", name="open", arguments='{"n"'), call(index=0, arguments=": 1}"),
          call(index=1, arguments=": 2}")], (SEARCH, OPEN)),
        # id and name with each piece
        ([call(index=0, id="a", name="search", arguments='{"q"'),
          call(index=0, id="a", name="search", arguments=": 1}")], (SEARCH,)),
        # all of index 0, whole, told apart by id
        ([call(index=0, id="a", name="search", arguments='{"q": 1}'),
          call(index=0, id="b", name="open", arguments='{"n": 2}')], (SEARCH, OPEN)),
        # no index: by id, then the last one
        ([call(id="a", name="search", arguments='{"q"'), call(arguments=": 1}"),
          call(id="b", name="open", arguments='{"n": 2}')], (SEARCH, OPEN)),
        # neither index nor id: each with a name begins one
        ([call(name="search", arguments='{"q": 1}'), call(name="search", arguments='{"q": 1}')],
         (replace(SEARCH, id="call_1"), replace(SEARCH, id="call_2"))),
        # neither, or all the same id and index, each at once
        ([call(index=0, name="search", arguments='{"q": 1}'), call(index=0, name="open", arguments='{"n": 2}')],
         (replace(SEARCH, id="call_1"), replace(OPEN, id="call_2"))),
        ([call(id="a", name="search", arguments='{"q": 1}'), call(id="a", name="search", arguments='{"q": 1}')],
         (SEARCH, replace(SEARCH, id="call_2"))),
        ([call(index=0, name="now"), call(index=0, name="open", arguments=""), call(index=0, arguments='{"n": 2}')],
         (ToolRequest("call_1", "now", {}, ""), replace(OPEN, id="call_2"))),
        # the name with each piece, also with one that adds nothing
        ([call(index=0, name="search", arguments=""), call(index=0, name="search", arguments='{"q": 1}'),
          call(index=0, name="search", arguments="")], (replace(SEARCH, id="call_1"),)),
        # arguments as an object, none, null
        ([call(id="a", name="search", arguments={"q": 1})], (SEARCH,)),
        ([call(id="a", name="now")], (ToolRequest("a", "now", {}, ""),)),
        ([call(id="a", name="now", arguments=None)], (ToolRequest("a", "now", {}, ""),)),
        # the id comes late
        ([call(index=0, name="search", arguments='{"q"'), call(index=0, id="a", arguments=": 1}")], (SEARCH,)),
        # what is none
        ([{"tool_calls": None}, {"tool_calls": 5}, {"tool_calls": [None, 5]}], (ToolRequest("call_1", "", {}, ""),)),
    ],
)  # fmt: skip
def test_tool_calls_are_told_apart(deltas, requests):
    assert assembled(*deltas).reply().requests == requests


@pytest.mark.parametrize(
    "given", [{"id": "a"}, {"id": "a", "index": 0}, {"id": "", "index": 0}, {"index": 0}, {}], ids=str
)
def test_each_entry_of_a_whole_answer_is_a_call(given):
    named = [("search", '{"q": 1}'), ("open", '{"n": 2}'), ("search", ""), ("search", '{"q"')]
    calls = [call(name=name, arguments=raw, **given)["tool_calls"][0] for name, raw in named]
    assembly = Assembly()
    assembly.add_whole({"choices": [{"message": {"content": None, "tool_calls": calls}}]})
    requests = assembly.reply().requests
    assert [(one.name, one.raw) for one in requests] == named
    assert [one.id for one in requests] == [given.get("id") or "call_1", "call_2", "call_3", "call_4"]


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        ('{"a": [1]}', {"a": [1]}),
        ("[1]", None),
        ("1", None),
        ('{"a"', None),
        pytest.param("[" * 100_000, None, id="very deep"),
        pytest.param('{"a": ' + "[" * 900 + "]" * 900 + "}", None, id="deep"),
        pytest.param('{"a": ' + "1" * 5_000 + "}", None, id="long"),
    ],
)
def test_arguments_are_a_json_object_or_none(raw, arguments):
    assert arguments_of(raw) == arguments


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ("plain", "plain", ""),
        (None, "", ""),
        (7, "", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, "c", 4], "abc", ""),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
            "a",
            "hm",
        ),
        ([{"type": "reasoning", "reasoning": "hm"}], "", "hm"),
    ],
)
def test_content_is_a_text_or_parts(content, text, reasoning):
    reply = assembled({"content": content}).reply()
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_halves_of_characters_are_joined_and_lone_ones_replaced():
    raw = '{"\\ud83d\\ude00": ["\\ud83d"]}'
    deltas = [{"content": "a\ud83d"}, {"content": "\ude00b\udc80", "reasoning": "\ud800"}]
    reply = assembled(*deltas, call(id="\ud800", name="f\ud800", arguments=raw)).reply()
    assert (reply.text, reply.reasoning) == ("a\U0001f600b\ufffd", "\ufffd")
    assert reply.requests == (ToolRequest("\ufffd", "f\ufffd", {"\U0001f600": ["\ufffd"]}, raw),)


def test_a_refusal_is_the_text():
    assert assembled({"content": None, "refusal": "I can"}, {"refusal": "not"}).reply().text == "I cannot"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_by_two_names(name):
    assert assembled({name: "h"}, {name: "m"}).reply().reasoning == "hm"


def test_only_the_first_choice_counts():
    assembly = Assembly()
    choices = [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]
    assert assembly.add({"choices": choices}) == "a"
    assert assembly.reply().text == "a"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2}, Tokens(input=3, output=2)),
        ({"prompt_tokens": 3, "prompt_cache_hit_tokens": 2}, Tokens(input=3, cached=2)),
        ({"prompt_tokens": 3, "prompt_tokens_details": None, "cost": 1}, Tokens(input=3, cost=1.0)),
        ({"prompt_tokens": "3", "completion_tokens": None, "cost": "1"}, Tokens()),
        ({"prompt_tokens": True, "completion_tokens": -1, "cost": True}, Tokens()),
        ({"prompt_tokens": 10**4_299}, Tokens()),
        ({"cost": float("nan")}, Tokens()),
        ({"cost": float("inf")}, Tokens()),
        (5, Tokens()),
    ],
)
def test_tokens_are_read_where_they_are_numbers(usage, tokens):
    assembly = Assembly()
    assembly.add({"choices": [], "usage": usage})
    assert assembly.tokens == tokens


def test_the_last_account_of_tokens_is_the_one_of_the_answer():
    assembly = Assembly()
    for count in (1, 2, 3):
        assembly.add(
            {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 5, "completion_tokens": count}}
        )
    assert assembly.tokens == Tokens(input=5, output=3)


@pytest.mark.parametrize(
    ("chunk", "whole"),
    [
        ({"choices": [{"delta": {}, "finish_reason": "stop"}]}, True),
        ({"choices": [], "usage": {"prompt_tokens": 1}}, True),
        ({"choices": [{"delta": {"content": "a"}, "finish_reason": None}], "usage": {"prompt_tokens": 1}}, False),
        ({"choices": []}, False),
        ({}, False),
        ([], False),
        (None, False),
    ],
)
def test_an_answer_is_whole_when_its_end_was_seen(chunk, whole):
    assembly = Assembly()
    assembly.add(chunk)
    assert assembly.is_whole is whole


@pytest.mark.parametrize("completion", [{}, {"choices": []}, {"choices": None}, [], "text", None])
def test_what_came_at_once_and_holds_no_answer_is_refused(completion):
    with pytest.raises(ValueError, match="the answer holds no choices"):
        Assembly().add_whole(completion)
