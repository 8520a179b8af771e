"""The place of a session in its history, and the commits that its steps led to."""

from __future__ import annotations

from cellblock.errors import StoreError
from cellblock.session.steps import Step


class Standing:
    """The step that the next one comes after, and the commits of the steps that are in the store, by their ids."""

    def __init__(self, name: str) -> None:
        """`name` is the session's."""
        self._name = name
        self._commits: dict[str, str] = {}
        self.tip = ""
        """The newest step."""
        self.untold: str | None = None
        """The commit where the session stands, where the store could not be told. The next commit tells it, too."""
        self.place = 0
        """Number of times the session has gone back, or elsewhere."""

    @property
    def head(self) -> str:
        """The commit where the session stands."""
        return self.commit_of(self.tip)

    @property
    def is_committed(self) -> bool:
        """True if the newest step is in the store."""
        return self.tip in self._commits

    def find(self, step: str) -> str | None:
        """The commit that a step led to, if it is in the store."""
        return self._commits.get(step)

    def commit_of(self, step: str) -> str:
        """The commit that a step led to; StoreError where it is not in the store, as one that is to be taken again."""
        if (commit := self._commits.get(step)) is None:
            what = f"what session {self._name!r} did last is not in its store"
            raise StoreError(what, hint="use the session, then try again")
        return commit

    def go(self, step: str, commit: str) -> None:
        """The session stands after a step, which led to a commit."""
        self.tip = step
        self._commits[step] = commit

    def led_to(self, step: Step, commit: str) -> None:
        """A step led to a commit. One that stands in for another commit takes its place."""
        before = self._commits.get(step.parent)
        taken = [one for one, led in [*self._commits.items()] if led == before] if step.stands_in else [step.id]
        self._commits.update(dict.fromkeys(taken, commit))
        step.commit = commit
