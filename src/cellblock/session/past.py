"""What leads to a commit, read from a store: the newest state that was saved, and what is to be done again after it."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cellblock.cell import Cell, CellError, CellKind, CellState
from cellblock.errors import StoreError
from cellblock.session.calls import Answer
from cellblock.session.commits import get_cell, get_snapshot
from cellblock.session.hoststeps import HostStep
from cellblock.snapshots import Snapshot
from cellblock.store import JSON, Commit, Entry, StoredSession, linked
from cellblock.wire.messages import ToolCalled, ToolReply

_MOST_ANSWER_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Logged:
    """What a host function gave a cell: it is given again, and the function not called, when the cell is replayed."""

    name: str
    error: tuple[str, str] | None
    buffers: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """A cell to be run again."""

    id: str
    number: int
    kind: CellKind
    source: str
    answers: tuple[Logged, ...] = ()
    rolled_back: bool = False
    """It changed nothing, and is not run: of its record only this was kept."""


@dataclass(slots=True)
class Past:
    """What leads to a commit, `head`: the state of `base`, and the cells that came after it.

    `commits` are the ids of those that the first of the replays led to; the rest is in the journal alone. `begun` is a
    cell that had not ended when its program did; it is not run again. `cells` is the root of the tree of those of the
    notebook.
    """

    head: str
    base: str
    number: int
    snapshot: Snapshot | None
    cells: str | None
    replays: list[Replay | HostStep] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    begun: Replay | None = None


def leading_to(session: StoredSession, head: Commit) -> Past:
    """What leads to a commit. `StoreError` where a state was not saved and nothing tells how to make it again."""
    commit, replays, commits = head, list[Replay | HostStep](), list[str]()
    while not commit.snapshot and commit.parents:
        replays.append(_replay_of(session, commit))
        commits.append(commit.id)
        commit = session.resolve(commit.parents[0])
    snapshot = get_snapshot(session, commit) if commit.snapshot else None
    return Past(head.id, commit.id, head.number, snapshot, head.trees.get("cells"), replays[::-1], commits[::-1])


def followed_by(past: Past, journal: Iterable[Entry]) -> None:
    """Add what was logged after the newest commit: cells that ended are run again, the one that had not is not."""
    begun: Replay | None = None
    for entry in journal:
        value: Any = entry.value
        match value["do"]:
            case "begin":
                begun = Replay(value["id"], value["number"], value["kind"], value["source"])
            case "answer" if begun is not None:
                begun = replace(begun, answers=(*begun.answers, _logged(value)))
            case "end" if begun is not None:
                past.replays.append(replace(begun, rolled_back=bool(value["rolled_back"])))
                past.number, begun = begun.number, None
    if begun is not None:
        past.begun, past.number = begun, begun.number


def answer_entry(name: str, reply: ToolReply) -> dict[str, JSON]:
    """What a host function gave a cell, for the journal; an answer that is too large for it is one that failed."""
    size = sum(map(len, reply.buffers))
    if size > _MOST_ANSWER_BYTES:
        error: JSON = ["RuntimeError", f"the answer of {name}() was too large to be logged: {size} bytes"]
        return {"do": "answer", "name": name, "error": error, "buffers": []}
    buffers: JSON = [base64.b64encode(one).decode() for one in reply.buffers]
    return {"do": "answer", "name": name, "error": None if reply.error is None else [*reply.error], "buffers": buffers}


def replaying(replay: Replay) -> Answer:
    """Gives calls the answers of the log, in order; a call that the log does not have fails, and calls nothing."""
    left = deque(replay.answers)

    async def answer(call: ToolCalled, _args: tuple[object, ...], _kwargs: dict[str, object]) -> ToolReply:
        if left and left[0].name == call.name:
            logged = left.popleft()
            return ToolReply(call=call.call, error=logged.error, buffers=logged.buffers)
        message = f"{call.name}() was not called here when the cell ran before, and is not called when it is replayed"
        return ToolReply(call=call.call, error=("RuntimeError", message))

    return answer


def interrupted(begun: Replay) -> Cell:
    """The record of a cell that had not ended when its program did."""
    hint = "the session is as it was before this cell; what it did outside of it is done"
    return _failed(begun, "Interrupted", "the program that ran the session ended while this cell ran", hint)


def rolled_back(replay: Replay) -> Cell:
    """The record of a cell that the session went back from, where its program ended before that was saved."""
    message = "the session went back to before this cell; what it showed was not saved"
    return _failed(replay, "RolledBack", message, "")


def unrepeated(replay: Replay) -> Cell:
    """The record of a cell whose state was not saved, and that would call functions of the host's again."""
    message = "the state after this cell was not saved, and it is not run again: its policy grants what is the host's"
    return _failed(replay, "NotRepeated", message, "the session is as it was before this cell")


def _failed(replay: Replay, kind: str, message: str, hint: str) -> Cell:
    return Cell(
        id=replay.id,
        number=replay.number,
        kind=replay.kind,
        source=replay.source,
        state=CellState.ERROR,
        error=CellError(type=kind, message=message, hint=hint, kind="crashed"),
        rolled_back=True,
    )


def _logged(plain: Any) -> Logged:
    error = None if plain["error"] is None else (plain["error"][0], plain["error"][1])
    return Logged(plain["name"], error, tuple(base64.b64decode(one) for one in plain["buffers"]))


def _replay_of(session: StoredSession, commit: Commit) -> Replay | HostStep:
    detail: Any = commit.detail
    if "host" in detail:
        parts = tuple(session.get(address) for address in linked(detail["host"]["buffers"]))
        return HostStep(detail["host"]["do"], detail["host"]["name"], parts)
    if "cell" not in detail:
        raise StoreError(
            f"the state of commit {commit.id} was not saved, and no step made it", hint="check out an older one"
        )
    cell, _ = get_cell(session, detail["cell"]["@"])
    answers: Any = session.record(detail["answers"]["@"]) if "answers" in detail else []
    return Replay(
        cell.id,
        cell.number,
        cell.kind,
        cell.source,
        tuple(map(_logged, answers)),
        rolled_back=bool(detail.get("rolled_back")),
    )
