"""The loop: context → model → code → cell → observation, until there is an answer or the steps are used up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from cellblock.agent.context import Context, approach, losses, outcome, previews, worth_a_look
from cellblock.agent.memory import AgentMemory, BoundMemory
from cellblock.agent.parse import NoCode, read
from cellblock.agent.recording import to_plain, value_of
from cellblock.agent.result import Decision, RunResult, Step, kept, step_of
from cellblock.agent.signals import Setting, Signals, current
from cellblock.cell import Cell, CellError
from cellblock.errors import CellblockError, ModelError, StepLimitReached, TaskFailed
from cellblock.events import Done
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.models import Reply, Tokens
from cellblock.observe.spans import Operation, Span
from cellblock.text import represent

_SAME_AGAIN = 2
"""Most runs of the same failing code; the third time it is not."""


@dataclass(slots=True)
class Exploration:
    """Steps that are tried out. `state` is the session's step before the cell that began it."""

    text: str
    state: str
    step: int

    @property
    def since(self) -> str:
        """Words of it for the model."""
        return f"What was explored since cell {self.step}"


@dataclass(slots=True)
class Answer:
    """The value given to final_answer."""

    value: object
    verified_by: str | None

    def confirmed(self, number: int) -> Answer:
        """The answer, marked as checked by a step."""
        return Answer(self.value, self.verified_by or f"cell {number} checked it")


