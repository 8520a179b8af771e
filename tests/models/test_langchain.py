"""LangChain's own chat models, its fakes among them, behind the protocol."""

import subprocess
import sys

import anyio
import pytest

from cellblock.errors import ModelError
from cellblock.models import Reply, Tokens, ToolRequest, connect

pytest.importorskip("langchain_core")
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from pydantic import SecretStr

pytestmark = pytest.mark.anyio
ASKED = [{"role": "user", "content": "hello?"}]
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


class Chunked(GenericFakeChatModel):
    """Streams these chunks, and keeps what it was asked; where a chunk is an exception, it is raised."""

    model_name: str = "chunked-1"
    chunks: list
    asked: list
    bound: list

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        self.asked.append(messages)
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, float):
                await anyio.sleep(chunk)
            else:
                yield ChatGenerationChunk(message=chunk)

    def bind_tools(self, tools, **kwargs):
        self.bound.append(tools)
        return self


def chunked(*chunks):
    return Chunked(messages=iter([]), chunks=list(chunks), asked=[], bound=[])


def made(name):
    """An exception class of that name, as releases of langchain-core with it have them."""
    return type(name, (Exception,), {})


async def test_a_chat_model_is_asked_and_its_text_comes_in_pieces():
    pieces = []
    model = connect(GenericFakeChatModel(messages=iter(["hello there you"])))
    async with model:
        reply = await model.reply(ASKED, [], pieces.append)
    assert reply == Reply(text="hello there you", model="GenericFakeChatModel")
    assert pieces == ["hello", " ", "there", " ", "you"]


async def test_a_chat_model_that_does_not_stream_answers_whole():
    pieces = []
    reply = await connect(FakeMessagesListChatModel(responses=[AIMessage("all at once")])).reply(
        ASKED, [], pieces.append
    )
    assert (reply.text, pieces) == ("all at once", ["all at once"])


async def test_messages_are_given_in_its_own_form():
    model = chunked(AIMessageChunk("fine"))
    calls = [
        {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "search", "arguments": '{"q'}},
    ]
    await connect(model).reply(
        [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "find"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "found"},
            {"role": "assistant", "content": "there"},
        ],
        [],
    )
    [asked] = model.asked
    assert asked == [
        SystemMessage("be brief"),
        HumanMessage("find"),
        AIMessage(
            "",
            tool_calls=[{"type": "tool_call", "name": "search", "args": {"q": 1}, "id": "a"}],
            invalid_tool_calls=[
                {"type": "invalid_tool_call", "name": "search", "args": '{"q', "id": "b", "error": None}
            ],
        ),
        ToolMessage("found", tool_call_id="a"),
        AIMessage("there"),
    ]
    assert model.bound == []


async def test_tool_calls_tokens_and_the_reason_to_finish_come_back():
    def part(**given):
        return AIMessageChunk("", tool_call_chunks=[{"type": "tool_call_chunk", "name": None, "id": None, **given}])

    usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13, "input_token_details": {"cache_read": 8}}
    model = chunked(
        AIMessageChunk("let me "),
        AIMessageChunk("look"),
        part(index=0, name="search", id="a", args='{"q"'),
        part(index=0, args=": 1}"),
        part(index=1, name="search", id="b", args="{broken"),
        AIMessageChunk(
            "", usage_metadata=usage, response_metadata={"finish_reason": "tool_calls", "model_name": "gpt"}
        ),
    )
    reply = await connect(model).reply(ASKED, TOOLS)
    assert reply == Reply(
        text="let me look",
        requests=(ToolRequest("a", "search", {"q": 1}, '{"q": 1}'), ToolRequest("b", "search", None, "{broken")),
        tokens=Tokens(input=9, output=4, cached=8),
        model="gpt",
        finish="tool_calls",
    )
    assert model.bound == [TOOLS]


@pytest.mark.parametrize(("said", "finish"), [("end_turn", "stop"), ("max_tokens", "length"), ("odd", "odd")])
async def test_reasons_to_finish_are_in_the_words_of_chat_completions(said, finish):
    model = chunked(AIMessageChunk("a"), AIMessageChunk("b", response_metadata={"stop_reason": said}))
    assert (await connect(model).reply(ASKED, [])).finish == finish


async def test_content_in_parts_is_text_and_reasoning():
    thinking = {"type": "thinking", "thinking": "hm", "index": 0}
    model = chunked(AIMessageChunk([thinking]), AIMessageChunk([{"type": "text", "text": "four", "index": 1}]))
    reply = await connect(model).reply(ASKED, [])
    assert (reply.text, reply.reasoning) == ("four", "hm")


async def test_no_answer_at_all_is_an_empty_one():
    assert (await connect(chunked(AIMessageChunk(""))).reply(ASKED, [])).text == ""


async def test_a_model_without_tools_says_so():
    with pytest.raises(ModelError, match="FakeListChatModel takes no tools") as caught:
        await connect(FakeListChatModel(responses=["a"])).reply(ASKED, TOOLS)
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no"), "raised"),
        (ValueError("maximum context length is 5"), "context"),
        (made("ContextOverflowError")("no"), "context"),
        (made("ModelRateLimitError")("no"), "rate"),
        (made("ModelAuthenticationError")("no"), "key"),
    ],
)
async def test_what_it_raises_is_the_cause_of_a_model_error(error, kind):
    with pytest.raises(ModelError, match=f"chunked-1 raised {type(error).__name__}: ") as caught:
        await connect(chunked(AIMessageChunk("a"), error)).reply(ASKED, [])
    assert (caught.value.kind, caught.value.__cause__) == (kind, error)


