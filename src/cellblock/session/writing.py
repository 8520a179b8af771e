"""Commits of steps as they are written: of each only what is not in the commit before it."""

from __future__ import annotations

from cellblock.session.commits import Written, of_state, put_answers, put_cell, put_cells, put_snapshot, read_written
from cellblock.session.hoststeps import HostStep
from cellblock.session.steps import Step
from cellblock.snapshots import Snapshot
from cellblock.store import JSON, Batch, Commit, HeldSession, blobs, records
from cellblock.text import line

_WITHOUT_STATE = ("unsaved", "stopped", "overwritten", "host")
"""Mark in the detail of a commit that has no state."""


class CommitWriter:
    """Writes the commits of one session, one after the other. For one thread at a time."""

    def __init__(self, held: HeldSession) -> None:
        self._held = held
        self._written = Written()
        self._basis: str | None = None
        """The commit that `_written` is of."""

    def write(self, batch: Batch, step: Step, parent: str | None, snapshot: Snapshot | None) -> Commit:
        """The commit of a step after the commit `parent`, or, where it amends that, `parent` made once more.

        Without a snapshot it holds no state, but for that of its parent where the step has no kernel.
        """
        if self._basis != parent:
            self._written = Written() if parent is None else read_written(self._held, self._held.resolve(parent))
            self._basis = parent
        written = self._written.copy()
        detail: dict[str, JSON] = {} if snapshot is None else put_snapshot(batch, written, snapshot)
        if step.amends is None:
            commit = self._write_step(batch, step, parent, written, detail, has_state=snapshot is not None)
        else:
            old = self._held.resolve(step.amends)
            commit = batch.commit(
                kind=old.kind,
                message=old.message,
                number=old.number,
                trees=written.roots,
                detail={**{what: told for what, told in old.detail.items() if what not in _WITHOUT_STATE}, **detail},
                parents=old.parents,
            )
        self._written, self._basis = written, commit.id
        return commit

    def _write_step(
        self, batch: Batch, step: Step, parent: str | None, written: Written, detail: dict[str, JSON], *,
        has_state: bool,
    ) -> Commit:  # fmt: skip
        if step.kernel is None and parent is not None:
            before = self._held.resolve(parent)
            has_state, step.number, detail = before.snapshot, before.number, of_state(before)
            step.host = None if has_state else HostStep("run", buffers=(b"",))
        detail["step"] = step.id
        links = put_cells(batch, self._held, written.roots, step.changes)
        if step.changes.deleted:
            detail["deleted"] = sorted(step.changes.deleted)
        if step.cell is not None:
            detail["cell"] = links.get(step.cell.id) or records(put_cell(batch, step.cell, step.parts))
            detail["rolled_back"] = step.cell.rolled_back
            if step.cell.error is not None:
                detail["error"] = line(step.cell.error.type, 100)
        if step.during:
            detail["during"] = step.during
        if step.answers:
            detail["answers"] = put_answers(batch, step.answers)
        if not has_state:
            detail["unsaved"], detail["stopped"], detail["overwritten"] = step.unsaved, step.stopped, step.overwritten
            if step.host is not None:
                detail["host"] = _kept(batch, step.host)
        return batch.commit(
            kind=step.kind,
            message=step.message,
            number=step.number,
            snapshot=has_state,
            trees=written.roots,
            detail=detail,
            parents=() if parent is None else (parent,),
            entries=step.entries,
        )


def _kept(batch: Batch, step: HostStep) -> JSON:
    return {"do": step.do, "name": step.name, "buffers": blobs(*(batch.put(memoryview(one)) for one in step.buffers))}
