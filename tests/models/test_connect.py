"""What is taken for a model, and models that are objects of the user's own."""

import subprocess
import sys
import threading
import traceback
from contextvars import ContextVar

import anyio
import pytest

from cellblock.errors import CellblockError, ModelError
from cellblock.models import Reply, ToolRequest, connect

pytestmark = pytest.mark.anyio
ASKED = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


class Echo:
    """The protocol as a user writes it."""

    def __init__(self, answer):
        self.answer = answer

    def complete(self, messages, tools):
        self.given, self.thread = (messages, tools), threading.current_thread()
        return self.answer


async def test_an_object_with_complete_is_called_with_messages_and_tools_and_blocks_nobody():
    echo = Echo("hello back")
    assert await connect(echo).reply(ASKED, TOOLS) == Reply(text="hello back", model="Echo")
    assert echo.given == (ASKED, TOOLS)
    assert echo.thread is not threading.current_thread()


async def test_a_reply_of_an_object_is_taken_as_it_is():
    reply = Reply(text="a\nb", finish="length")
    pieces = []
    async with connect(Echo(reply)) as model:
        assert await model.reply(ASKED, [], pieces.append) is reply
    assert pieces == ["a\n", "b"]


async def test_complete_may_be_async():
    class Async:
        name = "mine"

        async def complete(self, messages, tools):
            self.thread = threading.current_thread()
            return "hello"

    mine = Async()
    assert await connect(mine).reply(ASKED, []) == Reply(text="hello", model="mine")
    assert mine.thread is threading.current_thread()


async def test_complete_may_return_what_has_to_be_awaited():
    class Late:
        def complete(self, messages, tools):
            async def answer():
                return "late"

            return answer()

    assert (await connect(Late()).reply(ASKED, [])).text == "late"


async def test_an_answer_of_another_type_is_refused():
    with pytest.raises(ModelError) as caught:
        await connect(Echo({"text": "hello"})).reply(ASKED, [])
    assert str(caught.value) == "Echo.complete returned a dict (return a str or a cellblock.models.Reply)"
    assert caught.value.kind == "malformed"


async def test_an_answer_of_many_calls_is_refused():
    request = ToolRequest("1", "add", {}, "{}")
    assert len((await connect(Echo(Reply(requests=(request,) * 1_000))).reply(ASKED, [])).requests) == 1_000
    with pytest.raises(ModelError, match="more than 1,000 tool calls"):
        await connect(Echo(Reply(requests=(request,) * 1_001))).reply(ASKED, [])


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("no")])
async def test_what_complete_raises_is_the_cause_of_a_model_error(error):
    class Broken:
        def complete(self, messages, tools):
            raise error

    with pytest.raises(ModelError, match=f"Broken.complete raised {type(error).__name__}: no") as caught:
        await connect(Broken()).reply(ASKED, [])
    assert (caught.value.kind, caught.value.__cause__) == ("raised", error)
    assert "in complete" in "".join(traceback.format_exception(caught.value))


async def test_a_model_error_of_an_object_passes_as_it_is():
    error = ModelError("too long", kind="context")

    class Full:
        async def complete(self, messages, tools):
            raise error

    with pytest.raises(ModelError) as caught:
        await connect(Full()).reply(ASKED, [])
    assert caught.value is error
    assert error.context_too_long


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_object_that_does_not_answer_is_waited_for_as_long_as_was_said(asynchronous):
    ended = threading.Event()

    class Slow:
        def complete(self, messages, tools):
            ended.wait(30)
            return "late"

    class SlowAsync:
        async def complete(self, messages, tools):
            await anyio.sleep_forever()

    try:
        with pytest.raises(ModelError, match=r"did not answer within 0\.05 s") as caught:
            await connect(SlowAsync() if asynchronous else Slow(), timeout_seconds=0.05).reply(ASKED, [])
        assert caught.value.kind == "timeout"
    finally:
        ended.set()


def test_an_answer_that_is_not_waited_for_keeps_no_program_from_leaving():
    program = """
import anyio, threading
from cellblock.models import connect
class Stuck:
    def complete(self, messages, tools):
        threading.Event().wait()
try:
    anyio.run(connect(Stuck(), timeout_seconds=0.05).reply, [], [])
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "Stuck did not answer within 0.05 s (raise timeout_seconds)\n"
    assert done.stderr == ""


def test_an_answer_that_comes_after_its_event_loop_is_dropped():
    go, gone, left = threading.Event(), threading.Event(), []

    class Late:
        def complete(self, messages, tools):
            left.append(threading.current_thread())
            go.wait(30)
            gone.set()

    with pytest.raises(ModelError, match="did not answer"):
        anyio.run(connect(Late(), timeout_seconds=0.05).reply, [], [])
    go.set()
    assert gone.wait(30)
    left[0].join(30)
    assert not left[0].is_alive()


async def test_an_object_that_wants_to_leave_the_program_may():
    class Leaves:
        def complete(self, messages, tools):
            sys.exit(3)

    with pytest.raises(SystemExit, match="3"):
        await connect(Leaves()).reply(ASKED, [])


async def test_context_variables_are_those_of_the_caller():
    asked = ContextVar("asked")
    asked.set("by me")

    class Asks:
        def complete(self, messages, tools):
            return asked.get()

    assert (await connect(Asks()).reply(ASKED, [])).text == "by me"


async def test_a_reply_can_be_cancelled():
    class Slow:
        async def complete(self, messages, tools):
            await anyio.sleep_forever()

    with anyio.move_on_after(0.05) as scope:
        await connect(Slow()).reply(ASKED, [])
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (3, "an object of type int"),
        (None, "an object of type NoneType"),
        (Echo, "the class Echo"),
        (lambda m, t: "", "an object of type function"),
    ],
)
def test_anything_else_is_told_what_is_taken(thing, said):
    with pytest.raises(ModelError) as caught:
        connect(thing)
    assert str(caught.value) == (
        f"{said} is not a model (give the name of an endpoint's model, an object with complete(messages, tools), "
        "a LangChain chat model or a ScriptedModel)"
    )
    assert isinstance(caught.value, CellblockError)
    assert caught.value.kind == "setup"
