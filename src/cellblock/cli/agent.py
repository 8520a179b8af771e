"""`cellblock agent`: a question, answered by a model that writes code behind the walls."""

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
_STEP_FIELDS = ("number", "text", "code", "output", "ok", "decision", "duration_ms", "memory_peak_bytes")
_NO_MODEL = (
    "no model was named: give --model NAME or set CELLBLOCK_MODEL, such as gpt-5-mini with a key in OPENAI_API_KEY, or "
    "a model of a server on this machine: OPENAI_BASE_URL=http://localhost:11434/v1 cellblock agent --model qwen3 …"
)


_EPILOG = """\
Models are those of an OpenAI-compatible endpoint: OpenAI's, with a key in OPENAI_API_KEY, or another one at
OPENAI_BASE_URL, such as a server on this machine that needs no key: http://localhost:11434/v1 (Ollama),
http://localhost:8000/v1 (vLLM), http://localhost:8080/v1 (llama.cpp).

exit status: 0 answered, 1 failed or no answer within the steps, 2 usage or no model, 3 this machine cannot give a wall
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "agent",
        description="Asks a model, runs the code that it writes in a new session, and prints its answer on stdout; "
        "what happens meanwhile is on stderr.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("question", metavar="QUESTION", help="what is asked, or - for stdin")
    add("--model", metavar="NAME", help="the endpoint's name of the model ($CELLBLOCK_MODEL)")
    steps = ExecutionLimits().max_steps
    add("--max-steps", type=options.whole(1000), default=steps, metavar="N", help="cells at most (10)")
    add("--verify", action="store_true", help="have the answer checked by a cell of its own")
    add("--save", metavar="OUT", help="write the run's notebook to this file: OUT.ipynb or OUT.html")
    add("--log", metavar="FILE", help="write every event to this new file, for cellblock sessions replay")
    add("--json", action="store_true", help="print the whole result as JSON on stdout")
    add("-q", "--quiet", action="store_true", help="say nothing of what happens meanwhile")
    options.add_session(parser, str(ExecutionLimits().max_output_bytes), levels=("isolated", "sandboxed", "local"))
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    """Ask, follow, answer. Ctrl-C ends the cell and the run."""
    question = sys.stdin.read() if arguments.question == "-" else str(arguments.question)
    if not question.strip():
        raise Unusable("the question is empty")
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
    return _report(arguments, result, failure, time.monotonic() - began)


def _report(arguments: argparse.Namespace, result: RunResult | None, failure: str, seconds: float) -> int:
    """Print the answer or the failure, and write the notebook that `--save` names; the exit status."""
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
    for problem in filter(None, (failure, unsaved)):
        say(problem)
    return FAILED if failure or unsaved else DONE


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
        for option, value in {
            "--mount": arguments.mounts,
            "--file": arguments.files,
            "--preload": arguments.preload,
            "--network": arguments.network,
            "--python": arguments.python,
            "--walls": arguments.walls != "full",
        }.items():
            if value:
                raise Unusable(f"{option} is for --trust-level isolated: at local there are no files and processes")
    session = options.session(arguments, ExecutionLimits().max_output_bytes)
    session["limits"] = replace(session["limits"], max_steps=arguments.max_steps)
    return CodeAgent(model, verify_completion=arguments.verify, **session)


def _save(arguments: argparse.Namespace, result: RunResult | None) -> str:
    """Write the notebook of a run; the reason where it is not written, else ""."""
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
    """A result as JSON data; `write_json` writes the repr of other values."""
    if result is None:
        return {"answered": False, "failure": failure}
    return {
        "answered": not failure,
        "value": result.value,
        "verified_by": result.verified_by,
        "failure": failure or None,
        "partial": result.partial,
        "steps": [{name: getattr(step, name) for name in _STEP_FIELDS} for step in result.steps],
        "observations": result.memory.observations,
        "failed_approaches": result.memory.failed_approaches,
        "tokens": asdict(result.tokens),
    }
