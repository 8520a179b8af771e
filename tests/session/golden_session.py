"""Writes a store with a session that did one of everything, and tells what is in it.

    python golden_session.py FILE

makes the golden file of this format: once, when it is released, and never again.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cellblock import Session, Versioned
from cellblock.session.commits import cells_of, names_of
from cellblock.session.timeline import difference
from cellblock.store import Store, open_store

USER, NAME = "ana", "golden"


def write(path: Path) -> None:
    state = Versioned(f"sqlite:///{path}")

    def ask(question: str) -> dict[str, int]:
        """What the host knows."""
        return {question: len(question)}

    with Session(NAME, user=USER, state=state, tools=[ask], seed=7) as session:
        session.run("import math, os\nrows = [1, 2]; view = rows; text = 'é' * 3")
        session.run(
            "def area(r):\n    return math.pi * r ** 2 + len(rows)\n"
            "class Point:\n    x = rows\n    def f(self): return area(1)"
        )
        session.run("p = Point(); p.self = p; counter = iter([1, 2, 3]); next(counter)\nlines = (n for n in rows)")
        session.run(
            "os.makedirs('d'); open('d/a.txt', 'w').write('a' * 10); os.symlink('a.txt', 'd/link')\n"
            "big = bytes(300_000)"
        )
        session.tag("files")
        session.run("print('out'); answer = ask('how?')\nanswer")
        session.run("1 / 0")
        session.shell("echo shell; exit 3")
        session["given"] = {"a": [1.5, None]}
        session.files.write("host.bin", b"\0\1")
        session.run("display({'text/html': '<b>x</b>', 'text/plain': 'x'}, raw=True)")
        session.run("rows.append('gone')")
        session.undo()
        other = session.branch("golden-branch")
        other.run("theirs = 'branch'")
        other.close()
        session.run("ours = 'main'")
        session.merge("golden-branch")
        session.flush()
    with open_store(state.url) as store, store.hold(USER, NAME) as held:
        held.append({"do": "begin", "id": "c90", "number": 90, "kind": "python", "source": "late = ask('late')"})
        held.append({"do": "answer", "name": "ask", "error": ["ValueError", "no"], "buffers": []})
        held.append({"do": "end", "rolled_back": True})
        held.append({"do": "begin", "id": "c91", "number": 91, "kind": "python", "source": "after = rows + [3]"})
        held.append({"do": "end", "rolled_back": False})
        held.append({"do": "begin", "id": "c92", "number": 92, "kind": "shell", "source": "sleep 100"})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


def tell(store: Store) -> dict[str, Any]:
    """All that a host reads of the session, as JSON."""
    session = store.read(USER, NAME)
    commits = []
    for commit in reversed(list(session.log())):
        first = session.resolve(commit.parents[0]) if commit.parents else commit
        diff = asdict(difference(session, first, commit))
        commits.append(
            {
                **{key: getattr(commit, key) for key in ("id", "parents", "kind", "message", "number", "snapshot")},
                "trees": sorted(commit.trees),
                "names": {name: asdict(one) for name, one in names_of(session, commit).items()},
                "diff": {key: diff[key] for key in ("names", "files", "exact")},
            }
        )
    cells = [
        [cell.id, cell.number, cell.kind, cell.source, cell.state.value, cell.text, cell.undone, cell.rolled_back,
         cell.error and cell.error.type, [one.name for one in cell.lost], len(parts)]
        for cell, parts in cells_of(session, session.resolve("HEAD"))
    ]  # fmt: skip
    settings = dict(session.settings)
    told = {
        "commits": commits,
        "cells": cells,
        "settings": settings,
        "tags": session.tags(),
        "branches": session.branches(),
    }
    return json.loads(json.dumps(told))


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write(path)
    with open_store(f"sqlite:///{path}") as store:
        path.with_suffix(".json").write_text(json.dumps(tell(store), indent=1) + "\n")
