"""Spans of an agent's run: of a run, of a model's reply, of a cell, of a call of a tool."""

from __future__ import annotations

from contextlib import AbstractContextManager

from cellblock.agent.result import RunResult
from cellblock.cell import Cell
from cellblock.models import Message, Reply
from cellblock.observe.spans import Operation, Span, Spans

__all__ = ["Operation", "Span", "Spans", "note_cell", "note_reply", "note_result", "of_run", "of_step"]

_PROVIDER = "custom"
"""Of a model that does not say whose it is."""


def of_run(
    spans: Spans, agent: str, model: object, *, level: str | None, session: str | None
) -> AbstractContextManager[Span]:
    """The span of a whole run."""
    attributes = {
        "gen_ai.agent.name": agent,
        "gen_ai.request.model": getattr(model, "name", None),
        "gen_ai.provider.name": getattr(model, "provider", _PROVIDER),
        "gen_ai.conversation.id": session,
        "cellblock.trust_level": level,
    }
    return spans.span("invoke_agent", agent, attributes)


def of_step(
    spans: Spans, operation: Operation, what: str, *, step: int, attempt: int = 1, model: object = None
) -> AbstractContextManager[Span]:
    """The span of something that a step does. `what` is the model's name, the tool's, or python for a cell."""
    attributes: dict[str, object] = {"cellblock.step": step, "cellblock.attempt": attempt if attempt > 1 else None}
    if operation == "chat":
        attributes |= {"gen_ai.request.model": what, "gen_ai.provider.name": getattr(model, "provider", _PROVIDER)}
    else:
        attributes |= {
            "gen_ai.tool.name": what,
            "gen_ai.tool.type": "extension" if what == "python" else "function",
        }
    return spans.span(operation, what, attributes)


def note_reply(span: Span, messages: list[Message], reply: Reply) -> None:
    """Put a model's usage on its span, and the messages where content is asked for."""
    span.note(
        {
            "gen_ai.response.model": reply.model or None,
            "gen_ai.response.finish_reasons": [reply.finish],
            "gen_ai.usage.input_tokens": reply.tokens.input,
            "gen_ai.usage.output_tokens": reply.tokens.output,
            "gen_ai.usage.cache_read.input_tokens": reply.tokens.cached or None,
        }
    )
    span.tell("gen_ai.input.messages", [_message(str(one["role"]), one.get("content")) for one in messages])
    span.tell("gen_ai.output.messages", [{**_message("assistant", reply.text), "finish_reason": reply.finish}])


def note_cell(span: Span, cell: Cell) -> None:
    """Put a cell's end on its span."""
    span.note(
        {
            "cellblock.cell.state": cell.state.value,
            "cellblock.cell.rolled_back": cell.rolled_back,
            "cellblock.cell.memory_peak_bytes": cell.usage.memory_peak_bytes,
        }
    )
    span.tell("gen_ai.tool.call.arguments", {"code": cell.source})
    span.tell("gen_ai.tool.call.result", cell.text)
    if cell.error is not None:
        span.fail(cell.error.type)


def note_result(span: Span, result: RunResult) -> None:
    """Put a run's totals on its span."""
    span.note(
        {
            "cellblock.steps": len(result.steps),
            "gen_ai.usage.input_tokens": result.tokens.input,
            "gen_ai.usage.output_tokens": result.tokens.output,
        }
    )
    if result.partial:
        span.fail("StepLimitReached")


def _message(role: str, text: object) -> dict[str, object]:
    """A message in the form that the conventions give it."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}
