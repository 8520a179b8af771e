"""A run whose program ended in the middle, gone on with: by its log and by what the store has of its session.

What the model was shown is rebuilt from the log, word by word, and so is the memory. The session comes from its store.
Between the two lies at most one cell, which ran when the program ended, or one exploration that is still to be undone:
a step's line is written before that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cellblock.agent.loop import Answer, Exploration, Loop, given_up
from cellblock.agent.memory import newest
from cellblock.agent.past import WITHOUT_CELL, Past, PastRun, PastStep, read_as_log
from cellblock.agent.recording import from_plain, is_whole
from cellblock.agent.result import RunResult, step_of
from cellblock.agent.signals import Signals
from cellblock.cell import Cell, CellError, CellState
from cellblock.errors import LogError
from cellblock.hosting import to_thread
from cellblock.text import line

_GONE = (
    "The program that runs you ended while this cell ran, and was started again. The cell was not run again. "
    "Names and files are as they were before it; what it did outside of the session is done."
)
_UNHEARD = (
    "The program that runs you ended when this cell had, and was started again. Names and files are as the cell left "
    "them; what it gave to final_answer, explore, commit or task_fail was not heard: say it again."
)
_LOST = (
    "The program that runs you ended after this cell, and was started again. The cell was not run again: nothing of it "
    "is left in names and files, but what it did outside of the session is done."
)
_NOT_KEPT = (
    "The program that runs you ended, and was started again. The answer could not be kept: call final_answer again."
)
_CHANGED = "This cell was not run: secrets were taken out of its code. Write it again."
_REMEMBERED = 500
"""Most commits that are searched for the one that an exploration began with."""


_OF_THE_AGENT = ("name", "user", "state", "trust_level", "accepts")
_NOT_AN_END = ("interrupted", "ModelError")


def require_resumable(past: PastRun, agent: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """LogError, with the reason, for a run that cannot be gone on with by an agent that is described so."""
    run, first = past.run, past.attempt(1)
    if run.get("state") != "Versioned":
        raise LogError(
            f"the session of the run in {path} ended with its program",
            hint="only runs of an agent with state=Versioned(…) can be resumed; others can be replayed",
        )
    for what in _OF_THE_AGENT:
        if run[what] != agent[what]:
            raise LogError(
                f"the run in {path} had {what} {line(run[what])}, and this agent has {line(agent[what])}",
                hint="resume it with the agent that began it",
            )
    if run["attempts"] > 1:
        raise LogError(f"the run in {path} was of several attempts, which cannot be resumed", hint="run it again")
    if past.begin is None:
        raise LogError(f"the run in {path} ended before its first step", hint="delete that log, and run it again")
    reason = "interrupted" if first.end is None else line(first.end["reason"])
    if not reason.startswith(_NOT_AN_END):
        raise LogError(f"the run in {path} has ended: {reason}", hint="start a new run, with its own log")


@dataclass(slots=True)
class Resumed(Loop):
    """A run that goes on after `past`, of which the newest cell is number `last` of the session."""

    past: Past = field(kw_only=True)
    last: int = field(kw_only=True)
    _answer: Answer | None = None
    _failure: str | None = None
    _to_undo: Exploration | None = None

    async def resume(self) -> RunResult:
        """Go on with the next step."""
        await read_as_log(self.setting.log.path, self._take_up_all)
        return await self._on(self._go_on())

    async def _go_on(self) -> Answer | None:
        """End what the program ended in: an exploration that was to be undone, a step, or the run."""
        if (explored := self._to_undo) is not None:
            found = await self._found(explored)
            was_undone = await self._go_back(self.steps[-1].number, found or explored, is_done=found is None)
            if not was_undone and self.steps[-1].decision == "rolled back":
                self.steps[-1] = replace(self.steps[-1], decision="")
        self._exploration = self._exploration and await self._found(self._exploration)
        open_ = next((one for one in self.past.steps.values() if not one.ended), None)
        cell = None if open_ is None else await to_thread.run_sync(self._unheard)
        await self._take_memory(ran=cell is not None and not (self._is_gone(cell) or cell.rolled_back))
        self._types = self.setting.session.types
        if self._failure is not None:
            raise given_up(self._failure)
        return self._answer if open_ is None else await self._finish(open_, cell)

    def _take_up_all(self) -> None:
        for step in self.past.ended_steps():
            self._take_up(step)

    def _take_up(self, past: PastStep) -> None:
        """A step of the log as one of this run."""
        reply = past.reply()
        self.tokens += reply.tokens
        self.context.reply(reply.text)
        if (event := past.cell) is None:
            decision = next(one for one in past.decisions if one["kind"] in WITHOUT_CELL)
            self.steps.append(step_of(past.number, reply, code="", decision=decision["kind"]))
            self.context.observe(decision["reason"])
            return
        cell = _cell(event)
        signals: Any = tuple((kind, text) for kind, text in event["signals"])
        self.steps.append(
            step_of(past.number, reply, cell, code=cell.source, signals=signals, decision=event["decision"])
        )
        if event["shown"]:
            self.context.observe(event["shown"])
        if cell.error is None:
            self._failures.clear()
        elif event["decision"] != "not confirmed":
            self._failures[cell.source] += 1
        self._take_answer(past.number, event)
        self._failure = event.get("failure")
        self._follow_exploration(signals, str(cell.number), past.number, ok=cell.ok)
        if event.get("undoes") is not None:
            self._take_undone(past)
        elif cell.error is not None and event["decision"] != "interrupted":
            self._exploration = None

    def _take_undone(self, past: PastStep) -> None:
        """An exploration that a step was to undo: whether it has been the log tells in a decision after the step."""
        if (decision := past.went_back) is None:
            self._to_undo = self._exploration
        else:
            self.context.observe(decision["reason"])
            if decision["kind"] == "not rolled back" and self.steps[-1].decision == "rolled back":
                self.steps[-1] = replace(self.steps[-1], decision="")
        self._exploration = None

    def _take_answer(self, number: int, event: Any) -> None:
        """The answer, or one that waits to be verified; one that the log does not hold is to be given again."""
        checked, self._unverified = self._unverified, None
        given, is_last = event["answer"], event["decision"] in ("answered", "confirmed")
        if event["decision"] == "confirmed" and checked is not None:
            self._answer = checked.confirmed(number)
        elif event["decision"] == "confirmed" or (given is not None and not is_whole(given["value"])):
            self.context.observe(_NOT_KEPT)
            if is_last:
                self.steps[-1] = replace(self.steps[-1], decision="")
        elif given is not None:
            answer = Answer(from_plain(given["value"]), given["verified_by"])
            if is_last:
                self._answer = answer
            else:
                self._unverified = answer
                self._ask_to_verify(answer)

    async def _found(self, exploration: Exploration) -> Exploration | None:
        """An exploration with the step before it, where the log has the number of the cell that began it.

        None where that was undone, or nothing is left of it.
        """
        from cellblock.session.past import step_of

        commits = {commit.id: commit for commit in await self.setting.session.log(limit=_REMEMBERED)}
        for commit in commits.values():
            is_its = str(commit.number) == exploration.state and commit.kind == "python"
            if is_its and (before := commits.get(next(iter(commit.parents), ""))) is not None:
                return replace(exploration, state=step_of(before))
        return None

    async def _take_memory(self, *, ran: bool) -> None:
        memory = self.setting.memory
        if (event := self.past.memory) is None:
            await self._memory.begin(again=True)
            return
        self._noted = {name: event[name] for name in self._noted}
        memory.observations[:] = newest(event["observations"])
        memory.failed_approaches[:] = newest(event["failed_approaches"])
        await self._memory.resume(ran=ran)

    def _unheard(self) -> Cell | None:
        """The cell of which the log has no line: the newest, where that is not one of the log's."""
        cells = self.setting.session.notebook.cells
        return next((one for one in reversed(cells) if one.number > self.last and not one.undone), None)

    def _is_gone(self, cell: Cell) -> bool:
        """True for the cell that ran when the program ended."""
        resumed = self.setting.session.resumed
        return resumed is not None and resumed.interrupted is not None and resumed.interrupted.id == cell.id

    async def _finish(self, past: PastStep, cell: Cell | None) -> Answer | None:
        """The step that the program ended in, and its cell, where the session has that."""
        reply = past.reply()
        self.tokens += reply.tokens
        if cell is None and not (past.has_begun or past.redacted):
            return await self._act(past.number, reply)
        self.context.reply(reply.text)
        if cell is None:
            why = _LOST if past.has_begun else _CHANGED
            await self._note_no_cell(past.number, reply, "not run again", why)
            return None
        gone = self._is_gone(cell)
        step = step_of(past.number, reply, cell, code=cell.source, decision="interrupted")
        remarks = [_GONE if gone else _UNHEARD]
        if cell.error is not None and not gone:
            await self._fail(step, cell.error, Signals(self.setting, step.number), remarks)
        else:
            await self._observe(step, remarks)
        return None


def _cell(event: Any) -> Cell:
    """A cell as the log has it."""
    error = None if event["error"] is None else CellError(**event["error"])
    return Cell(
        id=f"step{int(event['step'])}",
        number=event["number"],
        source=event["code"],
        state=CellState(event["state"]),
        error=error,
        text=event["text"],
        rolled_back=event["rolled_back"],
    )