class Keyed(FakeListChatModel):
    """Its provider repeats what it is given as a key."""

    api_key: SecretStr

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        if messages:
            raise RuntimeError("no such key: sk-0123456789abcdef, and no such token: tk-0123456789")
        yield


@pytest.mark.threat("D3")
@pytest.mark.parametrize(
    "within",
    [
        lambda model: model.bind(access_token="tk-0123456789"),
        lambda model: model.with_retry(stop_after_attempt=1).with_config(tags=["a"]),
        lambda model: FakeListChatModel(responses=[]).with_fallbacks([model.with_fallbacks([model])]),
        lambda model: RunnableLambda(lambda asked: asked) | model,
    ],
    ids=["bound", "tried again", "a fallback", "in a row"],
)
async def test_a_key_of_a_model_within_another_is_not_shown(within):
    model = within(Keyed(responses=["a"], api_key="sk-0123456789abcdef"))
    with pytest.raises(ModelError) as caught:
        await connect(model).reply(ASKED, [])
    assert "no such key: ***" in str(caught.value) or "no such key" not in str(caught.value)
    assert "0123456789abcdef" not in str(caught.value)


async def test_it_is_waited_for_as_long_as_was_said():
    with pytest.raises(ModelError, match=r"chunked-1 did not answer within 0\.05 s") as caught:
        await connect(chunked(AIMessageChunk("a"), 30.0), timeout_seconds=0.05).reply(ASKED, [])
    assert caught.value.kind == "timeout"


@pytest.mark.threat("D4")
async def test_an_answer_without_end_is_refused():
    pieces = [AIMessageChunk("x" * 1_000_000)] * 5
    with pytest.raises(ModelError, match="chunked-1: the answer has more than 4,194,304 characters") as caught:
        await connect(chunked(*pieces)).reply(ASKED, [])
    assert caught.value.kind == "malformed"


async def test_what_the_caller_raises_over_a_piece_is_raised():
    with pytest.raises(KeyError, match="mine"):
        await connect(chunked(AIMessageChunk("a"), 30.0)).reply(ASKED, [], lambda text: {}["mine"])


async def test_a_model_of_texts_alone_is_refused():
    with pytest.raises(ModelError, match=r"FakeListLLM answered with a str \(a chat model is needed\)"):
        await connect(FakeListLLM(responses=["a"])).reply(ASKED, [])


async def test_a_role_that_it_has_no_message_for_is_refused():
    with pytest.raises(ModelError, match="no message can have the role 'critic'"):
        await connect(chunked()).reply([{"role": "critic", "content": "a"}], [])


def test_the_class_of_a_chat_model_is_no_model():
    with pytest.raises(ModelError, match="the class BaseChatModel is not a model"):
        connect(BaseChatModel)


def test_langchain_is_not_loaded_for_other_models():
    program = (
        "import sys; from cellblock.models import *; connect(ScriptedModel([])); print('langchain_core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def _piece(index, **given):
    given = {"type": "tool_call_chunk", "name": None, "id": None, "args": "", "index": index} | given
    return AIMessageChunk("", tool_call_chunks=[given])


@pytest.mark.sampled(0)
@pytest.mark.threat("D4")
@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([_piece(n, name="f", id=f"i{n}") for n in range(4_000)], "the answer has more than 1,000 tool calls"),
        ([AIMessageChunk([{"type": "text", "text": "", "index": n}]) for n in range(3_000)], "has too many parts"),
        ([AIMessageChunk([""] * 300_000)], "the answer has more than 4,194,304 characters"),
    ],
    ids=["calls", "blocks", "parts"],
)
async def test_an_answer_of_many_parts_is_refused_before_it_is_put_together(pieces, said, longest_turn):
    async def ask():
        with pytest.raises(ModelError, match=said) as caught:
            await connect(chunked(*pieces)).reply(ASKED, [])
        assert caught.value.kind == "malformed"

    assert await longest_turn(ask) < 1


@pytest.mark.threat("L9")
async def test_content_that_is_nested_deeply_is_passed_over():
    content = [{"type": "text", "text": "x"}]
    for _ in range(2_000):
        content = [{"type": "thinking", "thinking": content}]
    reply = await connect(chunked(AIMessageChunk(content), AIMessageChunk([{"type": "text", "text": "a"}]))).reply(
        ASKED, []
    )
    assert (reply.text, reply.reasoning) == ("a", "")


async def test_tokens_are_those_of_all_pieces_and_counts_that_cannot_be_are_none():
    def usage(count):
        return {"input_tokens": count, "output_tokens": 1, "total_tokens": count + 1}

    pieces = (AIMessageChunk("", usage_metadata=usage(count)) for count in (3, 10**4_299, 4))
    assert (await connect(chunked(*pieces)).reply(ASKED, [])).tokens == Tokens(input=7, output=3)
