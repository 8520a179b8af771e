"""What leads to a commit, read from a store: the newest state that was saved, and what is to be done again after it."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cellblock.cell import Cell, CellError, CellKind, CellState
from cellblock.errors import StoreError
from cellblock.session.calls import Answer
from cellblock.session.commits import get_cell, get_snapshot
from cellblock.session.hoststeps import HostStep
from cellblock.session.tools import Asked
from cellblock.snapshots import Snapshot
from cellblock.store import JSON, Commit, Entry, StoredSession, linked
from cellblock.wire.messages import ToolReply

_MOST_ANSWER_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Logged:
    """What a host function gave a cell: it is given again, and the function not called, when the cell is replayed."""

    name: str
    error: tuple[str, str] | None
    buffers: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """A cell to be run again.

    `rolled_back`: it changed nothing, and is not run; of its record only this was kept. `stopped`: it was interrupted,
    or met its time limit; nobody can tell how far it had come, so it is not run. `ended`: it came to its end, and was
    `ok` then.
    """

    id: str
    number: int
    kind: CellKind
    source: str
    answers: tuple[Logged, ...] = ()
    rolled_back: bool = False
    stopped: bool = False
    ended: bool = True
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Planned:
    """A step that is to be done again, by its id.

    `commit` is what it led to, or `entries` are the numbers of what the journal holds of it. The host may have changed
    a file `during` a step, by its id, which may have `overwritten` the file afterwards: it is done again before that
    step then, and not after it.
    """

    step: str
    do: Replay | HostStep
    commit: str | None = None
    entries: tuple[int, ...] = ()
    during: str = ""
    overwritten: bool = False


@dataclass(slots=True)
class Past:
    """What leads to a commit, `head`: the state of `base`, by its commit and step, and the steps that came after it.

    `trees` are those of `head`.
    """

    head: str
    base: str
    base_step: str
    number: int
    snapshot: Snapshot | None
    trees: Mapping[str, str | None]
    steps: list[Planned] = field(default_factory=list)

    def plan(self) -> list[Planned]:
        """The steps in the order in which to do them. What was done during another step is done before it as well, as
        that may have waited for it.
        """
        early: dict[str, list[Planned]] = {}
        for one in self.steps:
            if one.during:
                early.setdefault(one.during, []).append(Planned("", one.do, during=one.during))
        return [each for one in self.steps for each in (*early.get(one.step, ()), one)]

    @property
    def begun(self) -> Replay | None:
        """The newest cell that had not ended when its program did; it is not run again."""
        found = (one.do for one in reversed(self.steps) if isinstance(one.do, Replay) and not one.do.ended)
        return next(found, None)


def step_of(commit: Commit) -> str:
    """The id of the step that led to a commit; one from before steps had ids has that of the commit."""
    return str(commit.detail.get("step") or commit.id)


def leading_to(session: StoredSession, head: Commit) -> Past:
    """What leads to a commit. `StoreError` where a state was not saved and nothing tells how to make it again."""
    commit, steps = head, list[Planned]()
    while not commit.snapshot and commit.parents:
        steps.append(_planned(session, commit))
        commit = session.resolve(commit.parents[0])
    snapshot = get_snapshot(session, commit) if commit.snapshot else None
    return Past(head.id, commit.id, step_of(commit), head.number, snapshot, head.trees, steps[::-1])


def left_behind(session: StoredSession, head: Commit, journal: Iterable[Entry]) -> tuple[int, ...]:
    """The numbers of entries whose steps a commit holds: the store failed when they were to be taken out with it."""
    steps: dict[str, list[int]] = {}
    begun = ""
    for entry in journal:
        value: Any = entry.value
        step = str(value.get("step") or value.get("id") or begun)
        begun = step if value["do"] == "begin" else begun
        steps.setdefault(step, []).append(entry.number)
    found: list[int] = []
    for commit in session.log(head.id):
        if not steps:
            break
        found += steps.pop(step_of(commit), ())
    return tuple(found)


def followed_by(past: Past, journal: Iterable[Entry]) -> None:
    """Add what the journal holds: steps that are in no commit, each by its id."""
    found: dict[str, Planned] = {}
    begun = ""
    for entry in journal:
        value: Any = entry.value
        step = str(value.get("step") or value.get("id") or begun)
        planned = found.get(step)
        match value["do"]:
            case "begin":
                cell = Replay(value["id"], value["number"], value["kind"], value["source"], ended=False)
                planned, begun = planned or Planned(step, cell), step
            case "answer" if planned is not None and isinstance(planned.do, Replay):
                planned = replace(planned, do=replace(planned.do, answers=(*planned.do.answers, _logged(value))))
            case "end" if planned is not None and isinstance(planned.do, Replay):
                cell = replace(
                    planned.do,
                    ended=True,
                    rolled_back=bool(value["rolled_back"]),
                    stopped=bool(value.get("stopped")),
                    ok=bool(value.get("ok", True)),
                )
                planned = replace(planned, do=cell)
            case "host":
                parts = tuple(base64.b64decode(one) for one in value["buffers"])
                planned = Planned(step, HostStep(value["what"], value["name"], parts), during=value["during"])
            case "overwritten" if planned is not None:
                planned = replace(planned, overwritten=True)
        if planned is not None:
            found[step] = replace(planned, entries=(*planned.entries, entry.number))
    past.steps += found.values()
    past.number = max([past.number, *(one.do.number for one in past.steps if isinstance(one.do, Replay))])


def host_entry(step: str, host: HostStep, during: str) -> dict[str, JSON]:
    """A step of the host's, for the journal."""
    buffers: JSON = [base64.b64encode(one).decode() for one in host.buffers]
    return {"do": "host", "step": step, "what": host.do, "name": host.name, "buffers": buffers, "during": during}


