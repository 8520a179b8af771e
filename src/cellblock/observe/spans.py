"""Spans of an agent's run for OpenTelemetry, named by its conventions for generative AI.

    invoke_agent CodeAgent
    ├── chat gpt-5-mini
    ├── execute_tool python        a cell
    │   └── execute_tool search    a tool that it calls
    └── chat gpt-5-mini …

There are none unless the program has set a tracer provider, or gives one. What was said, and what tools were given and
gave, is no part of them unless that is asked for, by `content` or by the variable that OpenTelemetry has for it; it is
redacted as logs are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

from cellblock.cell import Cell
from cellblock.errors import needing
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.models import Message, Reply, Tokens
from cellblock.observe.redaction import Redactor
from cellblock.text import cut, line, write_json

Operation = Literal["invoke_agent", "chat", "execute_tool"]

ATTRIBUTES = frozenset((
    "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.conversation.id",
    "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.tool.name", "gen_ai.tool.type",
    "error.type", "cellblock.trust_level", "cellblock.step", "cellblock.attempt", "cellblock.steps",
    "cellblock.cell.state", "cellblock.cell.rolled_back", "cellblock.cell.memory_peak_bytes",
))  # fmt: skip
"""Every attribute of spans, beside `CONTENT`."""

CONTENT = frozenset((
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
))  # fmt: skip
"""Attributes that are added where content is asked for; each is JSON."""

_MOST_NAME, _MOST_TEXT, _MOST_CONTENT = 200, 1_000, 2**20
"""Characters of a span's name, of a text among its attributes, and of what was said."""

_PROVIDER = "custom"
"""The provider of a model that names none."""

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Span:
    """One span, or none: then nothing is noted."""

    def __init__(self, span: Any, redactor: Redactor, *, content: bool) -> None:
        self._span = span
        self._redactor = redactor
        self._content = content

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; those that are None are left out."""
        if self._span is None:
            return
        for name, value in attributes.items():
            if name not in ATTRIBUTES:
                raise ValueError(f"{name} is no attribute of a span")
            if value is not None:
                self._span.set_attribute(name, _bounded(self._redactor.data(_short(value))))

    def tell(self, name: str, content: object) -> None:
        """Add what was said, where that is asked for."""
        if self._span is not None and self._content:
            if name not in CONTENT:
                raise ValueError(f"{name} is no content of a span")
            text = write_json(self._redactor.data(content))
            self._span.set_attribute(name, text if len(text) <= _MOST_CONTENT else write_json(cut(text, _MOST_CONTENT)))

    async def add(self, note: Callable[..., None], *args: object) -> None:
        """Have `note` note something here: off the event loop, where what was said is told too."""
        await off_loop(LARGE if self._span is not None and self._content else 0, note, self, *args)

    def fail(self, kind: str) -> None:
        """Mark it as failed, by the class of the error and nothing of what that says."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_status(StatusCode.ERROR)
            self._span.set_attribute("error.type", _bounded(self._redactor.text(kind)))

    def reply(self, messages: list[Message], reply: Reply) -> None:
        """Put a model's usage on its span, and the messages where content is asked for."""
        self.note(
            {
                "gen_ai.response.model": reply.model or None,
                "gen_ai.response.finish_reasons": [reply.finish],
                **_usage(reply.tokens),
                "gen_ai.usage.cache_read.input_tokens": reply.tokens.cached or None,
            }
        )
        self.tell("gen_ai.input.messages", [_message(str(one["role"]), one.get("content")) for one in messages])
        self.tell("gen_ai.output.messages", [{**_message("assistant", reply.text), "finish_reason": reply.finish}])

    def cell(self, cell: Cell) -> None:
        """Put a cell's end on its span."""
        self.note(
            {
                "cellblock.cell.state": cell.state.value,
                "cellblock.cell.rolled_back": cell.rolled_back,
                "cellblock.cell.memory_peak_bytes": cell.usage.memory_peak_bytes,
            }
        )
        self.tell("gen_ai.tool.call.arguments", {"code": cell.source})
        self.tell("gen_ai.tool.call.result", cell.text)
        if cell.error is not None:
            self.fail(cell.error.type)

    def result(self, steps: int, tokens: Tokens, *, partial: bool) -> None:
        """Put a run's totals on its span."""
        self.note({"cellblock.steps": steps, **_usage(tokens)})
        if partial:
            self.fail("StepLimitReached")


