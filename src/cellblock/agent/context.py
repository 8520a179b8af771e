"""The messages of one run, kept within a budget: what is oldest and longest known is left out first, always alike."""

from __future__ import annotations

from dataclasses import dataclass

from cellblock.models import Message

_LEFT_OUT = "(what this cell showed is left out here, for length)"
_CODE_LEFT_OUT = "(left out here, for length)"
_KEPT = 2
"""The newest messages, which are never left out."""


@dataclass(slots=True)
class _Entry:
    role: str
    content: str
    short: str

    def message(self) -> Message:
        return {"role": self.role, "content": self.content}


class Context:
    """The conversation as a model is shown it: the system's text and the task, which always stay, then replies and
    observations."""

    def __init__(self, system: str, task: str, *, budget: int) -> None:
        """`budget` is in characters, about four to a token."""
        self._head = [_Entry("system", system, system), _Entry("user", task, task)]
        self._rest: list[_Entry] = []
        self.budget = budget
        self.left_out = 0

    def reply(self, text: str) -> None:
        """Add what the model said."""
        self._rest.append(_Entry("assistant", text or "(nothing)", _CODE_LEFT_OUT))

    def observe(self, text: str) -> None:
        """Add what the model is shown, to one message: there are endpoints that take no two of one side in a row."""
        if self._rest and self._rest[-1].role == "user":
            text = f"{self._rest.pop().content}\n\n{text}"
        self._rest.append(_Entry("user", text, _LEFT_OUT))

    def messages(self) -> list[Message]:
        """The messages, within the budget as far as the head and the newest two are.

        Observations are left out first, oldest first; then replies, in the same order.
        """
        entries = [*self._head, *self._rest]
        size = sum(len(one.content) for one in entries)
        shown = [one.message() for one in entries]
        self.left_out = 0
        for role in ("user", "assistant"):
            for index in range(len(self._head), len(entries) - _KEPT):
                one = entries[index]
                if size > self.budget and one.role == role and len(one.short) < len(one.content):
                    size -= len(one.content) - len(one.short)
                    shown[index]["content"] = one.short
                    self.left_out += 1
        return shown
