"""The steps that lead to a commit, read from a store: the newest state that was saved, and what is to be done again
after it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cellblock.cell import Cell, CellError, CellKind, CellState, Lost
from cellblock.errors import StoreError
from cellblock.outputs import OutputType
from cellblock.session.commits import find_cell, get_answers, get_cell, get_snapshot, rows_of
from cellblock.session.hoststeps import ASIDE, HostStep, not_done_again
from cellblock.session.notebook import Kept
from cellblock.session.record import failed_cell
from cellblock.session.tools import Asked
from cellblock.snapshots import Snapshot
from cellblock.store import JSON, Commit, Entry, StoredSession, linked
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import ToolReply

DELETES = "d"
"""The ids of commits that only delete cells begin with it, and no step's do."""
_MOST_ANSWER_BYTES = 4 * 2**20
_PIECE = 3 * 2**18
"""Bytes of a step of the host's that one entry of the journal holds: 1 MB in base64."""
_MOST_TOLD_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Logged:
    """The answer of a host function to a step: it is given again, and the function not called, when the step is
    replayed.

    `call` is the place of the call among the process's, `digest` that of its arguments; older logs have neither.
    """

    name: str
    error: tuple[str, str] | None
    buffers: tuple[Buffer, ...]
    call: int
    digest: str

    def entry(self, step: str) -> dict[str, JSON]:
        """The answer, for the journal and for the commit of the step."""
        buffers: JSON = [base64.b64encode(one).decode() for one in self.buffers]
        error: JSON = None if self.error is None else [*self.error]
        asked: dict[str, JSON] = {"call": self.call, "digest": self.digest}
        return {"do": "answer", "step": step, "name": self.name, "error": error, "buffers": buffers, **asked}


