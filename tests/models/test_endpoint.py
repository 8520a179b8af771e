"""The real client of the `openai` package against a real server on loopback that answers, fails and misbehaves."""

import gzip
import json
import logging
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import traceback
from base64 import b64encode, urlsafe_b64encode
from contextlib import nullcontext
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import anyio
import pytest
from model_server import Answer, Drop, Failure, ModelServer, Raw, Silence, Stream
from shown import shown_by

from cellblock.errors import ModelError
from cellblock.models import Reply, Tokens, ToolRequest, connect, record

pytest.importorskip("openai")
pytestmark = pytest.mark.anyio
ASKED = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello?"}]
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
TOLD = Tokens(input=10, output=5)
ENDLESS = Answer("a" * 1000, piece=1, pause=0.05)


async def failing(model, messages=ASKED, tools=()) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.reply(messages, list(tools))
    return caught.value


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_an_answer_comes_in_pieces_and_whole(endpoint):
    pieces = []
    with ModelServer([Answer("hello, größe", usage={"prompt_tokens": 7, "completion_tokens": 3})]) as server:
        reply = await endpoint(server).reply(ASKED, [], pieces.append)
    assert reply == Reply(text="hello, größe", tokens=Tokens(input=7, output=3), model="served")
    assert pieces == ["hello", ", grö", "ße"]


async def test_messages_tools_and_options_are_sent_as_they_are(endpoint):
    with ModelServer([Answer("a"), Answer("b")]) as server:
        model = endpoint(server, options={"temperature": 0, "of_its_own": [1]})
        await model.reply(ASKED, [])
        await model.reply(ASKED, TOOLS)
    first, second = (asked.body for asked in server.asked)
    assert first == {
        "model": "gpt", "messages": ASKED, "temperature": 0, "of_its_own": [1],
        "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    assert second == first | {"tools": TOOLS}
    assert server.asked[0].path == "/v1/chat/completions"


async def test_tool_calls_are_put_together_from_their_pieces(endpoint):
    calls = (("search", '{"query": "größe", "n": 3}'), ("now", ""), ("search", '{"query": '))
    with ModelServer([Answer("thinking", calls=calls, piece=4)]) as server:
        reply = await endpoint(server).reply(ASKED, TOOLS)
    assert reply.requests == (
        ToolRequest("call_0", "search", {"query": "größe", "n": 3}, '{"query": "größe", "n": 3}'),
        ToolRequest("call_1", "now", {}, ""),
        ToolRequest("call_2", "search", None, '{"query": '),
    )
    assert (reply.text, reply.finish) == ("thinking", "tool_calls")


async def test_cached_tokens_and_cost_are_told_where_the_endpoint_tells_them(endpoint):
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.25, "prompt_tokens_details": {"cached_tokens": 8}}
    with ModelServer([Answer("a", usage=usage), Answer("b", usage=None)]) as server:
        model = endpoint(server)
        assert (await model.reply(ASKED, [])).tokens == Tokens(input=9, output=2, cached=8, cost=0.25)
        assert (await model.reply(ASKED, [])).tokens == Tokens()


async def test_reasoning_is_no_part_of_the_text(endpoint):
    pieces = []
    with ModelServer([Answer("four", reasoning="two and two")]) as server:
        reply = await endpoint(server).reply(ASKED, [], pieces.append)
    assert (reply.text, reply.reasoning, pieces) == ("four", "two and two", ["four"])


async def test_what_no_encoding_has_is_replaced_on_both_ways(endpoint):
    pieces = []
    with ModelServer([Answer("one\ud800", piece=3)]) as server:
        reply = await endpoint(server).reply([{"role": "user", "content": ["a\udc80"]}], [], pieces.append)
    assert server.asked[0].body["messages"] == [{"role": "user", "content": ["a\ufffd"]}]
    assert (reply.text, pieces) == ("one\ufffd", ["one", "\ufffd"])


async def test_an_answer_that_was_cut_says_so(endpoint):
    with ModelServer([Answer("half an", finish="length")]) as server:
        assert (await endpoint(server).reply(ASKED, [])).finish == "length"


# --- endpoints that know less ----------------------------------------------------------------------------------------


async def test_an_endpoint_that_knows_no_stream_options_is_asked_without_from_then_on(endpoint, retries):
    with ModelServer([Answer("one"), Answer("two")], knows_accounts=False) as server:
        model = endpoint(server)
        assert [(await model.reply(ASKED, [])).text for _ in range(2)] == ["one", "two"]
    assert [sorted(asked.body.keys() & {"stream", "stream_options"}) for asked in server.asked] == [
        ["stream", "stream_options"], ["stream"], ["stream"],
    ]  # fmt: skip
    assert retries == []


async def test_an_endpoint_that_does_not_stream_is_asked_for_the_whole_from_then_on(endpoint, retries):
    pieces = []
    answer = Answer("one two", calls=(("search", "{}"),), reasoning="hm")
    with ModelServer([answer, answer], streams=False) as server:
        model = endpoint(server)
        replies = [await model.reply(ASKED, [], pieces.append) for _ in range(2)]
    whole = Reply(
        text="one two", requests=(ToolRequest("call_0", "search", {}, "{}"),), tokens=TOLD, model="served",
        finish="tool_calls", reasoning="hm",
    )  # fmt: skip
    assert replies == [whole, whole]
    assert pieces == ["one two", "one two"]
    assert ["stream" in asked.body for asked in server.asked] == [True, False, False]
    assert retries == []


