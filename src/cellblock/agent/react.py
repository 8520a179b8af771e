"""`ReactAgent`: a model that calls tools one by one, with JSON, as chat endpoints offer it. It runs no code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal

import anyio

from cellblock import __version__
from cellblock.agent.loop import answered
from cellblock.agent.memory import AgentMemory
from cellblock.agent.recording import to_plain
from cellblock.agent.result import RunResult, Step, how_ended
from cellblock.agent.signals import Tell
from cellblock.agent.trace import Trace
from cellblock.agent.workplace import marks_passed
from cellblock.callers import Caller, callers
from cellblock.errors import ModelError
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.limits import ExecutionLimits, limits_of
from cellblock.models import Connected, Message, Reply, Tokens, ToolRequest, connect
from cellblock.observe.log import FORMAT, EventLog
from cellblock.observe.redaction import Redactor
from cellblock.observe.spans import Operation, Span, Spans, spans_for
from cellblock.session.hostloop import call
from cellblock.session.notebook import Notebook
from cellblock.session.tools import Toolbox, ends_this_task
from cellblock.text import message_of, represent, strict_json, valid, write_json
from cellblock.tools.schema import Callee
from cellblock.tools.tool import listed

_SYSTEM = (
    "Solve the task with the tools. Call final_answer with the answer, and with how you checked it; "
    "or say the answer without calling a tool. If a tool fails, read its error and try another way."
)


class ReactAgent:
    """Solves tasks by calling tools, the same functions that a `CodeAgent` takes, in this process.

    Needs the extra `agent`, for pydantic: schemas are made of signatures, and arguments are validated.
    `limits` bound its steps and what it is shown of a tool's answer.
    """

    def __init__(
        self,
        model: str | object,
        *,
        tools: Iterable[Callable[..., Any]] = (),
        limits: ExecutionLimits | None = None,
        on_limit: Literal["return", "raise"] = "return",
        system: str = _SYSTEM,
        redact: Iterable[str] = (),
        verbose: bool = False,
        telemetry: object = None,
        telemetry_content: bool = False,
    ) -> None:
        self.model: Connected = connect(model)
        self.limits = limits_of(limits)
        self.on_limit = on_limit
        self._system = system
        self._redactor = Redactor(redact)
        self._verbose = verbose
        self._telemetry = telemetry, telemetry_content
        self._spans()
        self._tools: dict[str, Callee] = {}
        for one in map(Callee, listed(tools)):
            if one.name in self._tools or one.name == "final_answer":
                why = "is a name of the agent's own" if one.name == "final_answer" else "is registered twice"
                raise ValueError(f"{one.name!r} {why}")
            self._tools[one.name] = one

    def run(self, task: str, **options: Any) -> RunResult:
        """Work on a task until there is an answer; the blocking twin of `arun`."""
        return call(self.arun, task, **options)

    async def arun(
        self, task: str, *, log: str | os.PathLike[str] | None = None, tell: Tell | None = None
    ) -> RunResult:
        """Work on a task until there is an answer, or the steps are used up. Raises `ModelError`."""
        if not isinstance(task, str):
            raise TypeError(f"a task must be a str, not {type(task).__name__}")
        events = EventLog(log, redactor=self._redactor)
        told: dict[str, Any] = {"task": task, "model": self.model.name, "tools": sorted(self._tools)}
        await events.add("run", format=FORMAT, version=__version__, **told)
        tell = Trace(self.limits.max_steps, tell) if self._verbose else tell
        run = _Run(self, events, tell)
        messages: list[Message] = [{"role": "system", "content": self._system}, {"role": "user", "content": task}]
        try:
            async with self.model, marks_passed(run.mark_private, lambda: run.private):
                with run.spans.run("ReactAgent", self.model) as whole:
                    while not run.answered and len(run.steps) < self.limits.max_steps:
                        with run.span("chat", self.model.name) as span:
                            reply = await self.model.reply(messages, run.schemas, tell)
                            await span.add(Span.reply, messages, reply)
                        messages += await run.step(reply)
                    whole.result(len(run.steps), run.tokens, partial=not run.answered)
            await run.end("answered" if run.answered else "steps used up")
        except BaseException as error:
            await run.end(how_ended(error))
            if isinstance(error, ModelError):
                error.result = run.result()
            raise
        finally:
            events.close()
        return answered(run.result(), self.on_limit)

    def _spans(self) -> Spans:
        provider, content = self._telemetry
        return spans_for(provider, self._redactor, content=content, version=__version__)


class _Run:
    """One run: its steps, and the answer once there is one."""

    def __init__(self, agent: ReactAgent, events: EventLog, tell: Tell | None) -> None:
        self.spans = agent._spans()
        self._model = agent.model
        self.steps: list[Step] = []
        self.answered = False
        self.answer: tuple[object, str | None] = (None, None)

        def final_answer(value: Any, verified_by: str | None = None) -> None:
            """Give the answer to the task; verified_by says how it was checked."""
            self.answered, self.answer = True, (value, verified_by)

        self._tools = {**agent._tools, "final_answer": Callee(final_answer)}
        self.schemas = [one.schema for one in self._tools.values()]
        self._events = events
        self._limits = agent.limits
        self._tell = tell
        self.tokens = Tokens()
        self._memory = AgentMemory()
        self.private = ""
        """Why what was answered may be private: tools that are declared outward are refused then. "" where not."""
        self._asked = Toolbox()
        self._asked.mark_by(self.mark_private)

    async def mark_private(self, reason: str) -> None:
        """Call no tool from now on that is declared outward."""
        self.private = self._asked.private = self.private or reason

    async def step(self, reply: Reply) -> list[Message]:
        """Do what a reply asks for; the messages that follow from it."""
        number = len(self.steps) + 1
        self.tokens += reply.tokens
        calls = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.raw}}
            for one in reply.requests
        ]
        message: Message = {"role": "assistant", "content": reply.text}
        messages = [{**message, "tool_calls": calls} if calls else message]
        await self._events.add("reply", step=number, text=reply.text, requests=calls)
        shown = await self._call_all(number, reply.requests)
        for request, answer in zip(reply.requests, shown, strict=True):
            messages.append({"role": "tool", "tool_call_id": request.id, "content": answer})
        if not reply.requests and reply.text.strip():
            self.answered, self.answer = True, (reply.text.strip(), None)
        elif not reply.requests:
            messages.append({"role": "user", "content": "The reply was empty. Call a tool, or say the answer."})
        code = "\n".join(f"{one.name}({one.raw})" for one in reply.requests)
        step = Step(number=number, text=reply.text, code=code, output="\n".join(shown), tokens=reply.tokens)
        self.steps.append(step)
        if self._tell is not None:
            self._tell(step)
        return messages

    def span(self, operation: Operation, what: str) -> AbstractContextManager[Span]:
        """A span of the step that is under way."""
        return self.spans.step(operation, what, step=len(self.steps) + 1, model=self._model)

    async def _call_all(self, number: int, requests: Sequence[ToolRequest]) -> list[str]:
        """Answers of tools that are called at once, as a model reads it, in the order of the calls."""
        found: dict[int, tuple[str, object]] = {}

        async def call(place: int) -> None:
            found[place] = await self._call(requests[place])

        async with anyio.create_task_group() as tasks:
            for place in range(len(requests)):
                tasks.start_soon(call, place)
        return [await self._told(number, request, *found[place]) for place, request in enumerate(requests)]

    async def _call(self, request: ToolRequest) -> tuple[str, object]:
        """A call's problem ("" for none) and its answer. An exception of the tool is a problem."""
        tool = self._tools.get(request.name)
        if tool is None:
            return f"there is no tool {request.name!r}; there are {', '.join(sorted(self._tools))}", None
        if request.arguments is None:
            return f"the arguments are no JSON object: {request.raw[:200]}", None
        if tool.about.outward and self.private:
            why = f"which cannot be after private data were given: {self.private}"
            return f"{request.name}() reaches outside, {why}", None
        if tool.about.private:
            await self.mark_private(f"{request.name}() was called")
        # for this task, which ends with the call
        callers.set((*callers.get(), Caller(self._asked, f"{request.name}()")))
        try:
            with self.span("execute_tool", request.name) as span:
                await span.add(_tell, "gen_ai.tool.call.arguments", request.arguments)
                answer = await tool.call(request.arguments)
                await span.add(_tell, "gen_ai.tool.call.result", answer)
        except BaseException as raised:  # whatever it is, it is the model's to handle
            if ends_this_task(raised):
                raise
            said = await off_loop(LARGE, message_of, raised, self._limits.max_output_bytes)  # its own code says it
            return f"{type(raised).__name__}: {said}", None
        return "", answer

    async def _told(self, number: int, request: ToolRequest, error: str, answer: object) -> str:
        """A call's outcome as a model reads it, logged."""
        if error:
            self._memory.fail(f"{request.name}: {error}")
        event: dict[str, Any] = {"step": number, "name": request.name, "arguments": request.arguments}
        told = partial(dict, error=error) if error else lambda: {"answer": to_plain(answer)}
        await self._events.add("tool", told, **event)
        most = self._limits.max_output_bytes
        text = f"error: {error}" if error else await off_loop(LARGE, _shown, answer, most)
        return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters are left out)"

    async def end(self, reason: str) -> None:
        """Log the run's end."""
        value, verified_by = self.answer
        told = {"verified_by": verified_by, "steps": len(self.steps)}
        await self._events.add("end", lambda: {"value": to_plain(value), **told}, reason=reason)

    def result(self) -> RunResult:
        notebook = Notebook()
        notebook.private = self.private
        return RunResult(
            value=self.answer[0],
            verified_by=self.answer[1],
            steps=self.steps,
            memory=self._memory,
            partial=not self.answered,
            log=self._events,
            tokens=self.tokens,
            notebook=notebook,
        )


def _tell(span: Span, name: str, value: object) -> None:
    span.tell(name, to_plain(value) if name == "gen_ai.tool.call.result" else value)


def _shown(answer: object, most: int) -> str:
    if isinstance(answer, str):
        return valid(answer)
    found = strict_json(answer)
    return represent(answer, max_chars=most) if found is None else write_json(found[0], escaped=False)
