"""A session's place in its history: the steps that led to each state of its kernel, and the notebook they are in."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise

from cellblock.executors.protocol import Kernel
from cellblock.hosting.unique import unique_word
from cellblock.session.notebook import Notebook, Record


@dataclass(frozen=True, slots=True)
class Stand:
    """A session's place: the steps that led to one state, the newest last, and the cells that they were, by id,
    each with what the notebook had of it before.

    The first led there, and the others changed nothing, as a cell does that was rolled back. `made_by` is the newest
    step that can be undone: what was run aside belongs to the step before. `notebook` is the one of then: a clearing
    begins another.
    """

    steps: tuple[str, ...]
    made_by: str
    notebook: Notebook
    cells: Mapping[str, Record | None] = field(default_factory=dict)

    @property
    def step(self) -> str:
        """The newest step."""
        return self.steps[-1]


class History:
    """The place of a session. The kernel knows its states by number; which steps they are is known here alone."""

    def __init__(self, notebook: Notebook, seed: int) -> None:
        self.notebook = notebook
        self.stand = Stand(("open",), "open", notebook)
        self.count = 0
        """The number of the newest cell."""
        self._stands: dict[int, Stand] = {}
        """Places by the numbers of the kernel's states."""
        self._stood: Stand | None = None
        """The place until a kernel is in its state again, for those without the session's turn."""
        self.name_cells_by(seed)

    def name_cells_by(self, seed: int | str) -> None:
        """Ids of cells are drawn from a seed: no two openings of a session have the same."""
        self._ids = random.Random(seed)  # noqa: S311 - names cells; nothing rests on it

    def new_cell(self) -> str:
        """An id for a cell whose caller gave none."""
        return f"c{self._ids.getrandbits(40):010x}"

    def new_step(self) -> str:
        """An id for a step that is no new cell; no branch of the session has the same."""
        return f"s{unique_word()}"

    @property
    def told(self) -> Stand:
        """The place for one without the session's turn: where it stood, while another kernel is brought there."""
        return self._stood or self.stand

    def settle(
        self, kernel: Kernel | None, step: str | None = None, cell_id: str | None = None,
        before: Record | None = None, *, made: bool = True, is_fresh: bool = False, keeps_states: bool = True,
    ) -> int:  # fmt: skip
        """Tell by which step, if there was one, the kernel's present state came about, and mark cells whose states are
        gone as undone; the state's number. `before` is what the notebook had of the cell. Without `made` the step
        belongs to the one before. `is_fresh`: the names were lost meanwhile, and no state of before is there any more,
        whatever numbers the kernel has. Without `keeps_states` all states of the kernel have the same number.
        """
        if kernel is None or kernel.ended:  # another kernel takes its place, and has the states
            if step is not None:
                self.stand = Stand((step,), step if made else self.stand.made_by, self.notebook)
            return 0
        states = kernel.states
        for state in sorted(self._stands.keys() - {*states}, reverse=True):
            left = self._stands.pop(state)
            if state > states[0]:  # else it was too long ago to be gone back to
                for one, record in left.cells.items():
                    left.notebook.go_back(one, record)  # which was cleared since, maybe
        if is_fresh:
            self.stand = Stand((lost := self.new_step(),), lost, self.notebook)
            self._stands = dict.fromkeys(states[:-1], self.stand)
        stand = self._stands.get(states[-1])
        cells = {} if cell_id is None else {cell_id: before}
        if stand is None or (step is not None and not keeps_states):
            made_by = step if made and step is not None else self.stand.made_by
            stand = Stand((step or self.stand.step,), made_by, self.notebook, cells)
        elif step is not None:  # it changed nothing that could be gone back from
            stand = replace(stand, steps=(*stand.steps, step), cells={**cells, **stand.cells})
        self._stands[states[-1]] = self.stand = stand
        return states[-1]

    def begin_again(self) -> None:
        """No state of the kernel is known: it is a new one."""
        self._stands = {}

    def begin_as(self, stand: Stand, notebook: Notebook, count: int, state: int) -> None:
        """Stand where another session stood, as a branch of it does, with one state and a notebook of its own."""
        self.notebook, self.count = notebook, count
        self.stand = replace(stand, notebook=notebook)
        self._stands = {state: self.stand}

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Stand where the session stood, unless what is done within succeeds; meanwhile those without its turn are told
        that place."""
        left, *_ = stood = self.notebook, self.count, self.stand, self._stands
        self._stood = self.stand
        try:
            yield
        except BaseException:
            if self.notebook is not left:
                left.forget(*self.notebook.deletions().cells)
            self.notebook, self.count, self.stand, self._stands = stood
            raise
        finally:
            self._stood = None

    # ---------------------------------------------------------------------------- kernels' states

    def of_state(self, state: int) -> Stand | None:
        """The place that a state of the kernel is; None where nobody has told yet."""
        return self._stands.get(state)

    def state_after(self, step: str) -> int | None:
        """The number of the kernel's state that a step led to; None where it has none."""
        return next((number for number, stand in self._stands.items() if step in stand.steps), None)

    def states_before(self, kernel: Kernel, steps: int) -> int:
        """Number of the kernel's states after the one before so many steps; more than there are where it is gone.

        What was run aside after a step is part of it.
        """
        stands = self._of(kernel)
        for back, (newer, older) in enumerate(pairwise(reversed(stands)), 1):
            steps -= newer.made_by != older.made_by
            if not steps:
                return back
        return len(stands) + steps - 1

    def states_since(self, kernel: Kernel, step: str) -> int:
        """Number of the kernel's states after the one that a step led to; all of them where that is gone."""
        stands = self._of(kernel)
        found = (back for back, stand in enumerate(reversed(stands)) if step in stand.steps)
        return next(found, len(stands))

    def steps_kept(self, kernel: Kernel) -> int:
        """Number of steps that the kernel can undo."""
        return len({stand.made_by for stand in self._of(kernel)}) - 1

    def _of(self, kernel: Kernel) -> Sequence[Stand]:
        """The places of all of a kernel's states. Once it has ended, nobody may have told of the newest."""
        return [self._stands.get(state, self.stand) for state in kernel.states]
