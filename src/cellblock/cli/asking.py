"""The command `cellblock agent`: a run of an agent, followed on stderr, its answer on stdout."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from cellblock.agent.code import CodeAgent
from cellblock.agent.result import RunResult
from cellblock.agent.trace import Trace
from cellblock.cli import options
from cellblock.cli.exits import DONE, FAILED, INTERRUPTED, Unusable
from cellblock.cli.export import write_document
from cellblock.cli.terminal import Printer, say, write_data
from cellblock.errors import ModelError, TaskFailed
from cellblock.limits import ExecutionLimits
from cellblock.models import Connected, connect
from cellblock.text import line, text_of

_MOST_SHOWN = 1_000_000
"""Characters of an answer."""
_OF_STEPS = ("number", "text", "code", "output", "ok", "decision", "duration_ms", "memory_peak_bytes")
_NO_MODEL = (
    "no model was named: give --model NAME or set CELLBLOCK_MODEL, such as gpt-5-mini with a key in OPENAI_API_KEY, or "
    "a model of a server on this machine: OPENAI_BASE_URL=http://localhost:11434/v1 cellblock agent --model qwen3 …"
)


def execute(arguments: argparse.Namespace) -> int:
    """Ask, follow, answer; the exit status says how it went. Ctrl-C ends the cell and the run."""
    question = _question(arguments)
    model = _model(arguments)
    if arguments.save is not None:
        options.target(arguments.save)
    agent, files = _agent(arguments, model), options.inputs(arguments)
    tell = None if arguments.quiet else Trace(arguments.max_steps)
    began, failure, result = time.monotonic(), "", None
    try:
        result = agent.run(question, files=files, log=arguments.log, tell=tell)
    except (TaskFailed, ModelError) as error:
        failure = str(error)
        result = error.result if isinstance(error.result, RunResult) else None
    except KeyboardInterrupt:
        say("interrupted" + (f"; not saved: {arguments.save}" if arguments.save else ""))
        return INTERRUPTED
    if result is not None and result.partial and not failure:
        failure = f"no answer within {len(result.steps)} steps (--max-steps N allows more)"
    return _tell(arguments, result, failure, time.monotonic() - began)


def _tell(arguments: argparse.Namespace, result: RunResult | None, failure: str, seconds: float) -> int:
    """Print what came of it, and save what is to be saved."""
    unsaved = _save(arguments, result)
    if arguments.json:
        write_data(_plain(result, failure))
    elif result is not None and not failure:
        Printer(sys.stdout).line(text_of(result.value, max_chars=_MOST_SHOWN))
    if result is not None and not arguments.quiet:
        verified = "" if result.verified_by is None else f"; verified: {' '.join(result.verified_by.split())}"
        used = result.tokens.input + result.tokens.output
        many = "1 step" if len(result.steps) == 1 else f"{len(result.steps)} steps"
        say(f"{many}, {seconds:.1f} s" + (f", {used:,} tokens" if used else "") + verified)
    for told in filter(None, (failure, unsaved)):
        say(told)
    return FAILED if failure or unsaved else DONE


def _question(arguments: argparse.Namespace) -> str:
    question = sys.stdin.read() if arguments.question == "-" else str(arguments.question)
    if not question.strip():
        raise Unusable("the question is empty")
    return question


def _model(arguments: argparse.Namespace) -> Connected:
    name = arguments.model or os.environ.get("CELLBLOCK_MODEL")
    if not name:
        raise Unusable(_NO_MODEL)
    try:
        return connect(name, on_retry=lambda one: say(f"{line(one.error.args[0])}; asking again in {one.wait:.1f} s"))
    except ModelError as error:
        raise Unusable(str(error)) from None


def _agent(arguments: argparse.Namespace, model: Connected) -> CodeAgent:
    if arguments.trust_level == "local":
        given = [("--mount", arguments.mounts), ("--file", arguments.files), ("--preload", arguments.preload)]
        given.append(("--network", arguments.network))
        for option, value in [*given, ("--python", arguments.python), ("--walls", arguments.walls != "full")]:
            if value:
                raise Unusable(
                    f"{option} is for --trust-level isolated: at local there are no files and processes"
                )
    session = options.session(arguments, ExecutionLimits().max_output_bytes)
    session["limits"] = replace(session["limits"], max_steps=arguments.max_steps)
    return CodeAgent(model, verify_completion=arguments.verify, **session)


def _save(arguments: argparse.Namespace, result: RunResult | None) -> str:
    """Write the notebook of a run; why that failed, "" where it did not."""
    if arguments.save is None:
        return ""
    if result is None:
        return f"not saved: {arguments.save}"
    try:
        write_document(Path(arguments.save), result.notebook)
    except Unusable as error:
        return str(error)
    return ""


def _plain(result: RunResult | None, failure: str) -> dict[str, object]:
    """A result as JSON data; a value that JSON has not is its repr."""
    if result is None:
        return {"answered": False, "failure": failure}
    return {
        "answered": not failure,
        "value": result.value,
        "verified_by": result.verified_by,
        "failure": failure or None,
        "partial": result.partial,
        "steps": [{name: getattr(step, name) for name in _OF_STEPS} for step in result.steps],
        "observations": result.memory.observations,
        "failed_approaches": result.memory.failed_approaches,
        "tokens": asdict(result.tokens),
    }