@dataclass(frozen=True, slots=True)
class Replay:
    """A cell to be run again.

    `rolled_back`: it changed nothing, and is not run; of its record only this was kept. `stopped`: it was interrupted,
    or met its time limit; nobody can tell how far it had come, so it is not run. `ended`: it came to its end, and was
    `ok` then. `shown` tells what it had shown, as `digest_of` it; "" where that is not known.
    """

    id: str
    number: int
    kind: CellKind
    source: str
    rolled_back: bool = False
    stopped: bool = False
    ended: bool = True
    ok: bool = True
    shown: str = ""
    timeout_seconds: float | None = None

    def draft(self) -> Cell:
        """The cell before it runs again."""
        return Cell(
            id=self.id,
            number=self.number,
            kind=self.kind,
            source=self.source,
            state=CellState.RUNNING,
            timeout_seconds=self.timeout_seconds,
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """A step that is to be done again, by its id.

    `commit` is what it led to, or `entries` are the numbers of what the journal holds of it. `answers` are what host
    functions gave it. The host may have changed a file `during` a step, by its id, which may have `overwritten` the
    file afterwards: it is done again before that step then, and not after it. `before` is what the notebook had of a
    cell that had run before it ran in that commit.
    """

    step: str
    do: Replay | HostStep
    commit: str | None = None
    entries: tuple[int, ...] = ()
    answers: tuple[Logged, ...] = ()
    during: str = ""
    overwritten: bool = False
    before: Kept | None = None
    parts: tuple[bytes, ...] = ()
    """The bytes that the journal has told so far."""


@dataclass(slots=True)
class Past:
    """The way to a commit, `head`: the state of `base`, by its commit and step, and the steps that came after it.

    `trees` are those of `head`.
    """

    head: str
    base: str
    base_step: str
    number: int
    snapshot: Snapshot | None
    trees: Mapping[str, str | None]
    steps: list[Planned] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    """Entries of the journal that cannot be read."""
    cut_off: list[Planned] = field(default_factory=list)
    """Steps that had not ended before the first of them: they are not done again, as each may lack a part."""

    def lost(self) -> tuple[Lost, ...]:
        """The cost of damaged entries."""
        why = "it is damaged: what had not ended before it is not done again"
        remedy = "do again what is missing"
        entries = (Lost(name=f"journal entry {one}", type="entry", reason=why, remedy=remedy) for one in self.damaged)
        return (*entries, *(_cut_off(one.do) for one in self.cut_off))

    def unread(self) -> tuple[int, ...]:
        """The numbers of entries that nothing more can be had from."""
        return (*self.damaged, *(entry for one in self.cut_off for entry in one.entries))

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


def is_deletion(commit: Commit) -> bool:
    """True if a commit only deletes cells: it is no step, and has the state of the one before."""
    return commit.kind == ASIDE and str(commit.detail.get("step", "")).startswith(DELETES)


def state_of(session: StoredSession, commit: Commit) -> Commit | None:
    """The commit whose trees are the state of one; None where that was not saved, and its trees are an older state's.

    A commit that changes nothing of a session has the state of the one before.
    """
    while not commit.snapshot and commit.parents and (is_deletion(commit) or commit.detail.get("rolled_back")):
        commit = session.resolve(commit.parents[0])
    return commit if commit.snapshot else None


def leading_to(session: StoredSession, head: Commit) -> Past:
    """The way to a commit. `StoreError` where a state was not saved and nothing tells how to make it again."""
    commit, led_to, steps = head, head.id, list[Planned]()
    while not commit.snapshot and commit.parents:
        before = session.resolve(commit.parents[0])
        if not is_deletion(commit):  # else it takes the place of the commit before
            steps.append(_planned(session, commit, before, led_to))
            led_to = before.id
        commit = before
    snapshot = get_snapshot(session, commit) if commit.snapshot else None
    while is_deletion(commit):
        commit = session.resolve(commit.parents[0])
    return Past(head.id, led_to, step_of(commit), head.number, snapshot, head.trees, steps[::-1])


def followed_by(past: Past, session: StoredSession, journal: Iterable[Entry]) -> tuple[int, ...]:
    """Add the steps that the journal holds, each by its id; the numbers of entries that are of no use.

    Their steps are in a commit, as the store failed when they were to be taken out with it, or were not logged whole.
    """
    found: dict[str, Planned] = {}
    begun = ""
    for entry in journal:
        value: Any = entry.value
        step = str(value.get("step") or value.get("id") or begun)
        begun = step if value["do"] == "begin" else begun
        planned = _with(found.get(step) or Planned(step, _NOTHING), value)
        found[step] = replace(planned, entries=(*planned.entries, entry.number))
    behind: list[int] = []
    for commit in session.log(past.head) if found else ():
        if (done := found.pop(step_of(commit), None)) is not None:
            behind += done.entries
        if not found:
            break
    behind += [number for one in found.values() if one.do is _NOTHING for number in one.entries]
    logged = [one for one in found.values() if one.do is not _NOTHING]
    for one in logged:
        is_whole = not past.damaged or _ended_before(past.damaged[0], one)
        (past.steps if is_whole else past.cut_off).append(one)
    past.number = max([past.number, *(one.do.number for one in logged if isinstance(one.do, Replay))])
    return tuple(behind)


def _ended_before(entry: int, planned: Planned) -> bool:
    return planned.entries[-1] < entry and (isinstance(planned.do, HostStep) or planned.do.ended)


def _cut_off(step: Replay | HostStep) -> Lost:
    why = "not done again: an entry of the journal is damaged, which may have held a part of it, or of a step before it"
    if isinstance(step, HostStep):
        return replace(not_done_again(step, ""), reason=why)
    return Lost(name=f"cell {step.number}", type="cell", reason=why, remedy="run the cell again")


_NOTHING = HostStep("clear")
"""Placeholder for a step whose beginning the journal lacks: it is not to be done again."""


def _with(planned: Planned, value: Any) -> Planned:
    """A step with what another entry of the journal says of it."""
    match value["do"], planned.do:
        case "begin", HostStep():
            cell = Replay(value["id"], value["number"], value["kind"], value["source"], ended=False)
            return replace(planned, do=replace(cell, timeout_seconds=value.get("timeout")))
        case "answer", _:
            return replace(planned, answers=(*planned.answers, _logged(value)))
        case "end", Replay() as begun:
            rolled_back, stopped = bool(value["rolled_back"]), bool(value.get("stopped"))
            ok, shown = bool(value.get("ok", True)), str(value.get("shown", ""))
            ended = replace(begun, ended=True, rolled_back=rolled_back, stopped=stopped, ok=ok, shown=shown)
            return replace(planned, do=ended)
        case "part" | "host", _:
            parts = (*planned.parts, *(base64.b64decode(one) for one in value["buffers"]))
            if value["do"] == "part":
                return replace(planned, parts=parts)
            host = HostStep(value["what"], value["name"], parts)
            answers = (*planned.answers, *map(_logged, value.get("answers", ())))
            return replace(planned, do=host, answers=answers, during=value["during"], parts=())
        case "overwritten", _:
            return replace(planned, overwritten=True)
    return planned


def host_entry(step: str, host: HostStep, during: str = "") -> dict[str, JSON]:
    """A step of the host's, for the journal."""
    said: dict[str, JSON] = {"step": step, "what": host.do, "name": host.name, "during": during}
    return {**said, **_part("host", *host.buffers)}


def host_entries(step: str, host: HostStep, during: str = "") -> Iterator[dict[str, JSON]]:
    """The same of a step with one text or file: in pieces, as no other thread runs while one is made an entry."""
    data = memoryview(b"".join(host.buffers))
    *earlier, last = (data[at : at + _PIECE] for at in range(0, max(len(data), 1), _PIECE))
    for piece in earlier:
        yield {"step": step, **_part("part", piece)}
    yield host_entry(step, replace(host, buffers=(last,)), during)


def _part(do: str, *buffers: Buffer) -> dict[str, JSON]:
    return {"do": do, "buffers": [base64.b64encode(one).decode() for one in buffers]}


def answered(call: Asked, reply: ToolReply) -> Logged:
    """The answer of a host function to a step, for the journal; an answer that is too large for the journal is one
    that failed."""
    size = sum(map(len, reply.buffers))
    if size > _MOST_ANSWER_BYTES:
        message = f"the answer of {call.name}() was too large to be logged: {size} bytes"
        return Logged(call.name, ("RuntimeError", message), (), call.call, call.digest)
    return Logged(call.name, reply.error, reply.buffers, call.call, call.digest)


class Replaying:
    """Gives calls the answers of the log; a call that the log does not have fails, and calls nothing.

    A call gets what the first one of the same arguments got, of those that are left; where there is none, as the time
    may be among them, what the first one of its name got. Calls of one cell may have ended in any order.
    """

    def __init__(self, answers: Iterable[Logged]) -> None:
        self._left: dict[str, list[Logged]] = {}
        for one in sorted(answers, key=lambda one: one.call):
            self._left.setdefault(one.name, []).append(one)

    async def __call__(self, call: Asked) -> ToolReply:
        if of_the_name := self._left.get(call.name):
            same = (at for at, one in enumerate(of_the_name) if one.digest == call.digest)
            logged = of_the_name.pop(next(same, 0))
            return ToolReply(call=call.call, error=logged.error, buffers=logged.buffers)
        message = f"{call.name}() was not called here when this ran before, and is not called when it is replayed"
        return ToolReply(call=call.call, error=("RuntimeError", message))

    @property
    def unused(self) -> str:
        """The functions of which an answer was not asked for again, as that of a thread of an earlier cell may not be;
        "" where there is none."""
        return ", ".join(f"{name}()" for name, left in self._left.items() if left)


def digest_of(cell: Cell) -> str:
    """Tells whether a cell that was run again has shown the same: images, addresses of objects and stderr, where the
    session itself speaks, left aside.
    """
    told = [one.text for one in cell.outputs if one.type is not OutputType.IMAGE and one.stream != "stderr"]
    return hashlib.sha256(_ADDRESS.sub("0x", "".join(told)).encode("utf-8", "replace")).hexdigest()[:16]


def unlike(replay: Replay, cell: Cell, unused: str) -> tuple[Lost, ...]:
    """Differences of a cell that had ended well to its second run; empty for none.

    `unused` are the functions of which it did not ask for all answers.
    """
    remedy = "look at what the cell has made this time"
    if not replay.ok:
        return ()
    if cell.error is not None:
        why, remedy = f"it failed: {cell.error.type}: {cell.error.message[:_MOST_SAID]}", "run the cell again"
    elif unused:
        why = f"it did not ask for all answers that it had of {unused}, and may have got another's"
    elif replay.shown not in ("", digest_of(cell)):
        why = "it showed something else than was told when it ran before"
    else:
        return ()
    return (Lost(name=f"cell {cell.number}", type="cell", reason=f"run again, {why}", remedy=remedy),)


_MOST_SAID = 200
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_CUT_OFF = ("Interrupted", "RolledBack")


def was_cut_off(cell: Cell) -> bool:
    """True if its program ended before a cell had, or before it was saved: then it was not carried out.

    "crashed" is the host's word: a cell that raises something of these names does not get it.
    """
    return cell.error is not None and cell.error.kind == "crashed" and cell.error.type in _CUT_OFF


def interrupted(begun: Replay) -> Cell:
    """The record of a cell that had not ended when its program did."""
    hint = "the session is as it was before this cell; what it did outside of it is done"
    why = "the session was closed, or the program that ran it ended, while this cell ran"
    return _failed(begun, "Interrupted", why, hint)


def rolled_back(replay: Replay) -> Cell:
    """The record of a cell that the session went back from, where its program ended before that was saved."""
    message = "the session went back to before this cell; what it showed was not saved"
    return _failed(replay, "RolledBack", message, "")


def unrepeated(replay: Replay, why: str) -> Cell:
    """The record of a cell whose state was not saved, and that is not run again."""
    message = f"the state after this cell was not saved, and it is not run again: {why}"
    return _failed(replay, "NotRepeated", message, "the session is as it was before this cell")


def _failed(replay: Replay, kind: str, message: str, hint: str) -> Cell:
    error = CellError(type=kind, message=message, hint=hint, kind="crashed")
    return failed_cell(replay.draft(), error, _MOST_TOLD_BYTES)


def _logged(plain: Any) -> Logged:
    error = None if plain["error"] is None else (plain["error"][0], plain["error"][1])
    buffers = tuple(plain["data"] if "data" in plain else map(base64.b64decode, plain["buffers"]))
    return Logged(plain["name"], error, buffers, plain.get("call", 0), plain.get("digest", ""))


def _planned(session: StoredSession, commit: Commit, before: Commit, led_to: str) -> Planned:
    """The step of a commit without a state, which comes after another and led to this one or one that deletes cells."""
    detail: Any = commit.detail
    step = step_of(commit)
    answers = tuple(map(_logged, get_answers(session, detail)))
    if "host" in detail:
        during, overwritten = str(detail.get("during", "")), bool(detail.get("overwritten"))
        host = _host_step(session, detail["host"])
        return Planned(step, host, led_to, answers=answers, during=during, overwritten=overwritten)
    if "cell" not in detail:
        raise StoreError(
            f"the state of commit {commit.id} was not saved, and no step made it", hint="check out an older one"
        )
    cell, _ = get_cell(session, detail["cell"]["@"])
    rolled_back, stopped = bool(detail.get("rolled_back")), bool(detail.get("stopped"))
    replay = Replay(
        cell.id, cell.number, cell.kind, cell.source, rolled_back, stopped,
        ok=cell.ok, shown=digest_of(cell), timeout_seconds=cell.timeout_seconds,
    )  # fmt: skip
    kept = find_cell(session, rows_of(session, before.trees), cell.id)
    return Planned(step, replay, led_to, answers=answers, before=kept)


def _host_step(session: StoredSession, kept: Any) -> HostStep:
    return HostStep(kept["do"], kept["name"], tuple(session.get(address) for address in linked(kept["buffers"])))