async def test_an_endpoint_that_answers_whole_though_a_stream_was_asked_for_is_understood(endpoint):
    line = '{"model": "m", "choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}'
    with ModelServer([Stream((line,), kind="application/json")]) as server:
        assert await endpoint(server).reply(ASKED, []) == Reply(text="whole", model="m")


async def test_certificates_are_read_beside_the_event_loop(endpoint, monkeypatch):
    import openai

    threads = []

    class Client(openai.DefaultAsyncHttpxClient):
        def __init__(self, **given):
            threads.append(threading.current_thread())
            super().__init__(**given)

    monkeypatch.setattr(openai, "DefaultAsyncHttpxClient", Client)
    with ModelServer([Answer("yes"), Answer("yes")]) as server:
        model = endpoint(server)
        assert (await model.reply(ASKED, [])).text == "yes"
        async with model:
            assert (await model.reply(ASKED, [])).text == "yes"
    assert len(threads) == 2
    assert threading.current_thread() not in threads


async def test_an_endpoint_may_need_no_key(endpoint):
    with ModelServer([Answer("local")], key="none") as server:
        assert (await endpoint(server, api_key=None).reply(ASKED, [])).text == "local"


async def test_endpoint_and_key_come_from_the_environment(monkeypatch):
    with ModelServer([Answer("hello")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        assert (await connect("gpt").reply(ASKED, [])).text == "hello"
    assert server.asked[0].body["model"] == "gpt"


# --- what passes by itself -------------------------------------------------------------------------------------------


async def test_a_rate_limit_is_waited_for_as_long_as_the_endpoint_says(endpoint, retries):
    with ModelServer([Failure(429, "slow down", retry_after="0.15"), Answer("hello")]) as server:
        began = time.monotonic()
        reply = await endpoint(server).reply(ASKED, [])
        assert time.monotonic() - began >= 0.15
    assert (reply.text, reply.attempts) == ("hello", 2)
    [retry] = retries
    assert (retry.attempt, retry.wait, retry.error.kind, retry.error.status) == (1, 0.15, "rate", 429)


@pytest.mark.parametrize(
    ("broken", "kind", "said"),
    [
        (Failure(500, "boom"), "server", "{url} answered 500: boom"),
        (Failure(503, body="<h1>busy</h1>"), "server", "{url} answered 503: <h1>busy</h1>"),
        (Failure(529, "overloaded"), "server", "{url} answered 529: overloaded"),
        (Drop(), "connection", "the connection to {url} broke: .*"),
        (Answer("never whole", cut=2), "connection", "the connection to {url} broke: .*"),
        (Answer("never whole", end=2), "connection", "the answer broke off before its end"),
        (Answer("never whole", error=2), "server", "{url} answered in the middle of a stream: the engine failed"),
        (Stream(('data: {"choices', "")), "malformed", "{url} sent something that is not an answer: .*"),
        (Stream(("data: 5", "", 'data: {"choices": {}}', "")), "connection", "the answer broke off before its end"),
        (Answer("never whole", finish="error"), "connection", "the answer broke off before its end"),
        (Stream(("nonsense",)), "connection", "the answer broke off before its end"),
        (Stream(("{}",), kind="application/json"), "malformed", "{url} sent something that is not an answer: .*"),
        (Stream(("{",), kind="application/json"), "malformed", "{url} sent something that is not an answer: .*"),
        (Stream(('{"error": {"message": "no GPU"}}',), kind="application/json"), "server", "{url} answered .*: no GPU"),
        (Stream(('data: {"error": {"message": "busy", "code": 502}}', "")), "server", "{url} answered 502: busy"),
    ],
)  # fmt: skip
async def test_what_may_pass_is_asked_again_and_told(endpoint, retries, broken, kind, said):
    with ModelServer([broken, broken, Answer("whole", calls=(("f", "{}"),))]) as server:
        reply = await endpoint(server).reply(ASKED, [])
    assert (reply.text, len(reply.requests), reply.attempts, len(server.asked)) == ("whole", 1, 3, 3)
    for retry in retries:
        assert retry.error.kind == kind
        assert re.fullmatch(said.format(url=re.escape(server.url)), retry.error.args[0])


async def test_after_the_last_attempt_its_error_is_raised(endpoint, retries):
    with ModelServer(lambda body: Failure(500, "boom")) as server:
        error = await failing(endpoint(server))
    assert str(error) == f"{server.url} answered 500: boom; so ended attempt 4 (try again later)"
    assert (error.kind, error.status, error.attempts, len(server.asked)) == ("server", 500, 4, 4)
    assert [retry.attempt for retry in retries] == [1, 2, 3]


async def test_waits_double_and_are_the_same_for_the_same_seed(endpoint, retries):
    with ModelServer(lambda body: Failure(500)) as server:
        for seed in (1, 1, 2):
            await failing(endpoint(server, patience={"seed": seed, "first_wait": 0.002}))
    first, again, other = ([retry.wait for retry in retries[start : start + 3]] for start in (0, 3, 6))
    assert first == again != other
    for number, wait in enumerate(first):
        assert 0.001 * 2**number <= wait <= 0.002 * 2**number


async def test_a_wait_past_the_time_in_all_is_not_begun(endpoint):
    with ModelServer([Failure(429, retry_after="3600"), Answer("too late")]) as server:
        error = await failing(endpoint(server, patience={"total_seconds": 5}))
    assert error.hint == "it asks to wait 3.6e+03 s, more than is left of total_seconds=5"
    assert (error.kind, error.attempts, len(server.asked)) == ("rate", 1, 1)


async def test_tokens_are_those_of_all_attempts(endpoint):
    begun = 'data: {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 4, "completion_tokens": %d}}'
    told = Stream((begun % 1, "", begun % 2, "", "data: {", ""))
    with ModelServer([told, Failure(500), Answer("whole")]) as server:
        reply = await endpoint(server).reply(ASKED, [])
    assert reply.tokens == TOLD + Tokens(input=4, output=2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("after", ["cut", "silence"])
async def test_what_breaks_after_the_end_of_an_answer_takes_nothing_away(endpoint, retries, after):
    ending = {"cut": 5} if after == "cut" else {"end": 5, "hang": True}
    with ModelServer([Answer("one two three", **ending)]) as server:
        reply = await endpoint(server, patience={"stall_seconds": 0.5}).reply(ASKED, [])
    assert (reply.text, reply.finish, reply.attempts, retries) == ("one two three", "stop", 1, [])


async def test_pieces_begin_again_with_the_next_attempt(endpoint):
    pieces = []
    with ModelServer([Answer("one two three", end=3), Answer("one two three")]) as server:
        reply = await endpoint(server).reply(ASKED, [], pieces.append)
    assert pieces == ["one t", "wo th", "one t", "wo th", "ree"]
    assert reply.text == "one two three"


async def test_nothing_listening_is_told_with_what_to_do(endpoint, retries):
    with ModelServer() as server:
        pass
    error = await failing(endpoint(server))
    assert error.kind == "connection"
    assert error.args[0].startswith(f"no connection to {server.url}: ")
    assert error.hint == "is it running? OPENAI_BASE_URL says where to ask"
    assert len(retries) == 3


async def test_an_endpoint_whose_certificate_is_not_trusted_is_not_asked_again(endpoint, retries, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "1"]
    files = ["-keyout", tmp_path / "key", "-out", tmp_path / "certificate"]
    subprocess.run([*made, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    with ModelServer(tls=context) as server:
        error = await failing(endpoint(server))
    assert "certificate verify failed" in error.args[0].lower()
    assert (error.kind, server.asked, retries) == ("connection", [], [])


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(0)
async def test_an_answer_that_stalls_is_asked_for_again(endpoint, retries):
    with ModelServer([Answer("one two three", pause=30), Answer("whole")]) as server:
        reply = await endpoint(server, patience={"stall_seconds": 0.5}).reply(ASKED, [])
        assert server.left.wait(10)
    assert reply.text == "whole"
    assert [str(retry.error) for retry in retries] == [
        "nothing came for 0.5 s in the midst of an answer (raise stall_seconds)"
    ]


async def test_slow_tokens_are_waited_for_until_the_request_has_had_its_time(endpoint):
    with ModelServer([ENDLESS]) as server:
        error = await failing(endpoint(server, patience={"timeout_seconds": 0.3, "stall_seconds": 20, "retries": 0}))
        assert server.left.wait(10)
    assert (str(error), error.kind) == ("no whole answer within 0.3 s (raise timeout_seconds)", "timeout")


async def test_slow_tokens_that_come_in_time_make_a_whole_answer(endpoint, retries):
    with ModelServer([Answer("slowly", piece=1, pause=0.02)]) as server:
        reply = await endpoint(server, patience={"stall_seconds": 10}).reply(ASKED, [])
    assert (reply.text, retries) == ("slowly", [])


@pytest.mark.sampled(0)
async def test_all_attempts_together_have_a_time(endpoint):
    with ModelServer(lambda body: Silence()) as server:
        error = await failing(endpoint(server, patience={"timeout_seconds": 0.1, "total_seconds": 0.6, "retries": 99}))
    assert (error.kind, error.hint) == ("timeout", "raise total_seconds")
    assert 2 <= error.attempts <= 7


async def test_a_cancelled_reply_closes_its_connection(endpoint):
    begun = anyio.Event()
    with ModelServer([ENDLESS]) as server:
        async with anyio.create_task_group() as group:
            group.start_soon(endpoint(server).reply, ASKED, [], lambda text: begun.set())
            await begun.wait()
            group.cancel_scope.cancel()
        assert server.left.wait(10)
    assert len(server.asked) == 1


async def test_what_the_caller_raises_over_a_piece_is_raised_and_ends_the_request(endpoint):
    with ModelServer([ENDLESS]) as server:
        with pytest.raises(KeyError, match="mine"):
            await endpoint(server).reply(ASKED, [], lambda text: {}["mine"])
        assert server.left.wait(10)
    assert len(server.asked) == 1


# --- what no other attempt mends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "kind", "hint"),
    [
        (Failure(403, "not your model"), "key",
         "the key is not allowed to do this; give another one, or another model"),
        (Failure(404, "no such model"), "unknown",
         "{url} knows no model 'gpt', or OPENAI_BASE_URL is not its API (most end in /v1)"),
        (Failure(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"), "context",
         "send less: shorter or fewer messages"),
        (Failure(400, "filtered", code="content_filter"), "filtered",
         "the endpoint's content filter refused the messages; put them otherwise"),
        (Failure(429, "You exceeded your quota", code="insufficient_quota"), "quota",
         "the account at {url} has no credit left"),
        (Failure(400, "gemma does not support tools"), "refused",
         "this model takes no tools; use one that does, or an agent that writes code"),
        (Failure(422, body='{"detail": "temperature is wrong"}'), "refused", ""),
    ],
)  # fmt: skip
async def test_a_refusal_is_told_at_once_with_its_remedy(endpoint, refusal, kind, hint):
    with ModelServer([refusal, Answer("not asked for")]) as server:
        error = await failing(endpoint(server))
    assert (error.kind, error.hint) == (kind, hint.format(url=server.url))
    assert error.args[0].startswith(f"{server.url} answered {refusal.status}: ")
    assert (error.status, error.attempts, len(server.asked)) == (refusal.status, 1, 1)
    assert error.context_too_long is (kind == "context")


async def test_a_wrong_key_is_told_and_the_key_is_nowhere(endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    with ModelServer() as server:
        model = endpoint(server, api_key="sk-wrong-1234")
        error = await failing(model)
    assert str(error) == (
        f"{server.url} answered 401: Incorrect API key provided: Bearer *** "
        f"(set OPENAI_API_KEY to a key of {server.url})"
    )
    assert server.asked[0].headers["authorization"] == "Bearer sk-wrong-1234"
    shown = [repr(error), repr(model), caplog.text, *traceback.format_exception(error), repr(vars(error))]
    assert [text for text in shown if "sk-wrong" in text] == []
    assert "HTTP Request" in caplog.text
    assert (error.__cause__, error.__context__, error.kind) == (None, None, "key")


KEY = "sk-proj/A+b=c 9%?zZ-1234567890"


@pytest.mark.sampled(14)
@pytest.mark.parametrize(
    "repeated",
    [
        KEY, KEY[:12] + "…" + KEY[-9:], f"{KEY[:20]}\n", quote(KEY, safe=""), quote(KEY, safe="").lower(),
        quote_plus(KEY), "".join(f"%{ord(char):02X}" for char in KEY), "".join(map(r"\x{:02x}".format, KEY.encode())),
        json.dumps(KEY + "\u00e9"), repr(KEY),
        b64encode(KEY.encode()).decode(), "Basic " + b64encode(f"me:{KEY}".encode()).decode(),
        "Basic " + b64encode(f":{KEY}".encode()).decode()[5:-3], urlsafe_b64encode(f"ab:{KEY}".encode()).decode(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["refusal", "stream", "body"])
async def test_a_key_is_hidden_however_an_endpoint_repeats_it(endpoint, repeated, way, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    answer = {
        "refusal": Failure(400, f"the key <{repeated}> is none"),
        "stream": Stream((f"data: {json.dumps({'error': {'message': f'the key <{repeated}> is none'}})}", "")),
        "body": Failure(401, body=f"the key <{repeated}> is none"),
    }[way]
    with ModelServer([answer] * 2, key=KEY) as server:
        model = record(endpoint(server, patience={"retries": 0}), tmp_path / "replies")
        with pytest.raises(ModelError) as caught:
            await model.reply([{"role": "user", "content": "hello"}], [])
    shown = [shown_by(caught.value), repr(model), repr(vars(model)), (tmp_path / "replies").read_text(), caplog.text]
    for text in shown:
        plain = unquote_plus(text.replace("\\x", "%"))
        found = [KEY[at : at + 8] for at in range(len(KEY) - 7) if KEY[at : at + 8].lower() in plain.lower()]
        assert found == []
        coded = [b64encode(f"{pad}{KEY}".encode()).decode()[8:-8] for pad in ("", "a", "ab")]
        assert [part for part in coded if part in text] == []
    assert "the key <" in str(caught.value)


async def test_a_password_in_the_url_is_sent_and_neither_logged_nor_shown(endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    with ModelServer() as server:
        url = server.url.replace("://", f"://me:{quote(KEY, safe='')}@")
        error = await failing(endpoint(server, base_url=url, patience={"retries": 0}))
    sent = "Basic " + b64encode(f"me:{KEY}".encode()).decode()
    assert server.asked[0].headers["authorization"] == sent
    assert error.args[0] == f"{server.url} answered 401: Incorrect API key provided: Basic ***"
    assert [text for text in (caplog.text, shown_by(error)) if KEY in unquote(text) or sent in text] == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HTTP_PROXY", "foo://x", "ValueError: Unknown scheme for proxy URL"),
        ("HTTP_PROXY", "http://127.0.0.1:99999999", "OverflowError: connect"),
        ("SSL_CERT_FILE", "/nonexistent", "FileNotFoundError: "),
        ("OPENAI_BASE_URL", f"http://me:{KEY}@127.0.0.1:99999999/v1", "OverflowError: connect"),
    ],
    ids=["scheme", "port of a proxy", "certificates", "port"],
)
async def test_setting_of_the_program_that_cannot_be_is_told_without_secrets(monkeypatch, name, value, said):
    from cellblock.models.openai import EndpointModel

    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{quote(KEY, safe='')}@127.0.0.1:9/v1")
    monkeypatch.setenv(name, value if name != "OPENAI_BASE_URL" else value.replace(KEY, quote(KEY, safe="")))
    error = await failing(EndpointModel("gpt"))
    assert (error.kind, error.attempts) == ("setup", 1)
    assert f"/v1 can be made: {said}" in str(error)
    sent = b64encode(f"me:{KEY}".encode()).decode()
    assert [text for text in [shown_by(error)] if KEY in unquote(text) or sent in text] == []


async def test_a_query_in_the_url_is_sent_to_the_endpoint_and_neither_logged_nor_shown(endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    query = f"?api-version=2024-ü&key={quote(KEY, safe='')}"
    with ModelServer() as other:
        moved = Raw(307, {"Location": f"{other.url}/chat/completions"}, b"")
        with ModelServer([Answer("a"), Raw(404, {}, b""), moved]) as server:
            model = endpoint(server, base_url=server.url + query, patience={"retries": 0})
            reply, *errors = await model.reply(ASKED, []), await failing(model), await failing(model)
    assert reply.text == "a"
    assert [asked.path for asked in server.asked] == ["/v1/chat/completions" + query.replace("ü", "%C3%BC")] * 3
    assert other.asked == [], "what was said goes to no other server"
    assert "sends requests on to another server" in str(errors[1])
    assert f"{server.url}/chat/completions" in caplog.text
    shown = [caplog.text, repr(model), *map(shown_by, errors)]
    assert [text for text in shown if KEY in unquote(text) or "2024" in text] == []


@pytest.mark.parametrize("url", [f"http://me:{KEY}@[h/v1", f"htp://h/{KEY}", f"http://h/v1#{KEY}", f"{KEY}"])
def test_endpoint_that_cannot_be_is_told_without_its_secrets(endpoint, url):
    from cellblock.models.openai import EndpointModel

    for given in ({"base_url": url}, {"base_url": "http://h/v1", "api_key": KEY + "\n\u00e9"}, {"name": ""}):
        with pytest.raises(ModelError) as caught:
            EndpointModel(given.pop("name", "gpt"), **{"api_key": KEY, "base_url": url, **given})
        assert KEY not in unquote(shown_by(caught.value))


async def test_a_short_key_that_is_none_leaves_messages_as_they_are(endpoint):
    with ModelServer([Failure(400, "nobody knows no")], key="no") as server:
        assert "nobody knows no" in str(await failing(endpoint(server)))


async def test_a_key_in_a_broken_stream_is_not_repeated(endpoint, retries):
    lines = ('data: {"error": {"message": "key sk-right failed"}}', "")
    with ModelServer([Stream(lines)], key="sk-right") as server:
        error = await failing(endpoint(server, patience={"retries": 0}))
    assert "key *** failed" in str(error)


_TYPES = [
    "application/json; charset=nonsense", "application/json; charset=undefined", "application/json; charset=idna",
    "text/event-stream; charset=base64", "text/event-stream; charset=\u00ff", "application/json; charset*=a'b'%ff",
    'text/html; charset="', "; charset=", "application/json;" * 50, "", "/", "text/event-stream", "application/json",
]  # fmt: skip
_BODIES = [
    b"", b"{", b"[]", b"null", b'"x"', b"5", b'{"error": 5}', b'{"error": {"message": {"a": []}, "code": [1]}}',
    b'{"choices": 5}', b'{"choices": [[]]}', b'{"choices": [{"message": {"tool_calls": [[]]}}]}', b"\xff\xfe",
    b'{"choices": [{"delta": {"content": "\\ud800"}}]}', b'{"usage": {"prompt_tokens": 1' + b"0" * 5000 + b"}}",
    b"[" * 100_000, b'{"error": {"code": 1' + b"0" * 4000 + b"}}",
    b'{"choices":[{"message":{"content":' + b'[{"type": "thinking", "thinking":' * 400 + b"0" + b"}]" * 400 + b"}}]}",
]  # fmt: skip


@pytest.mark.sampled(0)
@pytest.mark.threat("L9")
@pytest.mark.parametrize("kind", _TYPES)
async def test_whatever_an_endpoint_sends_is_an_answer_or_an_error_of_the_model(endpoint, kind):
    odd = {"content-type": kind.encode().decode("latin-1"), "content-encoding": "identity"}
    script, told = [], []
    for body in _BODIES:
        events = [body, b"data: " + body + b"\n\n", b"event: thread.x\ndata: " + body + b"\n\n"]
        script += [Raw(status, odd, event) for status in (200, 401) for event in events]
    script += [Raw(200, odd | {"content-encoding": "gzip"}, b"no gzip"), Raw(302, odd | {"location": "\x01"}, b"")]
    with ModelServer(script) as server:
        async with endpoint(server, patience={"retries": 0, "timeout_seconds": 20}) as model:
            for one in script:
                try:
                    await model.reply(ASKED, [])
                except ModelError as error:
                    told.append((len(str(error)) < 1500, error.kind != "key" or one.status == 401))
    assert set(told) == {(True, True)}


async def test_a_refusal_in_an_odd_charset_is_the_same_refusal(endpoint):
    body = b'{"error": {"message": "no", "code": null}}'
    with ModelServer([Raw(401, {"content-type": "application/json; charset=idna"}, body)]) as server:
        assert (await failing(endpoint(server))).kind == "key"


@pytest.mark.sampled(2)
@pytest.mark.threat("D4")
@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([{"content": "x" * 1_000_000}] * 5, "the answer has more than 4,194,304 characters"),
        ([{"reasoning": "x" * 1_000_000}] * 5, "the answer has more than 4,194,304 characters"),
        ([{"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": " " * 1_000_000}}]}] * 5,
         "the answer has more than 4,194,304 characters"),
        ([{"tool_calls": [{"index": n} for n in range(1_001)]}], "the answer has more than 1,000 tool calls"),
        ([{"content": "x" * 9_000_000}], "the answer has more bytes than are read"),
        ([{"other": "x" * 4_000_000}] * 17, "the answer has more bytes than are read"),
        ([{"tool_calls": [{"index": 0, "function": {"name": "x" * 1_001}}]}], "the answer has a name of more than 1,000"
         " characters"),
        ([{"tool_calls": [{"index": 0, "id": "x" * 1_001}]}], "the answer has a name of more than 1,000 characters"),
    ],
    ids=["text", "reasoning", "arguments", "calls", "a piece", "all else", "name", "id"],
)  # fmt: skip
async def test_an_answer_without_end_is_refused_and_not_asked_for_again(endpoint, retries, pieces, said):
    lines = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode() for delta in pieces]
    with ModelServer([Raw(200, {"content-type": "text/event-stream"}, b"".join(lines))]) as server:
        error = await failing(endpoint(server))
    assert str(error) == f"{server.url}: {said} (ask for less, such as by max_tokens)"
    assert (error.kind, retries) == ("malformed", [])


SSE = {"content-type": "text/event-stream"}
WORD = b'data: {"choices": [{"index": 0, "delta": {"content": " word"}}]}\n\n'
END = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.sampled(0)
@pytest.mark.threat("D4")
@pytest.mark.parametrize(
    "body",
    [
        WORD * 10_000, b"data: {}\n\n" * 30_000, b": \n" * 700_000, b"\n" * 2_000_000, b"\r" * 2_000_000,
        b"data:\n" * 100_000 + b"\n", b"event: thread.a\n\n" * 100_000,
    ],
    ids=["words", "small", "comments", "blank lines", "ends of lines", "lines", "without data"],
)  # fmt: skip
async def test_an_answer_in_one_burst_leaves_the_event_loop_to_other_tasks(endpoint, body, longest_turn):
    with ModelServer([Raw(200, SSE, body + END)]) as server:
        model, told = endpoint(server, patience={"retries": 0}), []

        async def ask():
            told.append(await model.reply(ASKED, []))

        took = await longest_turn(ask)
    assert told[0].text == " word" * body.count(WORD)
    assert took < 0.1


async def test_a_long_answer_is_told_in_pieces(endpoint, longest_turn):
    text = "x" * 2_000_000
    whole = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
    with ModelServer([Raw(200, {"content-type": "application/json"}, whole)]) as server:
        model, told = endpoint(server, patience={"retries": 0}), []

        async def ask():
            await model.reply(ASKED, [], told.append)

        assert await longest_turn(ask) < 0.1
    assert "".join(told) == text
    assert max(map(len, told)) < 100_000


async def test_an_answer_that_is_whole_counts_however_its_connection_ends(endpoint, retries):
    lines = ('data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}', "")
    with ModelServer([Stream(lines, hang=True)]) as server:
        reply = await endpoint(server, patience={"timeout_seconds": 1}).reply(ASKED, [])
    assert (reply.text, reply.attempts, retries) == ("a", 1, [])


def _delta(**delta):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def _call(**function):
    return _delta(tool_calls=[{"index": 0, "function": function}])


@pytest.mark.sampled(1)
@pytest.mark.threat("D4")
@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        (SSE, b"data: [" + b"0," * 2_000_000 + b"0]\n\n", "a piece of the answer has more than 250,000 values"),
        (SSE, b"data: [" + (b"[" * 60 + b"]" * 60 + b",") * 60_000 + b"0]\n\n", "a piece of the answer has more than"),
        (SSE, b"data: [" + (b"9" * 4_000 + b",") * 600 + b"0]\n\n", "more than 2,000,000 digits"),
        (SSE, _delta(content=[""] * 240_000), None),
        (SSE, _delta(content=[""] * 20_000) * 20, "the answer has more than 4,194,304 characters"),
        (SSE, _delta(tool_calls=[{"index": 9}] * 5_000) * 60, "the answer has more than 4,194,304 characters"),
        (SSE, _call(name="f", arguments='{"a":[' + "1," * 100_000) + _call(name="f", arguments="1") * 3_000, None),
        (SSE, _call(name="f", arguments='{"a":"' + "x" * 1_000_000) + _call(name="f", arguments="}") * 500, None),
        ({}, json.dumps({"choices": [{"message": {"content": [""] * 240_000}}]}).encode(), None),
        ({}, json.dumps({"choices": [{"index": 1}] * 300_000}).encode(), "a piece of the answer has more than"),
    ],
    ids=[
        "values", "brackets", "digits", "parts", "parts in pieces", "calls", "names", "names again", "whole", "choices",
    ],
)
async def test_an_answer_of_many_parts_leaves_the_event_loop_to_other_tasks(endpoint, longest_turn, kind, body, said):
    kind = kind or {"content-type": "application/json"}
    with ModelServer([Raw(200, kind, body + (END if kind is SSE else b""))]) as server:
        model, told = endpoint(server, patience={"retries": 0}), []

        async def ask():
            try:
                told.append(await model.reply(ASKED, []))
            except ModelError as error:
                told.append(error)

        took = await longest_turn(ask)
    [answer] = told
    assert (isinstance(answer, Reply) if said is None else said in str(answer)), answer
    assert took < 0.1


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"data:\n\n", b"data: \r\n\r\n", b"data\n\n", b"data:\ndata:\n\n"])
async def test_a_mark_of_byte_order_and_events_without_data_are_no_part_of_an_answer(endpoint, before):
    """As the HTML standard has it, 9.2.6."""
    with ModelServer([Raw(200, SSE, before + WORD + before[:0 if before[0] == 0xEF else None] + END)]) as server:
        assert (await endpoint(server, patience={"retries": 0}).reply(ASKED, [])).text == " word"


