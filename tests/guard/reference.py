"""A program: runs every program of the files it is given under plain CPython, and prints what each did as JSON lines.

Each runs in a process of its own, as the module `__main__`. The last line of the output is how many there were.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import os
import sys
import traceback
import types
import warnings
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from pathlib import Path

from corpus import last_line, programs


def run(source: str) -> dict[str, object]:
    """What a program printed, and the type, message and line of the exception that ended it."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    printed = io.StringIO()
    error = None
    sys.stdin, sys.__stdout__, sys.argv = io.StringIO(""), printed, [""]
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = compile(source, "<cell 1>", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(_awaited(code, vars(module)))
            else:
                exec(code, vars(module))
        except BaseException as raised:
            text = "".join(traceback.format_exception(raised))
            error = [type(raised).__name__, str(raised), last_line(text)]
    return {"stdout": printed.getvalue(), "error": error}


async def _awaited(code: types.CodeType, space: dict[str, object]) -> None:
    await eval(code, space)


def main() -> None:
    """Run them in order."""
    warnings.simplefilter("ignore")
    count = 0
    for path in sys.argv[1:]:
        for program in programs(Path(path)):
            if not program.runs_here:
                continue
            sys.stdout.flush()
            if (child := os.fork()) == 0:
                found = run(program.source)
                print(json.dumps({"file": Path(path).stem, "name": program.name, **found}), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
            count += 1
    print(count)


if __name__ == "__main__":
    main()
