"""The scripted model, and what a reply is made of."""

import re

import pytest

import cellblock
from cellblock.errors import ModelError
from cellblock.models import Connected, Reply, ScriptedModel, Tokens, ToolRequest, connect

pytestmark = pytest.mark.anyio
ASKED = [{"role": "user", "content": "six by seven"}]


async def test_replies_are_given_in_their_order_whatever_is_asked():
    whole = Reply(text="two", tokens=Tokens(input=3, output=1), finish="length")
    model = ScriptedModel(["one", whole, lambda messages: messages[-1]["content"].upper()])
    assert await model.reply(ASKED, []) == Reply(text="one", model="scripted")
    assert await model.reply([], []) is whole
    assert (await model.reply(ASKED, [])).text == "SIX BY SEVEN"


async def test_what_was_asked_is_kept_as_it_was_then():
    model, messages = ScriptedModel(["one", "two"]), [{"role": "user", "content": ["a"]}]
    await model.reply(messages, [])
    messages[0]["content"].append("b")
    await model.reply(messages, [])
    assert model.asked == [[{"role": "user", "content": ["a"]}], [{"role": "user", "content": ["a", "b"]}]]


async def test_a_callable_cannot_change_what_was_asked():
    def forgets(messages):
        messages.clear()
        return "gone"

    model, messages = ScriptedModel([forgets]), list(ASKED)
    await model.reply(messages, [])
    assert messages == model.asked[0] == ASKED


@pytest.mark.parametrize(
    "reply", [ConnectionError("gone"), ConnectionError, lambda _: ConnectionError("gone"), lambda _: ConnectionError]
)
async def test_an_exception_of_the_script_is_raised_and_the_next_reply_is_given_after_it(reply):
    model = ScriptedModel([reply, "back"])
    with pytest.raises(ConnectionError):
        await model.reply(ASKED, [])
    assert (await model.reply(ASKED, [])).text == "back"


async def test_past_the_end_of_the_script_it_says_how_long_the_script_was():
    model = ScriptedModel(["one"])
    await model.reply(ASKED, [])
    with pytest.raises(ModelError, match="the script has ended after 1 reply") as caught:
        await model.reply(ASKED, [])
    assert (caught.value.kind, len(model.asked)) == ("script", 2)


async def test_text_comes_in_pieces_that_make_the_whole():
    pieces: list[str] = []
    reply = await ScriptedModel(["one\ntwo\n\nthree"]).reply(ASKED, [], pieces.append)
    assert pieces == ["one\n", "two\n", "\n", "three"]
    assert "".join(pieces) == reply.text


async def test_a_callable_that_returns_something_else_is_told():
    with pytest.raises(TypeError, match="reply 1 of the script returned a int"):
        await ScriptedModel([lambda messages: 1]).reply(ASKED, [])


@pytest.mark.parametrize(
    ("replies", "said"), [("a text", "a list of replies, not one str"), (["a", 1], "reply 2 of the script is a int")]
)
def test_a_script_of_something_else_is_refused_when_it_is_made(replies, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        ScriptedModel(replies)


async def test_a_script_is_a_model_that_is_connected_already():
    model = cellblock.ScriptedModel(["one"])
    assert connect(model) is model
    assert isinstance(model, Connected)
    async with model, model:
        assert (await model.reply(ASKED, [])).text == "one"
    assert model.complete.__name__ == "complete"
    assert repr(model) == "ScriptedModel(1 of 1 replies given)"


def test_tokens_add_up_and_costs_where_any_was_told():
    one, other = Tokens(input=1, output=2, cached=3), Tokens(input=10, output=20, cached=30, cost=0.5)
    assert one + one == Tokens(input=2, output=4, cached=6)
    assert one + other == Tokens(input=11, output=22, cached=33, cost=0.5)
    assert other + other == Tokens(input=20, output=40, cached=60, cost=1.0)


def repr_of(value):
    return repr(value)[:10]


@pytest.mark.threat("L9")
@pytest.mark.parametrize("count", [10**4_299, -1, True, 1.5, "1", None], ids=repr_of)
def test_what_is_no_count_of_tokens_is_none(count):
    assert Tokens(input=count, output=count, cached=count) == Tokens()


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1, 10**400, True, "1"], ids=repr_of)
def test_what_is_no_cost_is_none(cost):
    assert Tokens(cost=cost) + Tokens(cost=0.5) == Tokens(cost=0.5)


def test_requests_of_many_ids_are_told_apart():
    ids = ["call_2", "", "call_2", "call_3", ""]
    requests = tuple(ToolRequest(one, "f", {}, "{}") for one in ids)
    assert [one.id for one in Reply(requests=requests).requests] == ["call_2", "call_3", "call_4", "call_5", "call_6"]