@pytest.mark.sampled(1)
@pytest.mark.threat("D4")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_of_a_stream_may_be_cut_anywhere_and_end_in_any_way(endpoint, end):
    lines = []
    for number in range(5_000):
        second = f'data:"delta": {{"content": "{number} "}}}}]}}'
        lines += ["event: x", ": a comment", 'data: {"choices": [{"index": 0,', second, ""]
    body = end.join([*lines, 'data: {"choices": [{"finish_reason": "stop"}]}', "", "data: [DONE]", "", "nonsense"])
    with ModelServer([Raw(200, SSE, body.encode())]) as server:
        reply = await endpoint(server).reply(ASKED, [])
    assert reply.text == "".join(f"{number} " for number in range(5_000))


@pytest.mark.sampled(2)
@pytest.mark.threat("D4")
@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip", "x-gzip", "compress"])
async def test_an_answer_that_is_compressed_is_refused_by_name(endpoint, retries, encoding):
    body = gzip.compress(b": \n" * 3_000_000 + WORD + END)
    headers = SSE | {"content-encoding": encoding}
    whole = {"content-type": "application/json", "content-encoding": encoding}
    with ModelServer([Raw(200, headers, body), Raw(200, whole, body), Raw(401, whole, body)]) as server:
        model = endpoint(server)
        errors = [await failing(model) for _ in range(3)]
    for error in errors[:2]:
        assert (str(error), error.kind) == (
            f"{server.url}: the answer has the encoding {encoding.lower()} (have what is between send answers as they "
            "are: requests say Accept-Encoding: identity)",
            "malformed",
        )
    assert (errors[2].kind, errors[2].status, retries) == ("key", 401, [])
    assert {asked.headers["accept-encoding"] for asked in server.asked} == {"identity"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("encoding", ["none", "utf-8", "chunked", "identity, identity", "", "of-its-own"])
async def test_an_encoding_that_leaves_bodies_as_they_are_is_passed_over(endpoint, encoding):
    headers = {"content-encoding": encoding}
    refusal = json.dumps({"error": {"message": "bad thing: stream_options"}}).encode()
    answers = [Raw(400, headers, refusal), Raw(200, SSE | headers, WORD + END), Raw(400, headers, refusal)]
    with ModelServer(answers) as server:
        model = endpoint(server)
        assert (await model.reply(ASKED, [])).text == " word"
        assert str(await failing(model)) == f"{server.url} answered 400: bad thing: stream_options"
    assert ["stream_options" in asked.body for asked in server.asked] == [True, False, False]


@pytest.mark.parametrize("finished", [True, False])
async def test_an_answer_ends_where_it_says_so_though_its_connection_stays_open(endpoint, finished):
    lines = (WORD + END if finished else WORD + b"data: [DONE]\n\n").decode().split("\n")
    with ModelServer([Stream(tuple(lines), hang=True)]) as server, anyio.fail_after(4):
        model = endpoint(server, patience={"retries": 0, "stall_seconds": 60})
        if finished:
            assert (await model.reply(ASKED, [])).text == " word"
        else:
            assert str(await failing(model)) == "the answer broke off before its end (try again later)"
        assert server.left.wait(4)


@pytest.mark.threat("D4")
async def test_what_is_held_of_a_piece_is_counted_by_its_bytes_and_lines(endpoint, monkeypatch):
    monkeypatch.setattr("cellblock.models.streaming._MOST_PIECE", 4_000)
    text = "x" * 3_000
    line = f'data: {{"choices": [{{"delta": {{"content": "{text}"}}, "finish_reason": "stop"}}]}}'
    script = [Stream((line, "", "data: [DONE]", ""), piece=1), Stream(("data: " + "[" * 4_000,), piece=1)]
    with ModelServer([*script, Stream(("data:",) * 60)]) as server:
        model = endpoint(server, patience={"retries": 0})
        assert (await model.reply(ASKED, [])).text == text
        for _ in range(2):
            assert "the answer has more bytes than are read" in str(await failing(model))


@pytest.mark.threat("D4")
@pytest.mark.parametrize("body", [b"x" * 20_000_000, b"[" * 20_000_000, b"\xff" * 20_000_000])
async def test_the_beginning_of_a_refusal_is_read_and_the_connection_given_back(endpoint, body, longest_turn):
    with ModelServer([Raw(401, {}, body), Answer("hello")]) as server:
        async with endpoint(server) as model:
            errors = []

            async def ask():
                errors.append(await failing(model))

            took = await longest_turn(ask)
            assert (errors[0].kind, errors[0].status, len(str(errors[0])) < 1500) == ("key", 401, True)
            assert (await model.reply(ASKED, [])).text == "hello"
    assert took < 0.1


async def test_a_mistake_of_the_caller_is_no_failure_of_the_endpoint(endpoint, retries):
    with ModelServer([Answer("not asked for")]) as server:
        with pytest.raises(TypeError, match="not JSON serializable"):
            await endpoint(server).reply([{"role": "user", "content": object()}], [])
    assert (server.asked, retries) == ([], [])


def test_a_name_is_not_empty():
    with pytest.raises(ModelError, match="a model's name must not be empty"):
        connect("")


def test_without_a_key_it_says_how_to_get_one_or_to_do_without():
    with pytest.raises(ModelError) as caught:
        connect("gpt-5")
    assert str(caught.value) == (
        "there is no key for the model 'gpt-5' of OpenAI (set OPENAI_API_KEY, from "
        "https://platform.openai.com/api-keys, or point OPENAI_BASE_URL to another endpoint, such as a local Ollama's "
        "http://localhost:11434/v1, vLLM's or llama.cpp's http://localhost:8080/v1)"
    )
    assert caught.value.kind == "key"


@pytest.mark.parametrize("key", ["sk-…", "sk-a\nb", "sk-a\tb"])
def test_a_key_that_is_none_is_refused_without_showing_it(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError) as caught:
        connect("gpt")
    assert str(caught.value) == "the key contains characters that no key has (copy it again)"


async def test_a_line_end_after_the_key_is_no_part_of_it(endpoint):
    with ModelServer([Answer("hello")]) as server:
        assert (await endpoint(server, api_key=server.key + "\n").reply(ASKED, [])).text == "hello"


@pytest.mark.parametrize("url", ["localhost:11434/v1", "ftp://host/v1", "http://", "http://host:port/v1", "http://[x/"])
def test_a_url_that_is_none_is_refused_without_showing_it(monkeypatch, url):
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ModelError, match=r"URL is not an HTTP URL \(set OPENAI_BASE_URL to something like"):
        connect("gpt")