@dataclass(slots=True)
class Loop:
    """One run. `task` is the text that asks for it."""

    setting: Setting
    task: str
    context: Context
    steps: list[Step] = field(default_factory=list)
    tokens: Tokens = Tokens()
    _types: Mapping[str, str] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)
    _exploration: Exploration | None = None
    _unverified: Answer | None = None
    _noted: dict[str, Any] = field(default_factory=lambda: notes(AgentMemory()))
    _memory: BoundMemory = field(init=False)

    def __post_init__(self) -> None:
        self._memory = BoundMemory(self.setting.memory, self.setting.session)

    async def run(self, *, again: bool = False) -> RunResult:
        """Step by step to the answer. `again`: the session has run agents before.

        `TaskFailed` where the model says so; `ModelError` where the model cannot be had; at the step limit a result
        that is `partial`.
        """
        await self._memory.begin(again=again)
        self._types = self.setting.session.types
        return await self._on()

    async def _on(self, first: Awaitable[Answer | None] | None = None) -> RunResult:
        """Go on, after what is done `first`, to the end."""
        try:
            answer = None if first is None else await first
            while answer is None and len(self.steps) < self.setting.limits.max_steps:
                number = len(self.steps) + 1
                answer = await self._act(number, await self._reply(number))
        except TaskFailed as error:
            error.result = await self._end(None, "failed")
            raise
        except ModelError as error:
            error.result = await self._end(None, f"ModelError: {error}", partial=True)
            raise
        finally:
            self.setting.log.held.close()  # from here on the caller holds it
        if answer is None:
            return await self._end(self._unverified, "steps used up", partial=True)
        return await self._end(answer, "answered")

    # ------------------------------------------------------------------------------ a step

    async def _act(self, number: int, reply: Reply) -> Answer | None:
        """Act on a reply of the model; the answer, if this is it."""
        self.context.reply(reply.text)
        if number in self.setting.interrupted:
            reason = "This cell had not ended when its program did, and is not run again."
            await self._note_no_cell(number, reply, "interrupted", reason)
            return None
        code = await off_loop(len(reply.text), read, reply)
        if isinstance(code, NoCode):
            await self._note_no_cell(number, reply, "no code", code.reason)
            return None
        if self._failures[code.source] >= _SAME_AGAIN:
            reason = "This code has failed twice, and was not run again. Try another approach."
            await self._note_no_cell(number, reply, "not run again", reason, code.source)
            return None
        step, signals = await self._execute(number, reply, code.source)
        return await self._judge(step, signals, code.remark)

    async def _reply(self, number: int) -> Reply:
        """The model's reply; to a shorter context where its window is too small."""
        while True:
            messages = self.context.messages()
            size = sum(len(one["content"]) for one in messages)
            try:
                with self._span("chat", self.setting.model.name, number) as span:
                    reply = await self.setting.model.reply(messages, [], self.setting.tell)
                    await span.add(Span.reply, messages, reply)
                break
            except ModelError as error:
                if not error.context_too_long or self.context.budget < size // 8:
                    raise
                self.context.budget = min(self.context.budget, size) // 2
                await self._decide(number, "context cut", f"to {self.context.budget} characters")
        self.tokens += reply.tokens
        calls = [{"name": one.name, "arguments": one.arguments} for one in reply.requests]
        told: dict[str, Any] = {"text": reply.text, "finish": reply.finish, "tokens": asdict(reply.tokens)}
        await self.setting.log.add("reply", step=number, requests=calls, **told)
        return reply

    async def _execute(self, number: int, reply: Reply, source: str) -> tuple[Step, Signals]:
        """Run a cell; what it said."""
        session, signals = self.setting.session, Signals(self.setting, number)
        await self._memory.before(source)
        state = session.checkpoint()
        token = current.set(signals)
        try:
            with self._span("execute_tool", "python", number) as span:
                cell = await self._run(source)
                await span.add(Span.cell, cell)
        finally:
            current.reset(token)
        if cell.rolled_back:
            self._memory.went_back()
        await self._memory.after()
        for kind, text in signals.notes:
            self.setting.memory.observe(f"{kind}: {text}")
        self._follow_exploration(signals.notes, state, number, ok=cell.ok)
        return step_of(number, reply, cell, code=source, signals=tuple(signals.notes)), signals

    def _follow_exploration(self, notes: Iterable[tuple[str, str]], state: str, number: int, *, ok: bool) -> None:
        """Begin or end the trying out of steps, as a cell has said."""
        for kind, text in notes:
            if kind == "explore" and self._exploration is None:
                self._exploration = Exploration(text, state, number)
            elif kind == "commit" and ok:
                self._exploration = None

    def _span(self, operation: Operation, what: str, number: int) -> AbstractContextManager[Span]:
        one = self.setting
        return one.spans.step(operation, what, step=number, attempt=one.attempt, model=one.model)

    async def _run(self, source: str) -> Cell:
        if (tell := self.setting.tell) is None:
            return await self.setting.session.run(source)
        async with aclosing(self.setting.session.stream(source)) as events:
            async for event in events:
                tell(event)
                if isinstance(event, Done):
                    return event.cell
        raise AssertionError("a stream of events ends with Done")

    # ------------------------------------------------------------------------ what follows

    async def _judge(self, step: Step, signals: Signals, remark: str) -> Answer | None:
        """Decide what follows for the run from a cell that was run."""
        assert step.cell is not None
        cell, checked = step.cell, self._unverified
        given: Answer | None = None
        remarks = [remark] if remark else []
        if signals.failure is not None:
            await self._note(replace(step, decision="failed"), "", failure=signals.failure)
            raise given_up(signals.failure)
        if cell.error is not None:
            await self._fail(step, cell.error, signals, remarks)
            return None
        self._failures.clear()  # what failed may work by now
        if signals.answered:
            given = Answer(signals.answer, signals.verified_by)
            if not self.setting.verify or checked is not None:
                await self._note(replace(step, decision="answered"), "", given)
                return given
            self._unverified = given
        elif checked is not None:
            await self._note(replace(step, decision="confirmed"), "")
            return checked.confirmed(step.number)
        await self._observe(step, remarks, given)
        return None

    async def _fail(self, step: Step, error: CellError, signals: Signals, remarks: list[str]) -> None:
        """Show the model a cell's failure, and undo what was explored, where the level can."""
        decision = step.decision
        explored, self._exploration = self._exploration, None
        self.setting.memory.fail(approach(step.code, error))
        if self._unverified is None:
            self._failures[step.code] += 1
        else:  # a check, which may fail for one answer after the other
            decision = decision or "not confirmed"
            remarks.append("So the answer does not hold, and was not given. Mend it.")
            self._unverified = None
        if signals.answered:
            remarks.append("final_answer was called, but its cell failed: call it again in a cell that does not.")
        if explored is not None:
            self.setting.memory.observe(f"explored and given up: {explored.text}")
            if self.setting.session.trust_level == "local":
                remarks.append(f"{explored.since} could not be undone, and stays.")
                explored = None
            elif step.decision == "":
                decision = "rolled back"
        await self._observe(replace(step, decision=decision), remarks, explored=explored)

    async def _go_back(self, number: int, explored: Exploration, *, is_done: bool = False) -> bool:
        """Undo what was explored, unless that is done, and tell the model; true if it was."""
        why = ""
        try:
            if not is_done:
                await self.setting.session.undo(to=explored.state)
        except CellblockError as error:
            why = str(error)
        self._types = self.setting.session.types
        if why:
            kind, told = "not rolled back", f"{explored.since} could not be undone, and stays."
        else:
            kind, told = "rolled back", f"{explored.since} was undone, names and files."
            self._memory.went_back()
        await self._decide(number, kind, told, **({"why": why} if why else {}))
        self.context.observe(told)
        return not why

    async def _observe(
        self, step: Step, remarks: list[str], given: Answer | None = None, *, explored: Exploration | None = None
    ) -> None:
        """Show the model what came of a cell, and undo then what was `explored`."""
        assert step.cell is not None
        types = self.setting.session.types
        new = {name for name, kind in types.items() if self._types.get(name) != kind}
        self._types = types
        state = ""
        if explored is None and worth_a_look(types, new):
            # right after a cell a question waits until its frozen copy was made
            state = previews(await self.setting.session.names(), new)
        if self._failures[step.code] == _SAME_AGAIN:
            remarks = [*remarks, "The same code has failed before. Try another approach."]
        shown = self.setting.prompts.fill(
            "observation",
            outcome=outcome(step.cell),
            output=step.output,
            state=state,
            remarks="\n".join([*losses(step.cell), *remarks]),
            left=self._left(step.number),
        )
        await self._note(step, shown, given, explored=explored)
        if self._unverified is not None:
            await off_loop(LARGE, self._ask_to_verify, self._unverified)

    def _ask_to_verify(self, answer: Answer) -> None:
        shown = represent(answer.value, max_chars=2_000)
        self.context.observe(self.setting.prompts.fill("verify", answer=shown, task=self.task))

    def _left(self, number: int) -> str:
        left = self.setting.limits.max_steps - number
        if left == 1:
            return "This is the last cell: call final_answer in it with what you have, or task_fail."
        return "" if left > 3 else f"{left} cells are left."

    async def _note(
        self,
        step: Step,
        shown: str,
        given: Answer | None = None,
        *,
        failure: str | None = None,
        explored: Exploration | None = None,
    ) -> None:
        """Keep a step with the answer that it gave, log it with what is noted by now, and tell of it.

        The line of the log is all of it that outlives the program; what was `explored` is undone only then.
        """
        if shown:
            self.context.observe(shown)
        cell = step.cell
        if cell is None:
            await self._decide(step.number, step.decision, shown)
        else:
            more = {"failure": failure, "undoes": explored and explored.step, "memory": await self._newly_noted()}
            await self.setting.log.add("cell", partial(_cell_event, step, cell, shown, given, more))
            if explored is not None and not await self._go_back(step.number, explored):
                step = replace(step, decision="" if step.decision == "rolled back" else step.decision)
            step = replace(step, cell=await off_loop(LARGE, kept, cell, self.setting.session.notebook))
        self.steps.append(step)
        if self.setting.tell is not None:
            self.setting.tell(step)

    async def _note_no_cell(self, number: int, reply: Reply, decision: Decision, shown: str, code: str = "") -> None:
        """`_note` for a step that ran no cell."""
        await self._note(step_of(number, reply, code=code, decision=decision), shown)

    async def _newly_noted(self) -> dict[str, Any] | None:
        """The memory, where that is not what the log has."""
        noted = await off_loop(LARGE, notes, self.setting.memory)
        if noted == self._noted:
            return None
        self._noted = noted
        return noted

    async def _decide(self, number: int, kind: str, reason: str, **more: str) -> None:
        await self.setting.log.add("decision", size=len(reason), step=number, kind=kind, reason=reason, **more)

    async def _end(self, found: Answer | None, reason: str, *, partial: bool = False) -> RunResult:
        """The result, once memory is as it stays."""
        answer = found or Answer(None, None)
        await self._memory.end()
        told = {
            "verified_by": answer.verified_by,
            "steps": len(self.steps),
            "tokens": asdict(self.tokens),
            "memory": await self._newly_noted(),
        }
        await self.setting.log.add("end", lambda: {"value": to_plain(answer.value), **told}, reason=reason)
        return RunResult(
            value=answer.value,
            verified_by=answer.verified_by,
            steps=self.steps,
            memory=self.setting.memory,
            partial=partial,
            log=self.setting.log,
            tokens=self.tokens,
            notebook=self.setting.session.notebook,
            attempt=self.setting.attempt,
        )


