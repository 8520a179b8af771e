"""Result of a run: its steps, its answer, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal
from weakref import ref

from cellblock.agent.memory import AgentMemory
from cellblock.cell import Cell, Deferred
from cellblock.errors import CellblockError
from cellblock.models import Reply, Tokens
from cellblock.observe.log import EventLog
from cellblock.outputs import Output, OutputType
from cellblock.session.notebook import Notebook
from cellblock.text import represent, text_of
from cellblock.values.forms import Opaque
from cellblock.values.room import held

_MOST_KEPT = 64 * 1024

Decision = Literal[
    "", "answered", "failed", "no code", "not run again", "rolled back", "confirmed", "not confirmed", "interrupted"
]
"""The loop's decision about a step, beyond showing it to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn of a model, and what running its code showed.

    `text` is the model's reply, `code` what was taken from it, `output` what the model was shown of the cell. `cell`
    is None where no code was run; outputs and values of more than 64 KB are the notebook's, which drops the oldest
    where there is no room (`ExecutionLimits.max_host_mb`). `signals` are kinds and texts.
    """

    number: int
    text: str
    code: str
    output: str
    cell: Cell | None = None
    signals: tuple[tuple[str, str], ...] = ()
    decision: Decision = ""
    tokens: Tokens = Tokens()

    @property
    def ok(self) -> bool:
        """True if its code ran to its end."""
        return self.cell is not None and self.cell.ok

    @property
    def duration_ms(self) -> float:
        """Running time of its code."""
        return 0.0 if self.cell is None else self.cell.usage.duration_ms

    @property
    def memory_peak_bytes(self) -> int:
        """Peak memory of its code."""
        return 0 if self.cell is None else self.cell.usage.memory_peak_bytes


def step_of(
    number: int,
    reply: Reply,
    cell: Cell | None = None,
    *,
    code: str,
    signals: tuple[tuple[str, str], ...] = (),
    decision: Decision = "",
) -> Step:
    """A step: a reply of the model, and the cell that ran its code, if there is one."""
    return Step(
        number=number,
        text=reply.text,
        code=code,
        output="" if cell is None else cell.text,
        cell=cell,
        signals=signals,
        decision=decision,
        tokens=reply.tokens,
    )


def kept(cell: Cell, notebook: Notebook) -> Cell:
    """A cell as a step keeps it: of what is large the notebook has the one copy."""
    shown = sum(held(one.data) for one in cell.outputs)
    if shown > _MOST_KEPT:
        note = f"[{shown} bytes of outputs: the notebook has cell {cell.id}]\n"
        outputs = (Output(type=OutputType.TEXT, data={"text/plain": note}, stream="stderr"),)
        cell = replace(cell, outputs=outputs)
    if cell.result.size > _MOST_KEPT:
        cell = replace(cell, result=Deferred(partial(_value, ref(notebook), cell.id)))
    return cell


def _value(notebook: ref[Notebook], cell_id: str) -> object:
    there = notebook()
    cell = None if there is None else there.find(cell_id)
    return Opaque("not kept", "the notebook has it no more") if cell is None else cell.value


@dataclass(slots=True, kw_only=True)
class RunResult:
    """Result of an agent's run. `partial`: its steps were used up first, and `value` is what there was, or None.

    `verified_by` is in the model's words how the answer was checked. `memory` is what was noted, `log` every event.
    """

    value: object
    verified_by: str | None = None
    steps: list[Step] = field(default_factory=list)
    memory: AgentMemory = field(default_factory=AgentMemory)
    partial: bool = False
    log: EventLog = field(default_factory=EventLog)
    tokens: Tokens = Tokens()
    notebook: Notebook = field(default_factory=Notebook)
    attempt: int = 1

    def __repr__(self) -> str:
        cut = represent(self.value, max_chars=200)
        part = ", partial" if self.partial else ""
        return f"<RunResult {cut} after {len(self.steps)} steps{part}>"


def how_ended(error: BaseException) -> str:
    """Why a run ended that gave no result."""
    if isinstance(error, CellblockError):
        return f"{type(error).__name__}: {text_of(error.args[0], max_chars=10_000)}"
    return "interrupted" if not isinstance(error, Exception) else type(error).__name__