class Spans:
    """Makes the spans of one agent. `tracer` is OpenTelemetry's; None makes none."""

    def __init__(self, tracer: Any = None, redactor: Redactor | None = None, *, content: bool = False) -> None:
        self._tracer = tracer
        self._redactor = redactor or Redactor()
        self._content = content or os.environ.get(_CAPTURE, "").lower() == "true"

    def run(
        self, agent: str, model: object, *, level: str | None = None, session: str | None = None
    ) -> AbstractContextManager[Span]:
        """The span of a whole run."""
        attributes = {
            "gen_ai.agent.name": agent,
            "gen_ai.request.model": getattr(model, "name", None),
            "gen_ai.provider.name": getattr(model, "provider", _PROVIDER),
            "gen_ai.conversation.id": session,
            "cellblock.trust_level": level,
        }
        return self.span("invoke_agent", agent, attributes)

    def step(
        self, operation: Operation, what: str, *, step: int, attempt: int = 1, model: object = None
    ) -> AbstractContextManager[Span]:
        """The span of a part of a step. `what` is the model's name, the tool's, or python for a cell."""
        attributes: dict[str, object] = {"cellblock.step": step, "cellblock.attempt": attempt if attempt > 1 else None}
        if operation == "chat":
            attributes |= {"gen_ai.request.model": what, "gen_ai.provider.name": getattr(model, "provider", _PROVIDER)}
        else:
            kind = "extension" if what == "python" else "function"
            attributes |= {"gen_ai.tool.name": what, "gen_ai.tool.type": kind}
        return self.span(operation, what, attributes)

    @contextmanager
    def span(self, operation: Operation, what: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
        """A span around what is done within, which fails with what is raised there."""
        if self._tracer is None:
            yield Span(None, self._redactor, content=False)
            return
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            f"{operation} {line(self._redactor.text(what), _MOST_NAME)}",
            kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
            record_exception=False,
            set_status_on_exception=False,
        ) as made:
            span = Span(made, self._redactor, content=self._content)
            span.note({"gen_ai.operation.name": operation, **attributes})
            try:
                yield span
            except BaseException as error:
                span.fail(type(error).__name__)
                raise


def _usage(tokens: Tokens) -> dict[str, object]:
    return {"gen_ai.usage.input_tokens": tokens.input, "gen_ai.usage.output_tokens": tokens.output}


def _message(role: str, text: object) -> dict[str, object]:
    """A message in the form that the conventions give it."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _short(value: Any) -> Any:
    """As much of an attribute's texts as is looked at: past it nothing is shown."""
    if isinstance(value, list):
        return [_short(one) for one in value]
    return value[: 10 * _MOST_TEXT] if isinstance(value, str) else value


def _bounded(value: Any) -> Any:
    """An attribute whose texts are one line each: names come from models, and classes of errors from cells."""
    if isinstance(value, list):
        return [_bounded(one) for one in value]
    return line(value, _MOST_TEXT) if isinstance(value, str) else value


def spans_for(provider: Any, redactor: Redactor, *, content: bool = False, version: str = "") -> Spans:
    """Spans by a tracer provider; by the program's own where it is None and there is one; False makes none.

    `version` is ours.
    """
    if provider is False:
        return Spans()
    if provider is None:
        provider = _configured()
    elif not callable(getattr(provider, "get_tracer", None)):
        raise TypeError(f"telemetry must be a tracer provider, False or None, not {type(provider).__name__}")
    else:
        with needing("otel", "spans need opentelemetry-api"):
            import opentelemetry.trace  # noqa: F401
    return Spans(provider and provider.get_tracer("cellblock", version), redactor, content=content)


def _configured() -> Any:
    """The provider that the program has set; None without one. Nothing is imported for it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    found = trace.get_tracer_provider()
    return None if isinstance(found, trace.ProxyTracerProvider | trace.NoOpTracerProvider) else found
