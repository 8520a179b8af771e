"""`cellblock agent`: a question, answered by a model that writes code behind the walls."""

from __future__ import annotations

import argparse

from cellblock.cli import options
from cellblock.limits import ExecutionLimits

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
        help="have a model answer a question with code that runs behind the walls",
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
    parser.set_defaults(command=options.later("asking"))
