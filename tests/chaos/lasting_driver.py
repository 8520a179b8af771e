"""A program that opens a session and does what its stdin says, a line of JSON each; told when each is done."""

from __future__ import annotations

import json
import sys
from typing import Any

from cellblock import CellblockError, ExecutionLimits, Session, Versioned

_STATE = (
    "sorted((n, v, sorted(m for m in globals() if m[0] == 'x' and globals()[m] is v)) "
    "for n, v in globals().items() if n[0] == 'x')"
)


def main(url: str) -> None:
    """Until stdin ends."""
    limits = ExecutionLimits(timeout_seconds=20)
    session = Session("chaos", state=Versioned(url), limits=limits)
    _say({"opened": True, "interrupted": bool(session.resumed and session.resumed.interrupted)})
    for line in sys.stdin:
        try:
            _say(_do(session, json.loads(line)))
        except CellblockError as error:
            _say({"failed": f"{type(error).__name__}: {error}"})


def _do(session: Session, what: dict[str, Any]) -> object:
    match what["do"]:
        case "run":
            cell = session.run(what["source"])
            return {"done": True, "rolled_back": cell.rolled_back, "error": cell.error and cell.error.type}
        case "bind":
            session[what["name"]] = what["value"]
        case "write":
            session.files.write(what["name"], what["text"])
        case "undo":
            session.undo(what["steps"])
        case "checkout":
            session.checkout(what["revision"])
        case "state":
            files = {name: session.files.read(name).decode() for name in session.files.list()}
            names = json.loads(json.dumps(session.run(_STATE).value))
            session.undo()
            log = session.log(limit=10_000)
            steps = sum(not commit.detail.get("rolled_back") for commit in log) - 1  # the first is the opening's
            return {"names": names, "files": files, "log": len(log), "steps": steps}
    return {"done": True}


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
