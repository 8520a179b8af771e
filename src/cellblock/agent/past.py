"""A run as its log tells of it, step by step: what is replayed, and what is gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cellblock.documents import fits, reading
from cellblock.errors import LogError
from cellblock.models import Reply, Tokens, ToolRequest
from cellblock.observe.log import Event
from cellblock.observe.redaction import MASK
from cellblock.text import line, write_json
from cellblock.values.portable import MalformedValue

Made = TypeVar("Made")

_WITHOUT_CELL = frozenset(("no code", "not run again"))
_TOKENS = {"input": int, "output": int, "cached": int, "cost": (int, float, None)}
_NAMES = ("modules", "libraries", "without", "classes", "granted", "functions")
_POLICY = {**{name: [str] for name in _NAMES}, "modules": ([str], None), "format_index": bool}
_SHAPES: dict[str, object] = {
    "run": {"task": str, "version": str, "python": str, "attempts": int, "inputs": {...: object}, "verify": bool,
            "files": {...: {"sha256": str}}, "name": (str, None), "user": str, "trust_level": str, "walls": str,
            "limits": {...: (int, float, None)}, "seed": (int, None), "policy": (_POLICY, None), "tools": [dict],
            "accepts": bool, "preload": [str], "mounts": [str], "classes": [str]},
    "begin": {"asked": str, "again": bool, "cells": int},
    "reply": {"step": int, "text": str, "requests": [{"name": str, "arguments": (dict, None)}], "finish": str,
              "tokens": _TOKENS},
    "tool": {"step": int, "name": str, "arguments": [object]},
    "accept": {"step": int},
    "cell": {"step": int, "number": int, "code": str, "state": str, "text": str, "signals": [[str]],
             "error": ({"type": str, "message": str}, None), "answer": ({"value": object, "verified_by": object}, None),
             "rolled_back": bool, "decision": str, "shown": str},
    "memory": {"observations": [str], "failed_approaches": [str]},
    "decision": {"kind": str},
    "end": {"reason": str},
}  # fmt: skip
"""The shape of each event, for `fits`."""


@dataclass(slots=True)
class PastStep:
    """One step: the model's reply, and what is known of what came of it."""

    number: int
    told: Event
    cell: Event | None = None
    calls: list[Event] = field(default_factory=list)
    accepts: list[Event] = field(default_factory=list)
    decisions: list[Event] = field(default_factory=list)
    memory: Event | None = None

    @property
    def ended(self) -> bool:
        """Whether the loop was done with it."""
        return self.cell is not None or any(one["kind"] in _WITHOUT_CELL for one in self.decisions)

    @property
    def redacted(self) -> bool:
        """Whether its code is not in the log as it was."""
        return MASK in write_json([self.told["text"], self.told["requests"]])

    def reply(self) -> Reply:
        """What the model said."""
        requests = tuple(ToolRequest("", one["name"], one["arguments"], "") for one in self.told["requests"])
        return Reply(
            text=self.told["text"],
            requests=requests,
            finish=self.told["finish"],
            tokens=Tokens(**self.told["tokens"]),
        )


@dataclass(slots=True)
class Past:
    """One attempt at a task. `end` is None where the program that ran it ended first."""

    steps: list[PastStep] = field(default_factory=list)
    memory: Event | None = None
    end: Event | None = None
    resumed: int = 0

    def step(self, number: int) -> PastStep | None:
        return next((one for one in self.steps if one.number == number), None)

    def interrupted(self) -> frozenset[int]:
        """The steps whose cells had not ended when their program did."""
        return frozenset(
            step.number for step in self.steps if step.cell is not None and step.cell["decision"] == "interrupted"
        )

    def ended_steps(self) -> list[PastStep]:
        return [one for one in self.steps if one.ended]


@dataclass(slots=True)
class PastRun:
    """A whole run. `scores` are those of its attempts, where there was more than one."""

    run: Event
    begin: Event | None = None
    attempts: dict[int, Past] = field(default_factory=dict)
    scores: list[float | None] = field(default_factory=list)

    @property
    def asked(self) -> str:
        """What the model was asked."""
        return "" if self.begin is None else str(self.begin["asked"])

    @property
    def last_number(self) -> int:
        """The number of the newest cell that the log knows of its session."""
        cells = [int(step.cell["number"]) for one in self.attempts.values() for step in one.steps if step.cell]
        return max(cells, default=0 if self.begin is None else int(self.begin["cells"]))

    def attempt(self, number: int) -> Past:
        """An attempt; of one that the log does not have, nothing."""
        return self.attempts.get(number) or Past()


def past_run(events: Iterable[Event], path: object) -> PastRun:
    """Read the events of a log. LogError where one is not as a log has it."""
    first, *rest = events
    past = PastRun(first)
    return read_as_log(path, _read, past, rest)


def read_as_log(path: object, read: Callable[..., Made], *args: Any) -> Made:
    """What `read` makes of a log's events; LogError where they are not as it expects them."""
    with reading(f"{line(path)} is", LogError, hint="give a log as a run has written it", also=(MalformedValue,)):
        return read(*args)


def _read(past: PastRun, events: Iterable[Event]) -> PastRun:
    if past.run.get("state") or "trust_level" in past.run:
        _check(past.run)
    for event in events:
        kind = event["event"]
        _check(event)
        if kind == "begin":
            past.begin = event
        elif kind == "decision" and event["kind"] == "attempt kept":
            past.scores = list(event["scores"])
        else:
            _add(past.attempts.setdefault(event.get("attempt", 1), Past()), kind, event)
    return past


def _check(event: Event) -> None:
    if type(event.get("attempt", 1)) is not int or not fits(event, _SHAPES.get(event["event"], object)):
        raise TypeError(f"the event {event['event']!r:.40} does not hold what one of its kind does")


def _add(past: Past, kind: str, event: Event) -> None:
    match kind:
        case "reply":
            step = PastStep(int(event["step"]), event)
            step.reply()  # or raise
            past.steps.append(step)
        case "resume":
            past.end, past.resumed = None, past.resumed + 1
        case "end":
            past.end = event
        case "memory":
            past.memory = event
            if past.steps:
                past.steps[-1].memory = event
        case "cell":
            _of(past, event).cell = event
        case "tool":
            _of(past, event).calls.append(event)
        case "accept":
            _of(past, event).accepts.append(event)
        case "decision" if past.steps and event["step"] == past.steps[-1].number:
            past.steps[-1].decisions.append(event)


def _of(past: Past, event: Event) -> PastStep:
    step = past.step(int(event["step"]))
    if step is None:
        raise ValueError(f"{event['event']} of step {event['step']}, which has no reply")
    return step