def test_credentials_in_the_url_are_not_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret@host:8443/v1/?token=secret")
    assert repr(connect("gpt")) == "EndpointModel('gpt', base_url='https://host:8443/v1')"


def test_without_the_package_the_extra_is_named():
    program = (
        "import sys; sys.modules['openai'] = None\n"
        "from cellblock.models import connect\n"
        "try: connect('gpt')\n"
        "except Exception as error: print(type(error).__name__, error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == 'ModelError pip install "cellblock[openai]"\n'


# --- connections -----------------------------------------------------------------------------------------------------


async def test_connections_are_kept_within_async_with_alone(endpoint):
    with ModelServer(lambda body: Answer("hello")) as server:
        model = endpoint(server)
        for _ in range(2):
            await model.reply(ASKED, [])
        async with model:
            await model.reply(ASKED, [])
            async with model:
                await model.reply(ASKED, [])
            await model.reply(ASKED, [])
        await model.reply(ASKED, [])
    ports = [asked.port for asked in server.asked]
    assert ports[2] == ports[3] == ports[4]
    assert len(set(ports)) == 4


@pytest.mark.parametrize("kept", [True, False])
async def test_replies_may_be_asked_for_at_the_same_time(endpoint, kept):
    with ModelServer(lambda body: Answer(body["messages"][0]["content"], pause=0.01)) as server:
        model, told = endpoint(server), {}

        async def ask(text):
            told[text] = (await model.reply([{"role": "user", "content": text}], [])).text

        async with model if kept else nullcontext(), anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(ask, f"question {number}")
    assert told == {f"question {number}": f"question {number}" for number in range(8)}


async def test_tasks_that_enter_a_model_at_once_leave_no_connection_open(endpoint, monkeypatch):
    import openai

    clients = []

    class Client(openai.DefaultAsyncHttpxClient):
        def __init__(self, **given):
            clients.append(self)
            super().__init__(**given)

    monkeypatch.setattr(openai, "DefaultAsyncHttpxClient", Client)
    with ModelServer(lambda body: Answer("hello")) as server:
        model = endpoint(server)

        async def ask():
            async with model:
                await model.reply(ASKED, [])

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(ask)
    assert {client.is_closed for client in clients} == {True}


def test_one_model_may_be_used_from_several_event_loops(endpoint):
    with ModelServer(lambda body: Answer("hello")) as server:
        model, said = endpoint(server), []

        async def ask():
            async with model:
                said.append((await model.reply(ASKED, [])).text)

        threads = [threading.Thread(target=anyio.run, args=(ask,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        anyio.run(ask)
    assert said == ["hello"] * 3
