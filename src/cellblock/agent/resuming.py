"""A run whose program ended in the middle, gone on with: by its log and by what the store has of its session.

What the model was shown is rebuilt from the log, word by word, and so is the memory. The session comes from its store.
Between the two lies at most one cell: the one that ran when the program ended.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cellblock.agent.loop import Answer, Loop, notes
from cellblock.agent.past import Past, PastRun, PastStep, read_as_log
from cellblock.agent.recording import from_plain, is_whole
from cellblock.agent.result import RunResult, Step
from cellblock.agent.signals import Said
from cellblock.cell import Cell, CellError, CellState
from cellblock.errors import LogError
from cellblock.hosting import to_thread
from cellblock.models import Reply
from cellblock.text import line

_GONE = (
    "The program that runs you ended while this cell ran, and was started again. The cell was not run again. "
    "Names and files are as they were before it; what it did outside of the session is done."
)
_UNHEARD = (
    "The program that runs you ended when this cell had, and was started again. Names and files are as the cell left "
    "them; what it gave to final_answer, explore, commit or task_fail was not heard: say it again."
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
        raise LogError(f"the run in {path} ended before its first step", hint="run it again")
    reason = "interrupted" if first.end is None else line(first.end["reason"])
    if not reason.startswith(_NOT_AN_END):
        raise LogError(f"the run in {path} has ended: {reason}", hint="start a new run, with its own log")


@dataclass(slots=True)
class Resumed(Loop):
    """A run that goes on after `past`, of which the newest cell is number `last` of the session."""

    past: Past = field(kw_only=True)
    last: int = field(kw_only=True)

    async def resume(self) -> RunResult:
        """Go on with the next step."""
        await read_as_log(self.setting.log.path, self._take_up_all)
        await self._find_exploration()
        self._take_memory()
        await self._lent.resume()
        self._types = self.setting.session.types
        open_ = next((one for one in self.past.steps.values() if not one.ended), None)
        return await self._on(None if open_ is None else await self._finish(open_))

    def _take_up_all(self) -> None:
        for step in self.past.ended_steps():
            self._take_up(step)

    def _take_up(self, past: PastStep) -> None:
        """A step of the log as one of this run."""
        reply = past.reply()
        self.tokens += reply.tokens
        self.context.reply(reply.text)
        step = Step(number=past.number, text=reply.text, code="", output="", tokens=reply.tokens)
        if (event := past.cell) is None:
            decision = past.decisions[-1]
            self.steps.append(replace(step, decision=decision["kind"]))
            self.context.observe(decision["reason"])
            return
        cell = _cell(event)
        signals: Any = tuple((kind, text) for kind, text in event["signals"])
        self.steps.append(
            replace(step, code=cell.source, output=cell.text, cell=cell, signals=signals, decision=event["decision"])
        )
        if event["shown"]:
            self.context.observe(event["shown"])
        if cell.error is None:
            self._failures.clear()
        elif event["decision"] != "not confirmed":
            self._failures[cell.source] += 1
        self._take_answer(event)
        self._follow_exploration(signals, str(cell.number), past.number, ok=cell.ok)
        if cell.error is not None:
            self._exploration = None

    def _take_answer(self, event: Any) -> None:
        """An answer that waits to be verified; one that the log does not hold is to be given again."""
        self._unverified = None
        if event["answer"] is not None and event["decision"] != "answered" and is_whole(event["answer"]["value"]):
            self._unverified = Answer(from_plain(event["answer"]["value"]), event["answer"]["verified_by"])
            self._ask_to_verify(self._unverified)

    async def _find_exploration(self) -> None:
        """The step before an exploration, of which the log has the number of the cell that began it."""
        if self._exploration is None:
            return
        from cellblock.session.past import step_of

        commits = {commit.id: commit for commit in await self.setting.session.log(limit=_REMEMBERED)}
        for commit in commits.values():
            is_its = str(commit.number) == self._exploration.state and commit.kind == "python"
            if is_its and (before := commits.get(next(iter(commit.parents), ""))) is not None:
                self._exploration = replace(self._exploration, state=step_of(before))
                return
        self._exploration = None  # it was undone before the program ended, or nothing is left of it

    def _take_memory(self) -> None:
        memory = self.setting.memory
        if (event := self.past.memory) is not None:
            memory.observations[:] = event["observations"]
            memory.failed_approaches[:] = event["failed_approaches"]
        self._noted = notes(memory)

    async def _finish(self, past: PastStep) -> Answer | None:
        """The step that the program ended in."""
        reply = past.reply()
        self.tokens += reply.tokens
        cells = await to_thread.run_sync(lambda: self.setting.session.notebook.cells)
        cell = next((one for one in reversed(cells) if one.number > self.last), None)
        if cell is None and not past.redacted:
            return await self._act(past.number, reply)  # it had not begun
        self.context.reply(reply.text)
        if cell is None:
            await self._note_no_cell(past.number, reply, "not run again", _CHANGED)
            return None
        await self._show_what_ended(past.number, reply, cell)
        return None

    async def _show_what_ended(self, number: int, reply: Reply, cell: Cell) -> None:
        resumed = self.setting.session.resumed
        gone = resumed is not None and resumed.interrupted is not None and resumed.interrupted.id == cell.id
        step = Step(number=number, text=reply.text, code=cell.source, output=cell.text, cell=cell, tokens=reply.tokens)
        remarks = [_GONE if gone else _UNHEARD]
        if cell.error is not None and not gone:
            _, why = await self._failed(step, cell.error, Said(number))
            remarks += why
        await self._observe(replace(step, decision="interrupted"), remarks)


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