def answer_entry(step: str, name: str, reply: ToolReply) -> dict[str, JSON]:
    """What a host function gave a cell, for the journal; an answer that is too large for it is one that failed."""
    size = sum(map(len, reply.buffers))
    if size > _MOST_ANSWER_BYTES:
        error: JSON = ["RuntimeError", f"the answer of {name}() was too large to be logged: {size} bytes"]
        return {"do": "answer", "step": step, "name": name, "error": error, "buffers": []}
    buffers: JSON = [base64.b64encode(one).decode() for one in reply.buffers]
    error = None if reply.error is None else [*reply.error]
    return {"do": "answer", "step": step, "name": name, "error": error, "buffers": buffers}


def replaying(replay: Replay) -> Answer:
    """Gives calls the answers of the log, in order; a call that the log does not have fails, and calls nothing."""
    left = deque(replay.answers)

    async def answer(call: Asked) -> ToolReply:
        if left and left[0].name == call.name:
            logged = left.popleft()
            return ToolReply(call=call.call, error=logged.error, buffers=logged.buffers)
        message = f"{call.name}() was not called here when the cell ran before, and is not called when it is replayed"
        return ToolReply(call=call.call, error=("RuntimeError", message))

    return answer


_CUT_OFF = ("Interrupted", "RolledBack")


def was_cut_off(cell: Cell) -> bool:
    """Whether its program ended before a cell had, or before it was saved: then it was not carried out.

    "crashed" is the host's word: a cell that raises something of these names does not get it.
    """
    return cell.error is not None and cell.error.kind == "crashed" and cell.error.type in _CUT_OFF


def interrupted(begun: Replay) -> Cell:
    """The record of a cell that had not ended when its program did."""
    hint = "the session is as it was before this cell; what it did outside of it is done"
    return _failed(begun, "Interrupted", "the program that ran the session ended while this cell ran", hint)


def rolled_back(replay: Replay) -> Cell:
    """The record of a cell that the session went back from, where its program ended before that was saved."""
    message = "the session went back to before this cell; what it showed was not saved"
    return _failed(replay, "RolledBack", message, "")


def unrepeated(replay: Replay, why: str) -> Cell:
    """The record of a cell whose state was not saved, and that is not run again."""
    message = f"the state after this cell was not saved, and it is not run again: {why}"
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


def _planned(session: StoredSession, commit: Commit) -> Planned:
    """The step of a commit without a state."""
    detail: Any = commit.detail
    step = step_of(commit)
    if "host" in detail:
        during, overwritten = str(detail.get("during", "")), bool(detail.get("overwritten"))
        host = _host_step(session, detail["host"])
        return Planned(step, host, commit.id, during=during, overwritten=overwritten)
    if "cell" not in detail:
        raise StoreError(
            f"the state of commit {commit.id} was not saved, and no step made it", hint="check out an older one"
        )
    cell, _ = get_cell(session, detail["cell"]["@"])
    answers: Any = session.record(detail["answers"]["@"]) if "answers" in detail else []
    rolled_back, stopped = bool(detail.get("rolled_back")), bool(detail.get("stopped"))
    replay = Replay(
        cell.id, cell.number, cell.kind, cell.source, tuple(map(_logged, answers)), rolled_back, stopped, ok=cell.ok
    )
    return Planned(step, replay, commit.id)


def _host_step(session: StoredSession, kept: Any) -> HostStep:
    return HostStep(kept["do"], kept["name"], tuple(session.get(address) for address in linked(kept["buffers"])))
