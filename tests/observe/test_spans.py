"""Spans of a run, by OpenTelemetry's own SDK: their names and tree, what they say, and what they do not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from cellblock import CodeAgent, ExecutionLimits, ModelError, ReactAgent, ScriptedModel
from cellblock.models import Reply, Tokens, ToolRequest
from cellblock.observe.redaction import Redactor
from cellblock.observe.spans import ATTRIBUTES, CONTENT, spans_for

sdk = pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.trace import SpanKind, StatusCode  # noqa: E402

KEY = "sk-proj-" + "Ab3_" * 6


class Collected:
    """A provider, and what came of it."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = sdk.TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> list[Any]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time)

    def tree(self) -> list[tuple[str, str | None]]:
        """Names, each with that of its parent."""
        names = {span.context.span_id: span.name for span in self.spans}
        return [(span.name, span.parent and names[span.parent.span_id]) for span in self.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


def fence(code: str) -> Reply:
    return Reply(text=f"```python\n{code}\n```", tokens=Tokens(input=7, output=3, cached=2), model="small-1")


def look(name: str) -> str:
    """Look."""
    if name == "zz":
        raise LookupError(f"no {name}")
    return name.upper()


async def fetch(name: str) -> str:
    """Fetch."""
    return look(name)


@pytest.mark.hostile
@pytest.mark.parametrize("level", ["isolated", "local"])
def test_run_is_a_tree_of_spans_with_the_names_of_the_conventions(level: Any) -> None:
    got = Collected()
    codes = ["look('a')", "await fetch('b')\n1/0", "final_answer(1)"]
    agent = CodeAgent(
        ScriptedModel([fence(one) for one in codes]), tools=[look, fetch], trust_level=level, telemetry=got.provider
    )
    agent.run("task")
    run, chat, cell = "invoke_agent CodeAgent", "chat scripted", "execute_tool python"
    assert got.tree() == [
        (run, None),
        (chat, run), (cell, run), ("execute_tool look", cell),
        (chat, run), (cell, run), ("execute_tool fetch", cell),
        (chat, run), (cell, run),
    ]  # fmt: skip
    assert {span.name: span.kind for span in got.spans}[chat] is SpanKind.CLIENT
    assert dict(got.named(chat)[0].attributes) == {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "scripted", "gen_ai.response.model": "small-1",
        "gen_ai.response.finish_reasons": ("stop",), "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 2, "gen_ai.provider.name": "custom", "cellblock.step": 1,
    }  # fmt: skip
    first, failed, _ = got.named(cell)
    assert first.status.status_code is StatusCode.UNSET
    assert (failed.status.status_code, failed.attributes["error.type"]) == (StatusCode.ERROR, "ZeroDivisionError")
    assert (failed.attributes["cellblock.cell.state"], failed.status.description) == ("error", None)
    whole = dict(got.named(run)[0].attributes)
    assert (whole["cellblock.trust_level"], whole["cellblock.steps"], whole["gen_ai.usage.input_tokens"]) == (
        level, 3, 21,
    )  # fmt: skip
    assert {name for span in got.spans for name in span.attributes} <= ATTRIBUTES


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_nothing_that_was_said_is_in_a_span_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(**options: Any) -> str:
        got = Collected()
        code = (
            f"print('spoken', {KEY!r})\ntry:\n    look('zz')\nexcept LookupError:\n    pass\nraise KeyError('spoken')"
        )
        agent = CodeAgent(
            ScriptedModel([fence(code), fence("final_answer('spoken')")]),
            tools=[look], telemetry=got.provider, **options,
        )  # fmt: skip
        agent.run(f"spoken, {KEY}")
        assert {name for span in got.spans for name in span.attributes} <= ATTRIBUTES | CONTENT
        return json.dumps([json.loads(span.to_json()) for span in got.spans])

    silent, telling = run(), run(telemetry_content=True)
    assert ("spoken" in silent, "zz" in silent, "LookupError" in silent) == (False, False, True)
    assert ("spoken" in telling, "zz" in telling, KEY in telling, "[redacted]" in telling) == (True, True, False, True)
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    assert "spoken" in run()


@pytest.mark.hostile
def test_failures_mark_the_spans_that_they_pass() -> None:
    got = Collected()
    agent = CodeAgent(ScriptedModel([ModelError("down", kind="server")]), telemetry=got.provider)
    with pytest.raises(ModelError):
        agent.run("task")
    assert [(span.name, span.attributes["error.type"], span.events) for span in got.spans] == [
        ("invoke_agent CodeAgent", "ModelError", ()),
        ("chat scripted", "ModelError", ()),
    ]
    got = Collected()
    CodeAgent(ScriptedModel([fence("1")]), limits=ExecutionLimits(max_steps=1), telemetry=got.provider).run("task")
    assert got.spans[0].attributes["error.type"] == "StepLimitReached"


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_attempts_and_agents_that_ask_agents_are_one_trace() -> None:
    got = Collected()
    inner = CodeAgent(ScriptedModel([fence("final_answer(1)")]), telemetry=got.provider)
    outer = CodeAgent(
        ScriptedModel([fence("x = await ask('t')"), *[fence("final_answer(x)")] * 1]),
        tools=[inner.as_tool(name="ask")], telemetry=got.provider,
    )  # fmt: skip
    outer.run("task")
    assert ("invoke_agent CodeAgent", "execute_tool ask") in got.tree()
    assert len({span.context.trace_id for span in got.spans}) == 1
    got = Collected()
    CodeAgent(ScriptedModel([fence("final_answer(1)")] * 2), telemetry=got.provider).run("task", attempts=2)
    assert {span.attributes.get("cellblock.attempt") for span in got.named("execute_tool python")} == {None, 2}


def test_react_agents_have_spans_as_well() -> None:
    pytest.importorskip("pydantic")
    got = Collected()
    calls = tuple(ToolRequest(str(number), "look", {"name": name}, "") for number, name in enumerate(["a", "zz"]))
    ReactAgent(ScriptedModel([Reply(requests=calls), "done"]), tools=[look], telemetry=got.provider).run("task")
    run = "invoke_agent ReactAgent"
    children = ["chat scripted", "execute_tool look", "execute_tool look", "chat scripted"]
    assert sorted(got.tree(), key=str) == sorted([(run, None), *((child, run) for child in children)], key=str)
    assert [span.attributes.get("error.type") for span in got.named("execute_tool look")] == [None, "LookupError"]


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_provider_of_the_program_is_used_and_without_one_nothing_is_imported() -> None:
    program = """
import sys
from cellblock import CodeAgent, ScriptedModel
def run(**options):
    CodeAgent(ScriptedModel(["```python\\nfinal_answer(1)\\n```"]), trust_level="local", **options).run("task")
run()
assert not any(name.startswith("opentelemetry") for name in sys.modules)
from opentelemetry import trace
run()
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
run(telemetry=False)
assert not exporter.get_finished_spans()
run()
print(len(exporter.get_finished_spans()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_what_is_no_provider_is_refused() -> None:
    with pytest.raises(TypeError, match="telemetry must be a tracer provider, False or None, not str"):
        CodeAgent(ScriptedModel([]), telemetry="yes")


def test_attributes_come_from_one_list() -> None:
    from cellblock.observe.redaction import Redactor

    got = Collected()
    with spans_for(got.provider, Redactor()).span("chat", "x", {}) as span:
        with pytest.raises(ValueError, match=r"gen_ai\.nope is no attribute"):
            span.note({"gen_ai.nope": 1})


def test_names_are_those_of_the_conventions() -> None:
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for name, value in vars(conventions).items() if name.startswith("GEN_AI")}
    assert {name for name in ATTRIBUTES | CONTENT if name.startswith("gen_ai.")} <= known


@pytest.mark.threat("W8")
def test_names_and_attributes_are_lines_of_a_bounded_length() -> None:
    collected = Collected()
    spans = spans_for(collected.provider, Redactor(), content=True)
    hostile = "\x1b[2Jrow\nforged \u202e\udcff" + "x" * 100_000
    with spans.span("execute_tool", hostile, {"gen_ai.tool.name": hostile}) as span:
        span.note({"gen_ai.response.finish_reasons": [hostile], "cellblock.step": 1})
        span.tell("gen_ai.tool.call.result", hostile)
        span.tell("gen_ai.tool.call.arguments", {"code": "x" * 2_000_000})
        span.fail("A\nB" * 1_000)
    (made,) = collected.spans
    row = "row forged \ufffd"
    assert made.name == f"execute_tool {row}{'x' * (200 - len(row))}…"
    text = f"{row}{'x' * (1_000 - len(row))}…"
    assert made.attributes["gen_ai.tool.name"] == text
    assert made.attributes["gen_ai.response.finish_reasons"] == (text,)
    assert made.attributes["cellblock.step"] == 1
    assert made.attributes["error.type"] == ("A B" * 1_000)[:1_000] + "…"
    assert json.loads(made.attributes["gen_ai.tool.call.result"])[:3] == "\x1b[2"
    assert made.attributes["gen_ai.tool.call.result"].isprintable()
    assert "characters cut" in made.attributes["gen_ai.tool.call.arguments"]
    assert len(made.attributes["gen_ai.tool.call.arguments"]) < 1_100_000
