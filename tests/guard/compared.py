"""A program: runs every program of the files it is given under the guard and under CPython, and tells what differs.

    compared.py FILE…          differences as JSON lines, and how many programs there were
    compared.py --grown N      the same of N programs that `grown` makes

It needs no more than an interpreter and what cellblock imports, so that any version of Python can be tried.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from corpus import last_line, programs
from grown import grown
from levels import local_session
from reference import run
from runner import guarded, plain


def _behind(source: str) -> dict[str, object]:
    with local_session() as session:
        cell = session.run(source + "pass\n")
    printed = "".join(output.text for output in cell.outputs if output.stream == "stdout")
    error = None
    if cell.error is not None:
        error = [cell.error.type.rpartition(".")[2], cell.error.message, last_line(cell.error.traceback)]
    return {"stdout": printed, "error": error}


def _files(paths: list[str]) -> int:
    count = 0
    for path in paths:
        for program in programs(Path(path)):
            if not program.runs_here or program.grants:
                continue
            count += 1
            got = _behind(program.source)
            if got != (want := run(program.source)):
                print(json.dumps({"name": f"{Path(path).stem}/{program.name}", "got": got, "want": want}))
    return count


def _grown(count: int) -> int:
    for seed in range(count):
        got, want = guarded(grown(seed)), plain(grown(seed))
        if (got.text, got.error, got.line) != (want.text, want.error, want.line):
            print(json.dumps({"name": f"grown {seed}", "got": vars(got), "want": vars(want)}))
    return count


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(_grown(int(sys.argv[2])) if sys.argv[1] == "--grown" else _files(sys.argv[1:]))