def _cell_event(step: Step, cell: Cell, shown: str, given: Answer | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """A step's cell, and the answer that it gave, as a log keeps them."""
    return {
        "step": step.number,
        "number": cell.number,
        "code": step.code,
        "state": cell.state.value,
        "text": cell.text,
        "error": None if cell.error is None else {"type": cell.error.type, "message": cell.error.message},
        "value": value_of(cell),
        "signals": step.signals,
        "answer": None if given is None else {"value": to_plain(given.value), "verified_by": given.verified_by},
        "lost": [one.name for one in cell.lost],
        "rolled_back": cell.rolled_back,
        "decision": step.decision,
        "shown": shown,
        **more,
        "measured": {name: getattr(cell.usage, name) for name in ("duration_ms", "cpu_ms", "memory_peak_bytes")},
    }


def given_up(reason: str) -> TaskFailed:
    """The error of a run whose model says that its task cannot be done."""
    return TaskFailed(f"the agent says that the task cannot be done: {reason}", reason=reason)


def notes(memory: AgentMemory) -> dict[str, Any]:
    """A memory as a log keeps it."""
    return {
        "observations": list(memory.observations),
        "failed_approaches": list(memory.failed_approaches),
        "variables": to_plain(memory.variables),
    }


def answered(result: RunResult, on_limit: str = "raise") -> RunResult:
    """A result; `StepLimitReached` where it is partial, and an answer or nothing was asked for."""
    if result.partial and on_limit == "raise":
        raise StepLimitReached(
            f"no answer after {len(result.steps)} steps",
            hint="raise ExecutionLimits(max_steps=…), or look at result.log for what stood in the way",
            result=result,
        )
    return result
