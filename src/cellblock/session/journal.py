"""The journal of a session: what is done is logged in the store, to be repeated, before its caller is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import anyio

from cellblock.cell import Cell
from cellblock.errors import LeaseLost, StoreError
from cellblock.hosting import to_thread
from cellblock.hosting.loops import OfLoop
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.hosting.unique import unique_word
from cellblock.session.account import Account, Share
from cellblock.session.hoststeps import FORGET, HostStep
from cellblock.session.past import DELETES, answered, digest_of, host_entries, host_entry
from cellblock.session.tools import Asked
from cellblock.session.unbroken import unbroken
from cellblock.store import JSON, HeldSession
from cellblock.values.room import held
from cellblock.wire.messages import ToolReply

_COPIES = 3
"""Copies held of what waits for a commit while that is written: as it is, as JSON and as the bytes of that."""


class Journal:
    """Logs the steps of one session by their ids.

    The answers that functions of the host give to a step are logged with it, and kept for its commit. Deletions from
    the notebook are logged before anything else.
    """

    _logging = OfLoop(anyio.Lock)
    """Held while deletions are logged."""

    def __init__(self, held: HeldSession, account: Account) -> None:
        self._held = held
        self._account = account
        self._step = ""
        """The step of the cell that runs, or of the host."""
        self.is_whole = True
        """True if it holds all so far of the cell that runs."""
        self._entries: list[int] = []
        self._answers: list[dict[str, JSON]] = []
        self._share = account.share()
        """Of the answers."""
        self._deleted: list[str] = []
        """Cells that were deleted, which it does not say yet: nothing is logged before that."""
        self._deletions: list[int] = []
        """Its entries of deletions that no commit holds. The next one does."""

    # ---------------------------------------------------------------------------- of cells

    async def begin(self, step: str, draft: Cell) -> None:
        """Log a cell that is about to run. Where that fails, or its caller leaves, nothing is logged of it."""
        self._await_answers(step, is_logged=True)
        entry: dict[str, JSON] = {
            "do": "begin",
            "step": step,
            "id": draft.id,
            "number": draft.number,
            "kind": draft.kind,
            "source": draft.source,
            "timeout": draft.timeout_seconds,
        }
        try:
            await self._log(entry)
        except BaseException:
            await unbroken(partial(self._withdraw, self.take_entries()))
            raise

    def begin_host(self, step: str) -> None:
        """A step of the host's begins: what functions give it is logged with it."""
        self._await_answers(step, is_logged=False)

    def _await_answers(self, step: str, *, is_logged: bool) -> None:
        self._step, self.is_whole, self._answers = step, is_logged, []
        self._share.close()
        self._share = self._account.share()

    async def answered(self, call: Asked, reply: ToolReply) -> StoreError | None:
        """Log what a host function gave a cell, before the cell gets it; of a step of the host's, with that.

        Where the store does not take it the cell goes on, and what it does is at risk.
        """
        if not (step := self._step):  # which changes nothing
            return None
        entry = await off_loop(sum(map(len, reply.buffers)), lambda: answered(call, reply).entry(step))
        if self._step != step:  # the cell has ended meanwhile
            return None
        self._answers.append(entry)
        self._share.add(_COPIES * held(entry))
        return await self._try(entry)

    async def ended(self, cell: Cell, *, stopped: bool) -> StoreError | None:
        """Log that the cell that runs has ended."""
        return await self._try(
            {
                "do": "end",
                "step": self._step,
                "number": cell.number,
                "rolled_back": cell.rolled_back,
                "stopped": stopped,
                "ok": cell.ok,
                "shown": digest_of(cell),
            }
        )

    async def _try(self, entry: dict[str, JSON]) -> StoreError | None:
        """Log an entry of the cell that runs, if it holds those before it; why the store has not taken it."""
        if not self.is_whole:
            return None
        try:
            await self._log(entry)
        except LeaseLost:
            raise
        except StoreError as error:
            self.is_whole = False
            return error
        return None

    async def _log(self, entry: dict[str, JSON]) -> None:
        await self._append(entry, lambda number: self._entries.append(number))

    @property
    def step(self) -> str:
        """The step of the cell that runs, or of the host; "" if what is done changes nothing."""
        return self._step

    def take_entries(self) -> list[int]:
        """The numbers of the entries of the cell that has run, for its commit."""
        entries, self._entries = self._entries, []
        return entries

    def take_answers(self, step: str) -> tuple[Sequence[JSON], Share | None]:
        """Answers that functions gave a step, for its commit, and the share of them."""
        if step != self._step:
            return [], None
        answers, self._answers, self._step = self._answers, [], ""
        share, self._share = self._share, self._account.share()
        return answers, share

    # ------------------------------------------------------------------------- of the host

    async def log_host(self, id: str, step: HostStep, during: str = "") -> tuple[int, ...]:
        """Log what the host did, maybe during another step, and what functions gave it; the numbers of the entries."""
        numbers: list[int] = []
        try:
            for entry in chain(self._answers if id == self._step else (), host_entries(id, step, during)):
                await self._append(entry, numbers.append)
        except BaseException:
            await unbroken(partial(self._withdraw, numbers))
            raise
        return (*numbers,)

    async def log_overwritten(self, step: str) -> int:
        """Log that a step has changed the file that the host changed during it; the number of the entry."""
        numbers: list[int] = []
        await self._append({"do": "overwritten", "step": step}, numbers.append)
        return numbers[0]

    async def _withdraw(self, entries: Sequence[int]) -> None:
        """Have it hold nothing of what was not done, or not logged whole."""
        await to_thread.run_sync(self._held.withdraw, entries)

    async def trim(self, entries: Sequence[int]) -> None:
        """Entries are needed no more: what they hold is in a commit."""
        await to_thread.run_sync(self._held.trim, entries)

    # ----------------------------------------------------------------------- of deletions

    @property
    def has_unlogged(self) -> bool:
        """True if there are deletions that it does not say yet."""
        return bool(self._deleted)

    def delete(self, *cells: str) -> None:
        """Cells were deleted: that is logged before anything else."""
        self._deleted += cells

    def delete_at_once(self, cell: str) -> None:
        """A cell was deleted: that is logged at once, or, where it has to wait, before anything else."""
        self.delete(cell)
        with suppress(StoreError):  # whoever takes the next step is told
            if len(self._deleted) == 1 and (number := self._held.append_at_once(_deletion(self._deleted))) is not None:
                self._note_deletions(number, 1)

    def deleted_again(self, entries: Iterable[int]) -> None:
        """Deletions that it holds, in these entries, are in no commit."""
        self._deletions += entries

    def take_deletions(self) -> list[int]:
        """The numbers of its entries of deletions that no commit holds, for the next one."""
        deletions, self._deletions = self._deletions, []
        return deletions

    async def log_deletions(self) -> None:
        """Log the deletions that it does not say yet."""
        if not self._deleted:
            return
        async with self._logging:
            if count := len(self._deleted):
                self._note_deletions(await self._in_thread(_deletion(self._deleted[:count])), count)

    def _note_deletions(self, entry: int, count: int) -> None:
        self._deletions.append(entry)
        del self._deleted[:count]

    # ---------------------------------------------------------------------------- entries

    async def _append(self, entry: dict[str, JSON], note: Callable[[int], None]) -> None:
        """Log an entry, after the deletions before it, and note its number, also for a caller who leaves meanwhile."""

        async def appended() -> None:
            await self.log_deletions()
            note(await self._in_thread(entry))

        if self._deleted or _size(entry) >= LARGE or (number := self._held.append_at_once(entry)) is None:
            await unbroken(appended)
        else:
            note(number)

    async def _in_thread(self, entry: dict[str, JSON]) -> int:
        return await to_thread.run_sync(self._held.append, entry, limiter=anyio.CapacityLimiter(1))


def _deletion(cell_ids: Iterable[str]) -> dict[str, JSON]:
    """Cells that were deleted, for the journal."""
    step = HostStep(FORGET, buffers=tuple(one.encode() for one in cell_ids))
    return host_entry(deletion_id(), step)


def deletion_id() -> str:
    """An id for a step that deletes cells."""
    return f"{DELETES}{unique_word()}"


def _size(entry: Mapping[str, JSON]) -> int:
    """Characters of the bytes in an entry."""
    parts: Any = entry.get("buffers", ())
    return sum(map(len, parts))
