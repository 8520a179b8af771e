"""A model that is an object of the user's own, with a method `complete`."""

from __future__ import annotations

from contextvars import copy_context
from functools import partial
from inspect import isawaitable, iscoroutinefunction

from anyio import Event, fail_after

from cellblock.errors import ModelError
from cellblock.hosting.threads import in_thread
from cellblock.models.protocol import Message, Model, OnText, Reply, ToolSchema, Unopened, give
from cellblock.text import line, message_of, type_name
from cellblock.waking import waker


class CalledModel(Unopened):
    """Calls `model.complete`: on the event loop where it is async, else in a thread, so that it blocks nobody.

    Past `timeout_seconds` the answer is no longer waited for. A thread cannot be ended: it runs on, at most until the
    program leaves, and its answer is dropped. What `complete` raises becomes a `ModelError`, which has it as its cause;
    nothing is tried again.
    """

    def __init__(self, model: Model, *, timeout_seconds: float) -> None:
        self.name = line(getattr(model, "name", type(model).__name__))
        self._model = model
        self._timeout = timeout_seconds

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        try:
            with fail_after(self._timeout) as scope:
                answer = await self._ask(messages, tools)
        except ModelError:
            raise
        except Exception as error:  # the user's own code: anything
            if isinstance(error, TimeoutError) and scope.cancelled_caught:
                raise ModelError(
                    f"{self.name} did not answer within {self._timeout:g} s",
                    kind="timeout",
                    hint="raise timeout_seconds",
                ) from None
            said = f"{self.name}.complete raised {type_name(error)}: {message_of(error, 10_000)}"
            raise ModelError(said, kind="raised", hint="mend the model") from error
        if isinstance(answer, str):
            answer = Reply(text=answer, model=self.name)
        if not isinstance(answer, Reply):
            raise ModelError(
                f"{self.name}.complete returned a {type(answer).__name__}",
                kind="malformed",
                hint="return a str or a cellblock.models.Reply",
            )
        give(answer.text, on_text)
        return answer

    async def _ask(self, messages: list[Message], tools: list[ToolSchema]) -> object:
        complete = self._model.complete
        answer: object
        if iscoroutinefunction(complete):
            answer = complete(messages, tools)
        else:
            done = Event()
            wake, context = waker(done.set), copy_context()
            called = in_thread(partial(context.run, complete, messages, tools), "cellblock model")
            called.add_done_callback(lambda _: wake())
            await done.wait()
            answer = called.result()
        return await answer if isawaitable(answer) else answer

    def __repr__(self) -> str:
        return f"CalledModel({self.name})"
